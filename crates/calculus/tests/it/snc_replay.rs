//! Bounds of fitted models against a replay of the traces they were fitted to (`golden/qos/traces`).

use crate::support::trace;
use leeward_calculus::fit::{FitSettings, Request, fit};
use leeward_calculus::snc::Expressions;
use leeward_testing::golden;

const PERCENTILE: f64 = 99.9;

/// The percentile, over requests, of the time from arrival until the work is done, for first come, first served.
fn replay(trace: &[Request], rate: f64) -> f64 {
    let mut free = 0.0f64;
    let mut delays: Vec<f64> = trace
        .iter()
        .map(|request| {
            free = free.max(request.at) + request.work / rate;
            free - request.at
        })
        .collect();
    delays.sort_by(f64::total_cmp);
    delays[(delays.len() as f64 * PERCENTILE / 100.0) as usize]
}

fn bound(trace: &[Request], settings: &FitSettings, by_request: bool, rate: f64) -> Option<f64> {
    let model = fit(trace, settings).unwrap().model;
    let mut arena = Expressions::new(model.step(), 1).unwrap();
    let id = arena.model(&model).unwrap();
    arena.set_by_request(by_request);
    // Leeward's bound is over requests and uses blocks.
    arena.set_blocks(by_request);
    let (arrivals, server) = (arena.arrivals(id, 0).unwrap(), arena.server(rate).unwrap());
    arena.latency(arrivals, server, PERCENTILE).unwrap().seconds()
}

#[test]
fn replayed_traces_stay_below_the_bounds_of_their_models() {
    let Some(folder) = golden::folder("qos/traces") else { return };
    println!("{:<32} {:<5} {:>12} {:>12} {:>12}", "trace", "load", "replayed", "bound", "published");
    let (mut replays, mut violations) = (0, 0);
    for path in golden::files(&folder, |name| name.ends_with(".get.csv.gz")) {
        for incoming in [true, false] {
            let trace = trace(&path, incoming);
            let seconds = trace.last().unwrap().at.max(1.0);
            let mean = trace.iter().map(|request| request.work).sum::<f64>() / seconds;
            for load in [0.02, 0.1, 0.3, 0.6] {
                let rate = mean / load;
                let delay = replay(&trace, rate);
                let ours = bound(&trace, &FitSettings::default(), true, rate).unwrap();
                let published = bound(&trace, &FitSettings::published(), false, rate).unwrap();
                let name = path.file_name().unwrap().to_str().unwrap();
                println!("{name:<32} {load:<5} {delay:>12.6} {ours:>12.6} {published:>12.6}");
                assert!(ours >= delay, "{name} at load {load}: {ours} below {delay} s");
                replays += 1;
                violations += usize::from(published < delay);
            }
        }
    }
    println!("{replays} replays; the published bound is below the replay in {violations}");
}
