//! Calls of a connection, from the client to the queue and to the server.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::connection::{Connection, Direction, Pending};
use super::streams::{Incoming, Outgoing};
use super::{Queued, Scratch, Shared};
use crate::calls::{self, Handling, handling};
use crate::mount::{self, MOUNT};
use crate::queue::Item;
use crate::rpc::{Accepted, Call, HEAD, HeaderError, MarkingError, Record, Records, reply};
use crate::work::{kind, place};

/// Chunks that a task handles before others have their turn.
pub const TURNS: u32 = 4;
/// Bytes of a reply of MOUNT, such as a list of exports, at most about this number.
const MOUNT_REPLY: u64 = 256 << 10;

/// Program of a server to which a connection leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// NFS, and what a server has at the same port.
    Nfs,
    /// MOUNT at a port of its own.
    Mount,
    /// Both, at one port.
    Both,
}

/// Reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub enum End {
    /// The client ended it.
    #[error("the client closed the connection")]
    Client,
    /// The client sent something that is no call.
    #[error("{0}")]
    Marking(#[from] MarkingError),
    /// The client sent something that is no call.
    #[error("{0}")]
    Header(#[from] HeaderError),
    /// The server ended it.
    #[error("the server closed the connection")]
    Server,
    /// The server sent a reply that is too large.
    #[error("the server sent {0}")]
    Reply(MarkingError),
    /// The connection to the server failed.
    #[error("the connection to the server failed: {0}")]
    ServerFailed(io::Error),
}

/// Task of the calls of a connection.
pub struct CallsTask {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    target: Target,
    from_client: Incoming,
    to_server: Outgoing,
    records: Records,
    scratch: Scratch,
    /// Calls of a chunk: those that pass on, and those for the queue.
    passed: Vec<(u32, Record, u64)>,
    queued: Vec<(Item, Queued)>,
    own_replies: Vec<Vec<u8>>,
}

/// Handling of one call.
enum Decision {
    Queue(Item, u64),
    Pass(u64),
    Reply(Vec<u8>),
}

impl CallsTask {
    /// The task of a connection whose records were read so far.
    pub fn new(
        shared: Arc<Shared>,
        connection: Arc<Connection>,
        target: Target,
        from_client: Incoming,
        to_server: Outgoing,
        records: Records,
    ) -> CallsTask {
        CallsTask {
            shared,
            connection,
            target,
            from_client,
            to_server,
            records,
            scratch: Scratch::default(),
            passed: Vec::new(),
            queued: Vec::new(),
            own_replies: Vec::new(),
        }
    }

    /// Handles the first call, and those that came with it.
    ///
    /// # Errors
    /// Fails for a message that is no call.
    pub fn begin(&mut self, first: Record) -> Result<(), End> {
        self.take(first)?;
        self.take_records()
    }

    /// Runs until the connection ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..TURNS {
            let may_read = {
                let mut state = self.connection.lock();
                if state.is_closed() {
                    return Poll::Ready(Ok(()));
                }
                state.register(Direction::Calls, context);
                state.take_out(self.to_server.pieces());
                state.may_read(self.shared.share())
            };
            if let Poll::Ready(Err(error)) = self.to_server.poll_flush(context) {
                return Poll::Ready(Err(End::ServerFailed(error)));
            }
            if !may_read {
                return Poll::Pending;
            }
            let chunk = match self.from_client.poll_chunk(context, self.records.missing()) {
                Poll::Pending => return Poll::Pending,
                // A client that ended its side is treated like one that is gone, as servers do.
                Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Client)),
                Poll::Ready(Ok(chunk)) if chunk.is_empty() => return Poll::Ready(Err(End::Client)),
                Poll::Ready(Ok(chunk)) => chunk,
            };
            if let Err(end) = self.handle(chunk) {
                return Poll::Ready(Err(end));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn handle(&mut self, chunk: Bytes) -> Result<(), End> {
        self.records.push(chunk);
        self.take_records()
    }

    /// Takes all whole records of a chunk: under the lock of the connection once, and under that of the queue once.
    fn take_records(&mut self) -> Result<(), End> {
        let mut taken = Ok(());
        while let Some(record) = self.records.next_record()? {
            taken = self.take(record);
            if taken.is_err() {
                break;
            }
        }
        let waker = {
            let mut state = self.connection.lock();
            for (_, queued) in &self.queued {
                state.add_call(queued.cost);
            }
            self.shared.numbers.passed.fetch_add(self.passed.len() as u64, Ordering::Relaxed);
            for (xid, record, cost) in self.passed.drain(..) {
                state.add_call(cost);
                state.send(xid, record, Pending::new(None, cost));
            }
            let has_replies = !self.own_replies.is_empty();
            self.own_replies.drain(..).for_each(|reply| state.add_own_reply(reply));
            if has_replies { state.take_waker(Direction::Replies) } else { None }
        };
        waker.into_iter().for_each(std::task::Waker::wake);
        if !self.queued.is_empty() {
            let (queued, clock, number) = (&mut self.queued, self.shared.clock, self.connection.number);
            self.shared.with_queue(Some(&self.connection), &mut self.scratch, |queue, now| {
                for (item, queued) in queued.drain(..) {
                    // The connection is open as long as its task runs.
                    drop(queue.arrive(now, clock.wall(now), number, item, queued));
                }
            });
        }
        taken
    }

    /// Decides about a call, which joins one of the lists.
    fn take(&mut self, record: Record) -> Result<(), End> {
        let mut buffer = [0; HEAD];
        let head = record.head(&mut buffer);
        let call = Call::read(head)?;
        let decision = self.decide(&call, head, record.payload());
        let size = record.size() as u64;
        match decision {
            Decision::Queue(item, reply) => {
                let (connection, xid) = (self.connection.clone(), call.xid);
                self.queued.push((item, Queued { connection, xid, record, cost: size + reply }));
            }
            Decision::Pass(reply) => self.passed.push((call.xid, record, size + reply)),
            Decision::Reply(reply) => self.own_replies.push(reply),
        }
        Ok(())
    }

    fn decide(&self, call: &Call, head: &[u8], payload: usize) -> Decision {
        let export = &self.shared.exports[self.connection.export].server.export;
        let unavailable = || Decision::Reply(reply(call.xid, Accepted::ProgramUnavailable));
        match (call.program == MOUNT, self.target) {
            (true, Target::Nfs) | (false, Target::Mount) => unavailable(),
            (true, _) => match mount::refusal(call, head, &export.path) {
                Some(refusal) => Decision::Reply(refusal),
                None => Decision::Pass(MOUNT_REPLY),
            },
            (false, _) => match handling(call, head, payload, self.shared.limits.record as u64) {
                Handling::Queue(access) => {
                    let place = place(self.connection.export, &access);
                    let item = Item { kind: kind(access.operation), size: access.size, place };
                    Decision::Queue(item, access.reply())
                }
                Handling::Pass(reply) => Decision::Pass(reply),
                Handling::OtherVersion => {
                    let versions = Accepted::VersionMismatch { low: calls::VERSION, high: calls::VERSION };
                    Decision::Reply(reply(call.xid, versions))
                }
            },
        }
    }
}
