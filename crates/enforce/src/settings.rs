//! Settings of the enforcer, read from its command line and validated.

use std::path::PathBuf;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_lease::{ControllerSettings, Given};
use leeward_records::EnforcerKind;
use serde::Deserialize;

/// Name and version that requests to controllers have.
pub(crate) const PROGRAM: &str = concat!("leeward-enforce-net/", env!("CARGO_PKG_VERSION"));
/// Folder of the state file. It is the enforcer's own: another program's user could exchange files of a common one.
const STATE_FOLDER: &str = "/run/leeward-enforce";
/// Shortest interval: a reading of 1,000 workloads takes some hundredths of a second.
const SHORTEST: Nanos = Nanos(100_000_000);
/// Longest name of an interface of Linux.
const LONGEST_NAME: usize = 15;

/// Arguments of the command line, of `leeward-enforce-net` and of `leeward enforce net`, which passes them as JSON.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arguments {
    /// File of the promises: an SLO file with servers, priorities and limits, as `leeward slo pack --out` writes it, or
    /// the JSON of `leeward slo pack`, `prioritize` or `admit`.
    #[arg(long, value_name = "FILE")]
    pub workloads: Option<String>,
    /// URL of a controller, http or https, whose promises are enforced in place of those of a file; give each controller that
    /// shares a store.
    #[arg(long = "controller", value_name = "URL", conflicts_with = "workloads")]
    pub controllers: Vec<String>,
    /// Name of this enforcer at the controller [default: net@HOST].
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
    /// Name of the host in the cluster [default: the machine's name].
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Interface to program; may be given several times [default: all physical ones].
    #[arg(long = "interface", value_name = "NAME")]
    pub interfaces: Vec<String>,
    /// File with the addresses of hosts, and of workloads whose client has an address of its own: YAML, CSV (address,host)
    /// or lines as in /etc/hosts [default: the machine's resolver].
    #[arg(long, value_name = "FILE")]
    pub addresses: Option<String>,
    /// Rate of the interfaces, such as 10Gbps [default: 95 % of their speed].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Time between two comparisons with the kernel [default: 5s].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Report changes by another hand, and do not mend them.
    #[arg(long)]
    pub report_only: bool,
    /// Set the DSCP of all other packets to 0, so that no program gives itself a priority at switches.
    #[arg(long)]
    pub clear_dscp: bool,
    /// Leave everything in place at the end, for a restart without a gap.
    #[arg(long)]
    pub leave: bool,
    /// Print the programs of tc and nft, and change nothing.
    #[arg(long, conflicts_with_all = ["status", "undo"])]
    pub dry_run: bool,
    /// Compare the kernel with the promises once, and print the counters of each workload.
    #[arg(long, conflicts_with = "undo")]
    pub status: bool,
    /// Undo everything that an enforcer left which was killed.
    #[arg(long)]
    pub undo: bool,
}

/// Task of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Enforce until stopped.
    Run,
    /// Print the programs.
    DryRun,
    /// Compare once.
    Status,
    /// Undo the work of a killed enforcer.
    Undo,
}

/// Source of the promises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PromisesSource {
    /// A file.
    File(String),
    /// A controller, under a lease.
    Controller(ControllerSettings),
}

/// Settings of an enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Task.
    pub mode: Mode,
    /// Promises; `None` in [`Mode::Undo`].
    pub promises: Option<PromisesSource>,
    /// Name of the host in the cluster.
    pub host: String,
    /// Interfaces to program; empty for all physical ones.
    pub interfaces: Vec<String>,
    /// File with addresses.
    pub addresses: Option<String>,
    /// Rate of the interfaces in bytes per second; `None` for their speed.
    pub rate: Option<u64>,
    /// Time between two comparisons with the kernel.
    pub interval: Nanos,
    /// True to mend changes by another hand.
    pub mends: bool,
    /// True to set the DSCP of all other packets to 0.
    pub clears: bool,
    /// True to leave everything in place at the end.
    pub leaves: bool,
    /// Folder of the state file.
    pub state: PathBuf,
}

impl Settings {
    /// Validates the arguments.
    ///
    /// # Errors
    /// An [`InputError`] with the invalid option.
    pub fn new(given: Arguments) -> Result<Settings, InputError> {
        let invalid = |option: &str, message: String| InputError::new(option, message);
        let mode = match (given.dry_run, given.status, given.undo) {
            (false, false, false) => Mode::Run,
            (true, false, false) => Mode::DryRun,
            (false, true, false) => Mode::Status,
            (false, false, true) => Mode::Undo,
            _ => {
                return Err(invalid(
                    "--dry-run, --status, --undo",
                    "expected at most one of them".to_owned(),
                ));
            }
        };
        let host = given.host.unwrap_or_else(leeward_client::machine_name);
        if host.is_empty() || host.contains(|letter: char| letter.is_control() || letter == ':') {
            return Err(invalid("--host", format!("`{}`: expected the name of a host", excerpt(&host))));
        }
        for (at, name) in given.interfaces.iter().enumerate() {
            check_interface(name)?;
            if given.interfaces[..at].contains(name) {
                return Err(invalid("--interface", format!("`{}`: given twice", excerpt(name))));
            }
        }
        let own = Given {
            controllers: given.controllers,
            name: given.name,
            lease: given.lease,
            token_file: given.token_file,
            ca: given.ca,
            dscp: given.dscp,
        };
        let promises = match given.workloads {
            Some(_) if !own.controllers.is_empty() => {
                let message = "promises come from a file or from a controller: give one of them";
                return Err(invalid("--workloads, --controller", message.to_owned()));
            }
            None if !own.controllers.is_empty() => {
                let settings =
                    ControllerSettings::new(EnforcerKind::Net, &host, own, given.addresses.clone())?;
                Some(PromisesSource::Controller(settings))
            }
            file => {
                if let Some(option) = own.without_controller() {
                    return Err(invalid(option, "only for a controller; give --controller too".to_owned()));
                }
                match file {
                    Some(file) => Some(PromisesSource::File(file)),
                    None if mode == Mode::Undo => None,
                    None => {
                        let message = "missing; expected the file of the promises, or --controller";
                        return Err(invalid("--workloads", message.to_owned()));
                    }
                }
            }
        };
        let interval = given.interval.as_deref().unwrap_or("5s");
        let interval: Nanos = interval.parse().map_err(|error| invalid("--interval", format!("{error}")))?;
        if interval < SHORTEST {
            return Err(invalid("--interval", "expected 100ms or more".to_owned()));
        }
        let rate = given.rate.as_deref().map(|text| {
            let rate: Bandwidth = text.parse().map_err(|error| invalid("--rate", format!("{error}")))?;
            match rate.0 / 8 {
                0 => Err(invalid("--rate", format!("`{}`: expected at least 8bps", excerpt(text)))),
                bytes => Ok(bytes),
            }
        });
        Ok(Settings {
            mode,
            promises,
            host,
            interfaces: given.interfaces,
            addresses: given.addresses,
            rate: rate.transpose()?,
            interval,
            mends: !given.report_only,
            clears: given.clear_dscp,
            leaves: given.leave,
            state: PathBuf::from(STATE_FOLDER),
        })
    }
}

/// Validates the name of an interface. It is a word in programs of `tc` and `nft`, and a part of the name of a table.
fn check_interface(name: &str) -> Result<(), InputError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins && name.len() <= LONGEST_NAME && name.bytes().all(allowed) {
        return Ok(());
    }
    let expected = "expected the name of an interface: at most 15 letters, digits, `.`, `_` and `-`";
    Err(InputError::new("--interface", format!("`{}`: {expected}", excerpt(name))))
}

/// True for a name that the enforcer can program.
pub(crate) fn is_interface_name(name: &str) -> bool {
    check_interface(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_option() {
        let valid = || Arguments {
            workloads: Some("packed.yaml".to_owned()),
            host: Some("r0h0".to_owned()),
            interfaces: vec!["eth0".to_owned(), "br-lan.7".to_owned()],
            rate: Some("200Mbps".to_owned()),
            ..Arguments::default()
        };
        let settings = Settings::new(valid()).expect("valid settings");
        assert_eq!(settings.rate, Some(25_000_000));
        assert_eq!((settings.mode, settings.interval), (Mode::Run, Nanos(5 * Nanos::SECOND.0)));
        let controlled = |url: &str, lease: Option<&str>| Arguments {
            workloads: None,
            controllers: vec![url.to_owned()],
            lease: lease.map(str::to_owned),
            ..valid()
        };
        let settings = Settings::new(controlled("http://a", None)).expect("valid settings");
        let Some(PromisesSource::Controller(controller)) = settings.promises else { panic!("a controller") };
        assert_eq!((controller.name.as_str(), controller.host.as_str()), ("net@r0h0", "r0h0"));
        let interfaces = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        for (arguments, option) in [
            (Arguments { workloads: None, ..valid() }, "--workloads"),
            (Arguments { host: Some("r0:h0".to_owned()), ..valid() }, "--host"),
            (Arguments { interfaces: interfaces(&["eth0", "eth0"]), ..valid() }, "--interface"),
            (Arguments { interfaces: interfaces(&["eth0; reboot"]), ..valid() }, "--interface"),
            (Arguments { interfaces: interfaces(&["-j"]), ..valid() }, "--interface"),
            (Arguments { interfaces: interfaces(&["sixteen-letters-"]), ..valid() }, "--interface"),
            (Arguments { interfaces: interfaces(&[""]), ..valid() }, "--interface"),
            (Arguments { rate: Some("200".to_owned()), ..valid() }, "--rate"),
            (Arguments { rate: Some("1bps".to_owned()), ..valid() }, "--rate"),
            (Arguments { interval: Some("1ms".to_owned()), ..valid() }, "--interval"),
            (Arguments { undo: true, status: true, ..valid() }, "--dry-run, --status, --undo"),
            (Arguments { controllers: vec!["http://a".to_owned()], ..valid() }, "--workloads, --controller"),
            (Arguments { lease: Some("15s".to_owned()), ..valid() }, "--lease"),
            (controlled("http://a", Some("1ms")), "--lease"),
            (controlled("leeward:7600", None), "--controller"),
        ] {
            let error = Settings::new(arguments).expect_err("an error");
            assert_eq!(error.file, option, "{error}");
        }
        let undo = Settings::new(Arguments { undo: true, ..Arguments::default() }).expect("it needs no file");
        assert_eq!(undo.mode, Mode::Undo);
    }
}
