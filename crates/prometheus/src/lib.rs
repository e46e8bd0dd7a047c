//! Telemetry polled from Prometheus: counters of ports become loads of links. The map files are the same as in `leeward
//! hotspots`.
//!
//! ```text
//! Prometheus --JSON--> client --series--> meter --windows, loads--> Consumer
//!                        |                  |
//!                answer: all or nothing  map: labels -> links; counter: readings -> bits
//! ```
//!
//! `Meter` is a plain value: times are inputs, loads are outputs. [`poll`] is the loop around it. The loop queries in
//! its own thread, passes samples to a [`Consumer`], and publishes its state ([`Telemetry`]).

mod access;
mod answer;
mod client;
mod counter;
mod map;
mod meter;
mod plan;
mod poll;
mod reader;
mod samples;
mod settings;
mod state;

pub use self::access::{Access, parse_address};
pub use self::meter::{Ports, Steps};
pub use self::plan::Plan;
pub use self::poll::poll;
pub use self::reader::PrometheusReader;
pub use self::samples::{Consumer, CurrentCluster, Samples, Stopped};
pub use self::settings::PrometheusSettings;
pub use self::state::{State, Telemetry, TelemetryStatus};

/// First `max` characters of an external text, on one line.
fn beginning(text: &str, max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let shown: String =
        line.chars().take(max).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if shown.len() < line.len() { shown + "..." } else { shown }
}
