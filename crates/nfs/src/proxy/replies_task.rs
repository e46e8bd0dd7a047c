//! Replies of a connection, from the server to the client, in pieces as they come.
//!
//! The server's side is always read: the calls that a connection may have at once are limited by the size of their
//! replies. So a client that takes no replies never keeps a request at the device.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::calls_task::{End, TURNS};
use super::connection::{Connection, Direction};
use super::streams::{Incoming, Outgoing};
use super::{Scratch, Shared};
use crate::queue::Running;
use crate::rpc::Marking;

/// Task of the replies of a connection.
pub struct RepliesTask {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    from_server: Incoming,
    to_client: Outgoing,
    scan: Scan,
    /// Unsent bytes that the state of the connection has.
    stated: u64,
    completed: Vec<Running>,
    scratch: Scratch,
    /// Reason of the end, once the server's side has ended.
    ended: bool,
}

/// Search for the ends of replies in a stream.
struct Scan {
    marking: Marking,
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
            to_client,
            scan,
            stated: 0,
            completed: Vec::new(),
            scratch: Scratch::default(),
            ended: false,
        }
    }

    /// Runs until the connection ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..TURNS {
            {
                let mut state = self.connection.lock();
                if state.is_closed() {
                    return Poll::Ready(Ok(()));
                }
                state.register(Direction::Replies, context);
                self.scan.own.extend(state.take_own_replies());
            }
            self.scan.insert_own(self.to_client.pieces());
            if let Poll::Ready(Err(_)) = self.to_client.poll_flush(context) {
                return Poll::Ready(Err(End::Client));
            }
            self.state_unsent();
            if self.ended {
                let is_done = self.to_client.is_empty();
                return if is_done { Poll::Ready(Err(End::Server)) } else { Poll::Pending };
            }
            match self.from_server.poll_chunk(context, self.scan.marking.left()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(End::ServerFailed(error))),
                Poll::Ready(Ok(chunk)) if chunk.is_empty() => self.ended = true,
                Poll::Ready(Ok(chunk)) => {
                    if let Err(end) = self.handle(chunk) {
                        return Poll::Ready(Err(end));
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn handle(&mut self, chunk: Bytes) -> Result<(), End> {
        self.scan.take(chunk, self.to_client.pieces())?;
        if self.scan.answered.is_empty() {
            return Ok(());
        }
        let waker = {
            let mut state = self.connection.lock();
            self.completed.extend(self.scan.answered.drain(..).filter_map(|xid| state.answer(xid)));
            // The bytes of these replies count as unsent from now on.
            self.stated = self.to_client.len();
            state.set_unsent(self.stated);
            state.take_blocked()
        };
        waker.into_iter().for_each(std::task::Waker::wake);
        if !self.completed.is_empty() {
            let completed = &mut self.completed;
            self.shared.with_queue(None, &mut self.scratch, |queue, now| {
                completed.drain(..).for_each(|running| queue.complete(now, &running));
            });
        }
        Ok(())
    }

    /// States the number of unsent bytes, if it has changed.
    fn state_unsent(&mut self) {
        let unsent = self.to_client.len();
        if unsent != self.stated {
            self.stated = unsent;
            let waker = {
                let mut state = self.connection.lock();
                state.set_unsent(unsent);
                state.take_blocked()
            };
            waker.into_iter().for_each(std::task::Waker::wake);
        }
    }
}

impl Scan {
    fn new(limit: usize) -> Scan {
        Scan { marking: Marking::new(limit), xid: [0; 4], filled: 0, answered: Vec::new(), own: Vec::new() }
    }

    /// Moves a chunk to the end of `out`, and own replies after the first reply that ends.
    fn take(&mut self, mut chunk: Bytes, out: &mut std::collections::VecDeque<Bytes>) -> Result<(), End> {
        let mut at = 0;
        while at < chunk.len() {
            let part = self.marking.step(&chunk[at..]).map_err(End::Reply)?;
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
                if !self.own.is_empty() {
                    out.push_back(chunk.split_to(at));
                    out.extend(self.own.drain(..));
                    at = 0;
                }
            }
        }
        if !chunk.is_empty() {
            out.push_back(chunk);
        }
        Ok(())
    }

    /// Moves own replies to the end of `out`, unless a reply of the server has begun.
    fn insert_own(&mut self, out: &mut std::collections::VecDeque<Bytes>) {
        if self.marking.is_between() {
            out.extend(self.own.drain(..));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

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
                scan.take(rest.split_to((*cut).min(rest.len())), &mut out).unwrap();
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
