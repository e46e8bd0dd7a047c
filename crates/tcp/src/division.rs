//! Divisions of a sender: one state per kind of path, with a window, round-trip times and a recovery (TDTCP, section
//! 3). A TCP without divisions has a single such state.

use leeward_fabric::Nanos;

use super::control::{Acked, Cause, Running, Window};
use super::rack::Rack;
use super::rtt::RoundTrip;
use super::settings::Settings;
use super::undo::Reduction;

/// Loss state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No known loss.
    Open,
    /// Losses are being repaired (RFC 6675, section 5).
    Recovery,
    /// The retransmission timer has expired and slow start repairs (RFC 5681, section 3.1).
    Timeout,
}

#[derive(Clone, Debug)]
pub(super) struct Division {
    pub(super) window: Window,
    pub(super) control: Running,
    pub(super) trips: RoundTrip,
    pub(super) rack: Rack,
    pub(super) state: State,
    /// Recovery ends when all bytes before this one have arrived.
    pub(super) recovered_at: u64,
    /// Bytes sent in this division that are neither acknowledged nor lost (`pipe`, RFC 6675, section 4).
    pub(super) flying: u64,
    /// Bytes sent in this division that are lost and not sent again.
    pub(super) lost: u64,
    /// Bytes sent in this division that are acknowledged selectively only.
    pub(super) held: u64,
    /// Bytes of this division that the current acknowledgement reports for the first time.
    pub(super) delivered: u64,
    /// Bytes in flight before the current acknowledgement.
    before: u64,
    /// Segments with lower numbers have been checked for losses.
    pub(super) searched: u64,
    /// No mark reduces the window before this byte is acknowledged.
    marks_from: u64,
    /// True after a reduction by a mark, until `marks_from` is acknowledged.
    quiet: bool,
    /// Bytes outstanding at the start of the recovery, delivered in it, and sent in it (`RecoverFS`, `prr_delivered`
    /// and `prr_out` of RFC 6937, section 3).
    recover_fs: u64,
    prr_delivered: u64,
    pub(super) sent: u64,
    /// Reduction of the window since which not all bytes sent before have arrived.
    reduction: Option<Reduction>,
}

impl Division {
    pub(super) fn new(settings: &Settings) -> Division {
        let mss = u64::from(settings.mss);
        Division {
            window: Window { size: mss * u64::from(settings.initial_window), threshold: u64::MAX, mss },
            control: settings.control.start(),
            trips: RoundTrip::default(),
            rack: Rack::default(),
            state: State::Open,
            recovered_at: 0,
            flying: 0,
            lost: 0,
            held: 0,
            delivered: 0,
            before: 0,
            searched: 0,
            marks_from: 0,
            quiet: false,
            recover_fs: 0,
            prr_delivered: 0,
            sent: 0,
            reduction: None,
        }
    }

    /// Returns true if `length` more bytes may be sent. A recovery always sends its first segment, and an empty path
    /// accepts one segment.
    pub(super) fn admits(&self, length: u32) -> bool {
        let first = self.state == State::Recovery && self.sent == 0;
        self.flying + u64::from(length) <= self.window.size || self.flying == 0 || first
    }

    pub(super) fn note_sent(&mut self, length: u32) {
        self.flying += u64::from(length);
        self.sent += u64::from(length);
    }

    /// Bytes sent in the division and not acknowledged cumulatively: FlightSize of RFC 5681.
    fn outstanding(&self) -> u64 {
        self.flying + self.lost + self.held
    }

    /// Prepares for an acknowledgement, before its bytes are counted.
    pub(super) fn begin_ack(&mut self) {
        self.delivered = 0;
        self.before = self.flying;
    }

    /// Returns true if the window was fully used; `window_limited` is true if it has held data back.
    fn is_full(&self, window_limited: bool) -> bool {
        window_limited || (self.window.is_slow_start() && self.window.size < 2 * self.before)
    }

    /// Updates the window, after delivered bytes are counted and before the search for losses. `window_limited` is as
    /// for [`Division::is_full`]. If `marks` is true, an ECN echo reduces the window. Returns true if an echo reduced
    /// it.
    pub(super) fn acknowledge(&mut self, acked: &Acked, window_limited: bool, marks: bool) -> bool {
        self.control.get().observe(acked);
        if self.state != State::Open && acked.cumulative >= self.recovered_at {
            if self.state == State::Recovery {
                self.window.size = self.window.threshold;
            }
            self.state = State::Open;
            self.reduction = None;
            self.rescale(acked);
            return false;
        }
        self.rescale(acked);
        let marked = marks && acked.ece && self.state == State::Open && acked.cumulative > self.marks_from;
        if marked {
            self.mark(acked.next);
        }
        self.quiet &= acked.cumulative <= self.marks_from;
        if self.state == State::Recovery || self.quiet || acked.bytes == 0 {
            return marked;
        }
        // As in Linux, selective acknowledgements let a window grow only if segments come out of order.
        if !acked.advances && !self.rack.is_reordered() {
            return marked;
        }
        if self.is_full(window_limited) {
            self.control.get().grow(&mut self.window, acked);
        } else {
            self.control.get().idle(acked.now);
        }
        false
    }

    /// Applies reTCP's factors. The authors' module scales only where a window may grow, and not during the repair of
    /// losses. A change during the repair takes effect afterwards.
    ///
    /// The threshold of slow start is scaled with the window, as in the program for kernels. If it were not, a window
    /// that grew linearly would return to slow start whenever a circuit ends, and fill the queues at once.
    fn rescale(&mut self, acked: &Acked) {
        if self.state == State::Recovery || acked.bytes == 0 {
            return;
        }
        let Some(factor) = self.control.get().rescale(acked) else { return };
        self.window = self.window.scaled(factor);
        if let Some(reduction) = &mut self.reduction {
            reduction.rescale(factor);
        }
    }

    /// Reduces the window once, without a repair.
    pub(super) fn cut(&mut self, cause: Cause) {
        self.window.threshold = self.control.get().reduce(&self.window, cause);
        self.window.size = self.window.threshold;
    }

    fn mark(&mut self, next: u64) {
        self.cut(Cause::Mark);
        self.marks_from = next;
        self.quiet = true;
    }

    /// Starts a recovery of bytes before `next`, after losses in this division.
    pub(super) fn recover(&mut self, next: u64) {
        self.reduction = Some(Reduction::of(self.window));
        self.window.threshold = self.control.get().reduce(&self.window, Cause::Loss);
        self.state = State::Recovery;
        self.recovered_at = next;
        self.recover_fs = self.outstanding().max(1);
        self.prr_delivered = 0;
        self.sent = 0;
        self.quiet = false;
    }

    /// Sets the window after an acknowledgement in recovery (RFC 6937, section 3).
    pub(super) fn reduce_proportionally(&mut self) {
        self.prr_delivered += self.delivered;
        let threshold = self.window.threshold;
        let more = if self.flying > threshold {
            let share = u128::from(self.prr_delivered) * u128::from(threshold);
            let share = share.div_ceil(u128::from(self.recover_fs)) as u64;
            share.saturating_sub(self.sent)
        } else {
            // Slow start towards the threshold (PRR-SSRB).
            let limit = self.prr_delivered.saturating_sub(self.sent).max(self.delivered) + self.window.mss;
            limit.min(threshold - self.flying)
        };
        self.window.size = self.flying + more;
    }

    /// Handles an expired retransmission timer; `again` is true if it had expired before for the same byte.
    pub(super) fn time_out(&mut self, next: u64, again: bool) {
        if self.state == State::Open {
            self.reduction = Some(Reduction::of(self.window));
        }
        // A recovery has already reduced the threshold for this window.
        if !again && self.state != State::Recovery {
            self.window.threshold = self.control.get().reduce(&self.window, Cause::Timeout);
        }
        self.window.size = self.window.mss;
        self.state = State::Timeout;
        self.recovered_at = next;
        self.quiet = false;
    }

    /// Records a retransmission.
    pub(super) fn note_repair(&mut self, now: Nanos) {
        if let Some(reduction) = &mut self.reduction {
            reduction.repair(now);
        }
    }

    /// Undoes the reduction of the window if an acknowledgement of all bytes before `cumulative` shows that it was needless.
    /// `echo` is the echoed timestamp; `repairing` is true if a retransmission is in flight, whose answer decides then.
    /// Returns true if it did.
    pub(super) fn undo(&mut self, cumulative: u64, echo: Nanos, repairing: bool) -> bool {
        let is_partial = self.state == State::Recovery && cumulative < self.recovered_at;
        let Some(reduction) = self.reduction.filter(|reduction| reduction.is_needless(echo)) else {
            return false;
        };
        if self.state == State::Open || (is_partial && repairing) {
            return false;
        }
        (self.window, self.state, self.reduction) = (reduction.undone(self.window), State::Open, None);
        // Segments that counted as lost are searched again.
        self.searched = 0;
        true
    }

    /// Restarts the window after an idle time (RFC 5681, section 4.1).
    pub(super) fn restart(&mut self, now: Nanos, settings: &Settings) {
        let first = self.window.mss * u64::from(settings.initial_window);
        self.window.size = self.window.size.min(first);
        self.control.get().idle(now);
    }
}
