//! Permits for large messages. A connection may hold its share of the buffer; a message above it needs a permit, of which
//! there are as many as the rest of the buffer has room for. So the memory of a proxy has a limit, however many
//! connections begin a large call or take no replies. With few connections no message is above a share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use leeward_fabric::Nanos;

use super::connection::Connection;
use super::room::Permit;
use super::state::{Direction, Phase};

/// Permits of a proxy. A connection has at most one.
pub struct Permits(Mutex<Inner>);

struct Inner {
    free: usize,
    /// Connections that wait for a permit, the earliest first; none while one is free.
    waiting: VecDeque<Arc<Connection>>,
}

impl Permits {
    /// A number of permits.
    pub fn new(free: usize) -> Permits {
        Permits(Mutex::new(Inner { free, waiting: VecDeque::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a permit; without a free one, false, and its task of calls is woken when it has one.
    pub fn acquire(&self, connection: &Arc<Connection>, now: Nanos) -> bool {
        let mut inner = self.lock();
        let mut state = connection.lock();
        if inner.free > 0 {
            inner.free -= 1;
            *state.permit() = Permit::Reading(now);
            return true;
        }
        if *state.permit() == Permit::None {
            *state.permit() = Permit::Awaited;
            inner.waiting.push_back(connection.clone());
        }
        // It may have got one in the meantime.
        matches!(state.permit(), Permit::Reading(_))
    }

    /// A permit is free: the next connection has it.
    pub fn release(&self, now: Nanos) {
        let waker = self.hand_over(now);
        waker.into_iter().for_each(Waker::wake);
    }

    fn hand_over(&self, now: Nanos) -> Option<Waker> {
        let mut inner = self.lock();
        while let Some(connection) = inner.waiting.pop_front() {
            let mut state = connection.lock();
            if state.phase == Phase::Open && *state.permit() == Permit::Awaited {
                *state.permit() = Permit::Reading(now);
                return state.take_waker(Direction::Calls);
            }
        }
        inner.free += 1;
        None
    }

    /// A connection ends: it waits for no permit, and its own one is free.
    pub fn end(&self, connection: &Arc<Connection>, now: Nanos) {
        let permit = std::mem::take(connection.lock().permit());
        match permit {
            Permit::None => {}
            Permit::Awaited => self.lock().waiting.retain(|other| !Arc::ptr_eq(other, connection)),
            Permit::Reading(_) | Permit::Holding => self.release(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_go_to_those_that_wait_in_order_and_to_none_that_has_gone() {
        let permits = Permits::new(1);
        let connections = [0, 1, 2, 3].map(|number| Arc::new(Connection::new(0, number)));
        let acquired = |at: usize| permits.acquire(&connections[at], Nanos(7));
        assert_eq!([0, 1, 1, 2, 3].map(acquired), [true, false, false, false, false]);
        permits.end(&connections[1], Nanos(8));
        connections[2].close();
        permits.release(Nanos(9));
        assert_eq!(*connections[3].lock().permit(), Permit::Reading(Nanos(9)));
        assert!(acquired(3), "it has one already");
        assert_eq!(*connections[2].lock().permit(), Permit::Awaited);
        permits.end(&connections[2], Nanos(9));
        permits.end(&connections[3], Nanos(9));
        permits.end(&connections[3], Nanos(9));
        assert!(acquired(1) && !acquired(2));
    }
}
