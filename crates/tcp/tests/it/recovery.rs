//! Detection and repair of losses.

use leeward_fabric::Nanos;
use leeward_tcp::control::Control;
use leeward_tcp::{Ack, Block, Ecn, RackUse, Receiver, Segment, Sender, Settings, State};

use crate::support::{Fate, Link, Run};

const MSS: u64 = 8948;
const MS: u64 = 1_000_000;

fn send_all(sender: &mut Sender, now: Nanos) -> Vec<Segment> {
    std::iter::from_fn(|| sender.next_segment(now)).collect()
}

fn segment(number: u64) -> Segment {
    Segment {
        start: number * MSS,
        sent: Nanos(number),
        length: MSS as u32,
        again: false,
        ecn: Ecn::No,
        reduced: false,
        division: 0,
    }
}

/// A block from one segment up to another.
fn block(start: u64, end: u64) -> Block {
    Block { start: start * MSS, end: end * MSS }
}

fn ack(cumulative: u64, blocks: &[Block]) -> Ack {
    let mut all = [Block::default(); 3];
    all[..blocks.len()].copy_from_slice(blocks);
    Ack { cumulative: cumulative * MSS, blocks: all, ..Ack::default() }
}

#[test]
fn scattered_losses_of_a_window_are_repaired_in_one_round_trip() {
    // RFC 6675, section 5: one round trip to detect the losses, one to repair them, and no arrived segment is
    // sent again.
    let lost = [3, 7, 8, 15, 21, 28];
    let settings = Settings { initial_window: 40, ..Settings::default() };
    let link = Link {
        ns_per_byte: 1,
        delay: Nanos(5 * MS),
        queue: 1000,
        segments: move |n: u64, _: &_| if lost.contains(&n) { Fate::Lost } else { Fate::Arrives },
        acks: |_: u64, _: &mut _| Fate::Arrives,
    };
    let mut run = Run::new(settings, link);
    run.sender.write(1 << 40);
    while run.sender.state() == State::Open {
        run.step();
    }
    let (began, point) = (run.now, run.sender.sent());
    while run.sender.acknowledged() < point {
        run.step();
    }
    let took = run.now.since(began);
    assert!(took <= run.sender.round_trip().unwrap().plus(Nanos(MS)), "{took:?}");
    let counts = run.sender.counts();
    assert_eq!((counts.retransmitted, counts.recoveries, counts.timeouts), (lost.len() as u64, 1, 0));
    assert_eq!((run.sender.state(), run.sender.window()), (State::Open, run.sender.threshold()));
}

#[test]
fn gaps_before_sacked_segments_count_as_in_linux_4_4() {
    // FACK: the last of five segments has arrived, so each of the first two has three later segments that count as
    // arrived.
    for (rack, lost) in [(RackUse::Repairs, 2), (RackUse::Never, 0)] {
        let mut sender = Sender::new(Settings { rack, ..Settings::default() }).unwrap();
        sender.write(10 * MSS);
        assert_eq!(send_all(&mut sender, Nanos(0)).len(), 10);
        sender.on_ack(Nanos(MS), &ack(0, &[block(4, 5)]));
        let again = send_all(&mut sender, Nanos(MS));
        let numbers: Vec<u64> =
            again.iter().filter(|segment| segment.again).map(|segment| segment.start / MSS).collect();
        assert_eq!(numbers.first().copied(), (lost > 0).then_some(0), "{rack:?}");
        assert_eq!(sender.state() == State::Recovery, lost > 0, "{rack:?}");
    }
}

#[test]
fn a_repair_is_lost_if_a_segment_sent_well_after_it_arrives() {
    // The limit of 1 ms is between the send times of the repair and of a later segment. The time of the acknowledgement
    // does not matter.
    let repaired = |after: u64| {
        let settings = Settings { rack: RackUse::Repairs, ..Settings::default() };
        let mut sender = Sender::new(settings).unwrap();
        sender.write(1 << 40);
        assert_eq!(send_all(&mut sender, Nanos(0)).len(), 10);
        sender.on_ack(Nanos(20 * MS), &ack(0, &[block(1, 4)]));
        let first = sender.next_segment(Nanos(20 * MS)).expect("a repair");
        assert!(first.again && first.start == 0);
        let at = Nanos(20 * MS + after);
        sender.on_ack(at, &ack(0, &[block(1, 9)]));
        let new: Vec<Segment> =
            send_all(&mut sender, at).into_iter().filter(|segment| !segment.again).collect();
        let last = new.last().expect("new segments").start / MSS;
        sender.on_ack(Nanos(60 * MS), &ack(0, &[block(1, 9), block(last, last + 1)]));
        send_all(&mut sender, Nanos(60 * MS)).iter().any(|segment| segment.again && segment.start == 0)
    };
    assert!(repaired(2 * MS) && !repaired(MS / 2));
}

#[test]
fn two_duplicates_send_new_segments_and_the_third_repairs() {
    // Limited transmit (RFC 3042) and fast retransmit (RFC 6675, section 5).
    for rack in [RackUse::Never, RackUse::Repairs, RackUse::Always] {
        two_duplicates(Settings { rack, ..Settings::default() });
    }
}

fn two_duplicates(settings: Settings) {
    let mut sender = Sender::new(settings).unwrap();
    sender.write(1 << 40);
    assert_eq!(send_all(&mut sender, Nanos(0)).len(), 10);
    for duplicate in 1..=2 {
        sender.on_ack(Nanos(MS), &ack(0, &[block(1, 1 + duplicate)]));
        let new = send_all(&mut sender, Nanos(MS));
        assert!(!new.is_empty() && new.iter().all(|segment| !segment.again), "{new:?}");
    }
    sender.on_ack(Nanos(MS), &ack(0, &[block(1, 4)]));
    let first = sender.next_segment(Nanos(MS)).unwrap();
    assert_eq!((first.start, first.again, sender.state()), (0, true, State::Recovery));
}

#[test]
fn recovery_sends_half_of_the_delivered_segments() {
    // RFC 6937, section 3: proportional reduction, because the threshold is half of the window.
    let settings = Settings { initial_window: 100, ..Settings::default() };
    let mut sender = Sender::new(settings).unwrap();
    sender.write(1 << 40);
    send_all(&mut sender, Nanos(0));
    let mut sent = 0;
    for arrived in 2..=100 {
        sender.on_ack(Nanos(MS), &ack(0, &[block(1, arrived)]));
        let now = send_all(&mut sender, Nanos(MS)).len() as u64;
        if sender.state() == State::Recovery {
            sent += now;
            let expected = (arrived - 3) / 2;
            assert!(sent.abs_diff(expected) <= 2, "{sent} sent for {arrived}");
        }
    }
    let in_flight = sender.in_flight();
    sender.on_ack(Nanos(2 * MS), &ack(sender.sent() / MSS, &[]));
    assert!(in_flight.abs_diff(sender.threshold()) <= 4 * MSS);
    assert_eq!((sender.state(), sender.window()), (State::Open, sender.threshold()));
}

#[test]
fn the_timer_doubles_until_new_data_is_acknowledged() {
    // RFC 6298, section 5, and the limits of the settings.
    for (min_ms, expected) in [(200, [1000, 2000, 4000, 8000, 12000]), (10, [1000, 2000, 4000, 8000, 12000])]
    {
        let settings = Settings {
            min_timeout: Nanos(min_ms * MS),
            max_timeout: Nanos(12_000 * MS),
            ..Settings::default()
        };
        let mut sender = Sender::new(settings).unwrap();
        sender.write(100 * MSS);
        let mut now = Nanos(0);
        assert_eq!(send_all(&mut sender, now).len(), 10);
        for wait in expected {
            let deadline = sender.deadline().unwrap();
            assert_eq!(deadline.since(now), Nanos(wait * MS));
            sender.on_timer(Nanos(deadline.0 - 1));
            assert!(sender.counts().timeouts == 0 || sender.next_segment(now).is_none());
            now = deadline;
            sender.on_timer(now);
            let again = send_all(&mut sender, now);
            assert_eq!((again.len(), again[0].start, sender.window()), (1, 0, MSS));
        }
        assert_eq!((sender.state(), sender.threshold()), (State::Timeout, 5 * MSS));
        // An arrival ends the backoff. The timeout is then the measured round trip plus the smallest margin, as in
        // Linux.
        sender.on_ack(now.plus(Nanos(MS)), &Ack { echo: now, ..ack(1, &[]) });
        let wait = sender.deadline().unwrap().since(now.plus(Nanos(MS)));
        assert_eq!(wait, Nanos((1 + min_ms) * MS));
    }
}

#[test]
fn after_a_timeout_slow_start_repairs_only_missing_segments() {
    // All segments of a window except the fourth and fifth are lost; their blocks are known and stay known.
    let link = Link {
        ns_per_byte: 0,
        delay: Nanos(5 * MS),
        queue: 1000,
        segments: |n: u64, _: &_| if n < 10 && n != 3 && n != 4 { Fate::Lost } else { Fate::Arrives },
        acks: |_: u64, _: &mut _| Fate::Arrives,
    };
    let mut run = Run::new(Settings { tail_probe: false, ..Settings::default() }, link);
    run.sender.write(10 * MSS);
    while run.step() {}
    let counts = run.sender.counts();
    assert_eq!(run.receiver.delivered(), 10 * MSS);
    assert_eq!((counts.retransmitted, counts.timeouts), (8, 1));
}

#[test]
fn the_end_of_a_flow_is_repaired_in_recovery_without_the_timer() {
    // Rule 4 of NextSeg (RFC 6675): without other data, the last segment is sent again, once.
    let link = Link {
        ns_per_byte: 0,
        delay: Nanos(5 * MS),
        queue: 1000,
        segments: |n: u64, _: &_| if n == 0 || n == 9 { Fate::Lost } else { Fate::Arrives },
        acks: |_: u64, _: &mut _| Fate::Arrives,
    };
    let mut run = Run::new(Settings { ack_every: 1, ..Settings::default() }, link);
    run.sender.write(10 * MSS);
    run.sender.close();
    while !run.sender.is_finished() {
        assert!(run.step());
    }
    let counts = run.sender.counts();
    assert_eq!((counts.timeouts, counts.retransmitted), (0, 2));
    assert!(run.now <= Nanos(31 * MS), "{:?}", run.now);
}

#[test]
fn a_lost_end_is_probed_for_and_repaired_without_a_timeout() {
    // RFC 8985, section 7: with one, two, five or none of the last segments lost.
    for (lost, tail_probe, timeouts) in
        [(1, true, 0), (2, true, 0), (5, true, 0), (2, false, 1), (0, true, 0)]
    {
        let mut left = lost;
        let link = Link {
            ns_per_byte: 0,
            delay: Nanos(5 * MS),
            queue: 1000,
            segments: move |_: u64, segment: &Segment| {
                let is_lost = segment.start >= (30 - lost) * MSS && left > 0;
                left -= u64::from(is_lost);
                if is_lost { Fate::Lost } else { Fate::Arrives }
            },
            acks: |_: u64, _: &mut _| Fate::Arrives,
        };
        let mut run = Run::new(Settings { tail_probe, ack_every: 1, ..Settings::default() }, link);
        run.sender.write(30 * MSS);
        run.sender.close();
        while !run.sender.is_finished() {
            assert!(run.step());
        }
        let counts = run.sender.counts();
        assert_eq!(
            (counts.timeouts, counts.probes),
            (timeouts, u64::from(tail_probe && lost > 0)),
            "{lost}: {counts:?}"
        );
        assert!(
            lost == 0 || run.sender.threshold() < 20 * MSS,
            "a repaired loss reduces the window: {counts:?}"
        );
        assert!(!tail_probe || run.now < Nanos(170 * MS), "{:?}", run.now);
        assert_eq!(run.receiver.delivered(), 30 * MSS);
    }
}

#[test]
fn a_repair_that_is_lost_is_repaired_by_time() {
    // RACK (RFC 8985); without it only the timer repairs.
    for (rack, timeouts) in [(RackUse::Always, 0), (RackUse::Repairs, 0), (RackUse::Never, 1)] {
        let mut left = 3;
        let link = Link {
            ns_per_byte: 1,
            delay: Nanos(5 * MS),
            queue: 1000,
            segments: move |_: u64, segment: &Segment| {
                let lost = segment.start == 5 * MSS && left > 0;
                left -= u32::from(lost);
                if lost { Fate::Lost } else { Fate::Arrives }
            },
            acks: |_: u64, _: &mut _| Fate::Arrives,
        };
        let mut run = Run::new(Settings { rack, ..Settings::default() }, link);
        run.sender.write(400 * MSS);
        while run.sender.acknowledged() < 400 * MSS {
            assert!(run.step());
        }
        let counts = run.sender.counts();
        assert!(counts.timeouts == timeouts || rack == RackUse::Never && counts.timeouts > 0, "{counts:?}");
        assert!(rack == RackUse::Never || counts.retransmitted == 3, "{counts:?}");
    }
}

#[test]
fn without_new_data_a_gap_is_repaired_early() {
    // Rule 3 of NextSeg (RFC 6675): the ninth segment has two later ones, not three, while the fourth is
    // being repaired.
    for (segments, filled) in [(14, true), (40, false)] {
        let settings = Settings { rack: RackUse::Never, initial_window: 20, ..Settings::default() };
        let mut sender = Sender::new(settings).unwrap();
        sender.write(segments * MSS);
        send_all(&mut sender, Nanos(0));
        sender.on_ack(Nanos(MS), &ack(3, &[block(4, 8), block(9, 11)]));
        let sent = send_all(&mut sender, Nanos(MS));
        let again: Vec<u64> =
            sent.iter().filter(|segment| segment.again).map(|segment| segment.start / MSS).collect();
        assert_eq!(again[0], 3);
        assert_eq!(again.contains(&8), filled, "{again:?}");
    }
}

#[test]
fn a_repair_is_capable_of_marks_only_with_dctcp() {
    // RFC 3168, section 6.1.5.
    for (control, capable) in [(Control::Reno, Ecn::No), (Control::Dctcp, Ecn::Capable)] {
        let mut sender = Sender::new(Settings { control, ecn: true, ..Settings::default() }).unwrap();
        sender.write(20 * MSS);
        assert!(send_all(&mut sender, Nanos(0)).iter().all(|segment| segment.ecn == Ecn::Capable));
        sender.on_ack(Nanos(MS), &ack(0, &[block(1, 5)]));
        let repair = sender.next_segment(Nanos(MS)).unwrap();
        assert_eq!((repair.again, repair.ecn), (true, capable));
    }
}

#[test]
fn each_loss_is_repaired_once() {
    for every in [20, 50, 500] {
        let settings = Settings { tail_probe: false, ..Settings::default() };
        let link = Link {
            ns_per_byte: 0,
            delay: Nanos(5 * MS),
            queue: 10_000,
            segments: move |n: u64, _: &_| if n % every == 7 { Fate::Lost } else { Fate::Arrives },
            acks: |_: u64, _: &mut _| Fate::Arrives,
        };
        let mut run = Run::new(settings, link);
        run.sender.write(40_000 * MSS);
        run.until(Nanos(10_000 * MS));
        let counts = run.sender.counts();
        // The last loss may still be unknown.
        assert!(
            counts.timeouts == 0 && run.lost - counts.retransmitted <= 2,
            "{} lost: {counts:?}",
            run.lost
        );
        assert!(run.lost > 10);
    }
}

#[test]
fn segments_late_by_less_than_a_quarter_round_trip_are_not_lost() {
    // RFC 8985, section 6.2: the window opens after reordering was seen. Before that, three later segments prove a
    // loss.
    let again = [RackUse::Always, RackUse::Never].map(|rack| {
        let link = Link {
            ns_per_byte: 1,
            delay: Nanos(5 * MS),
            queue: 1000,
            segments: |n: u64, _: &_| if n % 10 == 9 { Fate::Late(Nanos(2 * MS)) } else { Fate::Arrives },
            acks: |_: u64, _: &mut _| Fate::Arrives,
        };
        let mut run = Run::new(Settings { rack, ..Settings::default() }, link);
        run.sender.write(2000 * MSS);
        while run.step() {}
        assert_eq!((run.receiver.delivered(), run.sender.counts().timeouts), (2000 * MSS, 0));
        run.sender.counts().retransmitted
    });
    assert!(again[0] <= 10 && again[1] > 4 * again[0], "{again:?}");
}

#[test]
fn a_reduction_is_undone_if_the_segment_arrives_after_all() {
    // A segment that is late by a round trip counts as lost by time (RFC 3522, section 3.2; RFC 4015).
    let run = |undo: bool, fate: Fate| {
        let settings = Settings { initial_window: 40, undo, ..Settings::default() };
        let link = Link {
            ns_per_byte: 1,
            delay: Nanos(5 * MS),
            queue: 1000,
            segments: move |n: u64, _: &_| if n == 5 { fate } else { Fate::Arrives },
            acks: |_: u64, _: &mut _| Fate::Arrives,
        };
        let mut run = Run::new(settings, link);
        run.sender.write(200 * MSS);
        run.sender.close();
        while !run.sender.is_finished() {
            assert!(run.step(), "the flow ends");
        }
        (run.sender.counts().recoveries, run.sender.counts().undone, run.sender.threshold())
    };
    let late = Fate::Late(Nanos(8 * MS));
    assert_eq!(run(true, late), (1, 1, u64::MAX));
    let (recoveries, undone, threshold) = run(false, late);
    assert_eq!((recoveries, undone), (1, 0));
    assert!(threshold < u64::MAX);
    // The retransmission of a lost segment is answered, and nothing is undone.
    assert_eq!(run(true, Fate::Lost), run(false, Fate::Lost));
    assert_eq!(run(true, Fate::Lost).1, 0);
}

#[test]
fn a_timeout_is_undone_to_the_window_of_the_present_path() {
    // As in the program for kernels: the circuit ends after the timeout, and reTCP scales the earlier window too.
    let settings = Settings {
        initial_window: 40,
        undo: true,
        tail_probe: false,
        // Without it, the other late segments would begin a recovery at once.
        rack: RackUse::Never,
        control: Control::RETCP,
        ..Settings::default()
    };
    let mut sender = Sender::new(settings).unwrap();
    sender.write(1 << 40);
    send_all(&mut sender, Nanos(MS));
    let on_ack = |sender: &mut Sender, cumulative: u64, at: u64, echo: u64, ece: bool| {
        sender.on_ack(Nanos(at), &Ack { ece, echo: Nanos(echo), ..ack(cumulative, &[]) });
        send_all(sender, Nanos(at));
    };
    on_ack(&mut sender, 1, 2 * MS, MS, true);
    let on_circuit = sender.window();
    assert!(on_circuit >= 80 * MSS, "{on_circuit}");
    let timeout = sender.deadline().expect("a timer").0;
    sender.on_timer(Nanos(timeout));
    send_all(&mut sender, Nanos(timeout));
    assert_eq!(sender.state(), State::Timeout);
    // The answer to the repair, and then to the segment that was late.
    on_ack(&mut sender, 2, timeout + MS, timeout, false);
    assert_eq!(sender.state(), State::Timeout);
    on_ack(&mut sender, 3, timeout + 2 * MS, MS, false);
    assert_eq!((sender.state(), sender.counts().undone), (State::Open, 1));
    assert!((on_circuit / 2..on_circuit / 2 + 4 * MSS).contains(&sender.window()), "{}", sender.window());
}

#[test]
fn divisions_have_own_windows_and_reordering_between_them_is_no_loss() {
    // TDTCP, section 3.
    for (divisions, lost, rack) in [
        (1, true, RackUse::Never),
        (2, false, RackUse::Never),
        (1, true, RackUse::Repairs),
        (2, false, RackUse::Repairs),
        (1, true, RackUse::Always),
        (2, false, RackUse::Always),
    ] {
        let mut sender = Sender::new(Settings { divisions, rack, ..Settings::default() }).unwrap();
        sender.write(1 << 40);
        let slow = send_all(&mut sender, Nanos(0)).len() as u64;
        assert_eq!(slow, 10);
        sender.set_division(1);
        let fast = send_all(&mut sender, Nanos(MS)).len() as u64;
        assert_eq!(fast, if divisions == 1 { 0 } else { 10 });
        // Later segments overtake all but the first five of the slow path.
        let first_ack = Ack { sent_in: 0, division: 0, ..ack(5, &[]) };
        sender.on_ack(Nanos(2 * MS), &first_ack);
        let new = send_all(&mut sender, Nanos(2 * MS)).len() as u64;
        let end = slow + fast + new;
        sender.on_ack(Nanos(3 * MS), &ack(5, &[block(10, end)]));
        assert_eq!(sender.next_segment(Nanos(3 * MS)).unwrap().again, lost);
        sender.set_division(0);
        assert_eq!(sender.state(), if lost { State::Recovery } else { State::Open });
        // A loss among segments of one path counts only for that path.
        if !lost {
            sender.on_ack(Nanos(4 * MS), &ack(5, &[block(6, end)]));
            assert_eq!(sender.state(), State::Recovery);
            let window = sender.window();
            sender.set_division(1);
            assert!(sender.state() == State::Open && sender.window() > window);
        }
    }
}

#[test]
fn a_round_trip_over_two_divisions_is_measured_for_neither() {
    let mut sender = Sender::new(Settings { divisions: 2, ..Settings::default() }).unwrap();
    sender.write(1 << 40);
    send_all(&mut sender, Nanos(0));
    sender.on_ack(Nanos(MS), &Ack { sent_in: 0, division: 1, ..ack(1, &[]) });
    assert_eq!(sender.round_trip(), None);
    sender.on_ack(Nanos(2 * MS), &Ack { sent_in: 0, division: 0, ..ack(2, &[]) });
    assert_eq!(sender.round_trip(), Some(Nanos(2 * MS)));
    sender.set_division(1);
    assert_eq!(sender.round_trip(), None);
}

#[test]
fn a_receiver_answers_every_second_segment_or_after_its_delay() {
    // RFC 5681, section 4.2; the echo is the timestamp of the first waiting segment (RFC 7323, section 4.3).
    let mut receiver = Receiver::new(&Settings::default()).unwrap();
    assert_eq!(receiver.on_segment(Nanos(100), &segment(0)), None);
    let both = receiver.on_segment(Nanos(200), &segment(1)).unwrap();
    assert_eq!((both.cumulative, both.echo, receiver.deadline()), (2 * MSS, Nanos(0), None));
    assert_eq!(receiver.on_segment(Nanos(300), &segment(2)), None);
    let deadline = Nanos(300 + 40 * MS);
    assert_eq!(receiver.deadline(), Some(deadline));
    assert_eq!(receiver.on_timer(Nanos(deadline.0 - 1)), None);
    assert_eq!(receiver.on_timer(deadline).unwrap().cumulative, 3 * MSS);
    assert_eq!(receiver.deadline(), None);
}

#[test]
fn a_receiver_answers_single_segments_at_the_beginning_and_after_a_repeated_one() {
    let mut receiver = Receiver::new(&Settings { quick_acks: 2, ..Settings::default() }).unwrap();
    let mut answers = |number| receiver.on_segment(Nanos(number), &segment(number)).is_some();
    assert_eq!([0, 1, 2, 3, 4].map(&mut answers), [true, true, false, true, false]);
    // The answer to the repeated segment is the first of two.
    assert_eq!([2, 5, 6, 7].map(&mut answers), [true, true, false, true]);
}

#[test]
fn a_receiver_answers_each_segment_with_which_it_raises_its_window() {
    let mut receiver = Receiver::new(&Settings { growth_acks: 3, ..Settings::default() }).unwrap();
    let mut answers = |number| receiver.on_segment(Nanos(number), &segment(number)).is_some();
    assert_eq!([0, 1].map(&mut answers), [true; 2]);
    // A repeated segment raises no window.
    assert_eq!([1, 2, 3, 4, 5].map(&mut answers), [true, true, false, true, false]);
}

#[test]
fn a_receiver_reports_the_latest_block_first_and_at_once() {
    // RFC 2018, section 4.
    let mut receiver = Receiver::new(&Settings::default()).unwrap();
    let mut blocks = |number: u64| {
        let ack = receiver.on_segment(Nanos(1), &segment(number)).unwrap();
        let reported = ack.blocks.iter().filter(|block| !block.is_empty());
        (ack.cumulative / MSS, reported.map(|block| (block.start / MSS, block.end / MSS)).collect::<Vec<_>>())
    };
    assert_eq!(blocks(2), (0, vec![(2, 3)]));
    assert_eq!(blocks(4), (0, vec![(4, 5), (2, 3)]));
    assert_eq!(blocks(8), (0, vec![(8, 9), (4, 5), (2, 3)]));
    assert_eq!(blocks(6), (0, vec![(6, 7), (8, 9), (4, 5)]));
    assert_eq!(blocks(3), (0, vec![(2, 5), (6, 7), (8, 9)]));
    // A repeated segment, and a segment that fills the gap.
    assert_eq!(blocks(8), (0, vec![(8, 9), (2, 5), (6, 7)]));
    assert_eq!(blocks(0), (1, vec![(8, 9), (2, 5), (6, 7)]));
    assert_eq!(blocks(1), (5, vec![(8, 9), (6, 7)]));
    assert_eq!(blocks(5), (7, vec![(8, 9)]));
    assert_eq!(blocks(7), (9, vec![]));
}

#[test]
fn a_change_of_marks_is_echoed_at_once() {
    // RFC 8257, section 3.2.
    let settings = Settings { control: Control::Dctcp, ..Settings::default() };
    let mut receiver = Receiver::new(&settings).unwrap();
    let marked = |number| Segment { ecn: Ecn::Marked, ..segment(number) };
    assert_eq!(receiver.on_segment(Nanos(1), &segment(0)), None);
    let before = receiver.on_segment(Nanos(2), &marked(1)).unwrap();
    assert_eq!((before.cumulative, before.ece), (MSS, false));
    let both = receiver.on_segment(Nanos(3), &marked(2)).unwrap();
    assert_eq!((both.cumulative, both.ece), (3 * MSS, true));
    // The same for a segment out of order: the waiting segments are acknowledged first, and the new segment directly
    // afterwards.
    assert_eq!(receiver.on_segment(Nanos(4), &segment(3)), None);
    let before = receiver.on_segment(Nanos(5), &marked(5)).unwrap();
    assert_eq!((before.cumulative, before.ece, receiver.deadline()), (4 * MSS, false, Some(Nanos(5))));
    let after = receiver.on_timer(Nanos(5)).unwrap();
    assert_eq!((after.cumulative, after.ece, after.blocks[0]), (4 * MSS, true, block(5, 6)));
}
