//! Source side of a measurement: sends trains and transfers.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use super::client::{Peer, Secret, connect};
use super::frame;
use super::message::{Order, Outcome, Reply, Request};
use crate::error::ProbeError;
use crate::estimate::estimate;
use crate::sockets::{bulk, hops, train as packets};
use crate::train::{Limits, Train, Transfer};

/// Time after sending during which packets queued on a slow path may still arrive.
const DRAIN_TIME: Duration = Duration::from_secs(35);

/// Measures from this process to a listening host.
///
/// # Errors
///
/// Returns the error that prevents the measurement.
pub fn measure(to: &str, order: &Order, limits: &Limits, secret: &Secret) -> Result<Outcome, ProbeError> {
    match order {
        Order::Train { train } => train_to(to, train, limits, secret),
        Order::Transfer { transfer } => transfer_to(to, transfer, limits, secret),
        Order::Hops {} => {
            let address = Peer::greet(to, secret)?.address()?;
            let hops = hops::count(address).map_err(|error| ProbeError::system(to, &error))?;
            Ok(Outcome::Hops { hops })
        }
    }
}

fn train_to(to: &str, train: &Train, limits: &Limits, secret: &Secret) -> Result<Outcome, ProbeError> {
    train.check(limits)?;
    let mut peer = Peer::greet(to, secret)?;
    let rtt_ns = peer.rtt_ns()?;
    let (port, session) = match peer.request(&Request::ReceiveTrain { train: *train }, Duration::ZERO)? {
        Reply::Ready { port, session } => (port, session),
        other => return Err(peer.unexpected(&other)),
    };
    let address = SocketAddr::new(peer.address()?.ip(), port);
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let sent = UdpSocket::bind(any)
        .and_then(|socket| socket.connect(address).map(|()| socket))
        .and_then(|socket| packets::send(&socket, session, train))
        .map_err(|error| ProbeError::system(to, &error))?;
    match peer.request(&Request::Ended {}, DRAIN_TIME)? {
        Reply::Received { received } => {
            let estimate = estimate(train, &sent, &received, Some(rtt_ns))?;
            Ok(Outcome::Train { estimate })
        }
        other => Err(peer.unexpected(&other)),
    }
}

fn transfer_to(
    to: &str,
    transfer: &Transfer,
    limits: &Limits,
    secret: &Secret,
) -> Result<Outcome, ProbeError> {
    transfer.check(limits)?;
    let mut peer = Peer::greet(to, secret)?;
    // The receiver replies with the session at once, and with the report after all data connections have ended.
    let session = match peer.request(&Request::ReceiveTransfer { transfer: *transfer }, Duration::ZERO)? {
        Reply::Ready { session, .. } => session,
        other => return Err(peer.unexpected(&other)),
    };
    let system_error = |error| ProbeError::system(to, &error);
    let mut streams = Vec::new();
    for _ in 0..transfer.connections {
        let mut stream = connect(to)?;
        frame::write(&mut stream, &Request::Data { session }).map_err(system_error)?;
        streams.push(stream);
    }
    thread::scope(|scope| {
        let sending: Vec<_> =
            streams.into_iter().map(|stream| scope.spawn(|| bulk::send(stream, transfer))).collect();
        for sent in sending {
            let sent = sent.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            sent.map_err(system_error)?;
        }
        Ok(())
    })?;
    match peer.request(&Request::Ended {}, DRAIN_TIME)? {
        Reply::Transferred { transferred } => {
            transferred.check(transfer)?;
            Ok(Outcome::Transfer { transferred })
        }
        other => Err(peer.unexpected(&other)),
    }
}
