//! Metrics of the process, under the names that all Prometheus clients use. The values come from `/proc` at each scrape;
//! without `/proc` there are none.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Collector of the metrics of the process.
#[derive(Debug)]
pub struct ProcessMetrics;

/// Values of the process.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Values {
    cpu_s: f64,
    start_unix_s: f64,
    resident_bytes: i64,
    virtual_bytes: i64,
    threads: i64,
}

impl Values {
    /// Reads `/proc/self/stat`. `boot_unix_s` is the time of the boot, in seconds since 1970.
    fn parse(stat: &str, boot_unix_s: f64, ticks_per_s: f64, page: i64) -> Option<Values> {
        // The name of the program is in parentheses, and may contain both spaces and parentheses.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // proc(5) counts from 1, and the state after the name is field 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
        let seconds = |number| Some(field(number)? as f64 / ticks_per_s);
        Some(Values {
            cpu_s: seconds(14)? + seconds(15)?,
            start_unix_s: boot_unix_s + seconds(22)?,
            resident_bytes: field(24)?.checked_mul(page)?,
            virtual_bytes: field(23)?,
            threads: field(20)?,
        })
    }

    fn read() -> Option<Values> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        let boot_unix_s = seconds(ClockId::Realtime) - seconds(ClockId::Boottime);
        Values::parse(&stat, boot_unix_s, clock_ticks_per_second() as f64, i64::try_from(page_size()).ok()?)
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut write = |name, help, metric: &dyn WriteMetric| metric.write(&mut encoder, name, help);
        if let Some(values) = Values::read() {
            let Values { cpu_s, start_unix_s, resident_bytes, virtual_bytes, threads } = values;
            write("process_cpu_seconds", "Seconds of processor time", &ConstCounter::new(cpu_s))?;
            write("process_start_time_seconds", "Start, since 1970", &ConstGauge::new(start_unix_s))?;
            write("process_resident_memory_bytes", "Resident memory", &ConstGauge::new(resident_bytes))?;
            write("process_virtual_memory_bytes", "Virtual memory", &ConstGauge::new(virtual_bytes))?;
            write("process_threads", "Threads", &ConstGauge::new(threads))?;
        }
        if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
            // The folder itself is open while it is read.
            let open = i64::try_from(open.count()).unwrap_or(i64::MAX) - 1;
            write("process_open_fds", "Open files and sockets", &ConstGauge::new(open))?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            write("process_max_fds", "Limit on open files and sockets", &ConstGauge::new(most))?;
        }
        Ok(())
    }
}

/// A metric of any type.
trait WriteMetric {
    fn write(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> Result<(), Error>;
}

impl<M: EncodeMetric> WriteMetric for M {
    fn write(&self, encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str) -> Result<(), Error> {
        let metric = encoder.encode_descriptor(name, help, None, self.metric_type())?;
        self.encode(metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_of_proc_even_if_the_program_has_an_odd_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 12 0 1000 4096000 20 18446744073709551615 \
                    1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0";
        let values = Values::parse(stat, 1e9, 100.0, 4_096).expect("the format of the kernel");
        let expected = Values {
            cpu_s: 3.0,
            start_unix_s: 1e9 + 10.0,
            resident_bytes: 20 * 4_096,
            virtual_bytes: 4_096_000,
            threads: 12,
        };
        assert_eq!(values, expected);
        for broken in ["", "7 (a) S", "7 (a) S x x x x x x x x x x x x x x x x x x x x x x x"] {
            assert_eq!(Values::parse(broken, 1e9, 100.0, 4_096), None, "{broken}");
        }
    }

    #[test]
    fn this_process_started_before_now_and_uses_memory() {
        let values = Values::read().expect("tests run on Linux");
        assert!(values.resident_bytes > 1 << 16 && values.threads > 0 && values.cpu_s >= 0.0, "{values:?}");
        let now = clock_gettime(ClockId::Realtime).tv_sec as f64;
        assert!((now - 86_400.0..=now + 1.0).contains(&values.start_unix_s), "{values:?}");
    }
}
