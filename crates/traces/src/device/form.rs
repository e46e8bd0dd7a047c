//! Fields of a device file.

use leeward_fabric::input::{Spanned, one_line};
use schemars::JsonSchema;
use serde::Deserialize;

/// Profile of a storage device, with the software in front of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Device")]
pub struct DeviceFile {
    /// Name of the device.
    #[serde(default, deserialize_with = "one_line")]
    pub(super) name: Option<String>,
    /// Notes on the measurement, for people.
    #[serde(default, deserialize_with = "one_line")]
    pub(super) measured: Option<String>,
    /// Rates of a device without moving parts by size of requests, the smallest first. Either `table` or `disk`.
    #[serde(alias = "bandwidthTable")]
    #[schemars(with = "Option<Vec<RateRow>>")]
    pub(super) table: Option<Vec<Spanned<RateRow>>>,
    /// Seeks and transfers of a disk.
    pub(super) disk: Option<DiskFile>,
    /// Latencies of single requests, without queueing.
    #[serde(default)]
    #[schemars(with = "Vec<UnloadedRow>")]
    pub(super) unloaded: Vec<Spanned<UnloadedRow>>,
    /// Number of requests at once for which the profile holds, 1 to 1000000. Bounds, replays and enforcers assume it.
    pub(super) outstanding: Option<u64>,
    /// Number of reads at once, 1 to 1000000.
    #[serde(alias = "readMPL")]
    pub(super) outstanding_reads: Option<u64>,
    /// Number of writes at once, 1 to 1000000.
    #[serde(alias = "writeMPL")]
    pub(super) outstanding_writes: Option<u64>,
    /// Bytes of reads at once, 1 to 1e15. One read may always be in progress.
    #[serde(alias = "maxOutstandingReadBytes")]
    pub(super) outstanding_read_bytes: Option<u64>,
    /// Bytes of writes at once, 1 to 1e15. One write may always be in progress.
    #[serde(alias = "maxOutstandingWriteBytes")]
    pub(super) outstanding_write_bytes: Option<u64>,
    /// Limits on starts behind a request of a higher priority.
    #[schemars(with = "Option<BehindFile>")]
    pub(super) behind: Option<Spanned<BehindFile>>,
    /// Writes that start together, for disks.
    #[schemars(with = "Option<WriteBatchFile>")]
    pub(super) write_batch: Option<Spanned<WriteBatchFile>>,
    /// Type of device in a released profile: `storageSSD`.
    #[serde(default, rename = "type", deserialize_with = "one_line")]
    pub(super) estimator: Option<String>,
}

/// Rates of requests of one size: for each kind, requests or bytes per second.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RateRow {
    /// Size of the requests.
    #[serde(alias = "requestSize")]
    pub(super) size_bytes: u64,
    /// Reads per second.
    pub(super) read_iops: Option<f64>,
    /// Writes per second.
    pub(super) write_iops: Option<f64>,
    /// Bytes of reads per second.
    #[serde(alias = "readBandwidth")]
    pub(super) read_bytes_per_second: Option<f64>,
    /// Bytes of writes per second.
    #[serde(alias = "writeBandwidth")]
    pub(super) write_bytes_per_second: Option<f64>,
}

/// A disk: seeks by distance, or one time for each request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskFile {
    /// Times of seeks by distance, the shortest first. Either `seek` or `seek_seconds`.
    #[schemars(with = "Option<Vec<SeekRow>>")]
    pub(super) seek: Option<Vec<Spanned<SeekRow>>>,
    /// Seek time of every request.
    pub(super) seek_seconds: Option<f64>,
    /// Rate of transfers of reads.
    pub(super) read_bytes_per_second: f64,
    /// Rate of transfers of writes.
    pub(super) write_bytes_per_second: f64,
    /// Number of last requests that a request may continue without a seek, at most 1024. Default 8.
    pub(super) history: Option<usize>,
}

/// Time of a seek.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SeekRow {
    /// Distance from the last request.
    pub(super) distance_bytes: u64,
    /// Time, with the rotation.
    pub(super) seconds: f64,
}

/// Limits on starts while a request of a higher priority is outstanding. A request waits once this number of requests
/// or bytes has started after the oldest such request. At least one of the two.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BehindFile {
    /// Number of requests, 0 to 1000000.
    pub(super) requests: Option<u64>,
    /// Bytes of reads and writes together, 0 to 1e15.
    pub(super) bytes: Option<u64>,
}

/// Writes of one workload that start together, each near the end of the one before it.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteBatchFile {
    /// Largest number of bytes of a batch, except for its first write; 1 to 1e15.
    pub(super) bytes: u64,
    /// Largest distance from the end of a write to the start of the next one, in either direction. Default 0.
    pub(super) gap_bytes: Option<u64>,
}

/// Latency of single requests of one kind and size at a percentile.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnloadedRow {
    /// Kind of the requests.
    pub(super) kind: KindName,
    /// Size of the requests.
    pub(super) size_bytes: u64,
    /// Percentile, above 0 and at most 100.
    pub(super) percentile: f64,
    /// Latency that this share of the requests did not exceed.
    pub(super) seconds: f64,
}

/// Kind of a request.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    /// From the device.
    Read,
    /// To the device.
    Write,
}
