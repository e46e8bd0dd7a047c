//! The generated hour compared with Sinbad's description of Facebook's hours (sections 4 and 7.1).
//!
//! The values are means over eight hours (eight seeds) on the paper's cluster. If the load of links includes writes,
//! each block goes to one random other rack, at the rate of one disk or at the pace of its writer. This is the load under
//! the default placement without congestion. Run with `--nocapture` for the tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use leeward_fabric::{Cluster, DomainId, Endpoint, ResourceId};
use leeward_fluid::Network;
use leeward_workloads::{Background, Facebook, FileWrite, Share, Shares, Workload, Writers};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{check, sinbad};

const HOUR: f64 = 3600.0;
const SEEDS: u64 = 8;
/// Bytes per second of a write.
const DISK: f64 = 50e6;
/// Capacity of a rack's link, in bits per second.
const LINK: f64 = 2e9;

/// A statistic: its name, the paper's value, and the required range of its mean over the seeds (`None` if the model
/// does not fit it).
struct Row {
    what: &'static str,
    paper: &'static str,
    band: Option<(f64, f64)>,
    measure: fn(&Hour) -> f64,
}

const fn row(what: &'static str, paper: &'static str, band: (f64, f64), measure: fn(&Hour) -> f64) -> Row {
    Row { what, paper, band: Some(band), measure }
}

const fn unfitted(what: &'static str, paper: &'static str, measure: fn(&Hour) -> f64) -> Row {
    Row { what, paper, band: None, measure }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("full blocks a second", "4", (3.7, 4.3), |h| h.full_blocks() / HOUR),
    row("full blocks, share of blocks", "0.32", (0.30, 0.34), |h| h.full_blocks() / h.blocks()),
    row("full blocks, share of bytes", "0.81", (0.79, 0.83), |h| h.full_blocks() * h.block() / h.written(any)),
    row("jobs an hour", "1042", (960.0, 1120.0), |h| h.rates.jobs.len() as f64),
    row("C2 of gaps between jobs", "(2.0)", (1.7, 2.3), |h| cv(&h.gaps()).powi(2)),
    row("write time of a job at 50 MB/s, s", "291", (275.0, 305.0), |h| mean(&h.write_times())),
    row("jobs with < 25 % writing", "0.16", (0.13, 0.19), |h| h.job_share("bin1")),
    row("jobs with 25 to 49 %", "0.12", (0.09, 0.15), |h| h.job_share("bin2")),
    row("jobs with 50 to 74 %", "0.12", (0.09, 0.15), |h| h.job_share("bin3")),
    row("jobs with 75 to 89 %", "0.08", (0.06, 0.10), |h| h.job_share("bin4")),
    row("jobs with >= 90 %", "0.52", (0.49, 0.55), |h| h.job_share("bin5")),
    unfitted("bytes of jobs with < 25 %", "0.22", |h| h.written(|job| job.starts_with("bin1")) / h.written(any)),
    unfitted("bytes of jobs with >= 90 %", "0.67", |h| h.written(other) / h.written(any)),
    row("cross-rack bytes: reads", "0.14", (0.12, 0.16), |h| h.reads() / h.crossing()),
    row("cross-rack bytes: shuffle", "0.46", (0.43, 0.49), |h| h.shuffle() / h.crossing()),
    row("cross-rack bytes: output", "0.10", (0.08, 0.12), |h| h.written(|job| !other(job)) / h.crossing()),
    row("cross-rack bytes: other writes", "0.30", (0.27, 0.33), |h| h.written(other) / h.crossing()),
    row("downlinks, 10 s: share with Cv > 1", "0.5", (0.43, 0.57), |h| share(&h.down, |bin| cv(bin) > 1.0)),
    unfitted("uplinks, 10 s: share with Cv > 1", "0.5", |h| share(&h.up, |bin| cv(bin) > 1.0)),
    row("uplinks, background alone", "0.5", (0.43, 0.57), |h| share(&h.background_up, |bin| cv(bin) > 1.0)),
    row("all links, 10 s: share with p95 > 75 %", "0.25", (0.20, 0.30), |h| share(&h.both(), |bin| p95(bin) > 0.75)),
    row("downlinks, hour: Cv", "small", (0.0, 0.4), |h| cv(&h.hourly())),
    unfitted("downlinks: mean utilization", "?", |h| mean(&h.hourly())),
    row("background within 5 % for 5 s", "0.94", (0.91, 0.97), |h| h.background_stability()[0]),
    row("background within 5 % for 10 s", "0.89", (0.86, 0.92), |h| h.background_stability()[1]),
    row("background within 5 % for 20 s", "0.80", (0.77, 0.83), |h| h.background_stability()[2]),
    row("background within 5 % for 40 s", "0.66", (0.63, 0.69), |h| h.background_stability()[3]),
    unfitted("all traffic within 5 % for 5 s", "0.94", |h| h.least_stable()[0]),
    unfitted("all traffic within 5 % for 10 s", "0.89", |h| h.least_stable()[1]),
    unfitted("all traffic within 5 % for 20 s", "0.80", |h| h.least_stable()[2]),
    unfitted("all traffic within 5 % for 40 s", "0.66", |h| h.least_stable()[3]),
];

/// The hour with paced writers. Only the write time of jobs is fitted. Blocks in progress at its start are not full.
#[rustfmt::skip]
const PACED: &[Row] = &[
    row("full blocks a second", "4", (3.5, 4.3), |h| h.full_blocks() / HOUR),
    row("write time of a job, s", "291", (265.0, 310.0), |h| mean(&h.write_times())),
    unfitted("writers a second", "18", |h| h.rates.files.len() as f64 / HOUR),
    unfitted("writers at a time", "5300", |h| h.writers()),
    unfitted("downlinks, 10 s: share with Cv > 1", "0.5", |h| share(&h.down, |bin| cv(bin) > 1.0)),
    unfitted("uplinks, 10 s: share with Cv > 1", "0.5", |h| share(&h.up, |bin| cv(bin) > 1.0)),
    unfitted("all links, 10 s: share with p95 > 75 %", "0.25", |h| share(&h.both(), |bin| p95(bin) > 0.75)),
    unfitted("all traffic within 5 % for 5 s", "0.94", |h| h.least_stable()[0]),
    unfitted("all traffic within 5 % for 10 s", "0.89", |h| h.least_stable()[1]),
    unfitted("all traffic within 5 % for 20 s", "0.80", |h| h.least_stable()[2]),
    unfitted("all traffic within 5 % for 40 s", "0.66", |h| h.least_stable()[3]),
];

#[test]
fn the_generated_hour_matches_the_facebook_statistics() {
    let hours = hours(Writers::Waves);
    check_table(&hours, TABLE);
}

#[test]
fn paced_writers_make_links_more_stable_and_uplinks_as_even_as_downlinks() {
    let (paced, waves) = (hours(Writers::Paced), hours(Writers::Waves));
    check_table(&paced, PACED);
    let means =
        |hours: &[Hour], measure: fn(&Hour) -> f64| mean(&hours.iter().map(measure).collect::<Vec<_>>());
    let stability: [fn(&Hour) -> f64; 2] = [|h| h.least_stable()[0], |h| h.least_stable()[2]];
    for of in stability {
        assert!(means(&paced, of) > means(&waves, of) + 0.1, "paced writers change their rates seldom");
    }
    let uneven = |hours: &[Hour]| {
        let up = means(hours, |h| share(&h.up, |bin| cv(bin) > 1.0));
        up - means(hours, |h| share(&h.down, |bin| cv(bin) > 1.0))
    };
    assert!(uneven(&paced).abs() < 0.15 && uneven(&waves) > 0.3, "{} and {}", uneven(&paced), uneven(&waves));
}

fn hours(writers: Writers) -> Vec<Hour> {
    let cluster = sinbad();
    (0..SEEDS).map(|seed| Hour::new(&cluster, seed, writers)).collect()
}

/// Prints the rows, and checks the means of the fitted ones.
fn check_table(hours: &[Hour], rows: &[Row]) {
    let (mut table, mut outside) = (String::new(), Vec::new());
    writeln!(table, "{:40} {:>7} {:>8}   {:>8} .. {:<8}", "", "paper", "mean", "least", "most").unwrap();
    for row in rows {
        let values: Vec<f64> = hours.iter().map(row.measure).collect();
        let (least, most) =
            (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max));
        let (what, paper, mean) = (row.what, row.paper, mean(&values));
        let fitted = if row.band.is_some() { "" } else { "not fitted" };
        writeln!(table, "{what:40} {paper:>7} {mean:>8.3}   {least:>8.3} .. {most:<8.3} {fitted}").unwrap();
        if row.band.is_some_and(|(low, high)| !(low..=high).contains(&mean)) {
            outside.push(format!("{what}: {mean:.3}, expected {:?}", row.band));
        }
    }
    println!("{table}");
    assert!(outside.is_empty(), "{outside:#?}\n{table}");
}

#[test]
fn racks_that_were_down_have_no_tasks_and_no_background() {
    let cluster = sinbad();
    let fabric = &cluster.fabric;
    let share = |number| Share::new(number).expect("a share");
    for background in [Background::Rates, Background::Flows] {
        let generate = |down| {
            let settings = Facebook { down: share(down), background, ..Facebook::default() };
            settings.generate(&cluster, 1, 600.0)
        };
        let loaded = generate(0.04).expect("racks are left").workload;
        let ends = loaded.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        let is_used = |rack: DomainId| {
            loaded.files.iter().any(|file| fabric.rack_of(file.writer) == rack)
                || [fabric.into_domain(rack), fabric.out_of_domain(rack)]
                    .iter()
                    .any(|&link| loaded.rates.iter().any(|change| Some(change.resource) == link))
                || { ends.clone() }.any(|end| end == Endpoint::Domain(rack))
        };
        assert_eq!(fabric.all_racks().filter(|&rack| !is_used(rack)).count(), 6);
        assert!(generate(1.0).is_err(), "no rack is left");
    }
}

#[test]
fn flows_carry_the_same_traffic_as_rates() {
    let hour = Hour::new(&sinbad(), 1, Writers::Waves);
    let as_rates = sum(&hour.background_down) * 10.0 * LINK / 8.0;
    let as_flows = hour.reads() + hour.shuffle();
    // The difference is the bytes above the ceiling, which the rates cut off, and the bytes of flows that end later.
    assert!((as_flows / as_rates - 1.0).abs() < 0.06, "{as_flows:.3e} and {as_rates:.3e} bytes");
}

#[test]
fn flows_at_maxmin_rates_make_the_same_hotspots_as_rates() {
    let cluster = sinbad();
    let hours: Vec<Vec<Vec<f64>>> = (0..4).map(|seed| downlinks_at_maxmin(&cluster, seed)).collect();
    let uneven = mean(&hours.iter().map(|hour| share(hour, |bin| cv(bin) > 1.0)).collect::<Vec<_>>());
    let hot = mean(&hours.iter().map(|hour| share(hour, |bin| p95(bin) > 0.75)).collect::<Vec<_>>());
    println!("background as flows at max-min rates: Cv > 1 {uneven:.3}, p95 > 75 % {hot:.3} of the time");
    assert!((0.40..0.55).contains(&uneven) && (0.20..0.30).contains(&hot), "{uneven} and {hot}");
}

/// Utilization of the downlinks in bins of 10 s by background flows alone, with exact max-min rates.
fn downlinks_at_maxmin(cluster: &Cluster, seed: u64) -> Vec<Vec<f64>> {
    let settings = Facebook { background: Background::Flows, ..Facebook::default() };
    let flows = settings.generate(cluster, seed, HOUR).unwrap().workload.flows;
    let capacities: Vec<f64> =
        cluster.capacities.as_slice().iter().map(|capacity| capacity.0 as f64).collect();
    let mut network = Network::new(&capacities).unwrap().observed();
    let links: Vec<_> =
        cluster.fabric.all_racks().filter_map(|rack| cluster.fabric.into_domain(rack)).collect();
    let (mut hops, mut finished, mut next) = (Vec::new(), Vec::new(), 0);
    let (mut bins, mut before) = (Vec::new(), vec![0.0; links.len()]);
    for bin in 1..=(HOUR / 10.0) as usize {
        let end = bin as f64 * 10.0;
        while let Some(flow) = flows.get(next).filter(|flow| flow.start < end) {
            hops.clear();
            cluster.fabric.path(&[flow.from, flow.to], &mut hops);
            network.start(flow.start, &hops, flow.bytes.0 as f64, 1.0, f64::INFINITY, None).unwrap();
            next += 1;
        }
        network.advance(end, &mut finished).unwrap();
        finished.clear();
        let carried: Vec<f64> = links.iter().map(|&link| network.carried(link, end)).collect();
        bins.push(carried.iter().zip(&before).map(|(now, before)| (now - before) / LINK / 10.0).collect());
        before = carried;
    }
    bins
}

/// An hour of one seed, with its background as rates and as flows, and the utilization of links in bins of 10 s.
struct Hour {
    rates: Workload,
    flows: Workload,
    /// Flows without shuffles.
    only_reads: Workload,
    cluster: Cluster,
    down: Vec<Vec<f64>>,
    up: Vec<Vec<f64>>,
    background_down: Vec<Vec<f64>>,
    background_up: Vec<Vec<f64>>,
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

fn any(_: &str) -> bool {
    true
}

/// Jobs without a shuffle: ingestion and preprocessing.
fn other(job: &str) -> bool {
    job.starts_with("bin5")
}

impl Hour {
    fn new(cluster: &Cluster, seed: u64, writers: Writers) -> Hour {
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

    fn both(&self) -> Vec<Vec<f64>> {
        self.down.iter().zip(&self.up).map(|(down, up)| [down.as_slice(), up].concat()).collect()
    }

    /// Mean utilization of each downlink over the hour.
    fn hourly(&self) -> Vec<f64> {
        (0..self.down[0].len())
            .map(|rack| mean(&self.down.iter().map(|bin| bin[rack]).collect::<Vec<_>>()))
            .collect()
    }

    fn block(&self) -> f64 {
        Facebook::default().block.0 as f64
    }

    fn full_blocks(&self) -> f64 {
        self.rates.files.iter().map(|file| (file.bytes.0 / file.block.0) as f64).sum()
    }

    fn blocks(&self) -> f64 {
        self.rates.files.iter().map(|file| file.bytes.0.div_ceil(file.block.0) as f64).sum()
    }

    /// Bytes written, before replication, by jobs whose name matches.
    fn written(&self, job: fn(&str) -> bool) -> f64 {
        let of = |file: &&FileWrite| job(&self.rates.jobs[file.job.unwrap() as usize].name);
        self.rates.files.iter().filter(of).map(|file| file.bytes.0 as f64).sum()
    }

    /// Bytes of background flows that are reads.
    fn reads(&self) -> f64 {
        flow_bytes(&self.only_reads)
    }

    fn shuffle(&self) -> f64 {
        flow_bytes(&self.flows) - self.reads()
    }

    /// Bytes that cross racks, with each block counted once.
    fn crossing(&self) -> f64 {
        self.reads() + self.shuffle() + self.written(any)
    }

    fn job_share(&self, name: &str) -> f64 {
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

    fn write_times(&self) -> Vec<f64> {
        self.spans().iter().map(|(first, last)| last - first).collect()
    }

    /// Gaps between the first files of jobs, in order of time.
    fn gaps(&self) -> Vec<f64> {
        // Jobs that began before the hour may show their first file in it, so the first minutes are not arrivals.
        let mut starts: Vec<f64> = self.spans().iter().map(|span| span.0).filter(|&at| at > 600.0).collect();
        starts.sort_by(f64::total_cmp);
        starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    /// Mean number of files that are written at a time.
    fn writers(&self) -> f64 {
        let seconds = |file: &FileWrite| {
            let end = file.start + file.bytes.0 as f64 / write_rate(file);
            end.min(HOUR) - file.start
        };
        self.rates.files.iter().map(seconds).sum::<f64>() / HOUR
    }

    /// Stability of the least stable link for 5, 10, 20 and 40 s, by its background alone.
    fn background_stability(&self) -> [f64; 4] {
        least_stable(self.links().map(|link| by_second(&self.rates, link)))
    }

    /// Stability of the least stable link for 5, 10, 20 and 40 s, by all its traffic.
    fn least_stable(&self) -> [f64; 4] {
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

fn sum(bins: &[Vec<f64>]) -> f64 {
    bins.iter().flatten().sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Coefficient of variation.
fn cv(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt() / mean
}

fn p95(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() as f64 * 0.95).ceil() as usize - 1]
}

fn share(bins: &[Vec<f64>], holds: impl Fn(&[f64]) -> bool) -> f64 {
    bins.iter().filter(|bin| holds(bin)).count() as f64 / bins.len() as f64
}
