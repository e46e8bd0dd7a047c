//! Benchmark of the switch alone on one core: packets per second, each from arrival to delivery. On Linux, the
//! benchmark measures the CPU time of this thread, so that other load on the machine has less effect.
//!
//! Run it with `cargo bench -p leeward-circuits --bench switch`.

use leeward_circuits::Schedule;
use leeward_circuits::schedulers::rotor_schedule;
use leeward_circuits::switch::{Ecn, Event, Output, Packet, Settings, Switch, Via};
use leeward_fabric::Nanos;
use leeward_testing::bench;

/// Packets per run.
const PACKETS: u64 = 10_000_000;

fn main() {
    println!("racks  load                      arrived   packet  circuit     lost   Mpackets/s  ns/packet");
    for racks in [8, 32, 128] {
        for (name, week, every) in [
            ("packet switch, 90 %", false, 8_000),
            ("strobe, each pair, 90 %", true, 3_900),
            ("strobe, each pair, 200 %", true, 1_800),
        ] {
            run(racks, name, week, every);
        }
    }
}

/// Days of 180 us after nights of 20 us; on day k rack i sends to rack i + k.
fn strobe(racks: usize) -> Schedule {
    rotor_schedule(racks, Nanos(20_000), Nanos(180_000)).expect("a schedule")
}

/// Each rack sends packets of 9000 bytes to the other racks, one rack after another, one packet every `every` ns.
fn run(racks: usize, name: &str, week: bool, every: u64) {
    let mut switch = Switch::new(Settings::etalon(racks)).expect("valid settings");
    let mut out = Vec::with_capacity(1024);
    if week {
        switch.step(Nanos(0), Event::NewWeek(strobe(racks)), &mut out).expect("a valid schedule");
    }
    let (mut by_packet, mut by_circuit, mut lost) = (0_u64, 0_u64, 0_u64);
    let (mut arrived, mut now, mut turn) = (0_u64, 0, 0);
    let began = bench::seconds();
    while arrived < PACKETS {
        turn = if turn + 1 == racks { 1 } else { turn + 1 };
        for source in 0..racks {
            let to = source + turn;
            let destination = (if to >= racks { to - racks } else { to }) as u32;
            let (ecn, entered) = (Ecn::Incapable, Nanos(0));
            let packet =
                Packet { payload: arrived, source: source as u32, destination, bytes: 9000, ecn, entered };
            switch.step(Nanos(now + source as u64), Event::Arrive(packet), &mut out).expect("a valid packet");
            arrived += 1;
        }
        for output in out.drain(..) {
            match output {
                Output::Deliver { via: Via::Packet, .. } => by_packet += 1,
                Output::Deliver { .. } => by_circuit += 1,
                Output::Drop { .. } => lost += 1,
                Output::Circuit { .. } => {}
            }
        }
        now += every;
    }
    let seconds = bench::seconds() - began;
    bench::record(&format!("switch, {racks} racks, {name}"), "packets/s", arrived as f64 / seconds);
    println!(
        "{racks:>5}  {name:<24} {arrived:>8} {by_packet:>8} {by_circuit:>8} {lost:>8}   {:>10.2} {:>10.1}",
        arrived as f64 / seconds / 1e6,
        seconds * 1e9 / arrived as f64
    );
}
