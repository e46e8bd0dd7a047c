//! Requests to other cells, on the side that asks: one cell after another, each a few times, until one grants.
//!
//! The state machine has no clock and sends nothing. Its driver sends a request when it says so, and calls again at the
//! time-out.

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::Nanos;

/// An open request.
#[derive(Debug)]
struct Open {
    /// Cells that were asked, the present one last.
    asked: Vec<u32>,
    /// Times that the present cell was asked.
    sent: u32,
    /// Number of the last message of the request; time-outs of earlier ones do not count.
    message: u32,
    began: Nanos,
}

/// State of a request.
#[derive(Debug)]
enum State {
    Open(Open),
    /// This cell has granted it, and the work goes on.
    Granted(u32),
}

/// Meaning of a time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timeout {
    /// The request is over, or was sent again since then.
    Stale,
    /// Ask the same cell once more; the number is that of the message.
    Repeat(u32, u32),
    /// Leave this cell, which may have granted all the same.
    Leave(u32),
}

/// Meaning of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answered {
    /// The cell grants the request, which was first made at this time. The work may start.
    Granted(Nanos),
    /// The cell refuses; ask another one.
    Refused,
    /// A repeated answer: nothing to do.
    Repeated,
    /// The cell grants a request that is over, or that another cell has granted: cancel the grant.
    Unwanted,
}

/// Requests of a cell, by key. Only for look-ups, never iterated.
#[derive(Debug)]
pub(crate) struct Asks {
    states: HashMap<u64, State>,
    /// Times that a cell is asked before it is left.
    repeats: u32,
    /// Number of cells that are asked for a request.
    tries: u32,
}

impl Asks {
    /// Asks at most `tries` cells, each at most `repeats` times.
    pub fn new(repeats: u32, tries: u32) -> Asks {
        Asks { states: HashMap::new(), repeats, tries }
    }

    /// Begins to ask a cell, the first one of this request or the next. Returns the number of the message.
    pub fn ask(&mut self, key: u64, cell: u32, now: Nanos) -> u32 {
        let fresh = || State::Open(Open { asked: Vec::new(), sent: 0, message: 0, began: now });
        let state = self.states.entry(key).or_insert_with(fresh);
        let State::Open(open) = state else { return 0 };
        open.asked.push(cell);
        open.sent = 1;
        open.message += 1;
        open.message
    }

    /// Cells that were asked; `None` if no more may be asked.
    pub fn asked(&self, key: u64) -> Option<&[u32]> {
        match self.states.get(&key) {
            Some(State::Open(open)) if (open.asked.len() as u32) < self.tries => Some(open.asked.as_slice()),
            _ => None,
        }
    }

    /// No answer came in time to this message.
    pub fn time_out(&mut self, key: u64, message: u32) -> Timeout {
        let Some(State::Open(open)) = self.states.get_mut(&key) else { return Timeout::Stale };
        let Some(&cell) = open.asked.last().filter(|_| open.message == message) else {
            return Timeout::Stale;
        };
        if open.sent >= self.repeats {
            return Timeout::Leave(cell);
        }
        open.sent += 1;
        open.message += 1;
        Timeout::Repeat(cell, open.message)
    }

    /// An answer came from a cell.
    pub fn answer(&mut self, key: u64, cell: u32, grants: bool) -> Answered {
        match self.states.get(&key) {
            Some(State::Open(open)) if open.asked.last() == Some(&cell) => {
                let began = open.began;
                if !grants {
                    return Answered::Refused;
                }
                self.states.insert(key, State::Granted(cell));
                Answered::Granted(began)
            }
            Some(State::Granted(granted)) if *granted == cell => Answered::Repeated,
            _ if grants => Answered::Unwanted,
            _ => Answered::Repeated,
        }
    }

    /// Ends a request: no cell grants it, or its work is over.
    pub fn end(&mut self, key: u64) {
        self.states.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos(3);

    #[test]
    fn a_cell_is_asked_again_and_then_left() {
        let mut asks = Asks::new(2, 3);
        assert_eq!(asks.ask(7, 4, NOW), 1);
        assert_eq!(asks.time_out(7, 1), Timeout::Repeat(4, 2));
        assert_eq!(asks.time_out(7, 1), Timeout::Stale);
        assert_eq!(asks.time_out(7, 2), Timeout::Leave(4));
        assert_eq!(asks.asked(7), Some([4].as_slice()));
        assert_eq!(asks.ask(7, 5, Nanos(9)), 3);
        assert_eq!(asks.answer(7, 5, true), Answered::Granted(NOW));
        assert_eq!(asks.time_out(7, 3), Timeout::Stale);
    }

    #[test]
    fn the_number_of_asked_cells_is_limited() {
        let mut asks = Asks::new(1, 2);
        asks.ask(7, 0, NOW);
        assert_eq!(asks.answer(7, 0, false), Answered::Refused);
        assert_eq!(asks.asked(7), Some([0].as_slice()));
        asks.ask(7, 1, NOW);
        assert_eq!(asks.answer(7, 1, false), Answered::Refused);
        assert_eq!(asks.asked(7), None);
        asks.end(7);
        assert_eq!(asks.time_out(7, 2), Timeout::Stale);
    }

    #[test]
    fn a_grant_of_a_cell_that_was_left_is_cancelled_and_a_repeated_one_is_not() {
        let mut asks = Asks::new(1, 3);
        asks.ask(7, 0, NOW);
        assert_eq!(asks.time_out(7, 1), Timeout::Leave(0));
        asks.ask(7, 1, NOW);
        assert_eq!(asks.answer(7, 0, true), Answered::Unwanted);
        assert_eq!(asks.answer(7, 1, true), Answered::Granted(NOW));
        assert_eq!(asks.answer(7, 1, true), Answered::Repeated);
        assert_eq!(asks.answer(7, 0, true), Answered::Unwanted);
        assert_eq!(asks.answer(7, 0, false), Answered::Repeated);
        asks.end(7);
        assert_eq!(asks.answer(7, 1, true), Answered::Unwanted);
    }
}
