//! Replies of a connection, from the server to the client, in pieces as they come.
//!
//! The server's side is always read: the calls that a connection may have at once are limited by the size of their
//! replies. So a client that takes no replies never keeps a request at the device. After a client has gone, its replies
//! are read all the same, because its requests have their places at the device until then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use leeward_fabric::Nanos;

use super::calls_task::{End, TURNS};
use super::connection::Connection;
use super::shared::{Scratch, Shared};
use super::state::{Direction, Phase};
use super::streams::{Incoming, Outgoing};
use crate::queue::Running;
use crate::rpc::{Marking, MarkingError};

/// Unsent bytes that no connection has.
const UNKNOWN: u64 = u64::MAX;

/// Task of the replies of a connection.
pub struct RepliesTask {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    from_server: Incoming,
    /// `None` once the client has gone.
    to_client: Option<Outgoing>,
    scan: Scan,
    /// Unsent bytes that the state of the connection has.
    stated: u64,
    completed: Vec<Running>,
    scratch: Scratch,
    /// True once the server's side has ended.
    ended: bool,
    /// Reason for which the client takes no more replies.
    reason: Option<End>,
}

/// Search for the ends of replies in a stream.
struct Scan {
    marking: Marking,
    limit: usize,
    xid: [u8; 4],
    filled: usize,
    /// Numbers of the calls whose replies ended in the last chunk.
    answered: Vec<u32>,
    /// Replies of the proxy itself, which wait for the end of a reply of the server.
    own: Vec<Bytes>,
}

impl RepliesTask {
    /// The task of a connection.
    pub fn new(
        shared: Arc<Shared>,
        connection: Arc<Connection>,
        from_server: Incoming,
        to_client: Outgoing,
    ) -> RepliesTask {
        let scan = Scan::new(shared.limits.record);
        RepliesTask {
            shared,
            connection,
            from_server,
            to_client: Some(to_client),
            scan,
            stated: 0,
            completed: Vec::new(),
            scratch: Scratch::default(),
            ended: false,
            reason: None,
        }
    }

    /// Runs until the connection ends. `Ok` if the other direction ended it.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..TURNS {
            let (phase, own) = {
                let mut state = self.connection.lock();
                state.register(Direction::Replies, context);
                (state.phase, state.take_own_replies())
            };
            match phase {
                Phase::Closed => return Poll::Ready(self.reason.take().map_or(Ok(()), Err)),
                // The client sees at once that its connection has ended.
                Phase::Leaving => self.to_client = None,
                Phase::Open => {}
            }
            if !self.send(context, own) {
                self.give_up(End::Client);
            }
            if self.ended {
                let is_done = self.to_client.as_ref().is_none_or(Outgoing::is_empty);
                return if is_done { Poll::Ready(Err(End::Server)) } else { Poll::Pending };
            }
            match self.from_server.poll_chunk(context, self.scan.marking.left()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(End::ServerFailed(error))),
                Poll::Ready(Ok(chunk)) if chunk.is_empty() => self.end(),
                Poll::Ready(Ok(chunk)) => {
                    if let Err(error) = self.handle(chunk) {
                        self.give_up(End::Reply(error));
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sends what the client takes. Returns false if it takes nothing more.
    fn send(&mut self, context: &mut Context<'_>, own: Vec<Bytes>) -> bool {
        let Some(to_client) = &mut self.to_client else { return true };
        if !own.is_empty() {
            self.scan.own.extend(own);
            self.stated = UNKNOWN;
        }
        self.scan.insert_own(to_client.pieces());
        if let Poll::Ready(Err(_)) = to_client.poll_flush(context) {
            return false;
        }
        self.state_unsent();
        true
    }

    /// The client gets no more replies. The connection closes when those that the server owes have come.
    fn give_up(&mut self, reason: End) {
        self.to_client = None;
        self.reason.get_or_insert(reason);
        self.connection.client_gone();
    }

    /// The server's side has ended: nothing that it owes comes.
    fn end(&mut self) {
        self.ended = true;
        self.shared.release(&self.connection.take_unanswered(Nanos(u64::MAX)));
    }

    fn handle(&mut self, chunk: Bytes) -> Result<(), MarkingError> {
        let scanned = self.scan.take(chunk, self.to_client.as_mut().map(Outgoing::pieces));
        if self.scan.answered.is_empty() {
            return scanned;
        }
        let (waker, is_spare) = {
            let mut state = self.connection.lock();
            self.completed.extend(self.scan.answered.drain(..).filter_map(|xid| state.answer(xid)));
            // The bytes of these replies count as unsent from now on.
            self.stated = self.unsent();
            state.set_unsent(self.stated);
            (state.take_blocked(), state.spare_permit(None, self.shared.share()))
        };
        waker.into_iter().for_each(std::task::Waker::wake);
        if is_spare {
            self.shared.release_permit();
        }
        if !self.completed.is_empty() {
            let completed = &mut self.completed;
            self.shared.with_queue(None, &mut self.scratch, |queue, now| {
                completed.drain(..).for_each(|running| queue.complete(now, &running));
            });
        }
        scanned
    }

    /// Number of bytes that the client has not taken.
    fn unsent(&self) -> u64 {
        let own: u64 = self.scan.own.iter().map(|reply| reply.len() as u64).sum();
        own + self.to_client.as_ref().map_or(0, Outgoing::len)
    }

    /// States the number of unsent bytes, if it has changed.
    fn state_unsent(&mut self) {
        let unsent = self.unsent();
        if unsent != self.stated {
            self.stated = unsent;
            let (waker, is_spare) = {
                let mut state = self.connection.lock();
                state.set_unsent(unsent);
                (state.take_blocked(), state.spare_permit(None, self.shared.share()))
            };
            waker.into_iter().for_each(std::task::Waker::wake);
            if is_spare {
                self.shared.release_permit();
            }
        }
    }
}

impl Scan {
    fn new(limit: usize) -> Scan {
        // A record above the limit has an end too, which a client that has gone waits for.
        let marking = Marking::new(usize::MAX);
        Scan { marking, limit, xid: [0; 4], filled: 0, answered: Vec::new(), own: Vec::new() }
    }

    /// Moves a chunk to the end of `out`, if there is one, and own replies after the first reply that ends.
    ///
    /// # Errors
    /// Fails for a reply that is too large. The search goes on, but the client gets nothing more.
    fn take(&mut self, mut chunk: Bytes, mut out: Option<&mut VecDeque<Bytes>>) -> Result<(), MarkingError> {
        let (mut at, mut taken) = (0, Ok(()));
        while at < chunk.len() {
            let part = self.marking.step(&chunk[at..])?;
            if part.record > self.limit {
                taken = Err(MarkingError::TooLarge { limit: self.limit });
            }
            let payload = &chunk[at + part.length - part.payload..at + part.length];
            let missing = payload.len().min(self.xid.len() - self.filled);
            self.xid[self.filled..self.filled + missing].copy_from_slice(&payload[..missing]);
            self.filled += missing;
            at += part.length;
            if part.ends {
                if self.filled == self.xid.len() {
                    self.answered.push(u32::from_be_bytes(self.xid));
                }
                self.filled = 0;
                if let Some(out) = out.as_mut().filter(|_| !self.own.is_empty()) {
                    out.push_back(chunk.split_to(at));
                    out.extend(self.own.drain(..));
                    at = 0;
                }
            }
        }
        if let Some(out) = out.filter(|_| !chunk.is_empty()) {
            out.push_back(chunk);
        }
        taken
    }

    /// Moves own replies to the end of `out`, unless a reply of the server has begun.
    fn insert_own(&mut self, out: &mut VecDeque<Bytes>) {
        if self.marking.is_between() {
            out.extend(self.own.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rpc::{Accepted, Records, reply};

    proptest! {
        #[test]
        fn own_replies_never_break_replies_of_the_server(
            sizes in prop::collection::vec(0usize..50, 0..12),
            cuts in prop::collection::vec(1usize..60, 1..20),
            own in prop::collection::vec(any::<bool>(), 1..20),
        ) {
            let server: Vec<u8> = sizes
                .iter()
                .zip(0..)
                .flat_map(|(&size, xid)| reply(xid, Accepted::Success(&vec![7; size])))
                .collect();
            let (mut scan, mut out, mut answered) = (Scan::new(1 << 20), VecDeque::new(), Vec::new());
            let (mut rest, mut added) = (Bytes::from(server), 0);
            for (cut, own) in cuts.iter().cycle().zip(own.iter().cycle()) {
                if rest.is_empty() {
                    break;
                }
                if *own {
                    scan.own.push(reply(1000 + added, Accepted::ProgramUnavailable).into());
                    added += 1;
                }
                scan.insert_own(&mut out);
                scan.take(rest.split_to((*cut).min(rest.len())), Some(&mut out)).unwrap();
                answered.append(&mut scan.answered);
            }
            scan.insert_own(&mut out);
            prop_assert!(scan.own.is_empty());
            let mut records = Records::new(1 << 20);
            let (mut servers, mut owns) = (Vec::new(), 0);
            for piece in out {
                records.push(piece);
                while let Some(record) = records.next_record().unwrap() {
                    let mut xid = [0; 4];
                    record.copy_payload(&mut xid);
                    match u32::from_be_bytes(xid) {
                        xid if xid >= 1000 => owns += 1,
                        xid => servers.push(xid),
                    }
                }
            }
            let expected: Vec<u32> = (0..sizes.len() as u32).collect();
            prop_assert_eq!((&servers, owns), (&expected, added));
            prop_assert_eq!(answered, expected);
        }
    }
}
