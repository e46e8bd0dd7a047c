//! Speed of the packet simulator on one core, in the setting of the Etalon paper's figure 6: 16 flows from one rack to
//! another under strobe, by queue size. A packet here is a data packet that reached its host. Each packet also passes
//! the host's NIC and the switch (uplink, inner queue, downlink; or a circuit). For every second packet, an
//! acknowledgement takes the same path back. On Linux, the results are in CPU seconds, because other load on the
//! machine affects them less.
//!
//! Run by `cargo bench -p leeward-packets --bench packets [-- SECONDS]`. SECONDS is simulated time; the default is 2,
//! as in the paper.

use leeward_circuits::Schedule;
use leeward_circuits::schedulers::rotor_schedule;
use leeward_circuits::switch::{Resize, Via};
use leeward_fabric::Nanos;
use leeward_packets::workload::lists;
use leeward_packets::{Plan, Settings, Simulator};
use leeward_tcp::control::Control;
use leeward_testing::bench;

fn main() {
    let seconds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(2.0);
    println!(
        "tcp    voq      early us     data  Mdata/s  Mpackets/s  circuit %   median us: all  packet  circuit    p99  timeouts"
    );
    for voq in [4, 8, 16, 32, 64, 128] {
        run(seconds, "reno", Control::Reno, voq, None, None);
    }
    // The other cases compare algorithms, and record no figures.
    if bench::is_recorded() {
        return;
    }
    for early in [0, 200, 400, 600, 800, 1000, 1200, 1400] {
        run(seconds, "reno", Control::Reno, 16, Some(early), None);
    }
    run(seconds, "retcp", Control::RETCP, 16, None, Some(0));
    for early in [0, 200, 400, 600, 800, 1000, 1200, 1400] {
        run(seconds, "retcp", Control::RETCP, 16, Some(early), Some(early));
    }
}

/// Days of 180 us after nights of 20 us; on day k rack i sends to rack i + k.
fn strobe(racks: usize) -> Schedule {
    rotor_schedule(racks, Nanos(20_000), Nanos(180_000)).expect("a schedule")
}

fn run(seconds: f64, name: &str, control: Control, voq: u32, early: Option<u64>, marks: Option<u64>) {
    let mut settings = Settings::etalon(8);
    settings.tcp.control = control;
    settings.switch.voq_capacity = voq;
    settings.switch.resize =
        early.map(|us| Resize::new(16, 128, Nanos(us * 1000)).expect("small is at most big"));
    settings.switch.circuit_marks = marks.map(|us| Nanos(us * 1000));
    let workload = lists::long(8, 16, [0, 1], 16, 1 << 40).expect("a valid workload");
    let mut simulator = Simulator::new(settings, Plan::Fixed(strobe(8)), workload).expect("a valid setup");
    let began = bench::seconds();
    simulator.run(Nanos::from_secs_f64(seconds)).expect("a valid run");
    let took = bench::seconds() - began;
    let records = simulator.records();
    let us = |quantile: Option<Nanos>| quantile.map_or(f64::NAN, |at| at.0 as f64 / 1e3);
    let all = records.all_latencies();
    let packets = records.delivered.iter().map(|traffic| traffic.packets).sum::<u64>();
    if early.is_none() && name == "reno" {
        bench::record(&format!("packets, queues of {voq}"), "packets/s", packets as f64 / took);
        bench::record(
            &format!("packets with data, queues of {voq}"),
            "packets/s",
            records.data_packets as f64 / took,
        );
    }
    println!(
        "{name:<6} {voq:>3} {:>13} {:>8} {:>8.2} {:>11.2} {:>10.1} {:>16.1} {:>7.1} {:>8.1} {:>6.1} {:>9}",
        early.map_or("-".into(), |us| us.to_string()),
        records.data_packets,
        records.data_packets as f64 / took / 1e6,
        packets as f64 / took / 1e6,
        100.0 * records.circuit_utilization(0, 1, 80e9, Nanos(0)).expect("days"),
        us(all.quantile(0.5)),
        us(records.latency(Via::Packet).quantile(0.5)),
        us(records.latency(Via::Circuit).quantile(0.5)),
        us(all.quantile(0.99)),
        records.flows.iter().map(|flow| flow.timeouts).sum::<u64>(),
    );
}
