//! RACK, loss detection by time: a segment is lost if it was sent long enough before a segment that has arrived (RFC
//! 8985, section 6).

use leeward_fabric::Nanos;

use super::rtt::RoundTrip;

/// State of a division's arrived segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rack {
    /// Send time and round trip of the arrived segment that was sent last.
    sent: Nanos,
    trip: Nanos,
    /// Sequence number after the highest arrived segment.
    highest: u64,
    /// True after a segment has arrived later than a segment sent after it.
    reordered: bool,
    /// True after any segment has arrived.
    known: bool,
}

impl Rack {
    /// Records the arrival of a segment that was last sent at `sent`; `again` is true if this was a retransmission.
    pub(super) fn arrive(&mut self, now: Nanos, sent: Nanos, end: u64, again: bool, trips: &RoundTrip) {
        self.reordered |= !again && end < self.highest;
        self.highest = self.highest.max(end);
        let trip = now.since(sent);
        // The acknowledgement comes too soon to be for the retransmission (step 2).
        if again && trips.least().is_none_or(|least| trip < least) {
            return;
        }
        if sent > self.sent || !self.known {
            (self.sent, self.trip, self.known) = (sent, trip, true);
        }
    }

    /// Returns the reordering window of overtaken segments (step 4); `sure` is true if a loss is almost certain.
    pub(super) fn window(&self, trips: &RoundTrip, sure: bool) -> Nanos {
        if !self.reordered && sure {
            return Nanos(0);
        }
        // Before the first round-trip sample, the segment's own trip counts.
        let least = trips.least().unwrap_or(self.trip);
        Nanos(least.0 / 4).min(trips.smoothed().unwrap_or(self.trip))
    }

    /// Returns the deadline of a segment that was last sent at `sent`; `None` if no later segment has
    /// overtaken it (step 5).
    pub(super) fn deadline(&self, sent: Nanos, window: Nanos) -> Option<Nanos> {
        let overtaken = self.known && sent < self.sent;
        overtaken.then(|| sent.plus(self.trip).plus(window))
    }

    /// Returns true if a segment last sent at `sent` is lost by the rule of Linux 4.4: it is lost if a segment sent
    /// more than `least` later has arrived. After segments have come out of order, the later segment must also have
    /// been sent more than a quarter of a round trip later.
    pub(super) fn is_late(&self, sent: Nanos, least: Nanos, trips: &RoundTrip) -> bool {
        let window = match trips.least() {
            Some(trip) if self.reordered => least.max(Nanos(trip.0 / 4)),
            _ => least,
        };
        self.known && sent.plus(window) < self.sent
    }

    /// Returns true if a segment has arrived later than a segment sent after it.
    pub(super) fn is_reordered(&self) -> bool {
        self.reordered
    }

    /// Returns true if no arrived segment can have overtaken a segment sent at this time or later.
    pub(super) fn is_after(&self, sent: Nanos) -> bool {
        !self.known || sent > self.sent
    }
}
