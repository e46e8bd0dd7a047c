//! State that the two directions of a connection share: bytes for the server, calls without a reply, and the room that
//! they take.

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Waker};

use bytes::Bytes;
use foldhash::fast::RandomState;
use leeward_fabric::Nanos;

use super::room::{Admission, Permit, Room};
use crate::queue::Running;
use crate::rpc::Record;

/// Most calls of a connection without a reply.
pub const MOST_CALLS: usize = 1024;

/// State of a connection. No lock on it is held while anything waits.
#[derive(Default)]
pub struct State {
    /// Bytes for the server, whole records in order.
    out: VecDeque<Bytes>,
    /// Bytes of all calls that went to the server so far, sent or not.
    sent: u64,
    /// Calls at the server, by their numbers.
    pending: HashMap<u32, Pending, RandomState>,
    /// Number of calls without a reply: those in the queue, and those at the server.
    calls: usize,
    /// Bytes of these calls and of their replies, as far as they are known.
    held: u64,
    /// Bytes of replies that the client has not taken.
    unsent: u64,
    /// Replies of the proxy itself, and their bytes.
    own_replies: Vec<Bytes>,
    own_bytes: u64,
    /// Permit to hold a message that is larger than the share of the connection.
    permit: Permit,
    /// True if no more calls are read until others are answered.
    is_blocked: bool,
    /// State of the connection.
    pub phase: Phase,
    /// True once the client takes no more replies.
    pub is_client_gone: bool,
    /// True once the client has taken too long for a large call.
    pub is_slow: bool,
    /// Number of requests at the server that have their places, once the client has gone.
    left: usize,
    /// Wakers of the task of each direction: calls, replies.
    wakers: [Option<Waker>; 2],
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Calls and replies pass.
    #[default]
    Open,
    /// The client has gone, and requests of it are at the server.
    Leaving,
    /// Both directions end.
    Closed,
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
    /// Bytes that went to the server with it and before it.
    end: u64,
    /// An earlier call with the same number.
    earlier: Option<Box<Pending>>,
}

impl Pending {
    /// A call that goes to the server now.
    pub fn new(running: Option<Running>, cost: u64) -> Pending {
        Pending { running, cost, end: 0, earlier: None }
    }
}

impl State {
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

    /// Number of calls without a reply.
    #[cfg(test)]
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Bytes that the connection holds.
    pub fn used(&self) -> u64 {
        self.held.saturating_add(self.unsent).saturating_add(self.own_bytes)
    }

    /// Counts a call that was read from the client.
    pub fn add_call(&mut self, cost: u64) {
        self.calls += 1;
        self.held = self.held.saturating_add(cost);
    }

    /// Decides whether the next call may be read or taken; `need` is its number of bytes, as far as it is known, and
    /// `share` that of the connection. A permit that is not needed comes back by [`State::spare_permit`].
    pub fn admission(&mut self, need: u64, share: u64) -> Admission {
        let used = self.used();
        let fits = used.saturating_add(need) <= share;
        let has_permit = matches!(self.permit, Permit::Reading(_));
        let holds_nothing = used == 0 && self.calls == 0;
        self.is_blocked = false;
        if self.calls < MOST_CALLS && (fits || (holds_nothing && has_permit)) {
            let (calls, bytes) = (MOST_CALLS - self.calls, share.saturating_sub(used));
            return Admission::Room(Room { calls, bytes, permit: has_permit && holds_nothing });
        }
        if holds_nothing {
            return Admission::NeedsPermit;
        }
        self.is_blocked = true;
        Admission::Blocked
    }

    /// The permit of the connection.
    pub fn permit(&mut self) -> &mut Permit {
        &mut self.permit
    }

    /// The call for which the connection has a permit was taken.
    pub fn hold_permit(&mut self) {
        if matches!(self.permit, Permit::Reading(_)) {
            self.permit = Permit::Holding;
        }
    }

    /// Gives up a permit that is not needed. `reading` is the number of bytes of the call that is being read. Returns true
    /// if there was one.
    pub fn spare_permit(&mut self, reading: Option<u64>, share: u64) -> bool {
        let need = match (self.permit, reading) {
            (Permit::Holding, _) => 0,
            (Permit::Reading(_), Some(need)) => need,
            _ => return false,
        };
        let is_spare = self.used().saturating_add(need) <= share;
        if is_spare {
            self.permit = Permit::None;
        }
        is_spare
    }

    /// A call goes to the server.
    pub fn send(&mut self, xid: u32, record: Record, pending: Pending) {
        self.sent += record.size() as u64;
        let end = self.sent;
        self.out.extend(record.into_pieces());
        self.insert(xid, Pending { end, ..pending });
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
        self.calls = self.calls.saturating_sub(1);
        self.held = self.held.saturating_sub(pending.cost);
        self.ended(usize::from(pending.running.is_some()));
        pending.running
    }

    /// Requests of a client that has gone have ended; with the last one, the connection closes.
    fn ended(&mut self, count: usize) {
        if self.phase == Phase::Leaving {
            self.left = self.left.saturating_sub(count);
            if self.left == 0 {
                self.phase = Phase::Closed;
            }
        }
    }

    /// The client goes; see [`super::connection::Connection::leave`].
    pub fn leave(&mut self, unsent: u64) -> Vec<Running> {
        let waiting: u64 = self.out.iter().map(|piece| piece.len() as u64).sum();
        let sent = self.sent.saturating_sub(unsent.saturating_add(waiting));
        self.forget_bytes();
        let (mut withdrawn, mut left) = (Vec::new(), 0);
        self.each_pending(|pending| {
            if pending.end > sent {
                withdrawn.extend(pending.running.take());
            }
            left += usize::from(pending.running.is_some());
        });
        (self.left, self.phase) = (left, if left == 0 { Phase::Closed } else { Phase::Leaving });
        withdrawn
    }

    /// Both directions end. Returns the requests at the server.
    pub fn close(&mut self) -> Vec<Running> {
        self.phase = Phase::Closed;
        self.forget_bytes();
        let mut running = Vec::new();
        self.each_pending(|pending| running.extend(pending.running.take()));
        self.pending.clear();
        running
    }

    fn forget_bytes(&mut self) {
        self.out.clear();
        self.own_replies.clear();
        (self.unsent, self.own_bytes) = (0, 0);
    }

    /// Requests that have been at the server since before `limit`, without their places from here on.
    pub fn take_unanswered(&mut self, limit: Nanos) -> Vec<Running> {
        let mut running = Vec::new();
        self.each_pending(|pending| {
            running.extend(pending.running.take_if(|running| running.started() < limit));
        });
        self.ended(running.len());
        running
    }

    fn each_pending(&mut self, mut each: impl FnMut(&mut Pending)) {
        for pending in self.pending.values_mut() {
            let mut next = Some(pending);
            while let Some(pending) = next {
                each(pending);
                next = pending.earlier.as_deref_mut();
            }
        }
    }

    /// Adds a reply of the proxy itself to a call that was read.
    pub fn add_own_reply(&mut self, reply: Vec<u8>) {
        self.own_bytes += reply.len() as u64;
        self.own_replies.push(reply.into());
    }

    /// Replies of the proxy itself. From here on their bytes count as unsent.
    pub fn take_own_replies(&mut self) -> Vec<Bytes> {
        self.unsent = self.unsent.saturating_add(std::mem::take(&mut self.own_bytes));
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

    fn room(state: &mut State, need: u64, share: u64) -> Option<Room> {
        match state.admission(need, share) {
            Admission::Room(room) => Some(room),
            _ => None,
        }
    }

    #[test]
    fn calls_are_taken_until_the_share_is_full() {
        let mut state = State::default();
        let mut own = room(&mut state, 1, 250).unwrap();
        assert!(own.take(100) && own.take(100) && !own.take(100) && own.take(50) && !own.take(1));
        (0..2).for_each(|_| state.add_call(100));
        assert!(room(&mut state, 50, 250).is_some());
        assert_eq!(state.admission(51, 250), Admission::Blocked);
        state.set_unsent(40);
        assert!(room(&mut state, 10, 250).is_some() && room(&mut state, 11, 250).is_none());
        state.add_own_reply(vec![0; 10]);
        assert!(room(&mut state, 1, 250).is_none());
        // They count until the client has taken them.
        assert_eq!(state.take_own_replies().len(), 1);
        assert!(room(&mut state, 1, 250).is_none() && room(&mut state, 1, 251).is_some());
    }

    #[test]
    fn a_connection_has_at_most_a_number_of_calls() {
        let mut state = State::default();
        let mut own = room(&mut state, 1, u64::MAX).unwrap();
        assert_eq!((0..2 * MOST_CALLS).filter(|_| own.take(1)).count(), MOST_CALLS);
        (0..MOST_CALLS).for_each(|_| state.add_call(1));
        assert_eq!(state.admission(1, u64::MAX), Admission::Blocked);
    }

    #[test]
    fn a_call_above_the_share_needs_a_permit_and_holds_nothing_beside_it() {
        let mut state = State::default();
        assert_eq!(state.admission(1001, 1000), Admission::NeedsPermit);
        assert!(!state.spare_permit(Some(1001), 1000));
        *state.permit() = Permit::Reading(Nanos(5));
        assert!(!state.spare_permit(Some(1001), 1000) && !state.spare_permit(None, 1000));
        let mut own = room(&mut state, 1001, 1000).unwrap();
        assert!(own.take(5000) && !own.take(1));
        state.add_call(5000);
        state.hold_permit();
        assert_eq!(state.admission(1, 1000), Admission::Blocked);
        state.answer(7);
        assert!(!state.spare_permit(None, 1000));
        state.send(7, record(), Pending::new(None, 5000));
        state.answer(7);
        state.set_unsent(1001);
        assert!(!state.spare_permit(None, 1000));
        state.set_unsent(1000);
        assert!(state.spare_permit(None, 1000) && !state.spare_permit(None, 1000));
        // One that the call did not need after all.
        *state.permit() = Permit::Reading(Nanos(5));
        state.set_unsent(0);
        assert!(state.spare_permit(Some(1), 1000) && *state.permit() == Permit::None);
    }

    fn record() -> Record {
        let mut records = crate::rpc::Records::new(100);
        records.push(Bytes::from_static(&[0x80, 0, 0, 4, 0, 0, 0, 1]));
        records.next_record().unwrap().unwrap()
    }
}
