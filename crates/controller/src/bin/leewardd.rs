//! `leewardd`: the service as a single program without Python.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use leeward_controller::{Flags, NewToken, Ready, Role, StartError, is_json, log_end};

const EXAMPLES: &str = "\
Examples:
  leewardd --cluster c.yaml
  leewardd --config /etc/leeward/leeward.yaml
  leewardd --cluster c.yaml --prometheus http://prom:9090 --map snmp.yaml --interval 15s
  leewardd --config leeward.toml --listen 0.0.0.0:7600 --tokens tokens
  leewardd --cluster c.yaml --mode shadow --off-file /run/leeward/off
  leewardd --config leeward.toml --check-config
  leewardd token new --name namenode --role place --tokens tokens
  leewardd token new --name r0h1 --role report --host r0h1 --tokens tokens

The service runs until it is interrupted (Ctrl-C) or terminated, and then finishes the requests in progress.
SIGHUP reloads policies, modes, estimates of loads, tokens, certificate, rate limits, polling and log level.

Exit codes: 0 stopped by a signal; 1 failure at run time; 2 invalid arguments or settings.";

/// Collect telemetry and place replicas and tasks over HTTP.
#[derive(Parser)]
#[command(name = "leewardd", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Command {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    subcommand: Option<Subcommands>,
}

#[derive(Args)]
struct Options {
    /// Settings file, YAML or TOML; flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// Cluster file.
    #[arg(long, value_name = "FILE")]
    cluster: Option<String>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:7600].
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Address for health, metrics, status and administration, with connections of their own [default: none].
    #[arg(long, value_name = "HOST:PORT")]
    admin_listen: Option<String>,
    /// Policy for copies of blocks, with settings after colons, as in sinbad:interval=1s [default: sinbad].
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Policy for tasks [default: leeward].
    #[arg(long, value_name = "POLICY")]
    task_policy: Option<String>,
    /// Policy for moves of tasks from hot racks [default: none].
    #[arg(long, value_name = "POLICY")]
    moves: Option<String>,
    /// Mode of all kinds of decisions: off, shadow, canary:SHARE[:PROPERTY] or on [default: on].
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// File whose existence turns every mode off.
    #[arg(long, value_name = "FILE")]
    off_file: Option<String>,
    /// Time between two reports of a link [default: 1s].
    #[arg(long, value_name = "TIME")]
    interval: Option<String>,
    /// Seed of tie-breaking, from 0 [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Store of decisions: a file, `memory`, or a PostgreSQL URL, postgres://USER@HOST/DATABASE [default: a file
    /// named after the cluster, or after the cluster file if the cluster has no name].
    #[arg(long, value_name = "WHERE")]
    store: Option<String>,
    /// Failures that stored decisions survive, `process` or `power` [default: process].
    #[arg(long, value_name = "WHAT")]
    durable: Option<String>,
    /// Token file; requests without one of its tokens are rejected.
    #[arg(long, value_name = "FILE")]
    tokens: Option<String>,
    /// Prometheus to poll for telemetry while this service leads.
    #[arg(long, value_name = "URL")]
    prometheus: Option<String>,
    /// With --prometheus: file that maps ports to links.
    #[arg(long, value_name = "FILE")]
    map: Option<String>,
    /// With --prometheus: connection file in the format of promtool's --http.config.file.
    #[arg(long, value_name = "FILE")]
    http: Option<String>,
    /// Validate all settings and exit.
    #[arg(long)]
    check_config: bool,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Manage tokens.
    #[command(subcommand)]
    Token(Token),
}

#[derive(Subcommand)]
enum Token {
    /// Create a token and print it once.
    New {
        /// Name of the token.
        #[arg(long)]
        name: String,
        /// Role of the token: read, report, place or admin.
        #[arg(long)]
        role: Role,
        /// With --role report: limits the token to reports of this host; repeat for several hosts.
        #[arg(long = "host", value_name = "HOST")]
        hosts: Vec<String>,
        /// File to append the token's line to; by default the line goes to stderr.
        #[arg(long, value_name = "FILE")]
        tokens: Option<String>,
    },
}

fn main() -> ExitCode {
    let command = Command::parse();
    match command.subcommand {
        Some(Subcommands::Token(Token::New { name, role, hosts, tokens })) => {
            token(&name, role, &hosts, tokens.as_deref())
        }
        None => serve(command.options),
    }
}

fn fail(code: u8, error: impl std::fmt::Display) -> ExitCode {
    if !log_end(&error) {
        let _ = writeln!(std::io::stderr(), "error: {error}");
    }
    ExitCode::from(code)
}

fn serve(options: Options) -> ExitCode {
    let flags = Flags {
        config: options.config,
        cluster: options.cluster,
        listen: options.listen,
        admin_listen: options.admin_listen,
        policy: options.policy,
        task_policy: options.task_policy,
        moves: options.moves,
        mode: options.mode,
        off_file: options.off_file,
        interval: options.interval,
        seed: options.seed,
        store: options.store,
        durable: options.durable,
        tokens: options.tokens,
        prometheus: options.prometheus,
        map: options.map,
        http: options.http,
        demo: false,
    };
    if options.check_config {
        if let Err(error) = Ready::new(flags) {
            return fail(2, error);
        }
        let _ = writeln!(std::io::stderr(), "the settings are right");
        return ExitCode::SUCCESS;
    }
    let announce = |url: &str, store: Option<&Path>| -> std::io::Result<()> {
        // The JSON log has the same information. Its readers expect only JSON on stderr.
        if is_json() {
            return Ok(());
        }
        let mut out = std::io::stderr().lock();
        writeln!(out, "listening on {url}")?;
        writeln!(out, "decisions are kept in {}", store.unwrap_or(Path::new("memory")).display())
    };
    match Ready::to_run(flags).map_err(StartError::Input).and_then(|ready| ready.run(announce)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartError::Input(error)) => fail(2, error),
        Err(StartError::Callback(error) | StartError::Failed(error)) => fail(1, error),
    }
}

fn token(name: &str, role: Role, hosts: &[String], file: Option<&str>) -> ExitCode {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let new_token = match NewToken::make(name, role, &hosts) {
        Ok(new_token) => new_token,
        Err(error) => return fail(2, error),
    };
    let NewToken { token, line } = match file.map_or(Ok(()), |file| new_token.add(file)) {
        Ok(()) => new_token,
        Err(error) => return fail(2, error),
    };
    if file.is_none() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    match writeln!(std::io::stdout(), "{token}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, error),
    }
}
