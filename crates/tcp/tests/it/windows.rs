//! Growth and reduction of windows, compared with the RFCs and papers of each algorithm.

use leeward_fabric::Nanos;
use leeward_tcp::control::Control;
use leeward_tcp::{Ack, Ecn, Segment, Sender, Settings, State};

use crate::support::{Fate, Link, Run};

const MSS: u64 = 8948;
const MS: u64 = 1_000_000;

fn with(control: Control) -> Settings {
    Settings { control, ack_every: 1, ..Settings::default() }
}

/// A link of infinite rate; `fate` decides on segments.
fn fast(
    delay_ms: u64,
    fate: impl FnMut(u64, &Segment) -> Fate,
) -> Link<impl FnMut(u64, &Segment) -> Fate, impl FnMut(u64, &mut Ack) -> Fate> {
    Link {
        ns_per_byte: 0,
        delay: Nanos(delay_ms * MS),
        queue: 1 << 20,
        segments: fate,
        acks: |_: u64, _: &mut Ack| Fate::Arrives,
    }
}

/// Sends all segments that may be sent.
fn send_all(sender: &mut Sender, now: Nanos) -> Vec<Segment> {
    std::iter::from_fn(|| sender.next_segment(now)).collect()
}

fn ack(cumulative: u64, echo: Nanos) -> Ack {
    Ack { cumulative, echo, ..Ack::default() }
}

#[test]
fn slow_start_doubles_in_each_round_trip() {
    // RFC 5681, section 3.1, with all bytes of an acknowledgement counted.
    for ack_every in [1, 2] {
        let settings = Settings { ack_every, ..Settings::default() };
        let mut run = Run::new(settings, fast(5, |_, _| Fate::Arrives));
        run.sender.write(1 << 40);
        for trip in 1..7 {
            run.until(Nanos(trip * 10 * MS));
            assert_eq!(run.sender.window() / MSS, 10 << trip, "after {trip} round trips");
        }
        assert_eq!(run.sender.state(), State::Open);
    }
}

#[test]
fn reno_gains_a_segment_per_round_trip_and_averages_3_4_of_its_peak() {
    // RFC 5681, section 3.1. One loss in n segments gives a peak of sqrt(8n/3), and 3/4 of this on average (Mathis and
    // others, 1997).
    let every = 6000;
    let mut run = Run::new(
        with(Control::Reno),
        fast(5, move |n, _| if n % every == every - 1 { Fate::Lost } else { Fate::Arrives }),
    );
    run.sender.write(1 << 40);
    run.until(Nanos(5_000 * MS));
    let (mut windows, mut peaks) = (Vec::new(), Vec::new());
    let mut last = run.sender.counts().recoveries;
    for trip in 501..2500 {
        run.until(Nanos(trip * 10 * MS));
        let recoveries = run.sender.counts().recoveries;
        if recoveries > last {
            peaks.push(windows.last().copied().unwrap_or(0.0));
            last = recoveries;
        }
        windows.push(run.sender.window() as f64 / MSS as f64);
    }
    assert_eq!(run.sender.counts().timeouts, 0);
    let mean = windows.iter().sum::<f64>() / windows.len() as f64;
    let peak = peaks[1..].iter().sum::<f64>() / (peaks.len() - 1) as f64;
    let expected = (8.0 * every as f64 / 3.0).sqrt();
    assert!((peak / expected - 1.0).abs() < 0.05, "a peak of {peak}, not of {expected}");
    assert!((mean / peak - 0.75).abs() < 0.02, "{mean} of {peak}");
    let gains: Vec<f64> =
        windows.windows(2).map(|pair| pair[1] - pair[0]).filter(|gain| *gain > 0.0).collect();
    let gain = gains.iter().sum::<f64>() / gains.len() as f64;
    assert!((gain - 1.0).abs() < 0.02, "{gain} segments in a round trip");
}

#[test]
fn cubic_follows_its_curve_after_a_loss() {
    // RFC 9438, equations 1 and 2, while the curve is above Reno's line.
    let settings = Settings { initial_window: 300, ..with(Control::Cubic) };
    let mut run = Run::new(settings, fast(50, |n, _| if n == 0 { Fate::Lost } else { Fate::Arrives }));
    run.sender.write(1 << 40);
    let mut before = 0;
    while run.sender.state() == State::Open {
        before = run.sender.window();
        run.step();
    }
    let largest = before as f64 / MSS as f64;
    assert!((run.sender.threshold() as f64 / before as f64 - 0.7).abs() < 0.01);
    while run.sender.state() == State::Recovery {
        run.step();
    }
    let began = run.now;
    let k = (largest * 0.3 / 0.4).cbrt();
    for tenths in (2..100).step_by(7) {
        run.until(began.plus(Nanos(tenths * 100 * MS)));
        let seconds = tenths as f64 / 10.0;
        let curve = 0.4 * (seconds - k).powi(3) + largest;
        let window = run.sender.window() as f64 / MSS as f64;
        assert!((window / curve - 1.0).abs() < 0.02, "{window} segments after {seconds} s, not {curve}");
    }
}

#[test]
fn cubic_is_no_slower_than_reno_where_round_trips_are_short() {
    // RFC 9438, section 4.3: 3 (1 - beta) / (1 + beta) segments per round trip, up to the window before the reduction.
    let settings = Settings { initial_window: 100, ..with(Control::Cubic) };
    let mut run = Run::new(settings, fast(1, |n, _| if n == 0 { Fate::Lost } else { Fate::Arrives }));
    run.sender.write(1 << 40);
    while run.sender.counts().recoveries == 0 || run.sender.state() != State::Open {
        run.step();
    }
    let (began, first) = (run.now, run.sender.window() as f64 / MSS as f64);
    for trips in [10, 20, 40] {
        run.until(began.plus(Nanos(trips * 2 * MS)));
        let gained = run.sender.window() as f64 / MSS as f64 - first;
        let expected = trips as f64 * 0.9 / 1.7;
        assert!((gained - expected).abs() < 1.0, "{gained} segments in {trips} round trips, not {expected}");
    }
}

#[test]
fn dctcp_learns_the_share_of_marks_and_cuts_by_half_of_it() {
    // RFC 8257, section 3.3.
    for (marked, every) in [(1, 4), (1, 16), (1, 1)] {
        let fate = move |n, _: &Segment| if n % every < marked { Fate::Marked } else { Fate::Arrives };
        let settings = Settings { initial_window: 64, ..with(Control::Dctcp) };
        let mut run = Run::new(settings, fast(5, fate));
        run.sender.write(1 << 40);
        run.until(Nanos(3_000 * MS));
        let share = run.sender.marked_share().unwrap();
        let expected = marked as f64 / every as f64;
        // A window of few segments has one marked segment or none.
        assert!((share - expected).abs() < 0.05, "{share}, not {expected}");
        let mut before = run.sender.window();
        while run.sender.window() >= before {
            before = run.sender.window();
            assert!(run.step() || every == 1);
            if before <= 2 * MSS {
                break;
            }
        }
        let cut = run.sender.window() as f64 / before as f64;
        let floor = 2.0 * MSS as f64 / before as f64;
        let share = run.sender.marked_share().unwrap();
        assert!((cut - (1.0 - share / 2.0).max(floor)).abs() < 0.01, "{cut} at a share of {share}");
        assert_eq!(run.sender.counts().retransmitted, 0);
    }
}

#[test]
fn without_marks_the_dctcp_share_decays_by_a_sixteenth_per_window() {
    let mut run = Run::new(with(Control::Dctcp), fast(5, |_, _| Fate::Arrives));
    run.sender.write(1 << 40);
    run.until(Nanos(95 * MS));
    let share = run.sender.marked_share().unwrap();
    // Nine round trips: the first acknowledgement ends an empty window.
    assert!((share.ln() / (15.0f64 / 16.0).ln() - 9.0).abs() < 1.01, "{share}");
}

#[test]
fn an_echoed_mark_halves_a_window_once_per_round_trip() {
    // RFC 3168, section 6.1.
    let settings = Settings { ecn: true, ..with(Control::Reno) };
    let mut run = Run::new(settings, fast(5, |n, _| if n == 3 { Fate::Marked } else { Fate::Arrives }));
    run.sender.write(1 << 40);
    run.until(Nanos(10 * MS));
    assert_eq!(run.sender.threshold(), run.sender.window());
    let halved = run.sender.window();
    // The arrival of three segments has already grown the window of 10. The segment that the echo acknowledges is no
    // longer in flight.
    assert_eq!(halved / MSS, 6);
    // While an echo may still be of the same mark, the window is not reduced again. Then it grows by one segment per
    // round trip.
    run.until(Nanos(20 * MS));
    assert_eq!(run.sender.window(), halved);
    run.until(Nanos(40 * MS));
    assert!((1..=2).contains(&((run.sender.window() - halved) / MSS)));
    assert_eq!(run.sender.counts().retransmitted, 0);
}

#[test]
fn retcp_doubles_when_the_echo_begins_and_halves_when_it_ends() {
    // Etalon, section 4.4: alpha = 2, beta = 0.5, and the echo is not congestion.
    let mut sender = Sender::new(with(Control::RETCP)).unwrap();
    sender.write(1 << 40);
    let segments = send_all(&mut sender, Nanos(0));
    assert!(segments.iter().all(|segment| segment.ecn == Ecn::No));
    let mut cumulative = 0;
    let mut table = Vec::new();
    for (turn, ece) in [false, true, true, false, false, true, false].into_iter().enumerate() {
        let before = sender.window();
        cumulative += MSS;
        sender.on_ack(Nanos(MS + turn as u64), &Ack { ece, ..ack(cumulative, Nanos(0)) });
        table.push((before / MSS, sender.window() / MSS));
        send_all(&mut sender, Nanos(MS + turn as u64));
    }
    // Slow start adds one segment at each step.
    assert_eq!(table, [(10, 11), (11, 23), (23, 24), (24, 13), (13, 14), (14, 29), (29, 15)]);
    assert_eq!(sender.threshold(), u64::MAX);
}

#[test]
fn retcp_defers_its_multiplication_to_the_end_of_recovery() {
    // The authors' module scales only where a window may grow.
    let mut sender = Sender::new(with(Control::RETCP)).unwrap();
    sender.write(1 << 40);
    let end = MSS * send_all(&mut sender, Nanos(0)).len() as u64;
    let held = Ack { ece: true, ..ack(0, Nanos(0)) };
    let mut blocks = held.blocks;
    (blocks[0].start, blocks[0].end) = (MSS, 4 * MSS);
    sender.on_ack(Nanos(MS), &Ack { ece: false, blocks, ..held });
    assert_eq!(sender.state(), State::Recovery);
    let threshold = sender.threshold();
    blocks[0].end = 6 * MSS;
    sender.on_ack(Nanos(MS + 1), &Ack { blocks, ..held });
    assert_eq!((sender.state(), sender.threshold()), (State::Recovery, threshold));
    sender.on_ack(Nanos(2 * MS), &Ack { ece: true, ..ack(end, Nanos(0)) });
    assert_eq!((sender.state(), sender.window()), (State::Open, 2 * threshold));
}

#[test]
fn a_window_idle_for_a_timeout_restarts() {
    // RFC 5681, section 4.1.
    for (restart_after_idle, expected) in [(true, 10), (false, 27)] {
        let settings = Settings { restart_after_idle, ..with(Control::Reno) };
        let mut run = Run::new(settings, fast(5, |_, _| Fate::Arrives));
        // Twenty segments are in flight when the second ten are acknowledged; the last ten do not fill the window.
        run.sender.write(30 * MSS);
        run.until(Nanos(5_000 * MS));
        assert_eq!((run.sender.acknowledged(), run.sender.window()), (30 * MSS, 27 * MSS));
        run.now = Nanos(5_000 * MS);
        run.sender.write(1 << 30);
        run.send();
        assert_eq!((run.sender.window() / MSS, run.sender.in_flight() / MSS), (expected, expected));
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for control in [Control::Reno, Control::Cubic] {
        let mut run =
            Run::new(Settings { restart_after_idle: false, ..with(control) }, fast(5, |_, _| Fate::Arrives));
        for turn in 0..100 {
            run.sender.write(2 * MSS);
            run.until(Nanos(turn * 20 * MS));
        }
        assert_eq!(run.sender.window(), 10 * MSS);
    }
}
