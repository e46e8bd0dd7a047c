//! Clocks of benchmarks.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

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
