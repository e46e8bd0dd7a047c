//! The generated hour compared with Sinbad's description of Facebook's hours (sections 4 and 7.1).
//!
//! The values are means over eight hours (eight seeds) on the paper's cluster. If the load of links includes writes,
//! each block goes to one random other rack, at the rate of one disk or at the pace of its writer. This is the load under
//! the default placement without congestion. Run with `--nocapture` for the tables.

mod hour;

use std::fmt::Write;

use leeward_fabric::{Cluster, DomainId, Endpoint};
use leeward_fluid::Network;
use leeward_workloads::{Background, Facebook, Share, Writers};

use crate::support::sinbad;
use hour::{HOUR, Hour, LINK, any, cv, mean, other, p95, share, sum};

const SEEDS: u64 = 8;

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

/// The hour with paced writers. Only the full blocks and the write time of jobs are required. Blocks in progress at its start are not full.
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
