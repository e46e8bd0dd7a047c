//! `leeward-agent`: reports the traffic of a host's interfaces and the work of its disks to controllers. It needs
//! no Python.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use leeward_agent::{Arguments, Settings, StopReason, run};
use leeward_client::Signals;

const EXAMPLES: &str = "\
Examples:
  leeward-agent --controller http://127.0.0.1:7600 --host r0h1
  leeward-agent --controller https://leeward:7600 --token-file /etc/leeward/agent.token
  leeward-agent --controller https://10.0.0.5:7600 --token-file token --ca ca.pem --interface bond0
  leeward-agent --controller https://leeward-1:7600 --controller https://leeward-2:7600 --disk sdb=disk0
  leeward-agent --controller https://leeward:7600 --volume /data/1/dfs --volume /data/2/dfs --dscp cs6
  leeward-agent --controller https://leeward:7600 --host node-1 --pods /host/proc
  leeward-agent --controller https://leeward:7600 --token-file token --enforce net \\
      --enforce 'nfs --export 127.0.0.1:/vol --device /etc/leeward/ssd.json'
  leeward-agent --controller https://leeward:7600 --token-file token \\
      --probe-listen 10.0.1.7:7601 --secret /etc/leeward/probe.secret

The agent runs until it is terminated, and retries while a controller is unavailable. Enforcers are the programs
leeward-enforce-net and leeward-nfs, beside this one or on the path; they undo their work when the agent ends.

Exit codes: 1 failure at run time; 2 invalid arguments.";

/// Report the traffic of this host's interfaces and pods, the work of its disks and the storage of its volumes to
/// controllers.
#[derive(Parser)]
#[command(name = "leeward-agent", version, after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    arguments: Arguments,
}

fn fail(code: u8, what: impl std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {what}");
    ExitCode::from(code)
}

fn main() -> ExitCode {
    let Options { arguments } = Options::parse();
    let settings = match Settings::new(arguments) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return fail(2, error),
    };
    // Without enforcers, nothing is to be undone, and a signal ends the agent at once.
    let signals = match (!settings.enforcers.is_empty()).then(Signals::block).transpose() {
        Ok(signals) => signals,
        Err(error) => return fail(1, error),
    };
    let stops = || signals.as_ref().map_or(Ok(false), |signals| signals.wait(Duration::ZERO));
    match run(&settings, |line| writeln!(io::stderr(), "{line}"), stops) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StopReason::Input(error)) => fail(2, error),
        Err(StopReason::Output(error)) => fail(1, error),
    }
}
