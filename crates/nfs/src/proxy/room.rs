//! Room of a connection for calls: its share of the buffer, and a permit for a message above it.

use leeward_fabric::Nanos;

/// A permit to hold one message that is larger than the share of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Permit {
    /// The connection has none.
    #[default]
    None,
    /// The connection waits for one.
    Awaited,
    /// It has one for a call that it reads, since this time.
    Reading(Nanos),
    /// It has one for a call without a reply, or for a reply that the client has not taken.
    Holding,
}

/// Decision about the next call of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Calls may be taken.
    Room(Room),
    /// The call needs a permit.
    NeedsPermit,
    /// The call waits until others are answered. The task of calls is woken then.
    Blocked,
}

/// Room for calls. Only the task of calls uses it up, so what it does not take meanwhile is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    /// Number of calls.
    pub calls: usize,
    /// Bytes of the share.
    pub bytes: u64,
    /// True if the connection holds nothing and has a permit for one message above its share.
    pub permit: bool,
}

impl Room {
    /// Takes a call of this cost from the room; false if it has none for it.
    pub fn take(&mut self, cost: u64) -> bool {
        let fits = cost <= self.bytes || self.permit;
        if !fits || self.calls == 0 {
            return false;
        }
        *self = Room { calls: self.calls - 1, bytes: self.bytes.saturating_sub(cost), permit: false };
        true
    }
}
