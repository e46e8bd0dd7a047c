//! Undo of a reduction of the window that was not needed, because no segment was lost (Eifel: RFC 3522 detects it, RFC
//! 4015 is the response). Linux also detects it by reports of repeated segments (RFC 3708), which are left out.

use leeward_fabric::Nanos;

use super::control::Window;

/// A reduction of the window that may turn out to be needless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    /// The window before the reduction.
    before: Window,
    /// Time of the first retransmission since.
    repaired: Option<Nanos>,
}

impl Reduction {
    /// Records the window before its reduction.
    pub(super) fn of(before: Window) -> Reduction {
        Reduction { before, repaired: None }
    }

    /// Records a retransmission.
    pub(super) fn repair(&mut self, now: Nanos) {
        self.repaired.get_or_insert(now);
    }

    /// Scales the window before the reduction with the present one, whose path has changed.
    pub(super) fn rescale(&mut self, factor: f64) {
        self.before = self.before.scaled(factor);
    }

    /// Returns true if an acknowledgement of new bytes answers a segment that was sent before the first retransmission:
    /// the segment that counted as lost has arrived late (RFC 3522, section 3.2). `echo` is the echoed timestamp.
    pub(super) fn is_needless(&self, echo: Nanos) -> bool {
        self.repaired.is_some_and(|repaired| echo < repaired)
    }

    /// Returns the window without the reduction; `now` is the present one.
    pub(super) fn undone(&self, now: Window) -> Window {
        let threshold = now.threshold.max(self.before.threshold);
        Window { size: now.size.max(self.before.size), threshold, ..now }
    }
}
