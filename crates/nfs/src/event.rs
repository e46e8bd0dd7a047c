//! Events of a proxy as log lines, and the channel that carries them to the log.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use leeward_fabric::input::excerpt;

/// Events that wait for the log. Further ones are counted.
const WAITING: usize = 1024;

/// An event for the operator's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// An export is served.
    Listening {
        /// Server and path.
        export: String,
        /// Address for clients.
        address: SocketAddr,
    },
    /// A note about the input.
    Note(String),
    /// A connection was refused.
    Refused {
        /// Address of the client.
        client: SocketAddr,
        /// Reason.
        why: &'static str,
    },
    /// A connection was closed by the proxy.
    Closed {
        /// Address of the client.
        client: SocketAddr,
        /// Reason.
        why: String,
    },
    /// The server did not accept a connection.
    ServerUnavailable {
        /// Address of the server.
        server: SocketAddr,
        /// Reason.
        why: String,
    },
    /// A listener could not accept a connection.
    NotAccepted(String),
    /// The workloads were replaced.
    Replaced {
        /// Number of workloads.
        workloads: usize,
    },
    /// Traces cannot be written.
    NotRecorded(String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Listening { export, address } => write!(f, "{export}: listening on {address}"),
            Event::Note(note) => write!(f, "note: {note}"),
            Event::Refused { client, why } => write!(f, "{client}: connection refused: {why}"),
            Event::Closed { client, why } => write!(f, "{client}: connection closed: {}", excerpt(why)),
            Event::ServerUnavailable { server, why } => {
                write!(f, "server {server} unavailable: {}; the client may retry", excerpt(why))
            }
            Event::NotAccepted(why) => write!(f, "connection not accepted: {}", excerpt(why)),
            Event::Replaced { workloads } => write!(f, "workloads replaced: {workloads}"),
            Event::NotRecorded(why) => write!(f, "traces not recorded: {why}"),
        }
    }
}

/// Sender of events. It never waits: a client that provokes many events must not slow down others.
#[derive(Clone, Debug)]
pub struct Events {
    sender: SyncSender<Event>,
    dropped: Arc<AtomicU64>,
}

impl Events {
    /// A channel to the log.
    pub fn channel() -> (Events, Receiver<Event>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Events { sender, dropped: Arc::default() }, receiver)
    }

    /// Sends an event, or counts it if too many wait.
    pub fn send(&self, event: Event) {
        if self.sender.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of events dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_nobody_takes_are_counted_and_delay_nobody() {
        let (events, receiver) = Events::channel();
        for number in 0..WAITING + 7 {
            events.send(Event::Note(number.to_string()));
        }
        assert_eq!(events.take_dropped(), 7);
        assert_eq!(events.take_dropped(), 0);
        assert_eq!(receiver.try_iter().count(), WAITING);
        drop(receiver);
        events.send(Event::Replaced { workloads: 1 });
        assert_eq!(events.take_dropped(), 1);
    }

    #[test]
    fn an_event_is_one_line_whatever_a_client_sent() {
        let client = SocketAddr::from(([10, 0, 0, 1], 700));
        let closed = Event::Closed { client, why: "a\nb".repeat(100) }.to_string();
        assert!(closed.starts_with("10.0.0.1:700: connection closed: a b") && !closed.contains('\n'));
        assert!(closed.len() < 120, "{closed}");
    }
}
