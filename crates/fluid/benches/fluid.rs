//! Speed of the fluid simulator on one core: whole simulations, including solving and completions.
//!
//! A plain simulator also runs the beginning of each case. It solves everything again at each event, by progressive
//! filling with a heap of bottlenecks. It gets only as many of the first flows as it can simulate within seconds; the
//! ratio compares the two simulators on these flows. Run by `cargo bench -p leeward-fluid --bench fluid`; the coflow
//! case needs `LEEWARD_DATA`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::Network;
use leeward_testing::bench::{record, seconds};
use leeward_testing::numbers::Numbers;

/// Hosts per rack.
const HOSTS: usize = 20;
/// Bits on a link per byte.
const BITS: f64 = 8.0;

/// A future flow.
struct Flow {
    at: f64,
    bytes: f64,
    path: Vec<Hop>,
    class: Option<u64>,
}

struct Case {
    name: &'static str,
    capacities: Vec<f64>,
    flows: Vec<Flow>,
    /// Number of flows for the plain simulator.
    prefix: usize,
}

/// Result of a simulation.
struct Outcome {
    seconds: f64,
    mean_active: f64,
    max_active: usize,
    /// Sum of all flow completion times, for a comparison of two simulators.
    total: f64,
}

fn main() {
    println!(
        "{:<26} {:>9} {:>11} {:>10} {:>8} {:>12}   {:>11} {:>8} {:>7}",
        "case",
        "flows",
        "mean active",
        "max active",
        "seconds",
        "events/s",
        "plain:flows",
        "seconds",
        "ratio"
    );
    for case in [
        racks("racks, load 0.7", 0.7, 50_000),
        racks("racks, load 0.9", 0.9, 50_000),
        racks("racks, load 0.7, long", 0.7, 1_000_000),
        chains("racks with disks, chains", 20_000),
    ] {
        report(&case);
    }
    match coflows() {
        Some(case) => report(&case),
        None => println!("coflows: skipped: LEEWARD_DATA is not set or has no fb2010-coflow"),
    }
    println!(
        "\nEvents are arrivals and completions; seconds are of computation. The plain simulator solves everything again at each event; it runs on\n\
         the first flows of each case only, and the ratio is its time over that of the simulator on the same flows."
    );
}

fn report(case: &Case) {
    let all = simulate(case, case.flows.len());
    let some = simulate(case, case.prefix);
    let plain = plain(case, case.prefix);
    let difference = (some.total - plain.total).abs() / plain.total;
    assert!(difference < 1e-9, "{}: the two simulators disagree by {difference:e}", case.name);
    record(&format!("fluid, {}", case.name), "events/s", 2.0 * case.flows.len() as f64 / all.seconds);
    record(&format!("fluid, {}, time", case.name), "s", all.seconds);
    record(&format!("fluid, {}, plain", case.name), "ratio", plain.seconds / some.seconds);
    println!(
        "{:<26} {:>9} {:>11.0} {:>10} {:>8.3} {:>12.0}   {:>11} {:>8.3} {:>7.0}",
        case.name,
        case.flows.len(),
        all.mean_active,
        all.max_active,
        all.seconds,
        2.0 * case.flows.len() as f64 / all.seconds,
        case.prefix,
        plain.seconds,
        plain.seconds / some.seconds,
    );
}

/// Simulates the first `count` flows of a case with the network.
fn simulate(case: &Case, count: usize) -> Outcome {
    let start = seconds();
    let mut network = Network::new(&case.capacities).expect("capacities are positive");
    let mut flows = case.flows[..count].iter().peekable();
    let mut finished = Vec::new();
    let (mut now, mut area, mut max_active, mut total) = (0.0, 0.0, 0, 0.0);
    loop {
        let completion = network.next_completion().unwrap_or(f64::INFINITY);
        let next = flows.peek().map_or(f64::INFINITY, |flow| flow.at).min(completion);
        if next == f64::INFINITY {
            break;
        }
        area += network.active() as f64 * (next - now);
        now = next;
        network.advance(now, &mut finished).expect("events are in order of time");
        total += finished.drain(..).map(|done| done.at).sum::<f64>();
        while let Some(flow) = flows.next_if(|flow| flow.at <= now) {
            let Flow { bytes, path, class, .. } = flow;
            network.start(now, path, *bytes, 1.0, f64::INFINITY, *class).expect("the case is valid");
            total -= now;
        }
        max_active = max_active.max(network.active());
    }
    Outcome { seconds: seconds() - start, mean_active: area / now, max_active, total }
}

/// Simulates the same flows by solving everything again at each event.
fn plain(case: &Case, count: usize) -> Outcome {
    let start = seconds();
    let mut flows = case.flows[..count].iter().peekable();
    let mut active: Vec<(&[Hop], f64)> = Vec::new();
    let mut filling = Filling::new(case.capacities.len());
    let (mut now, mut area, mut max_active, mut total) = (0.0, 0.0, 0, 0.0);
    loop {
        filling.solve(&case.capacities, &active);
        let ends = active.iter().zip(&filling.rates).map(|((_, left), rate)| now + left / rate);
        let completion = ends.fold(f64::INFINITY, f64::min);
        let next = flows.peek().map_or(f64::INFINITY, |flow| flow.at).min(completion);
        if next == f64::INFINITY {
            break;
        }
        area += active.len() as f64 * (next - now);
        for ((_, left), rate) in active.iter_mut().zip(&filling.rates) {
            *left -= rate * (next - now);
            // A rounding error must not delay a flow.
            if *left <= rate * 1e-12 {
                *left = 0.0;
            }
        }
        now = next;
        let before = active.len();
        active.retain(|(_, left)| *left > 0.0);
        total += (before - active.len()) as f64 * now;
        while let Some(flow) = flows.next_if(|flow| flow.at <= now) {
            active.push((&flow.path, flow.bytes));
            total -= now;
        }
        max_active = max_active.max(active.len());
    }
    Outcome { seconds: seconds() - start, mean_active: area / now, max_active, total }
}

/// Progressive filling, with memory that is reused between solutions.
struct Filling {
    rates: Vec<f64>,
    left: Vec<f64>,
    gain: Vec<f64>,
    rising: Vec<u32>,
    crossing: Vec<Vec<u32>>,
    used: Vec<usize>,
}

impl Filling {
    fn new(resources: usize) -> Filling {
        Filling {
            rates: Vec::new(),
            left: vec![0.0; resources],
            gain: vec![0.0; resources],
            rising: vec![0; resources],
            crossing: vec![Vec::new(); resources],
            used: Vec::new(),
        }
    }

    fn solve(&mut self, capacities: &[f64], active: &[(&[Hop], f64)]) {
        for r in self.used.drain(..) {
            self.crossing[r].clear();
            (self.gain[r], self.rising[r]) = (0.0, 0);
        }
        self.rates.clear();
        self.rates.resize(active.len(), f64::NAN);
        for (index, (path, _)) in active.iter().enumerate() {
            for &Hop { resource, work } in *path {
                let r = resource.index();
                if self.crossing[r].is_empty() {
                    self.used.push(r);
                    self.left[r] = capacities[r];
                }
                self.crossing[r].push(index as u32);
                self.gain[r] += work;
                self.rising[r] += 1;
            }
        }
        let key = |level: f64, r: usize| Reverse((level.max(0.0).to_bits(), r));
        let mut next: BinaryHeap<_> =
            self.used.iter().map(|&r| key(self.left[r] / self.gain[r], r)).collect();
        while let Some(Reverse((bits, r))) = next.pop() {
            if self.rising[r] == 0 {
                continue;
            }
            let level = (self.left[r] / self.gain[r]).max(0.0);
            if level.to_bits() > bits {
                next.push(key(level, r));
                continue;
            }
            for at in 0..self.crossing[r].len() {
                let index = self.crossing[r][at] as usize;
                if !self.rates[index].is_nan() {
                    continue;
                }
                self.rates[index] = level;
                for &Hop { resource, work } in active[index].0 {
                    let other = resource.index();
                    self.left[other] -= work * level;
                    self.gain[other] -= work;
                    self.rising[other] -= 1;
                }
            }
        }
    }
}

/// Draws flow sizes like those of web search: half of the flows are small, and few large ones have most of the bytes.
fn size(numbers: &mut Numbers) -> f64 {
    let (least, most): (f64, f64) = match numbers.unit() {
        share if share < 0.5 => (1e4, 1e5),
        share if share < 0.7 => (1e5, 1e6),
        share if share < 0.95 => (1e6, 7e6),
        _ => (7e6, 3e7),
    };
    (least * (most / least).powf(numbers.unit())).round()
}

/// Draws a host and another one in a different rack.
fn pair(numbers: &mut Numbers, racks: usize) -> (usize, usize) {
    let from = numbers.below(racks * HOSTS);
    loop {
        let to = numbers.below(racks * HOSTS);
        if to / HOSTS != from / HOSTS {
            return (from, to);
        }
    }
}

/// Racks of 20 hosts with links of 1 Gb/s under rack links of 2 Gb/s, and a disk of 50 MB/s for each host.
#[derive(Clone, Copy)]
struct Racks(usize);

impl Racks {
    fn capacities(self) -> Vec<f64> {
        let hosts = self.0 * HOSTS;
        let links = std::iter::repeat_n(1e9, 2 * hosts).chain(std::iter::repeat_n(2e9, 2 * self.0));
        links.chain(std::iter::repeat_n(50e6, hosts)).collect()
    }

    fn up(self, host: usize) -> Hop {
        hop(host, BITS)
    }

    fn down(self, host: usize) -> Hop {
        hop(self.0 * HOSTS + host, BITS)
    }

    fn disk(self, host: usize) -> Hop {
        hop(2 * self.0 * (HOSTS + 1) + host, 1.0)
    }

    fn between(self, from: usize, to: usize) -> Vec<Hop> {
        let rack = 2 * self.0 * HOSTS;
        let (out_of, into) = (rack + from / HOSTS, rack + self.0 + to / HOSTS);
        vec![self.up(from), hop(out_of, BITS), hop(into, BITS), self.down(to)]
    }
}

fn hop(resource: usize, work: f64) -> Hop {
    Hop { resource: ResourceId(resource as u32), work }
}

/// Poisson arrivals between random hosts of different racks, at a mean load of the rack links.
fn racks(name: &'static str, load: f64, count: usize) -> Case {
    let racks = Racks(150);
    let mut sizes = Numbers::new(99);
    let mean = (0..200_000).map(|_| size(&mut sizes)).sum::<f64>() / 200_000.0;
    let gap = mean * BITS / (load * racks.0 as f64 * 2e9);
    let mut numbers = Numbers::new(1);
    let mut at = 0.0;
    let flows = (0..count).map(|_| {
        at += numbers.exponential(gap);
        let (from, to) = pair(&mut numbers, racks.0);
        Flow { at, bytes: size(&mut numbers), path: racks.between(from, to), class: None }
    });
    Case { name, capacities: racks.capacities(), flows: flows.collect(), prefix: 10_000.min(count) }
}

/// Blocks of 256 MiB, each written through two disks as one flow, among the same number of flows without disks.
fn chains(name: &'static str, count: usize) -> Case {
    let racks = Racks(150);
    let mut numbers = Numbers::new(2);
    let mut at = 0.0;
    let flows = (0..count).map(|index| {
        at += numbers.exponential(8.4e-3);
        let (from, first) = pair(&mut numbers, racks.0);
        let mut path = racks.between(from, first);
        if index % 2 == 0 {
            let bytes = 1e7 * 60f64.powf(numbers.unit());
            return Flow { at, bytes: bytes.round(), path, class: None };
        }
        let second = first / HOSTS * HOSTS + (first + 1 + numbers.below(HOSTS - 1)) % HOSTS;
        path.extend([racks.disk(first), racks.up(first), racks.down(second), racks.disk(second)]);
        Flow { at, bytes: f64::from(256 << 20), path, class: None }
    });
    Case { name, capacities: racks.capacities(), flows: flows.collect(), prefix: 5_000.min(count) }
}

/// An hour of MapReduce shuffles at Facebook: each mapper's rack sends its part to each reducer's rack.
fn coflows() -> Option<Case> {
    let path = PathBuf::from(std::env::var_os("LEEWARD_DATA")?).join("fb2010-coflow/FB2010-1Hr-150-0.txt");
    let text = std::fs::read_to_string(path).ok()?;
    let racks: usize = text.split_whitespace().next()?.parse().ok()?;
    let mut flows = Vec::new();
    for line in text.lines().skip(1) {
        let mut fields = line.split_whitespace().skip(1);
        let at = fields.next()?.parse::<f64>().ok()? / 1e3;
        let count: usize = fields.next()?.parse().ok()?;
        let mappers: Vec<usize> =
            fields.by_ref().take(count).map(str::parse).collect::<Result<_, _>>().ok()?;
        for reducer in fields.skip(1) {
            let (to, megabytes) = reducer.split_once(':')?;
            let (to, megabytes): (usize, f64) = (to.parse().ok()?, megabytes.parse().ok()?);
            for &from in mappers.iter().filter(|&&from| from != to) {
                let path = vec![hop(from, BITS), hop(racks + to, BITS)];
                let class = Some((from * racks + to) as u64);
                flows.push(Flow { at, bytes: megabytes * 1e6 / mappers.len() as f64, path, class });
            }
        }
    }
    let prefix = 200_000.min(flows.len());
    Some(Case { name: "Facebook coflows, 1 h", capacities: vec![2e9; 2 * racks], flows, prefix })
}
