//! Allocation test: the switch allocates nothing after its queues have reached their largest size.

use std::sync::Arc;

use leeward_circuits::routing;
use leeward_circuits::switch::{Ecn, Event, Output, Packet, Resize, Settings, Switch};
use leeward_circuits::{Day, Matching, Network, Schedule};
use leeward_fabric::Nanos;
use leeward_testing::allocations::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

const RACKS: usize = 8;
const WEEK: u64 = 1_400_000;

/// Days of 180 us after nights of 20 us; on day k rack i sends to rack i + k (Etalon, figure 4).
fn strobe() -> Schedule {
    let days = (1..RACKS).map(|day| {
        let sources = (0..RACKS).map(|to| Some(((to + RACKS - day) % RACKS) as u32)).collect();
        Day { matching: Matching::new(sources).expect("a matching"), length: Nanos(180_000) }
    });
    Schedule::new(RACKS, Nanos(20_000), days.collect()).expect("a schedule")
}

/// Each rack sends packets to the other racks, one rack after another, one packet every `every` ns, for some weeks.
/// Returns the number of outputs.
fn drive(
    switch: &mut Switch<u64>,
    out: &mut Vec<Output<u64>>,
    weeks: std::ops::Range<u64>,
    every: u64,
) -> usize {
    let mut seen = 0;
    for turn in weeks.start * WEEK / every..weeks.end * WEEK / every {
        let step = 1 + (turn as usize) % (RACKS - 1);
        for source in 0..RACKS {
            let destination = ((source + step) % RACKS) as u32;
            let bytes = if turn % 3 == 0 { 1500 } else { 9000 };
            let packet = Packet {
                payload: turn,
                source: source as u32,
                destination,
                bytes,
                ecn: Ecn::Capable,
                entered: Nanos(0),
            };
            switch.step(Nanos(turn * every), Event::Arrive(packet), out).expect("a valid packet");
        }
        switch.step(Nanos(turn * every), Event::Wake, out).expect("a valid time");
        seen += out.len();
        out.clear();
    }
    seen
}

#[test]
fn in_the_steady_state_a_step_allocates_nothing() {
    let etalon = Settings::etalon(RACKS);
    let resize = Resize::new(16, 128, Nanos(1_000_000)).expect("small is at most big");
    let grown = Settings {
        resize: Some(resize),
        circuit_marks: Some(Nanos(1_000_000)),
        mark_at: Some(8),
        ..etalon.clone()
    };
    let rotor = Settings { packet_switch: false, voq_capacity: 256, ..etalon.clone() };
    let direct = None;
    let loads = [
        ("packets alone", etalon.clone(), false, direct),
        ("circuits", etalon, true, direct),
        ("queues that grow and mark", grown, true, direct),
        ("vlb", rotor.clone(), true, Some("vlb")),
        ("rotorlb", rotor.clone(), true, Some("rotorlb")),
        ("hoho", rotor, true, Some("hoho")),
    ];
    for (name, settings, circuits, routing) in loads {
        // Once below and once above the links' capacity.
        for every in [8_000, 1_000] {
            let mut switch = Switch::new(settings.clone()).expect("valid settings");
            let mut out = Vec::with_capacity(1 << 16);
            if circuits {
                switch.step(Nanos(0), Event::NewWeek(strobe()), &mut out).expect("a valid schedule");
            }
            if let Some(routing) = routing {
                let routing = routing::REGISTRY.make(routing, "").expect("a routing");
                let routes = routing.routes(&strobe(), &Network::default()).expect("every pair has its day");
                switch.step(Nanos(0), Event::Routes(Arc::new(routes)), &mut out).expect("valid routes");
            }
            drive(&mut switch, &mut out, 0..30, every);
            let mut seen = 0;
            let count = allocations(|| seen = drive(&mut switch, &mut out, 30..60, every));
            assert!(seen > 10_000, "{name}: {seen} outputs");
            assert_eq!(count, 0, "{name}, a packet every {every} ns: {seen} outputs");
        }
    }
}
