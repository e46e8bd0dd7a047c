//! Settings of a replay, read from its command line and validated.

use std::path::PathBuf;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, Nanos};
use serde::Deserialize;

use crate::outgoing::Source;
use crate::server::{ExportName, Ports, machine_name};
use crate::settings::{size, time};

/// Largest payload of a request, in bytes: most servers take no larger calls.
pub(super) const MOST_PAYLOAD: u64 = 1 << 20;
/// Largest size of the file.
const MOST_SIZE: u64 = 1 << 44;
/// Usual size of the file.
const SIZE: u64 = 256 << 20;
/// Usual name of a file that stays, and the beginning of that of one that does not.
const FILE: &str = "leeward-replay";
/// Longest name of a file, in bytes.
const MOST_NAME: usize = 255;
/// Largest number of connections.
const MOST_CONNECTIONS: u32 = 64;
/// Largest number of requests that a closed loop keeps open.
const MOST_OPEN: u32 = 1 << 16;
/// Usual time to wait for the last replies.
const PATIENCE: Nanos = Nanos(30 * Nanos::SECOND.0);
/// Largest start in seconds since 1970. A larger number has another unit.
const LATEST: f64 = 1e10;

/// Arguments of `leeward traces replay`, which passes them as JSON.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayArguments {
    /// Export: `server:/path`.
    pub nfs: String,
    /// Port of the server's NFS; 2049 by default.
    pub nfsport: Option<u16>,
    /// Port of the server's MOUNT; from its port mapper by default.
    pub mountport: Option<u16>,
    /// Connect from reserved ports.
    pub reserved_port: bool,
    /// Name of the file at the root of the export; a new one by default.
    pub file: Option<String>,
    /// Keep the file for the next replay. Otherwise a file that the replay made is removed at its end.
    pub keep: bool,
    /// Size of the file. Offsets of requests are taken modulo this size.
    pub file_size: Option<String>,
    /// Make the file; one that is there already is an error.
    pub new: bool,
    /// Time of the start of the trace, in seconds since 1970; at once by default.
    pub at: Option<f64>,
    /// Time in the trace at which it starts; that of its first request by default.
    pub from: Option<String>,
    /// Time after the start from which on no requests are sent; the end of the trace by default.
    pub duration: Option<String>,
    /// Number of requests that a closed loop keeps open; an open loop by default.
    pub closed: Option<u32>,
    /// Number of connections; 1 by default.
    pub connections: Option<u32>,
    /// Longest time to wait for replies after the last request.
    pub patience: Option<String>,
    /// File for a row of each request, as CSV.
    pub out: Option<String>,
}

/// Settings of a replay. The server is not asked yet.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplaySettings {
    /// Export with the file.
    pub export: ExportName,
    /// Ports of the server.
    pub ports: Ports,
    /// Ports of connections to the server.
    pub source: Source,
    /// Name of the file.
    pub file: String,
    /// True if a file that the replay made stays.
    pub keep: bool,
    /// Size of the file in bytes: at least that of the largest request.
    pub size: u64,
    /// True if the file must not be there yet.
    pub is_new: bool,
    /// Time of the start of the trace since 1970; `None` for at once.
    pub start: Option<Nanos>,
    /// Time in the trace at which it starts; `None` for that of its first request.
    pub from: Option<Nanos>,
    /// Time after the start from which on no requests are sent.
    pub duration: Option<Nanos>,
    /// Number of requests that a closed loop keeps open; `None` for an open loop.
    pub closed: Option<u32>,
    /// Number of connections, at least 1. Requests take them in turn.
    pub connections: u32,
    /// Longest time to wait for replies after the last request.
    pub patience: Nanos,
    /// File for a row of each request.
    pub rows: Option<PathBuf>,
}

impl ReplaySettings {
    /// Validates the arguments.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid option.
    pub fn new(given: ReplayArguments) -> Result<ReplaySettings, InputError> {
        let export = given.nfs.parse::<ExportName>();
        let export = export.map_err(|message| InputError::new("--nfs", message))?;
        let file = given.file.unwrap_or_else(|| usual_name(given.keep));
        let is_name = !file.is_empty()
            && file.len() <= MOST_NAME
            && !file.contains(['/', '\0'])
            && ![".", ".."].contains(&file.as_str());
        if !is_name {
            let message = format!("`{}`: expected the name of a file in the export", excerpt(&file));
            return Err(InputError::new("--file", message));
        }
        let size = size("--file-size", given.file_size.as_deref(), SIZE)?;
        if !(MOST_PAYLOAD..=MOST_SIZE).contains(&size) {
            let message = format!("{}: expected 1MiB to 16TiB", Bytes(size));
            return Err(InputError::new("--file-size", message));
        }
        let from = given.from.as_deref().map(str::parse::<Nanos>);
        let from = from.transpose().map_err(|error| InputError::new("--from", error))?;
        let duration = given.duration.as_deref();
        let duration = duration.map(|text| time("--for", Some(text), Nanos::SECOND));
        Ok(ReplaySettings {
            export,
            ports: Ports { nfs: given.nfsport, mount: given.mountport },
            source: if given.reserved_port { Source::Reserved } else { Source::Any },
            file,
            keep: given.keep,
            size,
            is_new: given.new,
            start: given.at.map(wall_time).transpose()?,
            from,
            duration: duration.transpose()?,
            closed: given.closed.map(|open| within("--closed", open, MOST_OPEN)).transpose()?,
            connections: within("--nconnect", given.connections.unwrap_or(1), MOST_CONNECTIONS)?,
            patience: time("--wait", given.patience.as_deref(), PATIENCE)?,
            rows: given.out.map(PathBuf::from),
        })
    }
}

/// Name of the file if none is given. One that is removed at the end is that of this replay alone: another one may run at the
/// same time.
fn usual_name(keep: bool) -> String {
    if keep {
        return FILE.to_owned();
    }
    let machine: String = machine_name().chars().filter(|letter| !"/\0".contains(*letter)).take(64).collect();
    format!("{FILE}-{machine}-{}", std::process::id())
}

/// A time since 1970.
fn wall_time(seconds: f64) -> Result<Nanos, InputError> {
    if !(0.0..=LATEST).contains(&seconds) {
        return Err(InputError::new("--at", format!("{seconds}: expected seconds since 1970")));
    }
    // A double does not have the nanoseconds of this century, but it has those of a fraction of a second.
    let whole = Nanos(seconds as u64 * Nanos::SECOND.0);
    Ok(whole.plus(Nanos::from_secs_f64(seconds.fract())))
}

fn within(option: &str, value: u32, most: u32) -> Result<u32, InputError> {
    if !(1..=most).contains(&value) {
        return Err(InputError::new(option, format!("{value}: expected 1 to {most}")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> ReplayArguments {
        ReplayArguments { nfs: "nas:/vol".to_owned(), ..ReplayArguments::default() }
    }

    #[test]
    fn arguments_have_defaults() {
        let settings = ReplaySettings::new(valid()).unwrap();
        assert!(settings.file.starts_with("leeward-replay-") && !settings.keep, "{}", settings.file);
        assert_eq!(settings.size, 256 << 20);
        let kept = ReplaySettings::new(ReplayArguments { keep: true, ..valid() }).unwrap();
        assert_eq!((kept.file.as_str(), kept.keep), ("leeward-replay", true));
        assert_eq!((settings.closed, settings.connections, settings.start), (None, 1, None));
        let given = ReplayArguments {
            at: Some(1_800_000_000.25),
            from: Some("1.5s".to_owned()),
            duration: Some("2min".to_owned()),
            file_size: Some("1GiB".to_owned()),
            ..valid()
        };
        let settings = ReplaySettings::new(given).unwrap();
        assert_eq!(settings.start, Some(Nanos(1_800_000_000_250_000_000)));
        assert_eq!(settings.from, Some(Nanos(1_500_000_000)));
        assert_eq!((settings.duration, settings.size), (Some(Nanos(120 * Nanos::SECOND.0)), 1 << 30));
    }

    #[test]
    fn errors_name_their_option() {
        let one = |text: &str| Some(text.to_owned());
        let cases = [
            (ReplayArguments::default(), "--nfs"),
            (ReplayArguments { file: one("a/b"), ..valid() }, "--file"),
            (ReplayArguments { file: one(".."), ..valid() }, "--file"),
            (ReplayArguments { file: one(""), ..valid() }, "--file"),
            (ReplayArguments { file: Some("a".repeat(256)), ..valid() }, "--file"),
            (ReplayArguments { file_size: one("1KiB"), ..valid() }, "--file-size"),
            (ReplayArguments { file_size: one("17TiB"), ..valid() }, "--file-size"),
            (ReplayArguments { at: Some(f64::NAN), ..valid() }, "--at"),
            (ReplayArguments { at: Some(-1.0), ..valid() }, "--at"),
            (ReplayArguments { at: Some(1.8e12), ..valid() }, "--at"),
            (ReplayArguments { from: one("soon"), ..valid() }, "--from"),
            (ReplayArguments { duration: one("0s"), ..valid() }, "--for"),
            (ReplayArguments { closed: Some(0), ..valid() }, "--closed"),
            (ReplayArguments { closed: Some(1 << 17), ..valid() }, "--closed"),
            (ReplayArguments { connections: Some(65), ..valid() }, "--nconnect"),
            (ReplayArguments { patience: one("1"), ..valid() }, "--wait"),
        ];
        for (arguments, option) in cases {
            let error = ReplaySettings::new(arguments).expect_err("an error");
            assert_eq!(error.file, option, "{error}");
        }
    }
}
