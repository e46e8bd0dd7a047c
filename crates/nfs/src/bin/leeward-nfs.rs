//! `leeward-nfs`: queues, prioritises and limits the requests of NFS clients. It needs no Python.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use leeward_nfs::{Arguments, Line, Settings, StopReason, run};

const EXAMPLES: &str = "\
Examples:
  leeward-nfs --export 127.0.0.1:/vol --allow 10.0.0.0/8 --traces traces
  leeward-nfs --export 127.0.0.1:/vol --allow all --workloads packed.yaml --host r0h7
  leeward-nfs --export 127.0.0.1:/vol --allow 10.0.0.0/8 --controller https://leeward:7600 --token-file token \\
      --host r0h7 --device ssd.json
  leeward-nfs --export nas:/a --export nas:/b --allow 10.0.0.0/8 --workloads packed.yaml \\
      --workload mail=/a --workload web=/b --listen 10.0.0.7:2049 --listen 10.0.0.7:2050
  leeward-nfs --export nas:/vol --nfsport 2049 --mountport 20048 --reserved-port --allow 10.0.0.0/8 -o json

Clients mount through the proxy at its port, for NFS and for MOUNT:
  mount -t nfs -o vers=3,proto=tcp,port=12049,mountport=12049,nolock proxy:/vol /mnt
  nfs-ls 'nfs://proxy/vol?nfsport=12049&mountport=12049'

The proxy runs until it is interrupted (Ctrl-C) or terminated. SIGHUP reads the workloads again.

Exit codes: 0 stopped by a signal; 1 failure at run time, such as a server that is away at the start; 2 invalid
arguments or files.";

/// Queue, prioritise and limit the requests of NFSv3 clients, and record traces.
#[derive(Parser)]
#[command(name = "leeward-nfs", version, after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    arguments: Arguments,
    /// Format of reports on stdout: at each interval, and at the end [default: none].
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One JSON object on a line for each report.
    Json,
}

fn fail(code: u8, what: impl std::fmt::Display) -> ExitCode {
    let _ = writeln!(io::stderr(), "error: {what}");
    ExitCode::from(code)
}

fn main() -> ExitCode {
    let Options { arguments, output } = Options::parse();
    let settings = match Settings::new(arguments) {
        Ok(settings) => settings,
        Err(error) => return fail(2, error),
    };
    let write = |line: Line<'_>| match line {
        Line::Log(line) => writeln!(io::stderr(), "{line}"),
        Line::Report(report) if output.is_some() => writeln!(io::stdout(), "{report}"),
        Line::Report(_) => Ok(()),
    };
    match run(&settings, write) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StopReason::Input(error)) => fail(2, error),
        Err(StopReason::Failed(error)) => fail(1, error),
        Err(StopReason::Output(error)) => fail(1, error),
    }
}
