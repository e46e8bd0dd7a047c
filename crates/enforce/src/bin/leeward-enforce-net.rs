//! `leeward-enforce-net`: applies the priorities and rate limits of promised workloads to the packets of a host. It needs
//! no Python.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use leeward_client::Signals;
use leeward_enforce::{
    Arguments, EnforceError, Event, Mode, Settings, StartError, StopReason, rehearse, run, status, undo,
};

const EXAMPLES: &str = "\
Examples:
  leeward-enforce-net --workloads packed.yaml --dry-run
  leeward-enforce-net --workloads /etc/leeward/packed.yaml --addresses /etc/leeward/hosts
  leeward-enforce-net --workloads packed.json --host r0h1 --interface bond0 --rate 25Gbps
  leeward-enforce-net --controller https://leeward:7600 --token-file /etc/leeward/enforcer.token
  leeward-enforce-net --workloads packed.yaml --status
  leeward-enforce-net --undo

The enforcer runs until it is interrupted or terminated, and then undoes everything. It reads its files again when they
change. With --controller it follows the promises of a controller, and acknowledges them; without a response for the
length of the lease, it undoes everything until a controller answers again. Interfaces with a root qdisc of another
owner are left alone. Required: tc (iproute2), nft (nftables), and root or the capability CAP_NET_ADMIN.

Exit codes: 0 stopped by a signal; 1 failure at run time, or with --dry-run and --status a promise that is not enforced;
2 invalid arguments or files.";

/// Enforce the priorities and rate limits of promised workloads on the packets that leave this host.
#[derive(Parser)]
#[command(name = "leeward-enforce-net", version, after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    arguments: Arguments,
}

fn fail(code: u8, what: impl std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {what}");
    ExitCode::from(code)
}

fn fail_to_start(error: StartError) -> ExitCode {
    match error {
        StartError::Input(error) => fail(2, error),
        StartError::Failed(error) => fail(1, error),
    }
}

fn stopped(result: Result<(), StopReason<io::Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(StopReason::Input(error)) => fail(2, error),
        Err(StopReason::Failed(error)) => fail(1, error),
        Err(StopReason::Nothing(why)) => fail(1, why),
        Err(StopReason::Output(error)) => fail(1, error),
    }
}

fn main() -> ExitCode {
    let Options { arguments } = Options::parse();
    let settings = match Settings::new(arguments) {
        Ok(settings) => settings,
        Err(error) => return fail(2, error),
    };
    let log = |event: &Event| writeln!(io::stderr(), "{event}");
    let print = |text: &str| writeln!(io::stdout(), "{text}");
    match settings.mode {
        Mode::Run => {
            let signals = match Signals::block() {
                Ok(signals) => signals,
                Err(error) => return fail(1, EnforceError::System { what: "signalfd".to_owned(), error }),
            };
            stopped(run(settings, log, |time| signals.wait(time)))
        }
        Mode::Undo => stopped(undo(&settings, log)),
        Mode::DryRun => match rehearse(&settings) {
            Err(error) => fail_to_start(error),
            Ok(rehearsal) => {
                for row in rehearsal.workloads.iter().filter(|row| row.state == "left-out") {
                    let why = row.why.as_deref().unwrap_or_default();
                    let _ = writeln!(io::stderr(), "error: {} is not enforced: {why}", row.workload);
                }
                match print(rehearsal.text().trim_end()) {
                    Err(error) => fail(1, error),
                    Ok(()) if rehearsal.is_complete() => ExitCode::SUCCESS,
                    Ok(()) => ExitCode::FAILURE,
                }
            }
        },
        Mode::Status => match status(&settings) {
            Err(error) => fail_to_start(error),
            Ok(status) => {
                let text = serde_json::to_string_pretty(&status).map_err(io::Error::from);
                match text.and_then(|text| print(&text)) {
                    Err(error) => fail(1, error),
                    Ok(()) if status.is_enforced() => ExitCode::SUCCESS,
                    Ok(()) => ExitCode::FAILURE,
                }
            }
        },
    }
}
