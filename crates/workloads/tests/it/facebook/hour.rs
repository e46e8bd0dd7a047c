//! The generated hour: loads of its links, with and without its writes, and statistics of both.

use std::collections::BTreeMap;

use leeward_fabric::{Cluster, DomainId, ResourceId};
use leeward_workloads::{Background, Facebook, FileWrite, Share, Shares, Workload, Writers};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::check;

pub const HOUR: f64 = 3600.0;
/// Capacity of a rack's link, in bits per second.
pub const LINK: f64 = 2e9;
/// Bytes per second of a write.
const DISK: f64 = 50e6;

/// An hour of one seed, with its background as rates and as flows, and the utilization of links in bins of 10 s.
pub struct Hour {
    pub rates: Workload,
    flows: Workload,
    /// Flows without shuffles.
    only_reads: Workload,
    cluster: Cluster,
    pub down: Vec<Vec<f64>>,
    pub up: Vec<Vec<f64>>,
    pub background_down: Vec<Vec<f64>>,
    pub background_up: Vec<Vec<f64>>,
    blocks_sent: Vec<SentBlock>,
}

/// A block on its way from one rack to another, at a constant rate.
struct SentBlock {
    from: DomainId,
    to: DomainId,
    start: f64,
    end: f64,
    bps: f64,
}

/// Rate of a file's blocks, in bytes per second.
fn write_rate(file: &FileWrite) -> f64 {
    file.pace.min(DISK)
}

pub fn any(_: &str) -> bool {
    true
}

/// Jobs without a shuffle: ingestion and preprocessing.
pub fn other(job: &str) -> bool {
    job.starts_with("bin5")
}

impl Hour {
    pub fn new(cluster: &Cluster, seed: u64, writers: Writers) -> Hour {
        let generate = |background, shares| {
            let settings = Facebook { background, shares, writers, ..Facebook::default() };
            let loaded = settings.generate(cluster, seed, HOUR).unwrap();
            println!("{}", loaded.provenance);
            check(&loaded.workload, cluster, HOUR);
            loaded.workload
        };
        let shares = Facebook::default().shares;
        let (rates, flows) = (generate(Background::Rates, shares), generate(Background::Flows, shares));
        // The other shares are scaled, so that writes are unchanged and reads stay in proportion to them.
        let part = |share: Share| Share::new(share.get() / (1.0 - shares.shuffle.get())).unwrap();
        let shares = Shares {
            reads: part(shares.reads),
            shuffle: Share::new(0.0).unwrap(),
            output: part(shares.output),
            other: part(shares.other),
        };
        let only_reads = generate(Background::Flows, shares);
        let racks = cluster.fabric.rack_count();
        let empty = || vec![vec![0.0; racks]; (HOUR / 10.0) as usize];
        let mut hour = Hour {
            rates,
            flows,
            only_reads,
            cluster: cluster.clone(),
            down: empty(),
            up: empty(),
            background_down: empty(),
            background_up: empty(),
            blocks_sent: Vec::new(),
        };
        hour.add_background();
        (hour.down, hour.up) = (hour.background_down.clone(), hour.background_up.clone());
        hour.blocks_sent = hour.send_blocks(&mut ChaCha8Rng::seed_from_u64(seed));
        for block in &hour.blocks_sent {
            add(&mut hour.down, block.to, block.start, block.end, block.bps);
            add(&mut hour.up, block.from, block.start, block.end, block.bps);
        }
        for bins in [&mut hour.down, &mut hour.up] {
            bins.iter_mut().flatten().for_each(|load| *load = load.min(1.0));
        }
        hour
    }

    fn add_background(&mut self) {
        for rack in self.cluster.fabric.all_racks() {
            let fabric = &self.cluster.fabric;
            for (link, bins) in [
                (fabric.into_domain(rack).unwrap(), &mut self.background_down),
                (fabric.out_of_domain(rack).unwrap(), &mut self.background_up),
            ] {
                for (from, to, bps) in steps(&self.rates, link) {
                    add(bins, rack, from, to, bps);
                }
            }
        }
    }

    fn send_blocks(&self, random: &mut ChaCha8Rng) -> Vec<SentBlock> {
        let racks = self.cluster.fabric.rack_count() as u32;
        let mut blocks = Vec::new();
        for file in &self.rates.files {
            let (from, rate) = (self.cluster.fabric.rack_of(file.writer), write_rate(file));
            let (mut start, mut left) = (file.start, file.bytes.0);
            while left > 0 && start < HOUR {
                let to = DomainId((from.0 + random.random_range(1..racks)) % racks);
                let block = left.min(file.block.0);
                let end = start + block as f64 / rate;
                blocks.push(SentBlock { from, to, start, end, bps: rate * 8.0 });
                (start, left) = (end, left - block);
            }
        }
        blocks
    }

    pub fn both(&self) -> Vec<Vec<f64>> {
        self.down.iter().zip(&self.up).map(|(down, up)| [down.as_slice(), up].concat()).collect()
    }

    /// Mean utilization of each downlink over the hour.
    pub fn hourly(&self) -> Vec<f64> {
        (0..self.down[0].len())
            .map(|rack| mean(&self.down.iter().map(|bin| bin[rack]).collect::<Vec<_>>()))
            .collect()
    }

    pub fn block(&self) -> f64 {
        Facebook::default().block.0 as f64
    }

    pub fn full_blocks(&self) -> f64 {
        self.rates.files.iter().map(|file| (file.bytes.0 / file.block.0) as f64).sum()
    }

    pub fn blocks(&self) -> f64 {
        self.rates.files.iter().map(|file| file.bytes.0.div_ceil(file.block.0) as f64).sum()
    }

    /// Bytes written, before replication, by jobs whose name matches.
    pub fn written(&self, job: fn(&str) -> bool) -> f64 {
        let of = |file: &&FileWrite| job(&self.rates.jobs[file.job.unwrap() as usize].name);
        self.rates.files.iter().filter(of).map(|file| file.bytes.0 as f64).sum()
    }

    /// Bytes of background flows that are reads.
    pub fn reads(&self) -> f64 {
        flow_bytes(&self.only_reads)
    }

    pub fn shuffle(&self) -> f64 {
        flow_bytes(&self.flows) - self.reads()
    }

    /// Bytes that cross racks, with each block counted once.
    pub fn crossing(&self) -> f64 {
        self.reads() + self.shuffle() + self.written(any)
    }

    pub fn job_share(&self, name: &str) -> f64 {
        self.rates.jobs.iter().filter(|job| job.name.starts_with(name)).count() as f64
            / self.rates.jobs.len() as f64
    }

    /// First start and last end of each job's files.
    fn spans(&self) -> Vec<(f64, f64)> {
        let mut spans = vec![(f64::MAX, 0.0_f64); self.rates.jobs.len()];
        for file in &self.rates.files {
            let (first, last) = &mut spans[file.job.unwrap() as usize];
            *first = first.min(file.start);
            *last = last.max(file.start + file.bytes.0 as f64 / write_rate(file));
        }
        spans
    }

    pub fn write_times(&self) -> Vec<f64> {
        self.spans().iter().map(|(first, last)| last - first).collect()
    }

    /// Gaps between the first files of jobs, in order of time.
    pub fn gaps(&self) -> Vec<f64> {
        // Jobs that began before the hour may show their first file in it, so the first minutes are not arrivals.
        let mut starts: Vec<f64> = self.spans().iter().map(|span| span.0).filter(|&at| at > 600.0).collect();
        starts.sort_by(f64::total_cmp);
        starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Mean number of files that are written at a time.
    pub fn writers(&self) -> f64 {
        let seconds = |file: &FileWrite| {
            let end = file.start + file.bytes.0 as f64 / write_rate(file);
            end.min(HOUR) - file.start
        };
        self.rates.files.iter().map(seconds).sum::<f64>() / HOUR
    }

    /// Stability of the least stable link for 5, 10, 20 and 40 s, by its background alone.
    pub fn background_stability(&self) -> [f64; 4] {
        least_stable(self.links().map(|link| by_second(&self.rates, link)))
    }

    /// Stability of the least stable link for 5, 10, 20 and 40 s, by all its traffic.
    pub fn least_stable(&self) -> [f64; 4] {
        let mut blocks = BTreeMap::<ResourceId, Vec<&SentBlock>>::new();
        let fabric = &self.cluster.fabric;
        for block in &self.blocks_sent {
            for link in [fabric.into_domain(block.to), fabric.out_of_domain(block.from)].into_iter().flatten()
            {
                blocks.entry(link).or_default().push(block);
            }
        }
        least_stable(self.links().map(|link| {
            let (mut rates, mut carried) = by_second(&self.rates, link);
            let mut sent = vec![0.0; rates.len()];
            for block in blocks.get(&link).into_iter().flatten() {
                for (second, bits) in sent.iter_mut().enumerate().skip(block.start as usize) {
                    let (from, to) = (second as f64, second as f64 + 1.0);
                    if block.end <= from {
                        break;
                    }
                    *bits += block.bps * (block.end.min(to) - block.start.max(from)).max(0.0);
                    if block.start <= from {
                        rates[second] += block.bps;
                    }
                }
            }
            let mut sum = 0.0;
            for (carried, sent) in carried.iter_mut().zip(sent) {
                *carried += sum;
                sum += sent;
            }
            (rates, carried)
        }))
    }

    fn links(&self) -> impl Iterator<Item = ResourceId> {
        let fabric = &self.cluster.fabric;
        fabric.all_racks().flat_map(|rack| [fabric.into_domain(rack), fabric.out_of_domain(rack)]).flatten()
    }
}

/// For the link that leaves the band first: shares of seconds, for 5, 10, 20 and 40 s. The mean rate over the next seconds
/// must be within 5 % of the rate at the given second. A link has its rate and the bits carried, at each second.
fn least_stable(links: impl Iterator<Item = (Vec<f64>, Vec<f64>)>) -> [f64; 4] {
    let stable = links.map(|(rate, carried)| {
        [5, 10, 20, 40].map(|length| {
            let from = 0..rate.len() - length;
            let within = |at: &usize| {
                let mean = (carried[at + length] - carried[*at]) / length as f64;
                (mean - rate[*at]).abs() <= 0.05 * rate[*at]
            };
            from.clone().filter(within).count() as f64 / from.len() as f64
        })
    });
    stable.min_by(|a, b| a[2].total_cmp(&b[2])).expect("a cluster with racks")
}

fn flow_bytes(workload: &Workload) -> f64 {
    workload.flows.iter().map(|flow| flow.bytes.0 as f64).sum()
}

/// Background of a link as pieces of constant rate: from, to, bits per second.
fn steps(workload: &Workload, link: ResourceId) -> Vec<(f64, f64, f64)> {
    let changes: Vec<_> = workload.rates.iter().filter(|change| change.resource == link).collect();
    let ends = changes.iter().skip(1).map(|change| change.at).chain([HOUR]);
    changes.iter().zip(ends).map(|(change, end)| (change.at, end, change.rate.0 as f64)).collect()
}

/// Background of a link at each second, and the bits carried by then.
fn by_second(workload: &Workload, link: ResourceId) -> (Vec<f64>, Vec<f64>) {
    let steps = steps(workload, link);
    let (mut rates, mut carried, mut step, mut before) = (Vec::new(), Vec::new(), 0, 0.0);
    for second in 0..HOUR as usize {
        let second = second as f64;
        while steps[step].1 <= second {
            before += steps[step].2 * (steps[step].1 - steps[step].0);
            step += 1;
        }
        rates.push(steps[step].2);
        carried.push(before + steps[step].2 * (second - steps[step].0));
    }
    (rates, carried)
}

fn add(bins: &mut [Vec<f64>], rack: DomainId, from: f64, to: f64, bps: f64) {
    let last = ((to.min(HOUR) / 10.0).ceil() as usize).min(bins.len());
    for (bin, loads) in bins.iter_mut().enumerate().take(last).skip((from / 10.0) as usize) {
        let (begin, end) = (bin as f64 * 10.0, bin as f64 * 10.0 + 10.0);
        loads[rack.index()] += bps / LINK * (to.min(end) - from.max(begin)).max(0.0) / 10.0;
    }
}

pub fn sum(bins: &[Vec<f64>]) -> f64 {
    bins.iter().flatten().sum()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Coefficient of variation.
pub fn cv(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt() / mean
}

pub fn p95(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() as f64 * 0.95).ceil() as usize - 1]
}

pub fn share(bins: &[Vec<f64>], holds: impl Fn(&[f64]) -> bool) -> f64 {
    bins.iter().filter(|bin| holds(bin)).count() as f64 / bins.len() as f64
}
