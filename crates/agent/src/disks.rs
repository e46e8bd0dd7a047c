//! Disk work between two readings, from the kernel's counters. No input or output, no clock.

use leeward_fabric::Nanos;

/// Bytes of a sector; the kernel counts in this unit for any disk.
pub(crate) const SECTOR: u64 = 512;
/// Tolerance for busy time. The kernel counts busy time in ticks, so the busy time may exceed the time between readings
/// by this much.
const TICK_MS: u64 = 100;

/// Counters of a disk since it appeared.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Disk {
    /// Kernel name, `sda`.
    pub name: String,
    /// True for a physical drive of the machine; false for a loop device, partition, array or mapping, whose requests
    /// reach a drive.
    pub physical: bool,
    /// True if the kernel counts the disk's work; an administrator can switch these counters off.
    pub counted: bool,
    /// Number of requests served.
    pub served: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Milliseconds with at least one request.
    pub busy_ms: u64,
    /// Milliseconds that requests spent in the disk, summed over requests.
    pub waited_ms: u64,
    /// Number of requests in the disk now.
    pub in_flight: u64,
}

/// Work of a disk between two readings.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskWork {
    /// Kernel name.
    pub disk: String,
    /// Share of the time in which the disk was busy, from 0 to 1.
    pub busy: f64,
    /// Bits read per second.
    pub read_bps: f64,
    /// Bits written per second.
    pub write_bps: f64,
    /// Mean number of requests in the disk.
    pub queue: f64,
    /// Number of requests in the disk now.
    pub in_flight: u64,
}

/// Increase of a counter of milliseconds; the kernel lets it wrap at 2^32.
fn increase(before: u64, after: u64) -> u64 {
    let wraps = after < before && before <= u64::from(u32::MAX);
    if wraps { (1 << 32) - before + after } else { after.saturating_sub(before) }
}

/// Work of a disk between two readings; `None` if the disk was replaced, its counters were reset, or the kernel does
/// not count its work.
pub(crate) fn between(before: &Disk, after: &Disk, took: Nanos) -> Option<DiskWork> {
    if !(before.counted && after.counted) {
        return None;
    }
    let read = after.read.checked_sub(before.read)?;
    let written = after.written.checked_sub(before.written)?;
    after.served.checked_sub(before.served)?;
    let (busy_ms, took_ms) = (increase(before.busy_ms, after.busy_ms), took.0 / 1_000_000);
    if busy_ms > took_ms + took_ms / 10 + TICK_MS {
        return None;
    }
    let seconds = took.as_secs_f64();
    Some(DiskWork {
        disk: after.name.clone(),
        busy: (busy_ms as f64 / 1_000.0 / seconds).min(1.0),
        read_bps: 8.0 * read as f64 / seconds,
        write_bps: 8.0 * written as f64 / seconds,
        queue: increase(before.waited_ms, after.waited_ms) as f64 / 1_000.0 / seconds,
        in_flight: after.in_flight,
    })
}

/// Parses a line of `/proc/diskstats`; `None` for a malformed line. The line does not state whether the disk is
/// physical or counted.
pub(crate) fn disk(line: &str) -> Option<Disk> {
    let mut fields = line.split_ascii_whitespace().skip(2);
    let name = fields.next()?.to_owned();
    let mut numbers = [0_u64; 11];
    for number in &mut numbers {
        *number = fields.next()?.parse().ok()?;
    }
    let [reads, _, read, _, writes, _, written, _, in_flight, busy_ms, waited_ms] = numbers;
    Some(Disk {
        name,
        physical: false,
        counted: true,
        served: reads.checked_add(writes)?,
        read: read.checked_mul(SECTOR)?,
        written: written.checked_mul(SECTOR)?,
        busy_ms,
        waited_ms,
        in_flight,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Counters with any start value, including shortly before they wrap.
        #[test]
        fn disk_work_is_the_sum_over_windows(
            begins in 0_u64..1 << 32,
            steps in prop::collection::vec((1_u64..100_000, 0.0_f64..1.0, 0_u64..1 << 30, 0_u64..100_000), 1..40),
        ) {
            let shown = |busy: u64, waited: u64, bytes: u64| Disk {
                busy_ms: (begins + busy) % (1 << 32),
                waited_ms: (begins + waited) % (1 << 32),
                read: bytes,
                written: 2 * bytes,
                counted: true,
                ..Disk::default()
            };
            let (mut last, mut totals, mut sums) = (shown(0, 0, 0), [0_u64; 3], [0.0; 4]);
            for (ms, share, bytes, waited) in steps {
                totals[0] += (ms as f64 * share) as u64;
                totals[1] += waited;
                totals[2] += bytes;
                let now = shown(totals[0], totals[1], totals[2]);
                let work = between(&last, &now, Nanos(1_000_000 * ms)).expect("a valid window");
                prop_assert!((0.0..=1.0).contains(&work.busy));
                let rates = [work.busy, work.queue, work.read_bps / 8.0, work.write_bps / 8.0];
                for (sum, rate) in sums.iter_mut().zip(rates) {
                    *sum += rate * ms as f64 / 1_000.0;
                }
                last = now;
            }
            let [busy, waited, bytes] = totals.map(|total| total as f64);
            let expected = [busy / 1_000.0, waited / 1_000.0, bytes, 2.0 * bytes];
            for (sum, expected) in sums.into_iter().zip(expected) {
                prop_assert!((sum - expected).abs() <= 1e-9 * expected + 1e-9, "{sum} {expected}");
            }
        }

        #[test]
        fn any_lines_and_counters_give_shares_and_rates_or_nothing(
            line in r"\PC{0,40}|( *[0-9]{1,20}){2} [a-z0-9]{1,8}( [0-9]{1,20}){9,18}",
            counts in any::<[[u64; 7]; 2]>(),
            took in 1_u64..1 << 62,
        ) {
            let _ = disk(&line);
            let [before, after] = counts.map(|[served, read, written, busy_ms, waited_ms, in_flight, _]| Disk {
                name: "sda".to_owned(),
                physical: true,
                counted: true,
                served,
                read,
                written,
                busy_ms,
                waited_ms,
                in_flight,
            });
            if let Some(work) = between(&before, &after, Nanos(took)) {
                prop_assert!((0.0..=1.0).contains(&work.busy));
                for rate in [work.read_bps, work.write_bps, work.queue] {
                    prop_assert!(rate.is_finite() && rate >= 0.0);
                }
            }
        }
    }

    #[test]
    fn a_kernel_line_is_parsed_and_a_reset_disk_gives_no_work() {
        let line = " 254       0 vda 3704 1 193538 1061 1022 1389 42384 1417 2 1996 2479 0 0 0 0 3 1\n";
        let read = disk(line).expect("a disk");
        let (served, bytes) = (3_704 + 1_022, (193_538 * SECTOR, 42_384 * SECTOR));
        assert_eq!((read.name.as_str(), read.served, (read.read, read.written)), ("vda", served, bytes));
        assert_eq!((read.busy_ms, read.waited_ms, read.in_flight), (1_996, 2_479, 2));
        assert_eq!(disk("nothing of the kind"), None);
        let fell = Disk { served: 0, read: 0, written: 0, busy_ms: 3, waited_ms: 3, ..read.clone() };
        assert_eq!(between(&read, &fell, Nanos::SECOND), None);
        let uncounted = Disk { counted: false, ..read.clone() };
        assert_eq!(between(&read, &uncounted, Nanos::SECOND), None);
        assert_eq!(between(&uncounted, &read, Nanos::SECOND), None, "the start of counting is unknown");
        let longer = Disk { busy_ms: read.busy_ms + 5_000, ..read.clone() };
        assert_eq!(between(&read, &longer, Nanos::SECOND), None, "no disk is busy for 5 s within 1 s");
    }
}
