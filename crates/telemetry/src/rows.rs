//! Content of a telemetry file: JSON in plain numbers. Times are nanoseconds of engine time, which is the wall clock at
//! the start of a service, so they keep their meaning in the next run.

use leeward_fabric::{Bytes, Load, Nanos};
use leeward_ledger::EstimateValues;
use serde::{Deserialize, Serialize};

use leeward_service::{
    KnownCapacity, KnownHost, KnownReading, Reading, ReportedDiskName, Requests, TelemetryState,
};

/// Version of the format.
const FORMAT: u32 = 1;

/// The whole file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    format: u32,
    at: u64,
    loads: Vec<LoadRow>,
    readings: Vec<ReadingRow>,
    disks: Vec<DiskRow>,
    hosts: Vec<HostRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    capacities: Vec<CapacityRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadRow {
    name: String,
    measured: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guaranteed: Option<f64>,
    window: (u64, u64),
    latest: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hot_since: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    derived: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadingRow {
    name: String,
    until: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests: Option<RequestsRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slow: Option<SlowRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestsRow {
    read_bps: Option<f64>,
    write_bps: Option<f64>,
    in_flight: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowRow {
    capacity: i64,
    /// Start of the reports with a higher speed, and the lowest speed since then.
    faster: Option<(u64, i64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DiskRow {
    name: String,
    /// The only reported disk; null for several.
    only: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostRow {
    name: String,
    up: bool,
    draining: bool,
    stored: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storage: Option<u64>,
    windows: [u64; 3],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacityRow {
    name: String,
    until: u64,
    usual: f64,
    changes: u32,
    most_bps: f64,
    /// Learned capacity, and the time until which it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    learned: Option<(i64, u64)>,
}

impl Rows {
    pub fn of(state: TelemetryState) -> Rows {
        let load = |(name, values): (String, EstimateValues)| LoadRow {
            name,
            measured: values.measured,
            guaranteed: values.guaranteed,
            window: (values.window.0.0, values.window.1.0),
            latest: values.latest,
            hot_since: values.hot_since.map(|since| since.0),
            derived: values.derived,
        };
        let reading = |(name, known): (String, KnownReading)| ReadingRow {
            name,
            until: known.until.0,
            speed: known.reading.speed.map(|speed| speed.0),
            queue: known.reading.queue,
            requests: known.reading.requests.map(|requests| {
                let Requests { read_bps, write_bps, in_flight } = requests;
                RequestsRow { read_bps, write_bps, in_flight }
            }),
            slow: known.slow.map(|(capacity, faster)| SlowRow {
                capacity: capacity.0,
                faster: faster.map(|(since, speed)| (since.0, speed.0)),
            }),
        };
        let disk = |(name, disk)| match disk {
            ReportedDiskName::Only(only) => DiskRow { name, only: Some(only) },
            ReportedDiskName::Several => DiskRow { name, only: None },
        };
        let host = |(name, known): (String, KnownHost)| HostRow {
            name,
            up: known.up,
            draining: known.draining,
            stored: known.stored.0,
            storage: known.storage.map(|storage| storage.0),
            windows: known.windows.map(|until| until.0),
        };
        let capacity = |(name, known): (String, KnownCapacity)| {
            let KnownCapacity { until, usual, changes, most_bps, learned } = known;
            let learned = learned.map(|(level, expires)| (level.0, expires.0));
            CapacityRow { name, until: until.0, usual, changes, most_bps, learned }
        };
        Rows {
            format: FORMAT,
            at: state.at.0,
            loads: state.estimates.into_iter().map(load).collect(),
            readings: state.readings.into_iter().map(reading).collect(),
            disks: state.disks.into_iter().map(disk).collect(),
            hosts: state.hosts.into_iter().map(host).collect(),
            capacities: state.capacities.into_iter().map(capacity).collect(),
        }
    }

    /// The state, or the version of a format that this program does not know.
    pub fn state(self) -> Result<TelemetryState, u32> {
        if self.format != FORMAT {
            return Err(self.format);
        }
        let load = |row: LoadRow| {
            let values = EstimateValues {
                measured: row.measured,
                guaranteed: row.guaranteed,
                window: (Nanos(row.window.0), Nanos(row.window.1)),
                latest: row.latest,
                hot_since: row.hot_since.map(Nanos),
                derived: row.derived,
            };
            (row.name, values)
        };
        let reading = |row: ReadingRow| {
            let requests = row.requests.map(|RequestsRow { read_bps, write_bps, in_flight }| Requests {
                read_bps,
                write_bps,
                in_flight,
            });
            let slow = row.slow.map(|SlowRow { capacity, faster }| {
                (Load(capacity), faster.map(|(since, speed)| (Nanos(since), Load(speed))))
            });
            let reading = Reading { speed: row.speed.map(Load), queue: row.queue, requests };
            (row.name, KnownReading { until: Nanos(row.until), reading, slow })
        };
        let disk =
            |DiskRow { name, only }| (name, only.map_or(ReportedDiskName::Several, ReportedDiskName::Only));
        let host = |HostRow { name, up, draining, stored, storage, windows }| {
            let (storage, windows) = (storage.map(Bytes), windows.map(Nanos));
            (name, KnownHost { up, draining, stored: Bytes(stored), storage, windows })
        };
        let capacity = |CapacityRow { name, until, usual, changes, most_bps, learned }| {
            let learned = learned.map(|(level, expires)| (Load(level), Nanos(expires)));
            (name, KnownCapacity { until: Nanos(until), usual, changes, most_bps, learned })
        };
        Ok(TelemetryState {
            at: Nanos(self.at),
            estimates: self.loads.into_iter().map(load).collect(),
            readings: self.readings.into_iter().map(reading).collect(),
            disks: self.disks.into_iter().map(disk).collect(),
            hosts: self.hosts.into_iter().map(host).collect(),
            capacities: self.capacities.into_iter().map(capacity).collect(),
        })
    }
}
