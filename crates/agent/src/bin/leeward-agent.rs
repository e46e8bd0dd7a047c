//! `leeward-agent`: reports the traffic of a host's interfaces and the work of its disks to controllers. It needs
//! no Python.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use leeward_agent::{Arguments, Settings, StopReason, run};

const EXAMPLES: &str = "\
Examples:
  leeward-agent --controller http://127.0.0.1:7600 --host r0h1
  leeward-agent --controller https://leeward:7600 --token-file /etc/leeward/agent.token
  leeward-agent --controller https://10.0.0.5:7600 --token-file token --ca ca.pem --interface bond0
  leeward-agent --controller https://leeward-1:7600 --controller https://leeward-2:7600 --disk sdb=disk0
  leeward-agent --controller https://leeward:7600 --volume /data/1/dfs --volume /data/2/dfs --dscp cs6
  leeward-agent --controller https://leeward:7600 --token-file token \\
      --probe-listen 10.0.1.7:7601 --secret /etc/leeward/probe.secret

The agent runs until it is terminated, and retries while a controller is unavailable.

Exit codes: 1 failure at run time; 2 invalid arguments.";

/// Report the traffic of this host's interfaces, the work of its disks and the storage of its volumes to controllers.
#[derive(Parser)]
#[command(name = "leeward-agent", version, after_help = EXAMPLES)]
struct Options {
    /// URL of a controller, http or https; give each controller that shares a store.
    #[arg(long = "controller", value_name = "URL", required = true)]
    controllers: Vec<String>,
    /// Name of the host in the cluster [default: the machine's name].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Interface to watch; may be given several times [default: all physical ones].
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// Disk to report, and its name in the cluster if that differs; may be given several times [default: all physical
    /// ones].
    #[arg(long = "disk", alias = "device", value_name = "DISK[=NAME]")]
    devices: Vec<String>,
    /// Folder of a volume, whose file system counts as the host's storage; may be given several times.
    #[arg(long = "volume", value_name = "PATH")]
    volumes: Vec<String>,
    /// Time between reports; use the controller's interval [default: 1s].
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// File with a token of role report.
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// File with the certificate authorities of the controller [default: the system's].
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// DSCP of packets to controllers: a name, such as cs6, or 0 to 63.
    #[arg(long, value_name = "DSCP")]
    dscp: Option<String>,
    /// Address on which to take part in measurements.
    #[arg(long, value_name = "HOST:PORT")]
    probe_listen: Option<String>,
    /// File with the hosts' shared secret for measurements.
    #[arg(long, value_name = "FILE")]
    secret: Option<String>,
}

fn fail(code: u8, what: impl std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {what}");
    ExitCode::from(code)
}

fn main() -> ExitCode {
    let Options {
        controllers,
        host,
        interfaces,
        devices,
        volumes,
        interval,
        token_file,
        ca,
        dscp,
        probe_listen,
        secret,
    } = Options::parse();
    let arguments = Arguments {
        controllers,
        host,
        interfaces,
        devices,
        volumes,
        interval,
        token_file,
        ca,
        dscp,
        probe_listen,
        secret,
    };
    let settings = match Settings::new(arguments) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return fail(2, error),
    };
    match run(&settings, |line| writeln!(io::stderr(), "{line}")) {
        Err(StopReason::Input(error)) => fail(2, error),
        Err(StopReason::Output(error)) => fail(1, error),
    }
}
