//! Losses by time: what was sent before a segment that has arrived, and long enough before, is lost (RACK, RFC 8985, section 6).

use leeward_fabric::Nanos;

use super::rtt::RoundTrip;

/// What a division knows of the segments that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// The one sent last: when, and how long it took.
    sent: Nanos,
    trip: Nanos,
    /// The end of the highest.
    highest: u64,
    /// One has arrived after a later one.
    reordered: bool,
    /// Whether any has arrived.
    known: bool,
}

impl Rack {
    /// A segment has arrived that was last sent at `sent`; `again` says that this was not the first time.
    pub(super) fn arrive(&mut self, now: Nanos, sent: Nanos, end: u64, again: bool, trips: &RoundTrip) {
        self.reordered |= !again && end < self.highest;
        self.highest = self.highest.max(end);
        let trip = now.since(sent);
        // Too soon to be the answer to what was sent again (step 2).
        if again && trips.least().is_none_or(|least| trip < least) {
            return;
        }
        if sent > self.sent || !self.known {
            (self.sent, self.trip, self.known) = (sent, trip, true);
        }
    }

    /// How long a segment is waited for that others have overtaken (step 4); `sure` says that there is little doubt.
    pub(super) fn window(&self, trips: &RoundTrip, sure: bool) -> Nanos {
        if !self.reordered && sure {
            return Nanos(0);
        }
        // Before a round trip was measured there is the one segment's own.
        let least = trips.least().unwrap_or(self.trip);
        Nanos(least.0 / 4).min(trips.smoothed().unwrap_or(self.trip))
    }

    /// Until when a segment is waited for that was last sent at `sent`; never lost is what nothing later has overtaken (step 5).
    pub(super) fn waits(&self, sent: Nanos, window: Nanos) -> Option<Nanos> {
        let overtaken = self.known && sent < self.sent;
        overtaken.then(|| sent.plus(self.trip).plus(window))
    }

    /// Whether what was last sent at `sent` is lost by the rule of Linux 4.4: what has arrived was sent by more than `least` later, or
    /// by more than a quarter of a round trip once segments have come out of order.
    pub(super) fn is_late(&self, sent: Nanos, least: Nanos, trips: &RoundTrip) -> bool {
        let window = match trips.least() {
            Some(trip) if self.reordered => least.max(Nanos(trip.0 / 4)),
            _ => least,
        };
        self.known && sent.plus(window) < self.sent
    }

    /// Whether what is sent at this time or later can be overtaken by what has arrived.
    pub(super) fn is_after(&self, sent: Nanos) -> bool {
        !self.known || sent > self.sent
    }
}
