//! Synthetic port readings, and the resulting loads.

use leeward_fabric::Cluster;
use leeward_testing::clusters;
use proptest::prelude::*;

use super::*;

const MAP: &str = r"
prometheus: {in: a, out: b, speed: c}
links:
  - match: {instance: 'tor-(?P<rack>r\d+)', port: 'up\d'}
    in: '{rack}:downlink'
    out: '{rack}:uplink'
  - match: {instance: 'tor-(?P<rack>r\d+)', port: 'down(?P<n>\d)'}
    in: '{rack}h{n}:egress'
ignore: [{port: mgmt}]
";
const INTERVAL: Nanos = Nanos(15 * Nanos::SECOND.0);

fn cluster() -> Cluster {
    clusters::cluster("{racks: 2, hosts_per_rack: 2, nic: 10Gbps, rack_link: 40Gbps}")
}

fn meter() -> Meter {
    Meter::new(Map::from_text("map.yaml", MAP).expect("a valid map"), INTERVAL)
}

fn s(seconds: u64) -> Nanos {
    Nanos(seconds * Nanos::SECOND.0)
}

fn series(instance: &str, port: &str, readings: &[(u64, f64)]) -> Series {
    let labels = [("instance", instance), ("port", port)];
    let labels = labels.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    Series { labels, readings: readings.iter().map(|&(at, value)| (1000 * at as i64, value)).collect() }
}

fn take(meter: &mut Meter, now: u64, answers: PortReadings) -> RoundResult {
    let cluster = cluster();
    let topology = Topology { fabric: &cluster.fabric, capacities: &cluster.capacities };
    meter.process(&topology, s(now), answers, |ms| u64::try_from(ms).ok().map(|ms| Nanos(ms * 1_000_000)))
}

fn counters(direction: Direction, series: Vec<Series>) -> PortReadings {
    PortReadings { counters: vec![(direction, series)], speeds: vec![] }
}

fn loads(taken: &RoundResult) -> Vec<(u64, u64, String, i64)> {
    let fabric = cluster().fabric;
    let seconds = |at: Nanos| at.0 / Nanos::SECOND.0;
    let each = taken.windows.iter().flat_map(|window| window.loads.iter().map(move |load| (window, load)));
    each.map(|(window, &(link, load))| {
        (seconds(window.from), seconds(window.until), fabric.resource_name(link), load.0)
    })
    .collect()
}

#[test]
fn ports_of_one_link_add_up_over_their_common_time() {
    let mut meter = meter();
    let first = vec![
        series("tor-r0", "up1", &[(100, 0.0), (115, 15e6)]),
        // These readings are seven seconds later than the readings of the other port.
        series("tor-r0", "up2", &[(107, 500.0), (122, 30e6 + 500.0)]),
    ];
    let taken = take(&mut meter, 122, counters(Direction::Out, first));
    assert_eq!(loads(&taken), [(107, 115, "r0:uplink".to_owned(), 8 * 3_000_000)]);
    let then = vec![series("tor-r0", "up1", &[(130, 15e6)]), series("tor-r0", "up2", &[(137, 30e6 + 500.0)])];
    let taken = take(&mut meter, 137, counters(Direction::Out, then));
    // The first port is idle, and the second carries two million bytes per second for 7 of the 15 s.
    assert_eq!(loads(&taken), [(115, 130, "r0:uplink".to_owned(), 7_466_667)]);
    assert_eq!(take(&mut meter, 138, PortReadings::default()).windows, []);
}

/// Rounds of 15 s in which ports up1 and up2 each carry a million bytes per second from and until some times.
fn rounds(
    meter: &mut Meter,
    times: std::ops::Range<u64>,
    ports: &[(&str, std::ops::Range<u64>)],
) -> Vec<RoundResult> {
    let round = |now: u64| {
        let reading = |at: u64| (at, at as f64 * 1e6);
        let answers = ports.iter().filter(|(_, alive)| alive.contains(&now));
        let answers = answers.map(|(port, _)| series("tor-r0", port, &[reading(now)])).collect();
        take(meter, now, counters(Direction::Out, answers))
    };
    times.step_by(15).map(round).collect()
}

#[test]
fn a_port_whose_label_changed_does_not_delay_its_link_for_long() {
    let mut meter = meter();
    let taken = rounds(&mut meter, 300..601, &[("up1", 300..420), ("up2", 420..901)]);
    let seen: Vec<_> = taken.iter().flat_map(loads).collect();
    // The last reading of up1 is at 405 s. More than three intervals later, the link continues with up2.
    let ends: Vec<u64> = seen.iter().map(|(_, until, ..)| *until).collect();
    assert!(ends.contains(&405) && ends.contains(&465) && ends.last() == Some(&600), "{ends:?}");
    assert!(seen.iter().all(|(.., load)| *load == 8_000_000), "{seen:?}");
    assert_eq!(taken.last().map(|round| round.ports.links), Some(1));
}

#[test]
fn a_silent_port_that_no_other_follows_delays_its_link_for_five_minutes() {
    let mut meter = meter();
    let taken = rounds(&mut meter, 300..721, &[("up1", 300..420), ("up2", 300..901)]);
    let last = |until: u64| {
        let before = taken.iter().take(1 + (until as usize - 300) / 15);
        before.flat_map(loads).map(|(_, until, ..)| until).max()
    };
    assert_eq!((last(700), last(720)), (Some(405), Some(720)));
}

#[test]
fn a_new_port_follows_one_silent_port_only() {
    let mut meter = meter();
    let taken = rounds(&mut meter, 300..601, &[("up1", 300..420), ("up2", 300..420), ("up3", 420..901)]);
    assert_eq!(taken.iter().flat_map(loads).map(|(_, until, ..)| until).max(), Some(405));
    assert_eq!(taken.last().map(|round| round.ports.links), Some(2));
}

#[test]
fn of_two_copies_of_a_port_one_counts() {
    let map = format!("{MAP}replica_labels: [replica]\n");
    let mut meter = Meter::new(Map::from_text("map.yaml", &map).expect("a valid map"), INTERVAL);
    let copy = |name: &str, readings: &[(u64, f64)]| {
        let Series { mut labels, readings } = series("tor-r0", "up1", readings);
        labels.push(("replica".to_owned(), name.to_owned()));
        Series { labels, readings }
    };
    let both = vec![copy("a", &[(100, 0.0), (115, 15e6)]), copy("b", &[(107, 7e6), (122, 22e6)])];
    let taken = take(&mut meter, 122, counters(Direction::Out, both));
    assert_eq!(loads(&taken), [(100, 115, "r0:uplink".to_owned(), 8_000_000)]);
    // The first copy has ended; the counter goes on in the second.
    let then = vec![copy("a", &[(115, 15e6)]), copy("b", &[(122, 22e6), (137, 37e6)])];
    let taken = take(&mut meter, 137, counters(Direction::Out, then));
    assert_eq!(loads(&taken), [(115, 137, "r0:uplink".to_owned(), 8_000_000)]);
}

#[test]
fn a_silent_port_delays_its_link_until_it_is_dropped() {
    let mut meter = meter();
    let both = |at: u64, ports: &[&str]| {
        let each = ports.iter().map(|port| series("tor-r0", port, &[(at, at as f64 * 1e6)]));
        counters(Direction::In, each.collect())
    };
    take(&mut meter, 0, both(0, &["up1", "up2"]));
    assert_eq!(loads(&take(&mut meter, 15, both(15, &["up1", "up2"]))).len(), 1);
    for at in (30..=315).step_by(15) {
        let taken = take(&mut meter, at, both(at, &["up1"]));
        assert_eq!(taken.windows, [], "{at}");
        assert_eq!(taken.ports.silent.len(), usize::from(at > 60), "{at}");
    }
    let taken = take(&mut meter, 330, both(330, &["up1"]));
    assert_eq!(loads(&taken), [(15, 330, "r0:downlink".to_owned(), 8_000_000)]);
    assert!(taken.ports.silent.is_empty());
    // All ports are silent, so the link stays silent and is reported as such.
    let taken = take(&mut meter, 900, PortReadings::default());
    assert_eq!((taken.windows.len(), taken.ports.links, taken.ports.silent.len()), (0, 0, 1));
    assert_eq!(taken.ports.silent_directions, [Direction::In, Direction::Out]);
}

#[test]
fn a_window_with_a_counter_reset_is_skipped_and_the_next_is_valid() {
    let mut meter = meter();
    let up = |at: u64, one: f64, two: f64| {
        let ports = [series("tor-r1", "up1", &[(at, one)]), series("tor-r1", "up2", &[(at, two)])];
        counters(Direction::Out, ports.into())
    };
    take(&mut meter, 0, up(0, 1e9, 1e9));
    let taken = take(&mut meter, 15, up(15, 1e3, 1e9 + 15e6));
    assert_eq!((taken.windows.len(), taken.steps.restarted, taken.steps.grew), (0, 1, 1));
    let taken = take(&mut meter, 30, up(30, 1e3 + 15e6, 1e9 + 30e6));
    assert_eq!(loads(&taken), [(15, 30, "r1:uplink".to_owned(), 16_000_000)]);
}

#[test]
fn the_capacity_of_a_link_is_the_sum_of_its_port_speeds() {
    let mut meter = meter();
    let answers = |at: u64, speeds: &[(&str, f64)]| {
        let ports = ["up1", "up2", "up3", "up4"].map(|port| series("tor-r0", port, &[(at, 0.0)]));
        let speeds = speeds.iter().map(|&(port, speed)| series("tor-r0", port, &[(at, speed)]));
        PortReadings { counters: vec![(Direction::Out, ports.into())], speeds: speeds.collect() }
    };
    let capacities = |taken: &RoundResult| {
        let capacities: Vec<i64> = taken.speeds.values().map(|load| load.0).collect();
        capacities
    };
    assert!(capacities(&take(&mut meter, 0, answers(0, &[]))).is_empty());
    // A port without a speed counts with its share of the cluster file's capacity.
    assert_eq!(capacities(&take(&mut meter, 15, answers(15, &[("up1", 25_000.0)]))), [55_000_000_000]);
    let down = [("up1", 0.0), ("up2", 10_000.0), ("up3", -1.0), ("up4", f64::NAN)];
    assert_eq!(capacities(&take(&mut meter, 30, answers(30, &down))), [30_000_000_000]);
    let taken = take(&mut meter, 45, answers(45, &[("up4", 1e12)]));
    assert_eq!((capacities(&taken), taken.steps.impossible), (vec![30_000_000_000], 1));
    // No port reports a speed any more.
    let taken = (60..400).step_by(15).map(|at| take(&mut meter, at, answers(at, &[]))).last();
    assert_eq!(taken.map(|taken| capacities(&taken)), Some(vec![]));
}

#[test]
fn a_port_of_speed_0_that_carries_traffic_and_a_speed_at_the_top_have_their_share() {
    let mut meter = meter();
    let answers = |at: u64, speed: f64| {
        let counted = [("up1", 1e6 * at as f64), ("up2", 0.0)];
        let ports = counted.map(|(port, value)| series("tor-r0", port, &[(at, value)]));
        let speeds = ["up1", "up2"].map(|port| series("tor-r0", port, &[(at, speed)]));
        PortReadings { counters: vec![(Direction::Out, ports.into())], speeds: speeds.into() }
    };
    let capacity = |taken: RoundResult| taken.speeds.values().map(|load| load.0).next();
    take(&mut meter, 0, answers(0, 0.0));
    // Of the cluster's 40 Gb/s, the port that carries traffic has half, and the other is down.
    assert_eq!(capacity(take(&mut meter, 15, answers(15, 0.0))), Some(20_000_000_000));
    meter = self::meter();
    assert_eq!(capacity(take(&mut meter, 0, answers(0, 4_294_967_295.0))), None);
}

#[test]
fn unmapped_ports_are_reported_and_impossible_times_do_not_count() {
    let mut meter = meter();
    let answers = counters(
        Direction::Out,
        vec![
            series("tor-r0", "mgmt", &[(100, 1.0)]),
            series("tor-r0", "down1", &[(100, 1.0)]),
            series("tor-r9", "up1", &[(100, 1.0)]),
            series("leaf", "up1", &[(100, 1.0)]),
            series("tor-r1", "up1", &[(100, 1.0), (115, 2.0), (5000, 9.0)]),
        ],
    );
    let taken = take(&mut meter, 115, answers);
    let ports = taken.ports;
    assert_eq!((ports.links, ports.ignored, ports.unmapped), (1, 2, 2));
    assert_eq!(ports.first_unmapped.as_deref(), Some("instance=leaf port=up1 (out): no rule matches"));
    assert_eq!((ports.idle_rules, ports.silent_directions), (vec![1], vec![Direction::In]));
    assert_eq!((taken.steps.grew, taken.steps.impossible), (1, 1));
    assert_eq!((ports.spacing, ports.newest), (Some(INTERVAL), Some(s(115))));
}

proptest! {
    /// For every split of a link's readings into answers, windows are consecutive and contain the counted
    /// total.
    #[test]
    fn windows_of_a_link_contain_all_counted_bits_of_its_ports(
        steps in prop::collection::vec((1_u64..20, 0_u64..1 << 24, 1_u64..20, 0_u64..1 << 24, any::<bool>()), 2..30),
    ) {
        let mut meter = meter();
        let (mut times, mut values) = ([0, 0], [0, 0]);
        let mut readings: [Vec<(u64, f64)>; 2] = [vec![(0, 0.0)], vec![(0, 0.0)]];
        let (mut bits, mut end) = (0.0, s(0));
        for (number, &(one, grew, two, more, answered)) in steps.iter().enumerate() {
            for (port, (time, grown)) in [(one, grew), (two, more)].into_iter().enumerate() {
                times[port] += time;
                values[port] += grown;
                readings[port].push((times[port], values[port] as f64));
            }
            if !answered && number + 1 < steps.len() && readings.iter().all(|all| all.len() < 8) {
                continue;
            }
            let now = times[0].max(times[1]);
            let up = readings.each_mut().map(std::mem::take);
            let each = ["up1", "up2"].into_iter().zip(&up);
            let up = each.map(|(port, readings)| series("tor-r0", port, readings)).collect();
            let taken = take(&mut meter, now, counters(Direction::In, up));
            for Window { from, until, loads } in &taken.windows {
                prop_assert_eq!(*from, end, "windows are consecutive");
                bits += loads[0].1.0 as f64 * until.since(*from).as_secs_f64();
                end = *until;
            }
        }
        prop_assert_eq!(end, s(times[0].min(times[1])));
        let later = usize::from(times[1] > times[0]);
        let whole = 8.0 * (values[0] + values[1]) as f64;
        // The later port's growth beyond the last window is still pending.
        let rest = meter.ports.values_mut().map(|port| {
            let (from, until) = port.counter.known();
            port.counter.take(from, until)
        });
        let rest: f64 = rest.sum();
        prop_assert!(times[later] >= times[1 - later]);
        // Loads are rounded to whole bits per second.
        let rounding = times[0].max(times[1]) as f64;
        prop_assert!((bits + rest - whole).abs() <= rounding + 1e-6 * whole, "{bits} {rest} {whole}");
    }
}
