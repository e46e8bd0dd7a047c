//! Calls of a connection, from the client to the queue and to the server.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use super::connection::Connection;
use super::room::{Admission, Room};
use super::shared::{Queued, Scratch, Shared};
use super::state::{Direction, Pending, Phase};
use super::streams::{Incoming, Outgoing};
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
    /// The client takes too long for a large call, for which others wait.
    #[error("a large call did not come in time")]
    Slow,
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
    /// `None` once the client has gone.
    from_client: Option<Incoming>,
    to_server: Outgoing,
    records: Records,
    /// A call for which there was no room.
    next: Option<Decided>,
    scratch: Scratch,
    /// Calls of a chunk: those that pass on, and those for the queue.
    passed: Vec<(u32, Record, u64)>,
    queued: Vec<(Item, Queued)>,
    own_replies: Vec<Vec<u8>>,
}

/// A call with its handling.
struct Decided {
    xid: u32,
    record: Record,
    decision: Decision,
}

/// Handling of one call. The numbers are the bytes of a reply.
enum Decision {
    Queue(Item, u64),
    Pass(u64),
    Reply(Vec<u8>),
}

impl Decided {
    /// Bytes of the call and of its reply, as far as they are held.
    fn cost(&self) -> u64 {
        match &self.decision {
            Decision::Queue(_, reply) | Decision::Pass(reply) => self.record.size() as u64 + reply,
            Decision::Reply(reply) => reply.len() as u64,
        }
    }
}

impl CallsTask {
    /// The task of a connection whose records were read so far; `first` is the first one, if it is whole.
    ///
    /// # Errors
    /// Fails for a message that is no call.
    pub fn new(
        shared: Arc<Shared>,
        connection: Arc<Connection>,
        target: Target,
        from_client: Incoming,
        to_server: Outgoing,
        (records, first): (Records, Option<Record>),
    ) -> Result<CallsTask, End> {
        let mut task = CallsTask {
            shared,
            connection,
            target,
            from_client: Some(from_client),
            to_server,
            records,
            next: None,
            scratch: Scratch::default(),
            passed: Vec::new(),
            queued: Vec::new(),
            own_replies: Vec::new(),
        };
        task.next = first.map(|record| task.decide(record)).transpose()?;
        Ok(task)
    }

    /// Runs until the connection ends. `Ok` if the other direction ended it.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..TURNS {
            let (need, share) = (self.need(), self.shared.share());
            let (admission, is_spare) = {
                let mut state = self.connection.lock();
                if state.phase == Phase::Closed || state.is_client_gone {
                    return Poll::Ready(Ok(()));
                }
                if state.is_slow {
                    return Poll::Ready(Err(End::Slow));
                }
                state.register(Direction::Calls, context);
                state.take_out(self.to_server.pieces());
                let is_spare = state.spare_permit(Some(need), share);
                (state.admission(need, share), is_spare)
            };
            if is_spare {
                self.shared.release_permit();
            }
            if let Poll::Ready(Err(error)) = self.to_server.poll_flush(context) {
                return Poll::Ready(Err(End::ServerFailed(error)));
            }
            let room = match admission {
                Admission::Room(room) => room,
                Admission::Blocked => return Poll::Pending,
                Admission::NeedsPermit => match self.shared.acquire_permit(&self.connection) {
                    true => continue,
                    false => return Poll::Pending,
                },
            };
            if self.next.is_none() && self.records.is_drained() {
                let Some(from_client) = &mut self.from_client else { return Poll::Ready(Err(End::Client)) };
                match from_client.poll_chunk(context, self.records.missing()) {
                    Poll::Pending => return Poll::Pending,
                    // A client that ended its side is treated like one that is gone, as servers do.
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Client)),
                    Poll::Ready(Ok(chunk)) if chunk.is_empty() => return Poll::Ready(Err(End::Client)),
                    Poll::Ready(Ok(chunk)) => self.records.push(chunk),
                }
            }
            if let Err(end) = self.take_calls(room) {
                return Poll::Ready(Err(end));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// The client has gone: its connection closes. What did not reach the server never does, and what waits never starts.
    /// The connection to the server stays until the other direction ends.
    pub fn leave(&mut self) {
        self.from_client = None;
        (self.next, self.records) = (None, Records::new(0));
        let unsent = self.to_server.len();
        self.to_server.pieces().clear();
        let (withdrawn, number) = (self.connection.leave(unsent), self.connection.number);
        self.shared.end_permit(&self.connection);
        self.shared.with_queue(None, &mut self.scratch, |queue, now| {
            withdrawn.iter().for_each(|running| queue.withdraw(running));
            queue.leave(now, number);
        });
    }

    /// Bytes that the next call needs, as far as they are known.
    fn need(&self) -> u64 {
        match &self.next {
            Some(next) => next.cost(),
            None => (self.records.begun() + self.records.missing()).max(1) as u64,
        }
    }

    /// Takes the whole records of a chunk while there is room: under the lock of the connection once, and under that of
    /// the queue once.
    fn take_calls(&mut self, mut room: Room) -> Result<(), End> {
        let taken = self.take_records(&mut room);
        let waker = {
            let mut state = self.connection.lock();
            if !self.queued.is_empty() || !self.passed.is_empty() {
                state.hold_permit();
            }
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

    /// Takes whole records while there is room.
    fn take_records(&mut self, room: &mut Room) -> Result<(), End> {
        loop {
            let decided = match self.next.take() {
                Some(decided) => decided,
                None => match self.records.next_record()? {
                    Some(record) => self.decide(record)?,
                    None => return Ok(()),
                },
            };
            let cost = decided.cost();
            if !room.take(cost) {
                self.next = Some(decided);
                return Ok(());
            }
            let Decided { xid, record, decision } = decided;
            match decision {
                Decision::Queue(item, _) => {
                    let connection = self.connection.clone();
                    self.queued.push((item, Queued { connection, xid, record, cost }));
                }
                Decision::Pass(_) => self.passed.push((xid, record, cost)),
                Decision::Reply(reply) => self.own_replies.push(reply),
            }
        }
    }

    /// Decides about a call.
    fn decide(&self, record: Record) -> Result<Decided, End> {
        let mut buffer = [0; HEAD];
        let head = record.head(&mut buffer);
        let call = Call::read(head)?;
        let decision = self.decision(&call, head, record.payload());
        Ok(Decided { xid: call.xid, record, decision })
    }

    fn decision(&self, call: &Call, head: &[u8], payload: usize) -> Decision {
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
