//! Clocks of benchmarks, and a record of their figures.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::LazyLock;
use std::time::Instant;

/// Processor seconds of this thread, on which other load on the machine has little effect. Without that counter, which
/// only Linux has, the function returns elapsed seconds.
pub fn seconds() -> f64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos: Option<f64> = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| BEGAN.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// Elapsed seconds of the fastest of `repeats` runs, which other programs have disturbed least.
pub fn fastest(repeats: usize, mut run: impl FnMut()) -> f64 {
    let times = (0..repeats).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

/// True if figures go to a file: the environment variable `LEEWARD_BENCH` names one.
pub fn is_recorded() -> bool {
    std::env::var_os("LEEWARD_BENCH").is_some()
}

/// Number of repetitions within a benchmark: `usual`, or one if figures go to a file. `make bench` repeats the whole
/// benchmark, so the median and the spread in its file are those of single runs.
pub fn repeats(usual: usize) -> usize {
    if is_recorded() { 1 } else { usual }
}

/// Appends a figure to the file that the environment variable `LEEWARD_BENCH` names, as a line of JSON. Without the
/// variable, does nothing.
///
/// # Panics
///
/// Panics if the file cannot be written to.
pub fn record(name: &str, unit: &str, value: f64) {
    let Some(path) = std::env::var_os("LEEWARD_BENCH") else { return };
    let line = format!("{{\"name\": {name:?}, \"unit\": {unit:?}, \"value\": {value:e}}}\n");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("the file of LEEWARD_BENCH can be written to");
}
