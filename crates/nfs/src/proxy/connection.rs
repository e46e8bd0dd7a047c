//! A connection of a client and its own connection to the server: how calls go to the server, and how it ends.
//!
//! A client that goes leaves its requests at the server, which works on them. They keep their places at the device until
//! the server has answered, so nobody gets more of the device than the caps allow by closing its connections.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use leeward_fabric::Nanos;

use super::room::Permit;
use super::state::{Direction, Pending, Phase, State};
use crate::queue::{ConnectionNumber, Running};
use crate::rpc::Record;

/// A connection of a client and its own connection to the server.
pub struct Connection {
    /// Index of the export.
    pub export: usize,
    /// Number in the queue.
    pub number: ConnectionNumber,
    state: Mutex<State>,
}

impl Connection {
    /// A connection without calls.
    pub fn new(export: usize, number: ConnectionNumber) -> Connection {
        Connection { export, number, state: Mutex::default() }
    }

    /// The state. A panic of a task that held the lock ends its connection alone.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call from the queue goes to the server. Returns the waker of the task that sends it, unless that task is the
    /// caller.
    ///
    /// # Errors
    /// Returns the request if the client has gone.
    pub fn send(
        &self,
        xid: u32,
        record: Record,
        pending: Pending,
        by_its_task: bool,
    ) -> Result<Option<Waker>, Option<Running>> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return Err(pending.running);
        }
        state.send(xid, record, pending);
        Ok(if by_its_task { None } else { state.take_waker(Direction::Calls) })
    }

    /// The client is gone, as its direction of replies knows. The task of calls, which knows what it has sent, then calls
    /// [`Connection::leave`].
    pub fn client_gone(&self) {
        let waker = {
            let mut state = self.lock();
            state.is_client_gone = true;
            state.take_waker(Direction::Calls)
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// A large call that has been read since before `limit` takes too long: others wait for its permit.
    pub fn end_slow_call(&self, limit: Nanos) {
        let waker = {
            let mut state = self.lock();
            if !matches!(state.permit(), Permit::Reading(since) if *since < limit) {
                return;
            }
            state.is_slow = true;
            state.take_waker(Direction::Calls)
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// The client goes. Calls that are not wholly at the server never get there: the client sends them again over another
    /// connection, and an earlier write must not come after a later one. The others keep their places; the connection
    /// closes when the last of them is answered or given up. `unsent` is the number of bytes that the task of calls has
    /// taken and not sent. Returns the requests that do not reach the server.
    pub fn leave(&self, unsent: u64) -> Vec<Running> {
        let (withdrawn, waker) = {
            let mut state = self.lock();
            if state.phase != Phase::Open {
                return Vec::new();
            }
            (state.leave(unsent), state.take_waker(Direction::Replies))
        };
        waker.into_iter().for_each(Waker::wake);
        withdrawn
    }

    /// Closes the connection: both directions end. Returns the requests at the server.
    pub fn close(&self) -> Vec<Running> {
        let (running, wakers) = {
            let mut state = self.lock();
            (state.close(), [state.take_waker(Direction::Calls), state.take_waker(Direction::Replies)])
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
        running
    }

    /// Requests that have been at the server since before `limit`. Their places are free; a late reply still passes on.
    pub fn take_unanswered(&self, limit: Nanos) -> Vec<Running> {
        let (running, waker) = {
            let mut state = self.lock();
            let running = state.take_unanswered(limit);
            let is_closed = state.phase == Phase::Closed;
            (running, if is_closed { state.take_waker(Direction::Replies) } else { None })
        };
        waker.into_iter().for_each(Waker::wake);
        running
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bytes::Bytes;
    use leeward_shaping::{Caps, Order};
    use leeward_traces::Kind;

    use super::*;
    use crate::queue::{Item, Queue};

    /// A record of this number of bytes.
    fn record(size: usize) -> Record {
        let mut records = crate::rpc::Records::new(1 << 20);
        let mark = (size as u32 - 4) | 1 << 31;
        records.push(Bytes::from([&mark.to_be_bytes()[..], &vec![7; size - 4]].concat()));
        records.next_record().unwrap().unwrap()
    }

    /// Requests at a server.
    fn requests<const COUNT: usize>() -> (Queue<()>, [Running; COUNT]) {
        let mut queue = Queue::new(Order::Fifo, Caps::NONE, None, vec!["nas:/vol".to_owned()], None).unwrap();
        let connection = queue.open("10.0.0.1".parse().unwrap(), 0);
        let running = [(); COUNT].map(|()| {
            let item = Item { kind: Kind::Read, size: 4096, place: 0 };
            assert_eq!(queue.arrive(Nanos(0), Nanos(0), connection, item, ()), None);
            queue.start(Nanos(7)).unwrap().running
        });
        (queue, running)
    }

    #[test]
    fn calls_with_one_number_are_each_answered_once() {
        let connection = Connection::new(0, 0);
        for _ in 0..3 {
            connection.lock().add_call(10);
            assert!(connection.send(7, record(8), Pending::new(None, 10), true).is_ok());
        }
        let mut state = connection.lock();
        let mut out = VecDeque::new();
        state.take_out(&mut out);
        assert_eq!((out.len(), state.calls(), state.used()), (3, 3, 30));
        for _ in 0..5 {
            assert!(state.answer(7).is_none());
        }
        assert_eq!((state.calls(), state.used()), (0, 0));
    }

    #[test]
    fn a_client_that_goes_keeps_the_places_of_what_the_server_has() {
        let (_queue, running) = requests::<5>();
        let connection = Connection::new(0, 0);
        for (xid, &running) in (0..).zip(&running) {
            connection.lock().add_call(100);
            assert!(connection.send(xid, record(100), Pending::new(Some(running), 100), true).is_ok());
            if xid == 3 {
                connection.lock().take_out(&mut VecDeque::new());
            }
        }
        // Of four calls that the task took, the last one and a part of the third are not sent.
        let mut withdrawn = connection.leave(150);
        withdrawn.sort_unstable_by_key(|one| running.iter().position(|other| one == other));
        assert_eq!(withdrawn, running[2..]);
        assert!(connection.leave(0).is_empty(), "once is enough");
        assert!(connection.send(9, record(8), Pending::new(None, 0), true).is_err());
        assert_eq!(connection.lock().phase, Phase::Leaving);
        assert_eq!(connection.lock().answer(0), Some(running[0]));
        assert_eq!(connection.lock().phase, Phase::Leaving);
        // The server does not answer the other one in time.
        assert!(connection.take_unanswered(Nanos(7)).is_empty());
        assert_eq!(connection.take_unanswered(Nanos(8)), running[1..2]);
        assert_eq!(connection.lock().phase, Phase::Closed);
        assert!(connection.close().is_empty());
    }

    #[test]
    fn a_client_that_goes_with_nothing_at_the_server_closes_its_connection() {
        let connection = Connection::new(0, 0);
        connection.lock().add_call(100);
        assert!(connection.send(1, record(100), Pending::new(None, 100), true).is_ok());
        assert!(connection.leave(0).is_empty());
        assert_eq!(connection.lock().phase, Phase::Closed);
    }

    #[test]
    fn a_closed_connection_sends_nothing() {
        let (_queue, [running]) = requests::<1>();
        let connection = Connection::new(0, 0);
        assert!(connection.send(1, record(8), Pending::new(Some(running), 0), true).is_ok());
        assert_eq!(connection.close(), [running]);
        assert!(connection.send(1, record(8), Pending::new(None, 0), true).is_err());
        let mut out = VecDeque::new();
        connection.lock().take_out(&mut out);
        assert!(out.is_empty() && connection.lock().phase == Phase::Closed);
    }
}
