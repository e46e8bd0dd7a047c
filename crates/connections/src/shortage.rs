//! Log lines about a lack of connections: at once, and then at most one in ten seconds, with counts.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

/// Least time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Shortage of connections at one listener.
pub struct Shortage {
    listener: &'static str,
    /// Largest number of connections, for the lines.
    pub limit: usize,
    last: Option<Instant>,
    replaced: u64,
    exhausted: u64,
}

impl Shortage {
    /// No shortage so far.
    pub fn new(listener: &'static str, limit: usize) -> Shortage {
        Shortage { listener, limit, last: None, replaced: 0, exhausted: 0 }
    }

    /// A connection replaces an unauthenticated one.
    pub fn replaced(&mut self) {
        self.replaced += 1;
        self.log();
    }

    /// A connection finds all connections in use by authenticated clients.
    pub fn exhausted(&mut self) {
        self.exhausted += 1;
        self.log();
    }

    /// The system rejects a connection.
    pub fn not_accepted(&mut self, error: &io::Error) {
        if self.is_due() {
            tracing::warn!(
                listener = self.listener,
                %error,
                "connections rejected by the system: raise its limit on open files (LimitNOFILE in the unit)"
            );
        }
    }

    fn log(&mut self) {
        if !self.is_due() {
            return;
        }
        // Fields of a line are evaluated only if its level is on.
        let (replaced, exhausted) = (std::mem::take(&mut self.replaced), std::mem::take(&mut self.exhausted));
        tracing::warn!(
            listener = self.listener,
            limit = self.limit,
            replaced,
            exhausted,
            "connections exhausted: new connections replace unauthenticated ones, and without any of these only \
             health, metrics and administration are available; raise limits.connections if all clients are yours"
        );
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.last.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shortage_is_logged_at_once_and_then_every_ten_seconds() {
        let mut shortage = Shortage::new("main", 4);
        shortage.replaced();
        assert_eq!((shortage.replaced, shortage.exhausted), (0, 0), "the first is logged at once");
        shortage.replaced();
        shortage.exhausted();
        assert_eq!((shortage.replaced, shortage.exhausted), (1, 1), "they wait for the next line");
        shortage.last = shortage.last.and_then(|last| last.checked_sub(PAUSE));
        shortage.exhausted();
        assert_eq!((shortage.replaced, shortage.exhausted), (0, 0));
    }
}
