//! `leeward-agent`: reports the traffic of a host's interfaces and the work of its disks to controllers. A single program
//! without Python.

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
  leeward-agent --controller https://leeward-1:7600 --controller https://leeward-2:7600 --device sdb=disk0
  leeward-agent --controller https://leeward:7600 --token-file token \\
      --probe-listen 10.0.1.7:7601 --secret /etc/leeward/probe.secret

It runs until it is terminated, and goes on trying while a controller is away.

Exit codes: 1 something failed while it ran; 2 what it was given is wrong.";

/// Report what this host's interfaces carry and its disks do to a controller.
#[derive(Parser)]
#[command(name = "leeward-agent", version, after_help = EXAMPLES)]
struct Options {
    /// A controller's URL, http or https; each of several that share a store is reported to.
    #[arg(long = "controller", value_name = "URL", required = true)]
    controllers: Vec<String>,
    /// The host's name in the cluster [default: the machine's name].
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// An interface to watch; may be given several times [default: all that are physical].
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// A disk to report, and what the cluster calls it if that is another name; may be given several times [default: all that
    /// are physical].
    #[arg(long = "device", value_name = "DISK[=NAME]")]
    devices: Vec<String>,
    /// Time between reports, the controller's [default: 1s].
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// File with a token of role report.
    #[arg(long, value_name = "FILE")]
    token_file: Option<String>,
    /// File with certificates of those who vouch for the controller [default: the system's].
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// Take part in measurements here.
    #[arg(long, value_name = "HOST:PORT")]
    probe_listen: Option<String>,
    /// File with the secret that hosts share for measurements.
    #[arg(long, value_name = "FILE")]
    secret: Option<String>,
}

fn failed(code: u8, what: impl std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {what}");
    ExitCode::from(code)
}

fn main() -> ExitCode {
    let Options { controllers, host, interfaces, devices, interval, token_file, ca, probe_listen, secret } =
        Options::parse();
    let given =
        Arguments { controllers, host, interfaces, devices, interval, token_file, ca, probe_listen, secret };
    let settings = match Settings::new(given) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return failed(2, error),
    };
    match run(&settings, |line| writeln!(io::stderr(), "{line}")) {
        Err(StopReason::Input(error)) => failed(2, error),
        Err(StopReason::Output(error)) => failed(1, error),
    }
}
