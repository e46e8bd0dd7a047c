//! Report of a bulk transfer: bytes received in every 10 ms (Choreo, section 3.2).

use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::train::Transfer;

/// Length of a slot: the paper measures throughput "every 10 milliseconds".
pub const SLOT_NS: u64 = 10_000_000;
/// Share of a transfer's duration that is ignored at the beginning, while TCP searches for its rate and token buckets
/// are full. The value is a choice of this project.
const WARM_UP: f64 = 0.1;

/// Bytes received over each connection of a transfer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferReport {
    /// Duration of sending in nanoseconds.
    pub duration_ns: u64,
    /// For each connection, the bytes of each slot of [`SLOT_NS`] from the beginning of the transfer. Bytes after its
    /// end have slots too.
    pub slots: Vec<Vec<u64>>,
}

impl TransferReport {
    /// Slots of the sending time without the beginning.
    fn steady(&self) -> std::ops::Range<usize> {
        let whole = (self.duration_ns / SLOT_NS) as usize;
        (whole as f64 * WARM_UP) as usize..whole
    }

    /// Throughput of each connection in bits per second, without the first tenth of the time.
    pub fn rates_bps(&self) -> Vec<f64> {
        self.slots.iter().map(|slots| rate(slots, self.steady())).collect()
    }

    /// Total throughput of all connections in bits per second, without the first tenth of the time.
    pub fn rate_bps(&self) -> f64 {
        self.rates_bps().iter().sum()
    }

    /// Total throughput of all connections in bits per second, over the counted slots of another transfer that began
    /// `after_ns` nanoseconds later.
    pub fn rate_beside(&self, other: &TransferReport, after_ns: u64) -> f64 {
        let (steady, after) = (other.steady(), (after_ns / SLOT_NS) as usize);
        self.slots.iter().map(|slots| rate(slots, steady.start + after..steady.end + after)).sum()
    }

    /// Total throughput of all connections in windows of `slots` slots, without the first tenth of the time. An
    /// incomplete last window is left out.
    pub fn windows_bps(&self, slots: usize) -> Vec<f64> {
        let (steady, slots) = (self.steady(), slots.max(1));
        let starts = steady.clone().step_by(slots).filter(|start| start + slots <= steady.end);
        starts.map(|start| self.slots.iter().map(|each| rate(each, start..start + slots)).sum()).collect()
    }

    /// Rejects an invalid report of this transfer, because a peer may send anything.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] with the violation.
    pub fn check(&self, transfer: &Transfer) -> Result<(), ProbeError> {
        if self.slots.len() != transfer.connections as usize {
            let message = format!("{} connections reported of {}", self.slots.len(), transfer.connections);
            return Err(ProbeError::Nothing(message));
        }
        // The number of slots depends on this time, so a false value would occupy the evaluation for years.
        if self.duration_ns != transfer.duration_ns {
            let [reported, requested] = [self.duration_ns, transfer.duration_ns].map(|ns| ns as f64 / 1e9);
            return Err(ProbeError::Nothing(format!("{reported} s reported of a transfer of {requested} s")));
        }
        // No real link reaches this value, and sums stay within range.
        if self.slots.iter().flatten().any(|&bytes| bytes > 1 << 40) {
            return Err(ProbeError::Nothing("more bytes reported than any link carries".to_owned()));
        }
        if self.rate_bps() <= 0.0 {
            return Err(ProbeError::Nothing("no data of the transfer arrived".to_owned()));
        }
        Ok(())
    }
}

/// Bits per second of a range of slots; missing slots count as empty.
fn rate(slots: &[u64], range: std::ops::Range<usize>) -> f64 {
    if range.is_empty() {
        return 0.0;
    }
    let seconds = range.len() as f64 * SLOT_NS as f64 / 1e9;
    let bytes: u128 = range.filter_map(|slot| slots.get(slot)).map(|&bytes| u128::from(bytes)).sum();
    bytes as f64 * 8.0 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_late_bytes_do_not_count() {
        let mut slots = vec![125_000; 100];
        slots[..10].fill(9_999_999);
        slots.extend([77; 50]);
        let report = TransferReport { duration_ns: 1_000_000_000, slots: vec![slots; 2] };
        assert_eq!(report.rates_bps(), [1e8, 1e8]);
        assert_eq!(report.rate_bps(), 2e8);
        assert_eq!(report.windows_bps(20), [2e8; 4]);
        let transfer = Transfer { duration_ns: 1_000_000_000, connections: 2, congestion: None };
        assert_eq!(report.check(&transfer), Ok(()));
        assert!(report.check(&Transfer { connections: 3, ..transfer }).is_err());
    }

    #[test]
    fn a_report_of_another_duration_is_rejected_at_once() {
        let report = TransferReport { duration_ns: u64::MAX, slots: vec![vec![1; 100]] };
        let transfer = Transfer { duration_ns: 1_000_000_000, connections: 1, congestion: None };
        let error = report.check(&transfer).unwrap_err().to_string();
        assert!(error.ends_with("s reported of a transfer of 1 s"), "{error}");
    }

    #[test]
    fn the_time_alone_of_a_longer_transfer_does_not_count() {
        let report =
            |slots: Vec<u64>, count: u64| TransferReport { duration_ns: count * SLOT_NS, slots: vec![slots] };
        let first = report(vec![62_500; 100], 100);
        let mut slots = vec![125_000; 150];
        slots[25..125].fill(62_500);
        let longer = report(slots, 150);
        assert_eq!(longer.rate_beside(&first, 25 * SLOT_NS), 5e7);
        assert!(longer.rate_bps() > 5e7);
    }

    #[test]
    fn an_empty_transfer_has_no_rate() {
        let report = TransferReport { duration_ns: 1_000_000_000, slots: vec![vec![]] };
        let transfer = Transfer { duration_ns: 1_000_000_000, connections: 1, congestion: None };
        assert_eq!(
            report.check(&transfer),
            Err(ProbeError::Nothing("no data of the transfer arrived".to_owned()))
        );
        let none = TransferReport { duration_ns: 0, slots: vec![vec![1]] };
        assert_eq!((none.rate_bps(), none.windows_bps(0).len()), (0.0, 0));
    }
}
