//! State that the two directions of a connection share: bytes for the server, and calls without a reply.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::Bytes;
use foldhash::fast::RandomState;
use leeward_fabric::Nanos;

use crate::queue::{ConnectionNumber, Running};
use crate::rpc::Record;

/// Most calls of a connection without a reply.
const MOST_CALLS: usize = 1024;

/// A connection of a client and its own connection to the server.
pub struct Connection {
    /// Index of the export.
    pub export: usize,
    /// Number in the queue.
    pub number: ConnectionNumber,
    state: Mutex<State>,
}

/// Changing state of an open connection. No lock is held while anything waits.
pub struct State {
    /// Bytes for the server, whole records in order.
    out: VecDeque<Bytes>,
    /// Calls at the server, by their numbers.
    pending: HashMap<u32, Pending, RandomState>,
    /// Number of calls without a reply: those in the queue, and those at the server.
    calls: usize,
    /// Bytes of these calls and of their replies, as far as they are known.
    held: u64,
    /// Bytes of replies that the client has not taken.
    unsent: u64,
    /// Replies of the proxy itself.
    own_replies: Vec<Bytes>,
    /// True if no more calls are read until others are answered.
    is_blocked: bool,
    is_closed: bool,
    /// Wakers of the task of each direction: calls, replies.
    wakers: [Option<Waker>; 2],
}

/// Directions of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the client to the server.
    Calls,
    /// From the server to the client.
    Replies,
}

/// A call at the server.
#[derive(Debug)]
pub struct Pending {
    /// The request, if it waited in the queue.
    pub running: Option<Running>,
    /// Bytes of the call and of its reply.
    pub cost: u64,
    /// An earlier call with the same number.
    earlier: Option<Box<Pending>>,
}

impl Connection {
    /// A connection without calls.
    pub fn new(export: usize, number: ConnectionNumber) -> Connection {
        let state = State {
            out: VecDeque::new(),
            pending: HashMap::default(),
            calls: 0,
            held: 0,
            unsent: 0,
            own_replies: Vec::new(),
            is_blocked: false,
            is_closed: false,
            wakers: [None, None],
        };
        Connection { export, number, state: Mutex::new(state) }
    }

    /// The state. A panic of a task that held the lock ends its connection alone.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call from the queue goes to the server. Returns the waker of the task that sends it, unless that task is the
    /// caller.
    ///
    /// # Errors
    /// Returns the request if the connection is closed.
    pub fn send(
        &self,
        xid: u32,
        record: Record,
        pending: Pending,
        by_its_task: bool,
    ) -> Result<Option<Waker>, Option<Running>> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(pending.running);
        }
        state.send(xid, record, pending);
        Ok(if by_its_task { None } else { state.take_waker(Direction::Calls) })
    }

    /// Closes the connection: both directions end. Returns the requests at the server.
    pub fn close(&self) -> Vec<Running> {
        let (running, wakers) = {
            let mut state = self.lock();
            state.is_closed = true;
            state.out.clear();
            state.own_replies.clear();
            let mut running = Vec::new();
            for (_, pending) in state.pending.drain() {
                let mut next = Some(Box::new(pending));
                while let Some(pending) = next {
                    running.extend(pending.running);
                    next = pending.earlier;
                }
            }
            (running, [state.take_waker(Direction::Calls), state.take_waker(Direction::Replies)])
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
        running
    }

    /// Requests that have been at the server since before `limit`. Their places are free; a late reply still passes on.
    pub fn take_unanswered(&self, limit: Nanos) -> Vec<Running> {
        let mut state = self.lock();
        let mut running = Vec::new();
        for pending in state.pending.values_mut() {
            let mut next = Some(pending);
            while let Some(pending) = next {
                running.extend(pending.running.take_if(|running| running.started() < limit));
                next = pending.earlier.as_deref_mut();
            }
        }
        running
    }
}

impl Pending {
    /// A call that goes to the server now.
    pub fn new(running: Option<Running>, cost: u64) -> Pending {
        Pending { running, cost, earlier: None }
    }
}

impl State {
    /// True if the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Registers the task of a direction for the next change.
    pub fn register(&mut self, direction: Direction, context: &Context<'_>) {
        let waker = &mut self.wakers[direction as usize];
        match waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
    }

    /// Waker of the task of a direction.
    pub fn take_waker(&mut self, direction: Direction) -> Option<Waker> {
        self.wakers[direction as usize].take()
    }

    /// Counts a call that was read from the client.
    pub fn add_call(&mut self, cost: u64) {
        self.calls += 1;
        self.held = self.held.saturating_add(cost);
    }

    /// True if a further call may be read, with `share` bytes for this connection. Otherwise the task of calls is woken
    /// when others have been answered.
    pub fn may_read(&mut self, share: u64) -> bool {
        let holds_nothing = self.calls == 0 && self.unsent == 0;
        let may_read =
            holds_nothing || (self.calls < MOST_CALLS && self.held.saturating_add(self.unsent) < share);
        self.is_blocked = !may_read;
        may_read
    }

    /// A call goes to the server.
    pub fn send(&mut self, xid: u32, record: Record, pending: Pending) {
        self.out.extend(record.into_pieces());
        self.insert(xid, pending);
    }

    /// Moves the bytes for the server to the end of `out`.
    pub fn take_out(&mut self, out: &mut VecDeque<Bytes>) {
        out.append(&mut self.out);
    }

    fn insert(&mut self, xid: u32, pending: Pending) {
        match self.pending.get_mut(&xid) {
            None => drop(self.pending.insert(xid, pending)),
            Some(known) => {
                let earlier = std::mem::replace(known, pending);
                known.earlier = Some(Box::new(earlier));
            }
        }
    }

    /// A whole reply came. Returns the call's request, if there is one that still has its place at the device.
    pub fn answer(&mut self, xid: u32) -> Option<Running> {
        let mut pending = self.pending.remove(&xid)?;
        if let Some(earlier) = pending.earlier.take() {
            self.pending.insert(xid, *earlier);
        }
        self.calls -= 1;
        self.held = self.held.saturating_sub(pending.cost);
        pending.running
    }

    /// Adds a reply of the proxy itself to a call that was read.
    pub fn add_own_reply(&mut self, reply: Vec<u8>) {
        self.own_replies.push(reply.into());
    }

    /// Replies of the proxy itself.
    pub fn take_own_replies(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.own_replies)
    }

    /// Sets the number of bytes that the client has not taken.
    pub fn set_unsent(&mut self, unsent: u64) {
        self.unsent = unsent;
    }

    /// Waker of the task of calls if that waits for room.
    pub fn take_blocked(&mut self) -> Option<Waker> {
        if self.is_blocked { self.take_waker(Direction::Calls) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection::new(0, 0)
    }

    fn record() -> Record {
        let mut records = crate::rpc::Records::new(100);
        records.push(Bytes::from_static(&[0x80, 0, 0, 4, 0, 0, 0, 1]));
        records.next_record().unwrap().unwrap()
    }

    #[test]
    fn calls_with_one_number_are_each_answered_once() {
        let connection = connection();
        for _ in 0..3 {
            connection.lock().add_call(10);
            assert!(connection.send(7, record(), Pending::new(None, 10), true).is_ok());
        }
        let mut state = connection.lock();
        let mut out = VecDeque::new();
        state.take_out(&mut out);
        assert_eq!((out.len(), state.calls, state.held), (3, 3, 30));
        for _ in 0..5 {
            assert!(state.answer(7).is_none());
        }
        assert_eq!((state.calls, state.held, state.pending.len()), (0, 0, 0));
    }

    #[test]
    fn a_connection_reads_on_when_it_holds_nothing_and_until_its_share_is_full() {
        let connection = connection();
        let mut state = connection.lock();
        assert!(state.may_read(0));
        state.add_call(100);
        assert!(state.may_read(101) && !state.may_read(100));
        state.unsent = 50;
        assert!(state.may_read(151) && !state.may_read(150));
        state.calls = MOST_CALLS;
        assert!(!state.may_read(1000));
    }

    #[test]
    fn a_closed_connection_sends_nothing() {
        let connection = connection();
        assert!(connection.send(1, record(), Pending::new(None, 0), true).is_ok());
        assert!(connection.close().is_empty());
        assert!(connection.send(1, record(), Pending::new(None, 0), true).is_err());
        let mut out = VecDeque::new();
        connection.lock().take_out(&mut out);
        assert!(out.is_empty() && connection.lock().is_closed());
    }
}
