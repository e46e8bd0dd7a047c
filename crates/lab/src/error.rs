//! Errors of a lab.

use std::io;

use leeward_circuits::switch::SwitchError;
use leeward_fabric::Nanos;
use leeward_packets::{SettingsError, SimulatorError};

/// Error that prevents or ends a lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The process lacks the rights to make namespaces.
    #[error(
        "network namespaces require root: run the command with sudo; `leeward circuits simulate` runs scenarios without"
    )]
    NotRoot,
    /// The kernel has no TUN devices.
    #[error(
        "/dev/net/tun: {0}: labs with circuits require TUN devices (modprobe tun); labs of cluster files, and `leeward \
         circuits simulate`, work without"
    )]
    NoTun(io::Error),
    /// A program is missing or failed.
    #[error("{program}: {problem}")]
    Program {
        /// Program with its arguments.
        program: String,
        /// Its message.
        problem: String,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// Operation that failed.
        what: String,
        /// Its error.
        error: io::Error,
    },
    /// A name that cannot be part of the names of namespaces.
    #[error("lab `{0}`: must be 1 to 24 lowercase letters, digits or hyphens, and begin with a letter")]
    Name(String),
    /// A lab of this name is up.
    #[error("lab `{name}` is up: choose another name, or remove it with `leeward lab down --name {name}`")]
    InUse {
        /// Name of the lab.
        name: String,
    },
    /// A process owns the lab, and removes it.
    #[error("lab `{name}` is up: process {pid} owns it, and removes it when it ends")]
    Owned {
        /// Name of the lab.
        name: String,
        /// Process that owns it.
        pid: u32,
    },
    /// A state file that does not describe a lab.
    #[error(
        "{path}: {problem}: the state file of lab `{name}` is broken; `leeward lab down --name {name}` removes \
         everything that has the name of the lab"
    )]
    Broken {
        /// Name of the lab.
        name: String,
        /// State file.
        path: String,
        /// Its mistake.
        problem: String,
    },
    /// Something of this name exists that no lab made.
    #[error(
        "{part}: exists and belongs to no lab that is up: remove it with `leeward lab down --name {name}`, or choose \
         another name"
    )]
    Exists {
        /// Its path.
        part: String,
        /// Name of the lab.
        name: String,
    },
    /// No lab of this name.
    #[error("lab `{name}`: not up{}", .error.as_ref().map(|error| format!(": ended by an error: {error}")).unwrap_or_default())]
    NotUp {
        /// Name of the lab.
        name: String,
        /// Error that ended the last lab of the name.
        error: Option<String>,
    },
    /// No machine of this name.
    #[error("`{name}`: the lab has no such host, rack or pod; similar names: {similar}")]
    NoMachine {
        /// Name that no machine has.
        name: String,
        /// Names of hosts.
        similar: String,
    },
    /// No link of this name.
    #[error(
        "`{0}`: the lab has no such link; links are named like r0h0:egress, r0h0:ingress, r0:uplink, r0:downlink"
    )]
    NoLink(String),
    /// A field of a scenario or a cluster that real kernels do not have.
    #[error("{field}: {problem}")]
    Unsupported {
        /// Name of the field.
        field: &'static str,
        /// Reason, and what works.
        problem: String,
    },
    /// Invalid settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The switch rejected its input.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The scheduler or the policy of copies failed.
    #[error(transparent)]
    Simulator(#[from] SimulatorError),
    /// The policy of copies is invalid.
    #[error(transparent)]
    Copies(#[from] leeward_fabric::input::InputError),
    /// The timing of the run drifted past its bound.
    #[error(
        "the lab fell behind: {share} of the packets were at most {late} late in virtual time, and the bound is \
         {bound}; choose a larger dilation than {dilation}, or a quieter machine"
    )]
    Drift {
        /// Percentile, as text.
        share: &'static str,
        /// Lateness at that percentile.
        late: Nanos,
        /// Largest lateness allowed.
        bound: Nanos,
        /// Dilation of the run.
        dilation: u32,
    },
    /// More packets were late than may be late in the whole run, at the rate of packets so far.
    #[error(
        "the lab fell behind: in the first {percent} % of {horizon}, the packets that were later than {bound} in virtual time are \
         already more than 1 % of those that the whole run has at this rate; choose a larger dilation than {dilation}, or a \
         quieter machine"
    )]
    FallsBehind {
        /// Part of the run that had passed, in percent.
        percent: u64,
        /// Length of the run.
        horizon: Nanos,
        /// Largest lateness allowed.
        bound: Nanos,
        /// Dilation of the run.
        dilation: u32,
    },
    /// The kernel dropped packets that the switch would not have dropped.
    #[error(
        "{packets} packets were lost outside the switch, {by_nics} of them in queues of NICs and the others at devices \
         of hosts: choose a larger dilation than {dilation}"
    )]
    Lost {
        /// Number of packets.
        packets: u64,
        /// Packets that the queues of NICs dropped.
        by_nics: u64,
        /// Dilation of the run.
        dilation: u32,
    },
    /// A connection of the workload ended before its flow.
    #[error("flow {flow} from {source_host} to {destination}: {error}")]
    Connection {
        /// Number of the flow.
        flow: u32,
        /// Host that sends.
        source_host: String,
        /// Host that receives.
        destination: String,
        /// Error of a socket.
        error: io::Error,
    },
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}

impl LabError {
    /// Error of a system call during `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        move |error| LabError::System { what: what.into(), error }
    }
}
