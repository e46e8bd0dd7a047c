//! Sending side of a connection.

use leeward_fabric::Nanos;

use super::control::{Acked, Cause};
use super::division::Division;
pub use super::division::State;
use super::error::SettingsError;
use super::probe::Probe;
use super::scoreboard::{Scoreboard, SegmentRef};
use super::segment::{Ack, Ecn, Segment};
use super::settings::{RackUse, Settings};

/// Counters of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Segments sent, including retransmissions.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Recoveries started by selective acknowledgements.
    pub recoveries: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Reductions of the window that were undone.
    pub undone: u64,
}

/// A sender. The caller calls [`Sender::on_ack`] for an acknowledgement and [`Sender::on_timer`] at the
/// [`Sender::deadline`]. After each of these calls, and after [`Sender::write`], the caller calls
/// [`Sender::next_segment`] until it returns `None`.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    divisions: Vec<Division>,
    /// Current division of the network.
    division: u8,
    board: Scoreboard,
    written: u64,
    closed: bool,
    /// Next byte that was never sent.
    next: u64,
    /// All bytes before this number are acknowledged.
    acknowledged: u64,
    timer: Option<Nanos>,
    /// Time at which overtaken segments count as lost.
    reordering: Option<Nanos>,
    probe: Probe,
    /// Number of timer expiries since the last acknowledgement of new data.
    backoff: u32,
    last_sent: Nanos,
    /// Send time of the last segment on the scoreboard. Send times are distinct, so they define the order of segments.
    last_noted: Nanos,
    /// True if the window has held data back since the application last ran out of data.
    window_limited: bool,
    /// True if the next new segment must report the reduction of the window.
    report_reduction: bool,
    /// True if this recovery has retransmitted its last segment.
    rescued: bool,
    counts: Counts,
}

impl Sender {
    /// Creates a sender without data.
    ///
    /// # Errors
    /// Returns the errors of [`Settings::check`].
    pub fn new(settings: Settings) -> Result<Sender, SettingsError> {
        settings.check()?;
        Ok(Sender {
            divisions: vec![Division::new(&settings); usize::from(settings.divisions)],
            settings,
            division: 0,
            board: Scoreboard::default(),
            written: 0,
            closed: false,
            next: 0,
            acknowledged: 0,
            timer: None,
            reordering: None,
            probe: Probe::default(),
            backoff: 0,
            last_sent: Nanos(0),
            last_noted: Nanos(0),
            window_limited: false,
            report_reduction: false,
            rescued: false,
            counts: Counts::default(),
        })
    }

    /// Adds `bytes` to send. Ignored after [`Sender::close`].
    pub fn write(&mut self, bytes: u64) {
        if !self.closed {
            self.written = self.written.saturating_add(bytes);
        }
    }

    /// Ends the writes of the application.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Records that the host accepts no more segments for now. If the window has room, the host limits the sender, and
    /// the window does not.
    pub fn hold_back(&mut self) {
        let division = &self.divisions[usize::from(self.division)];
        self.window_limited &= !division.admits(self.settings.mss);
    }

    /// Sets the division of the network; a number that is too large selects the last division.
    pub fn set_division(&mut self, division: u8) {
        self.division = division.min(self.settings.divisions - 1);
    }

    /// Handles an acknowledgement.
    pub fn on_ack(&mut self, now: Nanos, ack: &Ack) {
        // Bytes that were never sent cannot have arrived.
        if ack.cumulative > self.next {
            return;
        }
        for division in &mut self.divisions {
            division.begin_ack();
        }
        let news = ack.cumulative > self.acknowledged;
        if news {
            self.board.acknowledge(now, ack.cumulative, &mut self.divisions);
            self.acknowledged = ack.cumulative;
            self.sample(now, ack);
        }
        let held = self.board.hold(now, &ack.blocks, &mut self.divisions);
        if news && self.settings.undo {
            self.undo(ack);
        }
        self.advance(now, news, ack.ece);
        self.find_losses(now, news, held);
        self.recover();
        if news {
            self.backoff = 0;
            self.timer = (!self.board.is_empty()).then(|| now.plus(self.timeout()));
            if self.probe.acknowledge(ack.cumulative, ack.echo) && self.is_open() {
                self.divisions[usize::from(self.division)].cut(Cause::Loss);
            }
        }
        if news || held {
            self.wait_for_tail(now);
        }
    }

    /// Undoes a needless reduction of the window. With divisions, the answer to a segment may come on another path, and
    /// its time proves nothing.
    fn undo(&mut self, ack: &Ack) {
        if let [division] = &mut self.divisions[..]
            && division.undo(ack.cumulative, ack.echo, self.board.has_again())
        {
            self.board.find_all(&mut self.divisions);
            self.counts.undone += 1;
        }
    }

    /// Looks for losses after an acknowledgement. `news` is true for new bytes in order, `held` for new blocks.
    fn find_losses(&mut self, now: Nanos, news: bool, held: bool) {
        let settings = &self.settings;
        if settings.rack == RackUse::Always {
            if news || held {
                self.reordering = self.board.find_late(now, &mut self.divisions);
            }
            return;
        }
        if held {
            self.board.find_lost(settings.rack == RackUse::Repairs, &mut self.divisions);
        }
        if settings.rack == RackUse::Repairs && (news || held) {
            self.board.find_late_repairs(settings.rack_window, &mut self.divisions);
        }
    }

    /// Returns true if no division has a known loss.
    fn is_open(&self) -> bool {
        self.divisions.iter().all(|division| division.state == State::Open)
    }

    /// Schedules a probe after two round trips without an acknowledgement. The acknowledgement of a single segment may
    /// come late (RFC 8985, section 7.2).
    fn wait_for_tail(&mut self, now: Nanos) {
        if !self.settings.tail_probe {
            return;
        }
        let trip = self.divisions.iter().filter_map(|division| division.trips.smoothed()).max();
        let (Some(trip), true) = (trip, self.is_open() && !self.board.is_empty() && !self.board.has_gap())
        else {
            return self.probe.stop();
        };
        let late = if self.board.is_single() { self.settings.lone_probe } else { Nanos(0) };
        let at = now.plus(Nanos(2 * trip.0).plus(late).max(self.settings.min_probe));
        // The probe is not later than the retransmission timer.
        self.probe.wait_until(self.timer.map_or(at, |timer| at.min(timer)));
    }

    /// Takes a round-trip sample. If the segment and its acknowledgement were sent in different divisions, the sample
    /// counts for neither (TDTCP, section 3).
    fn sample(&mut self, now: Nanos, ack: &Ack) {
        let index = usize::from(ack.sent_in).min(self.divisions.len() - 1);
        if self.divisions.len() > 1 && ack.sent_in != ack.division {
            return;
        }
        let division = &mut self.divisions[index];
        let window = division.window.size.min(self.next - self.acknowledged);
        // Assumes a sample for every second segment.
        let expected = window.div_ceil(2 * division.window.mss).max(1);
        division.trips.sample(now.since(ack.echo), expected as f64);
    }

    /// Grows, scales and reduces windows, and ends recoveries.
    fn advance(&mut self, now: Nanos, advances: bool, ece: bool) {
        let marks = self.settings.control.is_capable(self.settings.ecn);
        for division in &mut self.divisions {
            let acked = Acked {
                now,
                bytes: division.delivered,
                advances,
                ece,
                cumulative: self.acknowledged,
                next: self.next,
                trip: division.trips.smoothed(),
            };
            self.report_reduction |= division.acknowledge(&acked, self.window_limited, marks);
        }
    }

    fn recover(&mut self) {
        for division in &mut self.divisions {
            if division.state == State::Open && division.lost > 0 {
                division.recover(self.next);
                self.rescued = false;
                self.counts.recoveries += 1;
            }
            if division.state == State::Recovery {
                division.reduce_proportionally();
            }
        }
    }

    /// Retransmission timeout without its backoff. With divisions, the longest return path counts (TDTCP,
    /// section 3).
    fn timeout(&self) -> Nanos {
        let trips = self.divisions.iter().filter_map(|division| {
            let trips = &division.trips;
            trips.smoothed().map(|smoothed| smoothed.plus(trips.margin().max(self.settings.min_timeout)))
        });
        let timeout = trips.max().unwrap_or(self.settings.initial_timeout);
        timeout.clamp(self.settings.min_timeout, self.settings.max_timeout)
    }

    /// Handles the deadline; does nothing before it.
    pub fn on_timer(&mut self, now: Nanos) {
        if self.reordering.is_some_and(|deadline| deadline <= now) {
            for division in &mut self.divisions {
                division.begin_ack();
            }
            self.reordering = self.board.find_late(now, &mut self.divisions);
            self.recover();
        }
        if self.probe.at.is_some_and(|deadline| deadline <= now) {
            self.probe.expire();
            self.timer = Some(now.plus(self.backed_off()));
        }
        if self.timer.is_none_or(|timer| timer > now) {
            return;
        }
        self.reordering = None;
        self.probe.stop();
        self.counts.timeouts += 1;
        for division in &mut self.divisions {
            if division.flying + division.lost > 0 {
                division.time_out(self.next, self.backoff > 0);
            }
        }
        self.board.lose_all(&mut self.divisions);
        self.backoff += 1;
        self.timer = Some(now.plus(self.backed_off()));
    }

    /// Returns the timeout, doubled for each expiry (RFC 6298, section 5.5).
    fn backed_off(&self) -> Nanos {
        let doubled = self.timeout().0.saturating_mul(1 << self.backoff.min(32));
        Nanos(doubled).min(self.settings.max_timeout)
    }

    /// Deadline for [`Sender::on_timer`], if any.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        [self.timer, self.reordering, self.probe.at].into_iter().flatten().min()
    }

    /// Returns the next segment, if it exists and may be sent now.
    pub fn next_segment(&mut self, now: Nanos) -> Option<Segment> {
        self.restart_after_idle(now);
        let division = &self.divisions[usize::from(self.division)];
        if self.board.has_lost() {
            let lost = self.board.next_lost()?;
            if !division.admits(lost.length) {
                self.window_limited = true;
                return None;
            }
            return Some(self.send_again(lost, now));
        }
        let room = self.acknowledged.saturating_add(self.settings.receive_window).saturating_sub(self.next);
        let left = self.written - self.next;
        let length = left.min(u64::from(self.settings.mss)) as u32;
        if length > 0 && u64::from(length) <= room {
            if self.probe.due {
                let segment = self.send_new(length, now);
                self.note_probe(now, false);
                return Some(segment);
            }
            if !division.admits(length) {
                self.window_limited = true;
                return None;
            }
            let segment = self.send_new(length, now);
            self.wait_for_tail(now);
            return Some(segment);
        }
        if let Some(last) = self.board.last().filter(|_| self.probe.due) {
            self.note_probe(now, true);
            return Some(self.send_again(last, now));
        }
        if division.state == State::Recovery && self.divisions.len() == 1 {
            // With loss detection by time, an overtaken segment may still arrive.
            if let Some(overtaken) =
                self.board.next_overtaken().filter(|_| self.settings.rack != RackUse::Always)
            {
                return division.admits(overtaken.length).then(|| self.send_again(overtaken, now));
            }
            if let Some(last) = self.board.last().filter(|_| !self.rescued) {
                self.rescued = division.admits(last.length);
                return self.rescued.then(|| self.send_again(last, now));
            }
        }
        // No segment is left for a probe.
        self.probe.due = false;
        self.window_limited = false;
        None
    }

    fn note_probe(&mut self, now: Nanos, again: bool) {
        self.probe.note_sent(now, self.next, again);
        self.counts.probes += 1;
    }

    fn restart_after_idle(&mut self, now: Nanos) {
        let idle = self.settings.restart_after_idle && self.board.is_empty() && self.next > 0;
        if idle && self.next < self.written && now.since(self.last_sent) > self.timeout() {
            for division in &mut self.divisions {
                division.restart(now, &self.settings);
            }
        }
    }

    fn send_new(&mut self, length: u32, now: Nanos) -> Segment {
        let start = self.next;
        self.next += u64::from(length);
        let noted = self.note_time(now);
        self.board.push(start, length, noted, self.division);
        self.divisions[usize::from(self.division)].note_sent(length);
        let reduced = std::mem::take(&mut self.report_reduction);
        self.send(start, length, now, false, reduced)
    }

    fn send_again(&mut self, segment: SegmentRef, now: Nanos) -> Segment {
        let noted = self.note_time(now);
        self.board.send_again(segment.number, noted, self.division, &mut self.divisions);
        self.divisions.iter_mut().for_each(|division| division.note_repair(now));
        self.counts.retransmitted += 1;
        self.send(segment.start, segment.length, now, true, false)
    }

    fn note_time(&mut self, now: Nanos) -> Nanos {
        self.last_noted = now.max(self.last_noted.plus(Nanos(1)));
        self.last_noted
    }

    fn send(&mut self, start: u64, length: u32, now: Nanos, again: bool, reduced: bool) -> Segment {
        self.last_sent = now;
        self.counts.segments += 1;
        if self.timer.is_none() {
            self.timer = Some(now.plus(self.backed_off()));
        }
        // Retransmissions are not ECN-capable (RFC 3168, section 6.1.5), except for DCTCP.
        let control = self.settings.control;
        let capable = control.is_capable(self.settings.ecn) && (!again || control.echoes_exactly());
        let ecn = if capable { Ecn::Capable } else { Ecn::No };
        Segment { start, sent: now, length, again, ecn, reduced, division: self.division }
    }

    /// Returns true if the application has closed and every byte is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.closed && self.acknowledged == self.written
    }

    /// Bytes that the application has written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes that were sent at least once.
    pub fn sent(&self) -> u64 {
        self.next
    }

    /// Bytes acknowledged in order.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Bytes in flight, as far as the sender knows, over all divisions.
    pub fn in_flight(&self) -> u64 {
        self.divisions.iter().map(|division| division.flying).sum()
    }

    /// Congestion window of the current division, in bytes.
    pub fn window(&self) -> u64 {
        self.divisions[usize::from(self.division)].window.size
    }

    /// Slow start threshold of the current division, in bytes; `u64::MAX` before the first loss.
    pub fn threshold(&self) -> u64 {
        self.divisions[usize::from(self.division)].window.threshold
    }

    /// Loss state of the current division.
    pub fn state(&self) -> State {
        self.divisions[usize::from(self.division)].state
    }

    /// Smoothed round-trip time of the current division, once there is a sample.
    pub fn round_trip(&self) -> Option<Nanos> {
        self.divisions[usize::from(self.division)].trips.smoothed()
    }

    /// DCTCP's estimate of the share of marked bytes (RFC 8257, section 3.3); `None` with other algorithms.
    pub fn marked_share(&self) -> Option<f64> {
        self.divisions[usize::from(self.division)].control.marked_share()
    }

    /// Counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
