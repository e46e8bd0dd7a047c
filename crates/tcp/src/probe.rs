//! Tail loss probe (RFC 8985, section 7): a segment sent after a time without acknowledgements. It reveals a loss at
//! the end of a flow before the retransmission timer expires.

use leeward_fabric::Nanos;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// Time of the probe, if no acknowledgement comes before.
    pub(super) at: Option<Nanos>,
    /// True if the probe must be sent now, regardless of the window.
    pub(super) due: bool,
    /// The probe that was sent and is not acknowledged yet.
    underway: Option<Underway>,
}

#[derive(Clone, Copy, Debug)]
struct Underway {
    /// Sequence number after the last byte sent before the probe.
    end: u64,
    sent: Nanos,
    /// True if the probe repeats bytes that were sent before.
    again: bool,
}

impl Probe {
    /// Cancels the probe: losses are known, or all bytes have arrived.
    pub(super) fn stop(&mut self) {
        (self.at, self.due) = (None, false);
    }

    /// Restarts the wait after a segment or an acknowledgement. At most one probe is in progress.
    pub(super) fn wait_until(&mut self, at: Nanos) {
        self.at = self.underway.is_none().then_some(at);
        self.due = false;
    }

    /// Makes the probe due.
    pub(super) fn expire(&mut self) {
        (self.at, self.due) = (None, true);
    }

    pub(super) fn note_sent(&mut self, now: Nanos, end: u64, again: bool) {
        self.due = false;
        self.underway = Some(Underway { end, sent: now, again });
    }

    /// Handles an acknowledgement of new data. Returns true if the probe repaired a loss: the echoed timestamp is from
    /// the probe, not from the segment that it repeats.
    pub(super) fn acknowledge(&mut self, cumulative: u64, echo: Nanos) -> bool {
        let Some(underway) = self.underway.take_if(|underway| cumulative >= underway.end) else {
            return false;
        };
        underway.again && echo >= underway.sent
    }
}
