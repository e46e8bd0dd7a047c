//! Routing over changing circuits: no byte is lost or duplicated, paths arrive as early as possible, and rates match
//! theory.

use std::sync::Arc;

use leeward_circuits::routing::{self, MOST_HOPS, Routes};
use leeward_circuits::switch::{Ecn, Event, Full, Output, Packet, Settings, Switch, SwitchError, Via};
use leeward_circuits::{Day, Matching, Network, Schedule};
use leeward_fabric::Nanos;
use proptest::prelude::*;

const MTU: u32 = 9000;
const DAY: u64 = 180_000;
const NIGHT: u64 = 20_000;

/// Rotor schedule: on day k, counted from 1, rack i sends to rack i + k.
fn rotor(racks: usize) -> Schedule {
    let steps: Vec<usize> = (1..racks).collect();
    rings(racks, &steps)
}

/// Schedule with one ring per day: each rack sends to the rack `step` places after it.
fn rings(racks: usize, steps: &[usize]) -> Schedule {
    let days = steps.iter().map(|step| {
        let sources = (0..racks).map(|to| Some(((to + racks - step) % racks) as u32)).collect();
        Day { matching: Matching::new(sources).expect("a matching"), length: Nanos(DAY) }
    });
    Schedule::new(racks, Nanos(NIGHT), days.collect()).expect("a schedule")
}

fn routes(name: &str, settings: &str, schedule: &Schedule) -> Routes {
    let routing = routing::REGISTRY.make(name, settings).expect("a routing");
    routing.routes(schedule, &Network::default()).expect("routes")
}

fn switch(settings: Settings, schedule: &Schedule, routes: Routes) -> Switch<u64> {
    let mut switch = Switch::new(settings).expect("valid settings");
    let mut out = Vec::new();
    switch.step(Nanos(0), Event::NewWeek(schedule.clone()), &mut out).expect("a valid schedule");
    switch.step(Nanos(0), Event::Routes(Arc::new(routes)), &mut out).expect("valid routes");
    switch
}

fn packet(payload: u64, source: usize, destination: usize, bytes: u32) -> Packet<u64> {
    let (source, destination) = (source as u32, destination as u32);
    Packet { payload, source, destination, bytes, ecn: Ecn::Incapable, entered: Nanos(0) }
}

fn circuits_alone(racks: usize, voq_capacity: u32, relay_capacity: u32) -> Settings {
    Settings { packet_switch: false, voq_capacity, relay_capacity, ..Settings::etalon(racks) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_byte_is_lost_or_duplicated_and_no_path_is_too_long(
        racks in 2_usize..8,
        index in 0..routing::REGISTRY.entries.len(),
        seed in 0_u64..100,
        packet_switch in any::<bool>(),
        voq_capacity in 1_u32..40,
        relay_capacity in 1_u32..40,
        steps in prop::collection::vec((0_u64..40_000, 0_usize..8, 1_usize..8, 64_u32..MTU, 1_u32..20), 1..120),
    ) {
        let name = routing::REGISTRY.entries[index].name;
        let text = if name == "vlb" { format!("{{seed: {seed}}}") } else { String::new() };
        let schedule = rotor(racks);
        let routes = routes(name, &text, &schedule);
        let most_hops = routes.most_hops();
        let settings =
            Settings { packet_switch, voq_capacity, relay_capacity, ..Settings::etalon(racks) };
        let run = || -> Result<Vec<Output<u64>>, TestCaseError> {
            let mut switch = switch(settings.clone(), &schedule, routes.clone());
            let (mut all, mut now, mut sent) = (Vec::new(), 0, 0);
            let mut apply = |switch: &mut Switch<u64>, now: u64, event: Event<u64>| {
                switch.step(Nanos(now), event, &mut all).expect("a valid event");
                let balance = switch.balance();
                let departures = balance.by_packet + balance.by_circuit + balance.dropped;
                prop_assert_eq!(balance.entered, departures + switch.buffered_bytes());
                Ok(())
            };
            for &(wait, source, ahead, bytes, burst) in &steps {
                now += wait;
                let (source, ahead) = (source % racks, 1 + (ahead - 1) % (racks - 1));
                for _ in 0..burst {
                    apply(&mut switch, now, Event::Arrive(packet(sent, source, (source + ahead) % racks, bytes)))?;
                    sent += 1;
                }
            }
            // Every remaining packet has a path and enough time to leave.
            let week = schedule.length().0;
            for _ in 0..40 {
                now += week;
                apply(&mut switch, now, Event::Wake)?;
            }
            prop_assert_eq!(switch.buffered_bytes(), 0);
            all.retain(|output| !matches!(output, Output::Circuit { .. }));
            prop_assert_eq!(all.len() as u64, sent);
            Ok(all)
        };
        let all = run()?;
        let mut seen: Vec<u64> = all.iter().map(|output| match output {
            Output::Deliver { packet, .. } | Output::Drop { packet, .. } => packet.payload,
            Output::Circuit { .. } => unreachable!("circuits were removed"),
        }).collect();
        seen.sort_unstable();
        prop_assert!(seen.iter().copied().eq(0..seen.len() as u64));
        for output in &all {
            match output {
                Output::Deliver { hops, via, .. } => {
                    prop_assert!((1..=most_hops.max(1)).contains(hops), "{} hops of {}", hops, name);
                    prop_assert!(packet_switch || *via == Via::Circuit);
                }
                // Only `vlb` and `hoho` send packets to a relay without a check for room.
                Output::Drop { by, .. } => prop_assert!(*by != Full::Relay || name == "vlb" || name == "hoho"),
                Output::Circuit { .. } => {}
            }
        }
        prop_assert_eq!(all, run()?);
    }

    #[test]
    fn hoho_arrives_as_early_as_any_path_of_the_unrolled_schedule(
        racks in 3_usize..9,
        order in prop::collection::vec(1_usize..9, 0..12),
        most_hops in 1_u8..=MOST_HOPS,
        begin in 0_usize..40,
        ends in (0_usize..9, 1_usize..9),
    ) {
        // Each ring occurs once, so that all racks are connected. Some rings occur again, in any order.
        let mut steps: Vec<usize> = order.iter().map(|step| 1 + (step - 1) % (racks - 1)).collect();
        let missing: Vec<usize> = (1..racks).filter(|step| !steps.contains(step)).collect();
        steps.extend(missing);
        let schedule = rings(racks, &steps);
        let routes = routes("hoho", &format!("{{most_hops: {most_hops}}}"), &schedule);
        let (begin, source) = (begin % steps.len(), ends.0 % racks);
        let destination = (source + 1 + (ends.1 - 1) % (racks - 1)) % racks;
        // Exhaustive search over all paths from a rack and a day, with `left` remaining circuits. Returns the day of
        // arrival and the number of circuits.
        fn best(steps: &[usize], racks: usize, day: usize, rack: usize, destination: usize, left: u8, last: usize) -> (usize, u8) {
            if day > last || left == 0 {
                return (usize::MAX, u8::MAX);
            }
            let to = (rack + steps[day % steps.len()]) % racks;
            let stay = best(steps, racks, day + 1, rack, destination, left, last);
            let take = if to == destination {
                (day, 1)
            } else {
                let (arrives, hops) = best(steps, racks, day + 1, to, destination, left - 1, last);
                (arrives, hops.saturating_add(1))
            };
            stay.min(take)
        }
        let direct = (begin..).find(|day| (source + steps[day % steps.len()]) % racks == destination);
        let (day, hops) = best(&steps, racks, begin, source, destination, most_hops, direct.expect("all racks are connected"));
        // A circuit delays packets by almost a day and a night, so no packet takes two circuits in one day.
        let settings = Settings { circuit_delay: Nanos(DAY + NIGHT - 1_000), ..circuits_alone(racks, 16, 16) };
        let mut switch = switch(settings, &schedule, routes);
        let mut out = Vec::new();
        let at = begin as u64 * (DAY + NIGHT);
        switch.step(Nanos(at), Event::Arrive(packet(1, source, destination, MTU)), &mut out).expect("a valid packet");
        switch.step(Nanos(at + 2 * schedule.length().0 + DAY), Event::Wake, &mut out).expect("a valid time");
        let delivery = out.iter().find_map(|output| match output {
            Output::Deliver { at, hops, .. } => Some(((at.0 - 2 * 900 - (DAY + NIGHT - 1_000) ) / (DAY + NIGHT), *hops)),
            _ => None,
        });
        prop_assert_eq!(delivery, Some((day as u64, hops)));
    }
}

/// Sends packets from each rack at the rate of a circuit for some weeks, to its `destinations` in turn. Returns, for
/// each rack, the rate of delivery in the second half, as a share of a circuit's rate.
fn delivery_rates(
    name: &str,
    racks: usize,
    destinations: impl Fn(usize) -> Vec<usize>,
    weeks: u64,
) -> Vec<f64> {
    let schedule = rotor(racks);
    let routes = routes(name, "", &schedule);
    let mut switch = switch(circuits_alone(racks, 4096, 4096), &schedule, routes);
    let (mut out, mut delivered, mut round) = (Vec::new(), vec![0_u64; racks], 0);
    let half = weeks / 2 * schedule.length().0;
    let mut now = 0;
    while now < 2 * half {
        for source in 0..racks {
            let to = destinations(source);
            let to = to[round % to.len()];
            switch
                .step(Nanos(now), Event::Arrive(packet(0, source, to, MTU)), &mut out)
                .expect("a valid packet");
        }
        for output in out.drain(..) {
            if let Output::Deliver { packet, at, .. } = output
                && at.0 >= half
            {
                delivered[packet.source as usize] += 1;
            }
        }
        (now, round) = (now + 900, round + 1);
    }
    let full = (weeks / 2) as f64 * (racks as f64 - 1.0) * 200.0;
    delivered.iter().map(|&packets| packets as f64 / full).collect()
}

#[test]
fn each_routing_has_its_theoretical_rate() {
    let racks = 8;
    let all = |source: usize| -> Vec<usize> { (0..8).filter(|&to| to != source).collect() };
    let next = |source: usize| vec![(source + 3) % 8];
    // With one destination, packets use only the circuit of their own pair, on one day in N - 1.
    for share in delivery_rates("direct", racks, all, 40) {
        assert!((0.99..=1.0).contains(&share), "direct, all to all: {share}");
    }
    for share in delivery_rates("direct", racks, next, 40) {
        assert!((share - 1.0 / 7.0).abs() < 0.002, "direct, one destination: {share}");
    }
    // With one destination, the direct circuit carries only packets of its own source. Half of the packets on each of
    // the N - 2 other circuits are forwarded ones. The rate is (1 + (N - 2) / 2) / (N - 1).
    for share in delivery_rates("vlb", racks, next, 80) {
        assert!((share - 4.0 / 7.0).abs() < 0.01, "vlb, one destination: {share}");
    }
    // One of N - 1 packets takes one circuit, and the others take two. The average is 2 - 1 / (N - 1) circuits.
    let half = 1.0 / (2.0 - 1.0 / 7.0);
    for share in delivery_rates("vlb", racks, all, 80) {
        assert!((share - half).abs() < 0.01, "vlb, all to all: {share}");
    }
    // With all-to-all traffic, racks have no spare capacity to offer. With one destination, direct circuits are full,
    // and the other circuits carry the same as in vlb.
    for share in delivery_rates("rotorlb", racks, all, 40) {
        assert!((0.99..=1.0).contains(&share), "rotorlb, all to all: {share}");
    }
    for share in delivery_rates("rotorlb", racks, next, 80) {
        assert!((share - 4.0 / 7.0).abs() < 0.01, "rotorlb, one destination: {share}");
    }
}

#[test]
fn vlb_spreads_packets_evenly_over_intermediate_racks() {
    let schedule = rotor(8);
    let mut switch = switch(circuits_alone(8, 64, 1024), &schedule, routes("vlb", "{seed: 5}", &schedule));
    let mut out = Vec::new();
    for number in 0..7 * 20 {
        switch.step(Nanos(0), Event::Arrive(packet(number, 2, 6, MTU)), &mut out).expect("a valid packet");
    }
    for to in (0..8).filter(|&to| to != 2) {
        assert_eq!(switch.queued(2, to), (20, 20 * u64::from(MTU)));
    }
    switch.step(Nanos(10_000_000), Event::Wake, &mut out).expect("a valid time");
    let hops =
        |n| out.iter().filter(|output| matches!(output, Output::Deliver { hops, .. } if *hops == n)).count();
    assert_eq!((hops(1), hops(2)), (20, 120));
}

#[test]
fn rotorlb_serves_a_circuits_own_pair_first() {
    let racks = 8;
    let schedule = rotor(racks);
    let mut switch = switch(circuits_alone(racks, 1024, 1024), &schedule, routes("rotorlb", "", &schedule));
    let (mut out, mut now, weeks) = (Vec::new(), 0, 10);
    while now < weeks * schedule.length().0 {
        // Rack 0 always has more packets for racks 1 and 5 than a day carries. The other racks are idle, and offer all
        // their capacity.
        for to in [1, 5] {
            while switch.queued(0, to).0 < 512 {
                let event = Event::Arrive(packet(0, 0, to, MTU));
                switch.step(Nanos(now), event, &mut out).expect("a valid packet");
            }
        }
        now += 10_000;
        switch.step(Nanos(now), Event::Wake, &mut out).expect("a valid time");
    }
    let week = schedule.length().0;
    for (to, day) in [(1_u32, 0), (5, 4)] {
        for number in 1..weeks - 1 {
            let begins = number * week + day * (DAY + NIGHT) + NIGHT + 30_000;
            let delivered = out.iter().filter(|output| {
                matches!(output, Output::Deliver { packet, at, hops: 1, .. }
                if packet.destination == to && (begins..=begins + DAY).contains(&at.0))
            });
            assert_eq!(delivered.count(), 200, "to {to}, week {number}");
        }
    }
    assert!(out.iter().any(|output| matches!(output, Output::Deliver { hops: 2, .. })));
}

#[test]
fn a_packet_that_missed_its_day_still_arrives() {
    // The packets exceed a day's capacity. Packets that miss their day continue like packets that arrive later.
    let schedule = rotor(6);
    let mut switch = switch(circuits_alone(6, 4096, 4096), &schedule, routes("hoho", "", &schedule));
    let mut out = Vec::new();
    for number in 0..3000 {
        let (from, ahead) = (number as usize % 6, 1 + number as usize / 6 % 5);
        let event = Event::Arrive(packet(number, from, (from + ahead) % 6, MTU));
        switch.step(Nanos(0), event, &mut out).expect("a valid packet");
    }
    switch.step(Nanos(20 * schedule.length().0), Event::Wake, &mut out).expect("a valid time");
    let delivered = out.iter().filter(|output| matches!(output, Output::Deliver { .. })).count();
    assert_eq!(delivered, 3000);
}

#[test]
fn invalid_schedules_settings_and_routes_are_rejected() {
    let check_routes = |name: &str, schedule: &Schedule| {
        let result =
            routing::REGISTRY.make(name, "").expect("a routing").routes(schedule, &Network::default());
        result.map(drop).map_err(|error| error.to_string())
    };
    let ring = rings(4, &[1]);
    assert_eq!(check_routes("direct", &ring), Ok(()));
    assert_eq!(check_routes("hoho", &ring), Ok(()));
    let unlinked = "no day has a circuit from rack 0 to rack 2: every pair must have one";
    assert_eq!(check_routes("vlb", &ring), Err(format!("vlb: {unlinked}")));
    assert_eq!(check_routes("rotorlb", &ring), Err(format!("rotorlb: {unlinked}")));
    let no_path = "hoho: no path of at most 4 circuits leads from rack 1 to rack 0: every pair must have one"
        .to_owned();
    assert_eq!(check_routes("hoho", &rings(6, &[1])), Err(no_path));
    let settings_error = |name: &str, settings: &str| {
        routing::REGISTRY.make(name, settings).map(drop).unwrap_err().to_string()
    };
    assert_eq!(settings_error("ecmp", ""), "unknown routing `ecmp`; there are: direct, vlb, rotorlb, hoho");
    assert!(
        settings_error("hoho", "{most_hops: 5}").ends_with("most_hops: 5: expected 1 to 4"),
        "{}",
        settings_error("hoho", "{most_hops: 5}")
    );
    assert!(settings_error("rotorlb", "{seed: 5}").ends_with("seed: unknown field; expected none"));

    let mut switch: Switch<u64> = Switch::new(Settings::etalon(4)).expect("valid settings");
    let routes = Arc::new(routes("vlb", "", &rotor(4)));
    let error = switch.step(Nanos(0), Event::Routes(routes), &mut Vec::new()).unwrap_err();
    assert_eq!(error, SwitchError::Routes { found: (4, 3), expected: (4, 0) });
    assert_eq!(error.to_string(), "routes for 4 racks and 3 days: the schedule has 4 racks and 0 days");
}
