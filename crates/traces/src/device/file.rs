//! Device files: JSON or YAML. The profiles released with WorkloadCompactor are device files too.

use leeward_fabric::input::{InputError, Spanned, format_number, read_yaml};

use super::disk::LONGEST_HISTORY;
use super::form::{BehindFile, DeviceFile, DiskFile, KindName, RateRow, UnloadedRow, WriteBatchFile};
use super::{
    Behind, Device, Disk, Latency, Outstanding, Rates, Seek, Service, Solid, TableError, Unloaded,
    UnloadedError, WriteBatch,
};
use crate::Kind;

/// Length of the stream history of a disk, if the file does not state one.
const HISTORY: usize = 8;

/// Percentile whose latency is at most the mean.
const MEDIAN: f64 = 50.0;
/// Tolerance of the check by Little's law: rates and latencies are measured at different times, and an idle device may
/// sleep.
const LITTLE: f64 = 1.5;
/// Largest valid limit on outstanding requests; no device has longer queues.
const MOST_REQUESTS: u64 = 1_000_000;
const MOST_BYTES: u64 = 1_000_000_000_000_000;

pub(super) fn read(name: &str, text: &str) -> Result<Device, InputError> {
    let file: DeviceFile = read_yaml(name, text)?;
    let invalid = |field: &str, message: &str| InputError::new(name, message).in_field(field);
    // Unused fields are still parsed, so that a wrong type is an error.
    let (_, _) = (&file.measured, &file.estimator);
    let service = match (&file.table, &file.disk) {
        (Some(table), None) => Service::Solid(read_solid(name, table)?),
        (None, Some(disk)) => Service::Disk(read_disk(name, disk)?),
        (None, None) => return Err(invalid("table", "missing; expected one of `table` and `disk`")),
        (Some(_), Some(_)) => return Err(invalid("disk", "expected one of `table` and `disk`, not both")),
    };
    for (field, limit, most) in [
        ("outstanding", file.outstanding, MOST_REQUESTS),
        ("outstanding_reads", file.outstanding_reads, MOST_REQUESTS),
        ("outstanding_writes", file.outstanding_writes, MOST_REQUESTS),
        ("outstanding_read_bytes", file.outstanding_read_bytes, MOST_BYTES),
        ("outstanding_write_bytes", file.outstanding_write_bytes, MOST_BYTES),
    ] {
        if let Some(limit) = limit.filter(|limit| !(1..=most).contains(limit)) {
            return Err(invalid(field, &format!("{limit}: expected 1 to {most}")));
        }
    }
    let outstanding = Outstanding {
        all: file.outstanding,
        reads: file.outstanding_reads,
        writes: file.outstanding_writes,
        read_bytes: file.outstanding_read_bytes,
        write_bytes: file.outstanding_write_bytes,
        behind: file.behind.map(|behind| read_behind(name, behind)).transpose()?,
        write_batch: file.write_batch.map(|batch| read_write_batch(name, batch)).transpose()?,
    };
    let unloaded = read_unloaded(name, &file.unloaded)?;
    if let Service::Solid(solid) = &service {
        check_outstanding(name, solid, &file.unloaded, outstanding)?;
    }
    Ok(Device { name: file.name, service, unloaded, outstanding })
}

/// Checks that the device has enough requests at once for its rates: by Little's law, a rate is at most their number
/// over the latency of a request, which is at least that of a request alone. The median stands for the mean, which is
/// larger for the skewed latencies of devices.
fn check_outstanding(
    name: &str,
    solid: &Solid,
    rows: &[Spanned<UnloadedRow>],
    outstanding: Outstanding,
) -> Result<(), InputError> {
    for (at, row) in rows.iter().enumerate().filter(|(_, row)| row.value.percentile <= MEDIAN) {
        let (kind, field, limit) = match row.value.kind {
            KindName::Read => (Kind::Read, "outstanding_reads", outstanding.reads),
            KindName::Write => (Kind::Write, "outstanding_writes", outstanding.writes),
        };
        let rate = 1.0 / solid.seconds(kind, row.value.size_bytes);
        let (field, stated) = match (outstanding.all, limit) {
            (Some(all), None) => ("outstanding", all),
            (Some(all), Some(limit)) if all < limit => ("outstanding", all),
            (_, Some(limit)) => (field, limit),
            (None, None) => ("outstanding", outstanding.requests().map_or(1, u64::from)),
        };
        let needed = rate * row.value.seconds;
        if needed > LITTLE * stated as f64 {
            let message = format!(
                "{} s, but the table has {} of these requests per second, which takes at least {} at once, and the device \
                 has {stated}: expected `{field}` to be the number of requests at once for which the table holds",
                format_number(row.value.seconds),
                format_number(rate.round()),
                format_number(needed.ceil())
            );
            return Err(InputError::new(name, message).at(row).in_field(format!("unloaded[{at}].seconds")));
        }
    }
    Ok(())
}

fn read_behind(name: &str, behind: Spanned<BehindFile>) -> Result<Behind, InputError> {
    let invalid = |field: &str, message: String| {
        InputError::new(name, message).at(&behind).in_field(format!("behind.{field}"))
    };
    let BehindFile { requests, bytes } = behind.value;
    if requests.is_none() && bytes.is_none() {
        return Err(invalid("requests", "missing; expected it, `bytes` or both".to_owned()));
    }
    for (field, limit, most) in [("requests", requests, MOST_REQUESTS), ("bytes", bytes, MOST_BYTES)] {
        if let Some(limit) = limit.filter(|limit| *limit > most) {
            return Err(invalid(field, format!("{limit}: expected 0 to {most}")));
        }
    }
    Ok(Behind { requests: requests.unwrap_or(u64::MAX), bytes: bytes.unwrap_or(u64::MAX) })
}

fn read_write_batch(name: &str, batch: Spanned<WriteBatchFile>) -> Result<WriteBatch, InputError> {
    let WriteBatchFile { bytes, gap_bytes } = batch.value;
    let gap = gap_bytes.unwrap_or(0);
    for (field, number, least) in [("bytes", bytes, 1), ("gap_bytes", gap, 0)] {
        if !(least..=MOST_BYTES).contains(&number) {
            let message = format!("{number}: expected {least} to {MOST_BYTES}");
            return Err(InputError::new(name, message).at(&batch).in_field(format!("write_batch.{field}")));
        }
    }
    Ok(WriteBatch { bytes, gap })
}

fn read_solid(name: &str, table: &[Spanned<RateRow>]) -> Result<Solid, InputError> {
    let rates = |kind: &str, both: fn(&RateRow) -> (Option<f64>, Option<f64>)| {
        let mut rows = Vec::new();
        for (at, row) in table.iter().enumerate() {
            let invalid = |field: &str, message: &str| {
                let field = format!("table[{at}].{kind}_{field}");
                Err(InputError::new(name, message).at(row).in_field(field))
            };
            let size = row.value.size_bytes;
            let rate = match both(&row.value) {
                (Some(iops), None) if iops <= 0.0 => return invalid("iops", "expected a number above 0"),
                (Some(iops), None) => iops * size as f64,
                (None, Some(bandwidth)) => bandwidth,
                (None, None) => return invalid("iops", "missing; expected it, or a rate in bytes a second"),
                (Some(_), Some(_)) => {
                    return invalid("iops", "expected it or a rate in bytes a second, not both");
                }
            };
            rows.push((size, rate));
        }
        Rates::new(rows).map_err(|error| {
            let field = match (&error, error.row()) {
                (TableError::Number { .. }, Some(row)) if both(&table[row].value).0.is_some() => {
                    format!("{kind}_iops")
                }
                (TableError::Number { .. }, _) => format!("{kind}_bytes_per_second"),
                _ => "size_bytes".to_owned(),
            };
            in_row(name, "table", table, error.row(), &field, &error)
        })
    };
    Ok(Solid {
        reads: rates("read", |row| (row.read_iops, row.read_bytes_per_second))?,
        writes: rates("write", |row| (row.write_iops, row.write_bytes_per_second))?,
    })
}

fn read_disk(name: &str, disk: &DiskFile) -> Result<Disk, InputError> {
    let invalid =
        |field: &str, message: &str| InputError::new(name, message).in_field(format!("disk.{field}"));
    let history = disk.history.unwrap_or(HISTORY);
    if history > LONGEST_HISTORY {
        let message = format!("{history}: expected 0 to {LONGEST_HISTORY} requests");
        return Err(invalid("history", &message));
    }
    for (field, rate) in [
        ("read_bytes_per_second", disk.read_bytes_per_second),
        ("write_bytes_per_second", disk.write_bytes_per_second),
    ] {
        // Checking a rate needs a disk, but no seek time.
        Disk::new(Seek::Constant(0.0), rate, rate, 0).map_err(|error| invalid(field, &error.to_string()))?;
    }
    let with_seek = |seek| Disk::new(seek, disk.read_bytes_per_second, disk.write_bytes_per_second, history);
    match (&disk.seek, disk.seek_seconds) {
        (Some(rows), None) => {
            let seek = rows.iter().map(|row| (row.value.distance_bytes, row.value.seconds)).collect();
            with_seek(Seek::Table(seek)).map_err(|error| {
                let is_time = matches!(error, TableError::Number { .. });
                let field = if is_time { "seconds" } else { "distance_bytes" };
                in_row(name, "disk.seek", rows, error.row(), field, &error)
            })
        }
        (None, Some(seconds)) => {
            with_seek(Seek::Constant(seconds)).map_err(|error| invalid("seek_seconds", &error.to_string()))
        }
        _ => Err(invalid("seek", "expected one of `seek`, a table, and `seek_seconds`")),
    }
}

fn read_unloaded(name: &str, rows: &[Spanned<UnloadedRow>]) -> Result<Unloaded, InputError> {
    let latencies: Vec<Latency> = rows
        .iter()
        .map(|row| Latency {
            kind: match row.value.kind {
                KindName::Read => Kind::Read,
                KindName::Write => Kind::Write,
            },
            size: row.value.size_bytes,
            percentile: row.value.percentile,
            seconds: row.value.seconds,
        })
        .collect();
    Unloaded::new(&latencies).map_err(|error| {
        let field = match error {
            UnloadedError::Row { field: "size", .. } => "size_bytes",
            UnloadedError::Row { field: "percentile", .. } => "percentile",
            _ => "seconds",
        };
        in_row(name, "unloaded", rows, error.row(), field, &error)
    })
}

/// An error about a row of a table, or about the whole table.
fn in_row<T>(
    name: &str,
    table: &str,
    rows: &[Spanned<T>],
    row: Option<usize>,
    field: &str,
    error: &impl std::fmt::Display,
) -> InputError {
    let error = InputError::new(name, error);
    match row {
        Some(row) => error.at(&rows[row]).in_field(format!("{table}[{row}].{field}")),
        None => error.in_field(table),
    }
}
