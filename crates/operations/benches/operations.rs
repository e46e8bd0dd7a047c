//! Speed of the simulator of operations on one core: 150 racks of 20 hosts, whose workers read chunks of 100 KB to 1 MB
//! from any other host, at about half of the uplinks' capacity. A packet here is a packet that reached its host, with data or
//! an acknowledgement, after the ports of two hosts and two racks. On Linux, the results are in CPU seconds, because
//! other load on the machine affects them less.
//!
//! Run by `cargo bench -p leeward-operations --bench operations [-- SECONDS]`. SECONDS is simulated time, of which the
//! first half fills the network; the default is 0.04.

use std::path::Path;

use leeward_operations::Scenario;
use leeward_testing::bench;

fn main() {
    let seconds = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(0.04);
    println!("racks  hosts  classes  operations     packets  Mpackets/s  Mdata/s  retransmitted");
    run(seconds, 150, 20, false);
    run(seconds, 150, 20, true);
    // The other cases show the effect of the size, and record no figures.
    if bench::is_recorded() {
        return;
    }
    run(10.0 * seconds, 15, 20, false);
    run(100.0 * seconds, 2, 5, false);
}

fn run(seconds: f64, racks: u32, hosts: u32, classes: bool) {
    let names = if classes {
        "classes: [{name: PC, weight: 8}, {name: NC, weight: 4}, {name: BE, weight: 1}]\n"
    } else {
        ""
    };
    // A worker reads 391 KB on average and thinks for 6 ms. Six workers of a host ask for 2.9 Gb/s, of the 5 Gb/s that a host
    // has of its uplink.
    let text = format!(
        "cluster: {{racks: {racks}, hosts_per_rack: {hosts}, nic: 10Gbps, oversubscription: 2}}\n\
         {names}\
         media: [{{name: ram, read: 10GB/s, write: 10GB/s, parallel: 100}}]\n\
         operations: [{{name: read, kind: read, medium: ram, size: [100KB, 1MB], servers: all}}]\n\
         jobs: [{{name: reads, concurrent: {}, record: false, steps: [{{compute: {{mean: 6ms, c2: 3.6}}}}, {{operation: read}}]}}]\n\
         horizon: {}us\nsample: 1s",
        6 * racks * hosts,
        (seconds * 1e6).round().max(1.0)
    );
    let scenario = Scenario::from_text("bench", &text, Path::new("")).expect("a valid scenario");
    let began = bench::seconds();
    let records = scenario.run(&|_| true).expect("a run that ends");
    let took = bench::seconds() - began;
    let packets = records.data_packets + records.ack_packets;
    let name =
        format!("operations, {racks} racks of {hosts}{}", if classes { ", three classes" } else { "" });
    if racks == 150 {
        bench::record(&name, "packets/s", packets as f64 / took);
    }
    println!(
        "{racks:>5} {hosts:>6} {:>8} {:>11} {packets:>11} {:>11.2} {:>8.2} {:>14}",
        if classes { 3 } else { 1 },
        records.unfinished,
        packets as f64 / took / 1e6,
        records.data_packets as f64 / took / 1e6,
        records.retransmitted,
    );
}
