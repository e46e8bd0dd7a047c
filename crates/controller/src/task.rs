//! The one task that owns the desk. Everybody else sends it messages; so all see the network with the placements of
//! those before them in it.

use std::time::Duration;

use leeward_fabric::Nanos;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::desk::{Desk, Replies};
use crate::message::{Message, Refused, Reply};

/// Messages that may be on their way; who sends one more waits.
const ON_THEIR_WAY: usize = 1024;

type Answer = Result<Reply, Refused>;
type Envelope = (Message, oneshot::Sender<Answer>);

/// Where messages for the desk are handed in.
#[derive(Clone)]
pub struct Office(mpsc::Sender<Envelope>);

/// The task is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl Office {
    /// An office, and the desk's work, to be run as a task. The work ends when every copy of the office is gone.
    pub fn open(
        desk: Desk<oneshot::Sender<Answer>>,
        clock: Clock,
    ) -> (Office, impl Future<Output = ()> + Send) {
        let (sender, messages) = mpsc::channel(ON_THEIR_WAY);
        let desk = desk.with_listening(|asker| !asker.is_closed());
        (Office(sender), work(desk, clock, messages))
    }

    /// Asks, and waits for the reply.
    pub async fn ask(&self, message: Message) -> Result<Answer, Closed> {
        let (sender, reply) = oneshot::channel();
        self.0.send((message, sender)).await.map_err(|_| Closed)?;
        reply.await.map_err(|_| Closed)
    }
}

async fn work(mut desk: Desk<oneshot::Sender<Answer>>, clock: Clock, mut messages: mpsc::Receiver<Envelope>) {
    let mut replies = Replies::new();
    loop {
        tokio::select! {
            message = messages.recv() => match message {
                Some((message, sender)) => desk.handle(clock.now(), message, sender, &mut replies),
                None => break,
            },
            () = until(&clock, desk.wakes_at()) => desk.wake(clock.now(), &mut replies),
        }
        for (sender, reply) in replies.drain(..) {
            // Who asked may have gone; a client that numbers its requests asks again.
            let _ = sender.send(reply);
        }
    }
}

/// Waits for a time of the engine's; for ever if there is none.
async fn until(clock: &Clock, at: Option<Nanos>) {
    match at {
        Some(at) => tokio::time::sleep(Duration::from_nanos(at.since(clock.now()).0)).await,
        None => std::future::pending().await,
    }
}
