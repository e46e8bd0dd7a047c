//! Benchmark of the schedulers: time for a skewed demand, and the share of the demand that each schedule serves in a
//! week.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use leeward_circuits::schedulers::REGISTRY;
use leeward_circuits::{DemandMatrix, Network, evaluate};
use leeward_testing::bench;

const RACKS: [usize; 6] = [4, 8, 16, 32, 64, 128];

fn main() {
    println!("{:>5} {:<16} {:>11} {:>6} {:>7}", "racks", "scheduler", "least", "days", "served");
    for racks in RACKS {
        let demand = skewed(racks);
        let network = Network::default();
        for name in REGISTRY.names() {
            let scheduler = REGISTRY.make(name, "").expect("the default settings are valid");
            let mut least = f64::INFINITY;
            let began = Instant::now();
            let mut calls = 0;
            while calls < 5 || (calls < 2000 && began.elapsed().as_secs_f64() < 0.2) {
                let start = Instant::now();
                black_box(
                    scheduler.schedule(black_box(&demand), &network).expect("the network is supported"),
                );
                least = least.min(start.elapsed().as_secs_f64() * 1e6);
                calls += 1;
            }
            let schedule = scheduler.schedule(&demand, &network).expect("the network is supported");
            let result = evaluate(&schedule, &demand, &network)
                .expect("the schedule and the demand have the same racks");
            let share = result.served as f64 / demand.total() as f64 * 100.0;
            bench::record(&format!("circuits, {name}, {racks} racks"), "us", least);
            bench::record(&format!("circuits served, {name}, {racks} racks"), "%", share);
            let days = schedule.days().len();
            println!("{racks:>5} {name:<16} {least:>8.1} us {days:>6} {share:>5.1} %");
        }
    }
}

/// Demand of four large permutations of about 3.5 MB and twelve small ones of a tenth of this size, as in the
/// evaluation of Solstice (CoNEXT 2015). With few racks, there are fewer of each size. The sum is about 90 % of the
/// bytes that circuits carry in a week of 2 ms.
fn skewed(racks: usize) -> DemandMatrix {
    let mut state = 1u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut bytes = vec![0; racks * racks];
    for round in 0..16 {
        let mut to: Vec<usize> = (0..racks).collect();
        (1..racks).rev().for_each(|at| to.swap(at, (draw() * (at + 1) as f64) as usize));
        for (from, to) in to.into_iter().enumerate().filter(|(from, to)| from != to) {
            let size = if round < 4 { 3.5e6 } else { 0.33e6 };
            bytes[from * racks + to] += (size * (0.9 + 0.3 * draw())) as u64;
        }
    }
    DemandMatrix::new(racks, bytes).expect("racks have no demand for themselves")
}
