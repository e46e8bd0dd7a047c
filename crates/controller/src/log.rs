//! What is written to stderr while the service runs. No token and no key is ever in it.

use std::io;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::settings::{Format, Level, LogSettings};

/// The way to the level of the process's log.
static LEVEL: OnceLock<reload::Handle<LevelFilter, Registry>> = OnceLock::new();

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    }
}

/// Begins to write. A process has one log: who begins again sets its level.
pub fn begin(settings: LogSettings) {
    let (level, handle) = reload::Layer::new(filter(settings.level));
    if LEVEL.set(handle).is_err() {
        return set_level(settings.level);
    }
    let lines = fmt::layer().with_writer(io::stderr).with_target(false).with_ansi(false);
    let lines = match settings.format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    // Somebody else's log in the same process stays as it is.
    let _ = tracing_subscriber::registry().with(level).with(lines).try_init();
}

/// Writes so much from now on.
pub fn set_level(level: Level) {
    if let Some(handle) = LEVEL.get() {
        let _ = handle.reload(filter(level));
    }
}
