//! Telemetry that the service asks for itself: counters of a Prometheus, read with the map files that `leeward hotspots` reads.
//!
//! ```text
//! Prometheus --JSON--> client --series--> meter --windows, loads--> Message::Report --> office
//!                        |                  |
//!                answer: whole or none   map: labels -> links; counter: readings -> bits
//! ```
//!
//! What comes of it enters the office as a report does. [`Meter`] is a plain value, times in and loads out; `poll` is the
//! loop around it, which asks in a thread of its own and tells how it goes ([`Telemetry`]).

mod access;
mod answer;
mod client;
mod counter;
mod map;
mod meter;
mod plan;
mod poll;
mod reading;
mod state;

pub use self::meter::{Ports, Steps};
pub use self::plan::Plan;
pub use self::poll::poll;
pub use self::reading::Ear;
pub use self::state::{Standing, State, Telemetry};

/// The beginning of a text from outside, on one line.
fn beginning(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let shown: String =
        line.chars().take(most).map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
    if shown.len() < line.len() { shown + "..." } else { shown }
}
