//! Latency by load: the rates of both kinds of requests rise together, until the core of the service is full. Beside each
//! step, a service that only does HTTP and JSON carries the same load: its latencies show what the machine itself adds,
//! for example if other programs run.

use leeward_testing::bench;

use crate::generator::{self, Schedule};
use crate::process::Process;

/// Rates in percent of the plain load.
const STEPS: [u64; 9] = [25, 50, 75, 100, 125, 150, 175, 200, 250];
/// A service is full if half of the reports wait at least this time, in microseconds, because the queue of requests only
/// grows, or if a report has no response.
const FULL_US: f64 = 100e3;

/// Prints a row for each rate, with a new service each, up to the first rate that the service cannot serve.
pub fn measure(plain: &Schedule<'_>) {
    println!(
        "{:>9} {:>12} {:>11} {:>11} {:>11} {:>11} {:>8} {:>14} {:>11} {:>11}",
        "reports/s",
        "placements/s",
        "report p50",
        "report p99",
        "place p50",
        "place p99",
        "core",
        "generator",
        "echo p50",
        "echo p99"
    );
    let seconds = plain.length.as_secs_f64();
    for percent in STEPS {
        let schedule = Schedule {
            reports: plain.reports * percent / 100,
            placements: plain.placements * percent / 100,
            ..*plain
        };
        // The store of a step is deleted before the next one.
        let folder = tempfile::tempdir().expect("a folder");
        let echo = Process::echo();
        let mut baseline = generator::run(echo.address, &schedule, echo.id());
        drop(echo);
        baseline.placements.waits.sort_unstable();
        let service = Process::leewardd(folder.path(), "curve", "process", None);
        let mut outcome = generator::run(service.address, &schedule, service.id());
        outcome.reports.waits.sort_unstable();
        outcome.placements.waits.sort_unstable();
        let of = |time: std::time::Duration| time.as_secs_f64() / seconds * 100.0;
        let waits = [
            ("report, p50", outcome.reports.quantile_us(0.5)),
            ("report, p99", outcome.reports.quantile_us(0.99)),
            ("placement, p50", outcome.placements.quantile_us(0.5)),
            ("placement, p99", outcome.placements.quantile_us(0.99)),
        ];
        print!("{:>9} {:>12}", schedule.reports, schedule.placements);
        for (what, wait) in waits {
            bench::record(&format!("load, {percent} % of the plain load: {what}"), "us", wait);
            print!(" {:>8.2} ms", wait / 1e3);
        }
        print!(" {:>6.0} % {:>12.0} %", of(outcome.service_cpu), of(outcome.generator_cpu));
        let [p50, p99] = [0.5, 0.99].map(|share| baseline.placements.quantile_us(share) / 1e3);
        println!(" {p50:>8.2} ms {p99:>8.2} ms");
        let answered = outcome.reports.waits.len() as u64 + outcome.reports.filled == outcome.reports.sent;
        if !answered || waits[0].1 > FULL_US {
            println!("the core is full: requests wait longer and longer");
            return;
        }
    }
}
