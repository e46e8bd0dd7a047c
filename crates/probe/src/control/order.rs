//! Measurement of a path from this process or from a listening host.

use std::str::FromStr;
use std::time::Duration;

use super::client::{Peer, Secret};
use super::message::{Order, Outcome, Reply, Request};
use super::source;
use crate::error::ProbeError;
use crate::train::Limits;

/// Time that a measurement may take beyond its own sending time.
const SLACK: Duration = Duration::from_secs(45);
/// Number of retries while a host is busy, and the pause between them.
const RETRIES: u32 = 40;
const RETRY: Duration = Duration::from_millis(250);

/// Source of a measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// This process.
    Here,
    /// A listening host.
    Host(String),
}

impl FromStr for Place {
    type Err = ProbeError;

    /// Parses `here` or the address of a host.
    fn from_str(text: &str) -> Result<Place, ProbeError> {
        Ok(if text == "here" { Place::Here } else { Place::Host(text.to_owned()) })
    }
}

/// Requests the measurement of a path from a place to a host. Retries a busy host for ten seconds.
///
/// # Errors
///
/// Returns the error that prevents the measurement at either end.
pub fn order(from: &Place, to: &str, order: &Order, secret: &Secret) -> Result<Outcome, ProbeError> {
    let mut retries = 0;
    loop {
        let result = match from {
            Place::Here => source::measure(to, order, &Limits::default(), secret),
            Place::Host(host) => remote(host, to, order, secret),
        };
        match result {
            Err(ProbeError::Busy { .. }) if retries < RETRIES => {
                retries += 1;
                std::thread::sleep(RETRY);
            }
            result => return result,
        }
    }
}

fn remote(host: &str, to: &str, order: &Order, secret: &Secret) -> Result<Outcome, ProbeError> {
    let mut peer = Peer::greet(host, secret)?;
    let duration = match order {
        Order::Transfer { transfer } => Duration::from_nanos(transfer.duration_ns),
        Order::Train { .. } | Order::Hops {} => Duration::ZERO,
    };
    let request = Request::Measure { to: to.to_owned(), order: *order };
    match peer.request(&request, duration + SLACK)? {
        Reply::Measured { outcome } => {
            outcome.check(order)?;
            Ok(outcome)
        }
        other => Err(peer.unexpected(&other)),
    }
}
