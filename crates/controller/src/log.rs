//! Log on stderr, without tokens and keys.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::{io, panic, thread};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use leeward_settings::{Format, Level, LogSettings};

/// Log of the process.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    /// Handle to change the level.
    level: reload::Handle<LevelFilter, Registry>,
    format: Format,
}

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    }
}

/// Starts logging. A process has one log; a second call only sets its level.
pub fn begin(settings: LogSettings) {
    let (level, handle) = reload::Layer::new(filter(settings.level));
    if LOG.set(Log { level: handle, format: settings.format }).is_err() {
        return set_level(settings.level);
    }
    let lines = fmt::layer().with_writer(io::stderr).with_target(false).with_ansi(false);
    let lines = match settings.format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    // Another logger in the same process stays active.
    let started = tracing_subscriber::registry().with(level).with(lines).try_init();
    if started.is_ok() && is_json() {
        panic::set_hook(Box::new(log_panic));
    }
}

/// Logs a panic as JSON, because the default panic text is not JSON.
fn log_panic(panicked: &PanicHookInfo<'_>) {
    let payload = panicked.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let message = text.or_else(|| payload.downcast_ref().copied()).unwrap_or("no message");
    let location = panicked.location().map(ToString::to_string);
    // `RUST_BACKTRACE` enables the backtrace, as in any program.
    let trace = Backtrace::capture();
    let backtrace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
    tracing::error!(thread = thread::current().name(), location, backtrace, "panicked: {message}");
}

/// Sets the level.
pub fn set_level(level: Level) {
    if let Some(log) = LOG.get() {
        let _ = log.level.reload(filter(level));
    }
}

/// True for a log of JSON lines. All output on stderr must then be JSON, because its reader expects JSON.
pub fn is_json() -> bool {
    LOG.get().is_some_and(|log| log.format == Format::Json)
}

/// Logs the reason of the process's end if the format is JSON. Otherwise returns false, and the caller prints the
/// reason.
pub fn log_end(why: &dyn Display) -> bool {
    if is_json() {
        tracing::error!("{why}");
    }
    is_json()
}
