//! A segment that is sent when nothing was heard for a while, so that a loss at the end of a flow is found without the timer
//! (tail loss probe, RFC 8985, section 7).

use leeward_fabric::Nanos;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When it is sent, if nothing is heard until then.
    pub(super) at: Option<Nanos>,
    /// It is to be sent now, whatever the window.
    pub(super) due: bool,
    /// The one that was sent and is not answered.
    underway: Option<Underway>,
}

#[derive(Clone, Copy, Debug)]
struct Underway {
    /// The end of what was sent by then.
    end: u64,
    sent: Nanos,
    /// Whether it was sent before.
    again: bool,
}

impl Probe {
    /// Nothing is to be probed for: losses are known, or all has arrived.
    pub(super) fn stop(&mut self) {
        (self.at, self.due) = (None, false);
    }

    /// Something was sent or heard: the wait begins anew. There is one probe at a time.
    pub(super) fn wait_until(&mut self, at: Nanos) {
        self.at = self.underway.is_none().then_some(at);
        self.due = false;
    }

    /// Its time has come.
    pub(super) fn expire(&mut self) {
        (self.at, self.due) = (None, true);
    }

    pub(super) fn note_sent(&mut self, now: Nanos, end: u64, again: bool) {
        self.due = false;
        self.underway = Some(Underway { end, sent: now, again });
    }

    /// An acknowledgement of new data has come. Returns whether the probe has repaired a loss: the timestamp that is echoed is of
    /// the probe, not of what it repeats.
    pub(super) fn acknowledge(&mut self, cumulative: u64, echo: Nanos) -> bool {
        let Some(underway) = self.underway.take_if(|underway| cumulative >= underway.end) else {
            return false;
        };
        underway.again && echo >= underway.sent
    }
}
