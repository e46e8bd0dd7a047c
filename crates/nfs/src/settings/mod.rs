//! Settings of a proxy, read from its command line and validated.

mod arguments;
mod caps;
mod source;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use leeward_capture::places::{Prefix, Prefixes};
use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, Nanos};
use leeward_shaping::{Caps, Order, OverLimit};
use leeward_traces::device::Device;

use self::caps::GivenCaps;
use self::source::{workload_exports, workload_source};
use crate::outgoing::Source;
use crate::proxy::Limits;
use crate::recorder::RecorderSettings;
use crate::server::{ExportName, Ports};
use crate::workload_file::Sources;

pub use self::arguments::Arguments;
pub use self::source::{WorkloadFiles, WorkloadSource};

/// Port of the first listener; the following exports have the following ports.
const PORT: u16 = 12_049;
/// Room in a record for the header of a call, and for other arguments than the payload.
const HEADER_ROOM: u64 = 4096;
/// Smallest and largest payload of a call or reply. The length of a fragment has 31 bits.
const MESSAGES: std::ops::RangeInclusive<u64> = 64 << 10..=1000 << 20;

/// Handling of requests over a limit if neither the command line nor a file or promise states it.
pub const USUAL_OVER: OverLimit = OverLimit::Demoted;
/// Value of `--allow` for clients of any address.
const ALL: &str = "all";

/// Settings of a proxy. Files and the server are not read yet.
pub struct Settings {
    /// Exports with the addresses for their clients.
    pub exports: Vec<(ExportName, SocketAddr)>,
    /// Ports of the servers.
    pub ports: Ports,
    /// Ports of connections to servers.
    pub source: Source,
    /// Clients that may connect; `None` for all.
    pub allow: Option<Vec<Prefix>>,
    /// True if clients must come from a reserved port.
    pub reserved_clients: bool,
    /// Source of the workloads, if any.
    pub workloads: Option<WorkloadSource>,
    /// Exports of single workloads: names of workloads, and indices of exports.
    pub workload_exports: Vec<(String, usize)>,
    /// Handling of requests over a limit, if it is given; see [`USUAL_OVER`].
    pub over: Option<OverLimit>,
    /// Device file that replaces that of the workloads.
    pub device: Option<String>,
    /// Caps that replace those of the device file.
    pub caps: GivenCaps,
    /// Order of requests at the device.
    pub order: Order,
    /// Recording of traces.
    pub recorder: Option<RecorderSettings>,
    /// Time between two reports.
    pub interval: Option<Nanos>,
    /// Limits.
    pub limits: Limits,
    /// Threads.
    pub threads: usize,
}

impl Settings {
    /// The files and names for a read.
    pub fn sources<'a>(&'a self, files: &'a WorkloadFiles) -> Sources<'a> {
        Sources {
            workloads: &files.workloads,
            cluster: files.cluster.as_deref(),
            server: files.host.as_deref(),
            exports: &self.workload_exports,
            over: self.over,
            has_device: self.device.is_some(),
        }
    }

    /// Validates the arguments.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid option.
    pub fn new(given: Arguments) -> Result<Settings, InputError> {
        let exports = exports(&given)?;
        let workload_exports = workload_exports(&given, &exports)?;
        let workloads = workload_source(&given)?;
        let over = match given.over.as_deref() {
            None => None,
            Some("demoted") => Some(OverLimit::Demoted),
            Some("held") => Some(OverLimit::Held),
            Some(text) => {
                let message = format!("`{}`: expected demoted or held", excerpt(text));
                return Err(InputError::new("--over", message));
            }
        };
        let recorder = given.traces.as_ref().map(|folder| -> Result<RecorderSettings, InputError> {
            let every = time("--trace-time", given.trace_time.as_deref(), Nanos(3_600 * Nanos::SECOND.0))?;
            let limit = size("--trace-limit", given.trace_limit.as_deref(), 10_000_000_000)?;
            Ok(RecorderSettings { folder: PathBuf::from(folder), every, limit })
        });
        let interval = given.interval.as_deref().map(|text| time("--interval", Some(text), Nanos::SECOND));
        let allow = allow(&given, &exports)?;
        if given.any_port && !given.reserved_port {
            return Err(InputError::new(
                "--any-port",
                "only for --reserved-port, without which any port is accepted",
            ));
        }
        let threads = given.jobs.unwrap_or(1);
        let zeros = [("--jobs", threads == 0), ("--connections", given.connections == Some(0))];
        if let Some((option, _)) = zeros.into_iter().find(|&(_, is_zero)| is_zero) {
            return Err(InputError::new(option, "0: expected at least 1"));
        }
        if threads > 256 {
            return Err(InputError::new("--jobs", format!("{threads}: expected at most 256")));
        }
        Ok(Settings {
            ports: Ports { nfs: given.nfsport, mount: given.mountport },
            source: if given.reserved_port { Source::Reserved } else { Source::Any },
            allow,
            reserved_clients: given.reserved_port && !given.any_port,
            workloads,
            workload_exports,
            over,
            recorder: recorder.transpose()?,
            interval: interval.transpose()?,
            limits: limits(&given)?,
            caps: GivenCaps::new(&given)?,
            exports,
            device: given.device,
            order: order(given.order.as_deref())?,
            threads,
        })
    }

    /// Clients that may connect; `None` for all.
    pub fn allowed(&self) -> Option<Prefixes<()>> {
        let mut allowed = Prefixes::default();
        for &prefix in self.allow.as_ref()? {
            allowed.insert(prefix, ());
        }
        Some(allowed)
    }

    /// Caps at a device: those of its file, except for those of the command line. If neither states a number of requests,
    /// they start one at a time if there are workloads, because bounds assume that, and at once otherwise.
    pub fn caps(&self, device: Option<&Device>) -> Caps {
        self.caps.of(device, if self.workloads.is_some() { 1 } else { u32::MAX })
    }
}

/// Orders by their names, which are those of `leeward slo check --order`.
const ORDERS: [(&str, Order); 4] = [
    ("priority", Order::Priority),
    ("fifo", Order::Fifo),
    ("shares", Order::Shares),
    ("deadline", Order::Deadline),
];

fn order(name: Option<&str>) -> Result<Order, InputError> {
    let Some(name) = name else { return Ok(Order::default()) };
    let known = ORDERS.iter().find(|(known, _)| *known == name);
    known.map(|&(_, order)| order).ok_or_else(|| {
        let expected = ORDERS.map(|(known, _)| known).join(", ");
        InputError::new("--order", format!("`{}`: expected one of {expected}", excerpt(name)))
    })
}

/// Clients that may connect. The server sees the proxy alone, so a proxy that others reach has a list of its own.
fn allow(given: &Arguments, exports: &[(ExportName, SocketAddr)]) -> Result<Option<Vec<Prefix>>, InputError> {
    if given.allow.is_empty() {
        let is_local = exports.iter().all(|(_, listen)| listen.ip().to_canonical().is_loopback());
        let message = "missing; the server sees the proxy alone, so the client lists of its exports do not apply: give the \
                       addresses of the clients, such as 10.0.0.0/8, or all";
        return if is_local { Ok(None) } else { Err(InputError::new("--allow", message)) };
    }
    let (all, prefixes): (Vec<&String>, Vec<&String>) = given.allow.iter().partition(|text| *text == ALL);
    if !all.is_empty() && !prefixes.is_empty() {
        return Err(InputError::new("--allow", format!("{ALL}: expected no other address beside it")));
    }
    let prefix = |text: &String| text.parse().map_err(|message: String| InputError::new("--allow", message));
    let prefixes = prefixes.into_iter().map(prefix).collect::<Result<Vec<Prefix>, _>>()?;
    Ok(all.is_empty().then_some(prefixes))
}

fn exports(given: &Arguments) -> Result<Vec<(ExportName, SocketAddr)>, InputError> {
    let names = given
        .exports
        .iter()
        .map(|text| text.parse::<ExportName>().map_err(|message| InputError::new("--export", message)));
    let names = names.collect::<Result<Vec<ExportName>, _>>()?;
    if names.is_empty() {
        return Err(InputError::new("--export", "missing; expected a server and a path, such as nas:/vol"));
    }
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(InputError::new("--export", format!("{}: given twice", twice.1)));
    }
    let listen = given.listen.iter().map(|text| {
        let expected = "expected an address and a port, such as 0.0.0.0:12049";
        text.parse::<SocketAddr>()
            .map_err(|_| InputError::new("--listen", format!("`{}`: {expected}", excerpt(text))))
    });
    let mut listen = listen.collect::<Result<Vec<SocketAddr>, _>>()?;
    if listen.is_empty() {
        let port = |at: usize| PORT.saturating_add(u16::try_from(at).unwrap_or(u16::MAX));
        listen =
            (0..names.len()).map(|at| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port(at))).collect();
    }
    if listen.len() != names.len() {
        let message =
            format!("{} addresses for {} exports: expected one for each", listen.len(), names.len());
        return Err(InputError::new("--listen", message));
    }
    Ok(names.into_iter().zip(listen).collect())
}

fn limits(given: &Arguments) -> Result<Limits, InputError> {
    let defaults = Limits::default();
    let payload = size("--message", given.message.as_deref(), 4 << 20)?;
    if !MESSAGES.contains(&payload) {
        let message = format!("{}: expected 64KiB to 1000MiB", Bytes(payload));
        return Err(InputError::new("--message", message));
    }
    Ok(Limits {
        record: usize::try_from(payload + HEADER_ROOM).unwrap_or(defaults.record),
        buffer: size("--buffer", given.buffer.as_deref(), defaults.buffer)?,
        connections: given.connections.unwrap_or(defaults.connections),
        answer: time("--patience", given.patience.as_deref(), defaults.answer)?,
        ..defaults
    })
}

/// A time above 0.
pub(crate) fn time(option: &str, text: Option<&str>, default: Nanos) -> Result<Nanos, InputError> {
    let Some(text) = text else { return Ok(default) };
    match quantity::<Nanos>(option, text)? {
        Nanos(0) => Err(InputError::new(option, "0s: expected a time above 0")),
        time => Ok(time),
    }
}

/// A size above 0, in bytes.
pub(crate) fn size(option: &str, text: Option<&str>, default: u64) -> Result<u64, InputError> {
    let Some(text) = text else { return Ok(default) };
    match quantity::<Bytes>(option, text)? {
        Bytes(0) => Err(InputError::new(option, "0B: expected a size above 0")),
        Bytes(size) => Ok(size),
    }
}

fn quantity<T: FromStr<Err: std::fmt::Display>>(option: &str, text: &str) -> Result<T, InputError> {
    text.parse().map_err(|error| InputError::new(option, error))
}

#[cfg(test)]
mod tests;
