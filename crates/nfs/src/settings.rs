//! Settings of a proxy, read from its command line and validated.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use leeward_capture::places::{Prefix, Prefixes};
use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, Nanos};
use leeward_lease::{ControllerSettings, Given};
use leeward_records::EnforcerKind;
use leeward_shaping::{Caps, Order, OverLimit};
use leeward_traces::device::Device;
use serde::Deserialize;

use crate::outgoing::Source;
use crate::proxy::Limits;
use crate::recorder::RecorderSettings;
use crate::server::{ExportName, Ports};
use crate::workload_file::Sources;

/// Port of the first listener; the following exports have the following ports.
const PORT: u16 = 12_049;
/// Room in a record for the header of a call, and for other arguments than the payload.
const HEADER_ROOM: u64 = 4096;
/// Smallest and largest payload of a call or reply. The length of a fragment has 31 bits.
const MESSAGES: std::ops::RangeInclusive<u64> = 64 << 10..=1000 << 20;

/// Arguments of the command line, of `leeward-nfs` and of `leeward enforce nfs`, which passes them as JSON.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arguments {
    /// Export to serve; may be given several times, for volumes on one device.
    #[arg(long = "export", value_name = "SERVER:/PATH", required = true)]
    pub exports: Vec<String>,
    /// Address and port for the clients of an export, once for each export in the same order; port 0 picks a free one
    /// [default: 0.0.0.0:12049, and the following ports].
    #[arg(long = "listen", value_name = "HOST:PORT")]
    pub listen: Vec<String>,
    /// Port of the server's NFS [default: 2049].
    #[arg(long, value_name = "PORT")]
    pub nfsport: Option<u16>,
    /// Port of the server's MOUNT [default: from its port mapper].
    #[arg(long, value_name = "PORT")]
    pub mountport: Option<u16>,
    /// Connect to the server from reserved ports, as exports with the option `secure` require.
    #[arg(long)]
    pub reserved_port: bool,
    /// Address or prefix of clients that may connect; may be given several times [default: all].
    #[arg(long = "allow", value_name = "ADDRESS")]
    pub allow: Vec<String>,
    /// Workloads with their priorities and limits, an SLO file; `leeward slo pack` writes one [default: none, all
    /// requests are best effort].
    #[arg(long, value_name = "FILE")]
    pub workloads: Option<String>,
    /// Cluster file of the workloads: they get the priorities and limits that their file does not state, as in `leeward slo`
    /// [default: none, the file states them].
    #[arg(long, value_name = "FILE", requires = "workloads")]
    pub cluster: Option<String>,
    /// URL of a controller, http or https, whose promises are enforced in place of workloads of a file; give each controller
    /// that shares a store.
    #[arg(long = "controller", value_name = "URL", conflicts_with = "workloads")]
    pub controllers: Vec<String>,
    /// Name of this enforcer at the controller [default: nfs@HOST].
    #[arg(long, value_name = "NAME", requires = "controllers")]
    pub name: Option<String>,
    /// Length of the lease: without a controller for this time, everything is best effort [default: 15s].
    #[arg(long, value_name = "TIME", requires = "controllers")]
    pub lease: Option<String>,
    /// File with a token of role report.
    #[arg(long, value_name = "FILE", requires = "controllers")]
    pub token_file: Option<String>,
    /// File with the certificate authorities of the controller [default: the system's].
    #[arg(long, value_name = "FILE", requires = "controllers")]
    pub ca: Option<String>,
    /// DSCP of packets to controllers: a name, such as cs6, or 0 to 63.
    #[arg(long, value_name = "DSCP", requires = "controllers")]
    pub dscp: Option<String>,
    /// Name of the server in the cluster: a host, or HOST:DEVICE for the volumes of one device [default: the only server of
    /// the workloads; with a controller, the machine's name].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Export of a workload, for clients with several workloads; may be given several times.
    #[arg(long = "workload", value_name = "NAME=PATH")]
    pub workload_exports: Vec<String>,
    /// Handling of requests over a limit, unless the file of the workloads states it: demoted, they come after all others; or
    /// held, they wait for tokens [default: demoted].
    #[arg(long, value_name = "HANDLING")]
    pub over: Option<String>,
    /// Addresses of hosts or workloads: YAML, CSV, or lines as in /etc/hosts [default: the system's names].
    #[arg(long, value_name = "FILE")]
    pub addresses: Option<String>,
    /// Device file of the volumes [default: that of the workloads].
    #[arg(long, value_name = "FILE")]
    pub device: Option<String>,
    /// Requests at the device at once [default: from the device file, or 1].
    #[arg(long, value_name = "NUMBER")]
    pub outstanding: Option<u32>,
    /// Order of requests at the device: priority, fifo, shares or deadline. Any other than priority is for comparisons
    /// [default: priority].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// Folder for traces of the requests, a file for each workload.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<String>,
    /// Longest time of a trace file [default: 1h].
    #[arg(long, value_name = "TIME", requires = "traces")]
    pub trace_time: Option<String>,
    /// Largest number of bytes of all trace files [default: 10GB].
    #[arg(long, value_name = "SIZE", requires = "traces")]
    pub trace_limit: Option<String>,
    /// Time between two reports [default: one at the end].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Largest payload of a call or reply [default: 4MiB].
    #[arg(long, value_name = "SIZE")]
    pub message: Option<String>,
    /// Bytes of calls and replies that the proxy holds [default: 256MiB].
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Largest number of connections [default: 1024].
    #[arg(long, value_name = "NUMBER")]
    pub connections: Option<usize>,
    /// Longest time of a request at the server, after which others may start [default: 30s].
    #[arg(long, value_name = "TIME")]
    pub patience: Option<String>,
    /// Threads of the proxy [default: 1].
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<usize>,
}

/// Settings of a proxy. Files and the server are not read yet.
pub struct Settings {
    /// Exports with the addresses for their clients.
    pub exports: Vec<(ExportName, SocketAddr)>,
    /// Ports of the servers.
    pub ports: Ports,
    /// Ports of connections to servers.
    pub source: Source,
    /// Clients that may connect.
    pub allow: Vec<Prefix>,
    /// Source of the workloads, if any.
    pub workloads: Option<WorkloadSource>,
    /// Exports of single workloads: names of workloads, and indices of exports.
    pub workload_exports: Vec<(String, usize)>,
    /// Handling of requests over a limit, unless a file states it.
    pub over: OverLimit,
    /// Device file that replaces that of the workloads.
    pub device: Option<String>,
    /// Requests at the device at once.
    pub outstanding: Option<u32>,
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

/// Source of the workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadSource {
    /// Files.
    Files(WorkloadFiles),
    /// A controller, under a lease.
    Controller(ControllerSettings),
}

/// Files of the workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadFiles {
    /// SLO file, or the JSON of a command.
    pub workloads: String,
    /// Cluster file, if any.
    pub cluster: Option<String>,
    /// Server of the workloads.
    pub host: Option<String>,
    /// File of addresses.
    pub addresses: Option<String>,
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
}

impl Settings {
    /// Validates the arguments.
    ///
    /// # Errors
    /// Returns an [`InputError`] with the invalid option.
    pub fn new(given: Arguments) -> Result<Settings, InputError> {
        let exports = exports(&given)?;
        let workload_exports = workload_exports(&given, &exports)?;
        let workloads = workload_source(&given)?;
        let over = match given.over.as_deref() {
            None | Some("demoted") => OverLimit::Demoted,
            Some("held") => OverLimit::Held,
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
        let allow = given
            .allow
            .iter()
            .map(|text| text.parse::<Prefix>().map_err(|message| InputError::new("--allow", message)));
        let threads = given.jobs.unwrap_or(1);
        let zeros = [
            ("--jobs", threads == 0),
            ("--connections", given.connections == Some(0)),
            ("--outstanding", given.outstanding == Some(0)),
        ];
        if let Some((option, _)) = zeros.into_iter().find(|&(_, is_zero)| is_zero) {
            return Err(InputError::new(option, "0: expected at least 1"));
        }
        if threads > 256 {
            return Err(InputError::new("--jobs", format!("{threads}: expected at most 256")));
        }
        Ok(Settings {
            ports: Ports { nfs: given.nfsport, mount: given.mountport },
            source: if given.reserved_port { Source::Reserved } else { Source::Any },
            allow: allow.collect::<Result<_, _>>()?,
            workloads,
            workload_exports,
            over,
            recorder: recorder.transpose()?,
            interval: interval.transpose()?,
            limits: limits(&given)?,
            exports,
            device: given.device,
            outstanding: given.outstanding,
            order: order(given.order.as_deref())?,
            threads,
        })
    }

    /// Clients that may connect; `None` for all.
    pub fn allowed(&self) -> Option<Prefixes<()>> {
        let mut allowed = Prefixes::default();
        for &prefix in &self.allow {
            allowed.insert(prefix, ());
        }
        (!self.allow.is_empty()).then_some(allowed)
    }

    /// Caps at a device: those of its file, except for a number of requests on the command line. Without either,
    /// requests start one at a time if there are workloads, because bounds assume that, and at once otherwise.
    pub fn caps(&self, device: Option<&Device>) -> Caps {
        let profiled = device.and_then(|device| device.outstanding.requests());
        let usual = if self.workloads.is_some() { 1 } else { u32::MAX };
        let outstanding = self.outstanding.or(profiled).unwrap_or(usual);
        match device {
            Some(device) => Caps::of_profile(&device.outstanding, outstanding),
            None => Caps { outstanding, ..Caps::NONE },
        }
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

/// Exports of single workloads.
fn workload_exports(
    given: &Arguments,
    exports: &[(ExportName, SocketAddr)],
) -> Result<Vec<(String, usize)>, InputError> {
    let named_export = |text: &String| {
        let invalid =
            |message: &str| InputError::new("--workload", format!("`{}`: {message}", excerpt(text)));
        let (workload, path) = text
            .split_once('=')
            .filter(|(workload, _)| !workload.is_empty())
            .ok_or_else(|| invalid("expected a workload and the path of its export, such as mail=/vol"))?;
        let named: Vec<usize> = (0..exports.len()).filter(|&at| exports[at].0.path == path).collect();
        match named[..] {
            [export] => Ok((workload.to_owned(), export)),
            [] => Err(invalid("no export has this path")),
            _ => Err(invalid("several servers have an export of this path: run a proxy for each")),
        }
    };
    given.workload_exports.iter().map(named_export).collect()
}

fn workload_source(given: &Arguments) -> Result<Option<WorkloadSource>, InputError> {
    let own = Given {
        controllers: given.controllers.clone(),
        name: given.name.clone(),
        lease: given.lease.clone(),
        token_file: given.token_file.clone(),
        ca: given.ca.clone(),
        dscp: given.dscp.clone(),
    };
    if !own.controllers.is_empty() {
        let files = [("--workloads", given.workloads.is_some()), ("--cluster", given.cluster.is_some())];
        if let Some((option, _)) = files.into_iter().find(|&(_, is_given)| is_given) {
            let message = "workloads come from files or from a controller: give one of them";
            return Err(InputError::new(option, message));
        }
        if given.device.is_none() {
            let message =
                "missing; the limits of promises are seconds of service, which depend on the device";
            return Err(InputError::new("--device", message));
        }
        let host = given.host.clone().unwrap_or_else(machine_name);
        let settings = ControllerSettings::new(EnforcerKind::Nfs, &host, own, given.addresses.clone())?;
        return Ok(Some(WorkloadSource::Controller(settings)));
    }
    if let Some(option) = own.without_controller() {
        return Err(InputError::new(option, "only for a controller; give --controller too"));
    }
    let Some(workloads) = &given.workloads else {
        // clap checks some of these for the program, and this check is for all other callers.
        let without = [
            ("--cluster", given.cluster.is_some()),
            ("--host", given.host.is_some()),
            ("--workload", !given.workload_exports.is_empty()),
            ("--over", given.over.is_some()),
            ("--addresses", given.addresses.is_some()),
        ];
        return match without.into_iter().find(|&(_, is_given)| is_given) {
            Some((option, _)) => {
                Err(InputError::new(option, "only for workloads; give --workloads or --controller too"))
            }
            None => Ok(None),
        };
    };
    Ok(Some(WorkloadSource::Files(WorkloadFiles {
        workloads: workloads.clone(),
        cluster: given.cluster.clone(),
        host: given.host.clone(),
        addresses: given.addresses.clone(),
    })))
}

fn machine_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn valid() -> Arguments {
        Arguments { exports: texts(&["nas:/vol"]), ..Arguments::default() }
    }

    fn with_workloads() -> Arguments {
        let [workloads, cluster] = ["packed.yaml", "cluster.yaml"].map(|file| Some(file.to_owned()));
        Arguments { workloads, cluster, ..valid() }
    }

    #[test]
    fn defaults_are_a_port_for_each_export_and_no_caps_without_workloads() {
        let settings = Settings::new(Arguments { exports: texts(&["nas:/a", "nas:/b"]), ..valid() }).unwrap();
        let listen: Vec<String> = settings.exports.iter().map(|(_, listen)| listen.to_string()).collect();
        assert_eq!(listen, ["0.0.0.0:12049", "0.0.0.0:12050"]);
        assert_eq!(settings.caps(None), Caps::NONE);
        assert!(settings.allowed().is_none() && settings.recorder.is_none() && settings.threads == 1);
    }

    #[test]
    fn caps_are_those_of_the_device_file_except_for_a_given_number() {
        let text = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}],
            "outstanding": 8, "outstanding_read_bytes": 65536}"#;
        let device = Device::from_text("ssd.json", text).unwrap();
        let caps = |given: Arguments, device: Option<&Device>| Settings::new(given).unwrap().caps(device);
        let profiled = caps(with_workloads(), Some(&device));
        assert_eq!((profiled.outstanding, profiled.read_bytes), (8, 65_536));
        let given = caps(Arguments { outstanding: Some(2), ..with_workloads() }, Some(&device));
        assert_eq!((given.outstanding, given.read_bytes), (2, 65_536));
        assert_eq!(caps(with_workloads(), None).outstanding, 1);
    }

    #[test]
    fn errors_name_their_option() {
        let one = |text: &str| Some(text.to_owned());
        let cases = [
            (Arguments::default(), "--export"),
            (Arguments { exports: texts(&["nas"]), ..valid() }, "--export"),
            (Arguments { exports: texts(&["nas:/a", "nas:/a"]), ..valid() }, "--export"),
            (Arguments { listen: texts(&["2049"]), ..valid() }, "--listen"),
            (Arguments { listen: texts(&["0.0.0.0:1", "0.0.0.0:2"]), ..valid() }, "--listen"),
            (Arguments { allow: texts(&["10.0.0.0/33"]), ..valid() }, "--allow"),
            (
                Arguments { workloads: one("w.yaml"), controllers: texts(&["http://a"]), ..valid() },
                "--workloads",
            ),
            (Arguments { cluster: one("c.yaml"), controllers: texts(&["http://a"]), ..valid() }, "--cluster"),
            (Arguments { controllers: texts(&["a"]), device: one("d.json"), ..valid() }, "--controller"),
            (Arguments { lease: one("15s"), ..valid() }, "--lease"),
            (Arguments { over: one("held"), ..valid() }, "--over"),
            (Arguments { over: one("late"), ..with_workloads() }, "--over"),
            (Arguments { cluster: one("c.yaml"), ..valid() }, "--cluster"),
            (Arguments { host: one("r0h0"), ..valid() }, "--host"),
            (Arguments { addresses: one("hosts"), ..valid() }, "--addresses"),
            (Arguments { workload_exports: texts(&["mail=/vol"]), ..valid() }, "--workload"),
            (Arguments { workload_exports: texts(&["mail"]), ..with_workloads() }, "--workload"),
            (Arguments { workload_exports: texts(&["mail=/other"]), ..with_workloads() }, "--workload"),
            (Arguments { outstanding: Some(0), ..valid() }, "--outstanding"),
            (Arguments { order: one("cake"), ..valid() }, "--order"),
            (Arguments { connections: Some(0), ..valid() }, "--connections"),
            (Arguments { jobs: Some(0), ..valid() }, "--jobs"),
            (Arguments { jobs: Some(1000), ..valid() }, "--jobs"),
            (Arguments { interval: one("1"), ..valid() }, "--interval"),
            (Arguments { interval: one("0s"), ..valid() }, "--interval"),
            (Arguments { message: one("1B"), ..valid() }, "--message"),
            (Arguments { message: one("2GiB"), ..valid() }, "--message"),
            (Arguments { buffer: one("0B"), ..valid() }, "--buffer"),
            (Arguments { patience: one("soon"), ..valid() }, "--patience"),
            (Arguments { traces: one("t"), trace_time: one("1"), ..valid() }, "--trace-time"),
            (Arguments { traces: one("t"), trace_limit: one("x"), ..valid() }, "--trace-limit"),
        ];
        for (arguments, option) in cases {
            let error = Settings::new(arguments).err().expect("an error");
            assert_eq!(error.file, option, "{error}");
        }
        let exports = Arguments { workload_exports: texts(&["mail=/vol"]), ..with_workloads() };
        let settings = Settings::new(exports).unwrap();
        assert_eq!(settings.workload_exports, [("mail".to_owned(), 0)]);
        assert_eq!((settings.over, settings.caps(None).outstanding), (OverLimit::Demoted, 1));
        let controlled = || Arguments {
            controllers: texts(&["http://a"]),
            host: one("s0:ssd"),
            device: one("ssd.json"),
            ..valid()
        };
        let error = Settings::new(Arguments { device: None, ..controlled() }).err().expect("an error");
        assert_eq!(error.file, "--device");
        let settings = Settings::new(Arguments { over: one("held"), ..controlled() }).unwrap();
        let Some(WorkloadSource::Controller(controller)) = &settings.workloads else {
            panic!("a controller")
        };
        assert_eq!((controller.name.as_str(), controller.device.as_deref()), ("nfs@s0:ssd", Some("s0:ssd")));
        assert_eq!((settings.over, settings.caps(None).outstanding), (OverLimit::Held, 1));
    }
}
