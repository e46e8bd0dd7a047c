//! Receiving side of a connection.

use leeward_fabric::Nanos;

use super::error::SettingsError;
use super::segment::{Ack, BLOCKS, Block, Ecn, Segment};
use super::settings::Settings;

/// A receiver. It acknowledges segments at once or at its [`Receiver::deadline`]. The caller must call
/// [`Receiver::on_timer`] at this deadline. A deadline may equal the current time.
#[derive(Clone, Debug)]
pub struct Receiver {
    every: u32,
    /// Number of segments that are acknowledged one by one after a repeated segment, and how many of them are to come.
    quick: u32,
    quick_left: u32,
    /// Number of segments with which the receiver still raises its window.
    growth_left: u32,
    delay: Nanos,
    /// If true, marks are echoed segment by segment; otherwise an echo continues until the sender reports a reduction.
    exact: bool,
    division: u8,
    /// Next expected byte: all bytes before it have arrived.
    next: u64,
    /// Blocks that have arrived beyond `next`, in order and disjoint.
    beyond: Vec<Block>,
    /// Blocks of the last acknowledgement, the latest first.
    reported: [Block; BLOCKS],
    /// Number of unacknowledged segments, and the deadline of their acknowledgement.
    waiting: u32,
    timer: Option<Nanos>,
    /// Timestamp to echo (RFC 7323, section 4.3) and the division of its segment.
    echo: Nanos,
    sent_in: u8,
    last_acked: u64,
    /// True if the last segment was marked. Without `exact`: if any segment was marked after the sender reported its
    /// reduction.
    marked: bool,
}

impl Receiver {
    /// Creates a receiver at byte 0.
    ///
    /// # Errors
    /// Returns the errors of [`Settings::check`].
    pub fn new(settings: &Settings) -> Result<Receiver, SettingsError> {
        settings.check()?;
        Ok(Receiver {
            every: settings.ack_every,
            quick: settings.quick_acks,
            quick_left: settings.quick_acks,
            growth_left: settings.growth_acks,
            delay: settings.ack_delay,
            exact: settings.control.echoes_exactly(),
            division: 0,
            next: 0,
            beyond: Vec::new(),
            reported: [Block::default(); BLOCKS],
            waiting: 0,
            timer: None,
            echo: Nanos(0),
            sent_in: 0,
            last_acked: 0,
            marked: false,
        })
    }

    /// Sets the division of the network.
    pub fn set_division(&mut self, division: u8) {
        self.division = division;
    }

    /// Bytes that have arrived in order, as the application sees them.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Takes a segment; returns an immediate acknowledgement, if any.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) -> Option<Ack> {
        if segment.start <= self.last_acked {
            (self.echo, self.sent_in) = (segment.sent, segment.division);
        }
        let before = self.note_mark(segment);
        let in_order = segment.start <= self.next && segment.end() > self.next && self.beyond.is_empty();
        if in_order {
            self.next = segment.end();
            self.waiting += 1;
            let is_alone = self.quick_left > 0 || self.growth_left > 0;
            self.growth_left = self.growth_left.saturating_sub(1);
            let due = before.is_none() && (self.waiting >= self.every || is_alone);
            if due {
                return Some(self.acknowledge());
            }
            self.timer = self.timer.or(Some(now.plus(self.delay)));
            return before;
        }
        // Segments that are out of order, repeated, or fill a gap are acknowledged at once (RFC 5681, section
        // 4.2).
        if segment.end() <= self.next {
            self.quick_left = self.quick;
        }
        self.take(Block { start: segment.start, end: segment.end() });
        if before.is_some() {
            self.timer = Some(now);
            return before;
        }
        Some(self.acknowledge())
    }

    /// Takes a segment's mark. With exact echoes, the waiting segments are acknowledged first if their mark differs
    /// (RFC 8257, section 3.2).
    fn note_mark(&mut self, segment: &Segment) -> Option<Ack> {
        let marked = segment.ecn == Ecn::Marked;
        if !self.exact {
            self.marked = marked || (self.marked && !segment.reduced);
            return None;
        }
        let before = (self.waiting > 0 && marked != self.marked).then(|| self.acknowledge());
        self.marked = marked;
        before
    }

    /// Handles the deadline; does nothing before it.
    pub fn on_timer(&mut self, now: Nanos) -> Option<Ack> {
        self.timer.is_some_and(|timer| timer <= now).then(|| self.acknowledge())
    }

    /// Deadline for [`Receiver::on_timer`], if any.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        self.timer
    }

    fn acknowledge(&mut self) -> Ack {
        self.waiting = 0;
        self.quick_left = self.quick_left.saturating_sub(1);
        self.timer = None;
        self.last_acked = self.next;
        Ack {
            cumulative: self.next,
            blocks: self.reported,
            echo: self.echo,
            ece: self.marked,
            sent_in: self.sent_in,
            division: self.division,
        }
    }

    /// Takes a segment that is out of order or repeated, or that fills a gap.
    fn take(&mut self, new: Block) {
        if new.end > self.next && !new.is_empty() {
            self.insert(new);
        }
        if let Some(&front) = self.beyond.first().filter(|block| block.start <= self.next) {
            self.next = front.end;
            self.beyond.remove(0);
        }
        self.choose_blocks(new);
    }

    /// Merges a block with the blocks that it touches.
    fn insert(&mut self, new: Block) {
        let from = self.beyond.partition_point(|block| block.end < new.start);
        let to = self.beyond.partition_point(|block| block.start <= new.end);
        if from == to {
            self.beyond.insert(from, new);
            return;
        }
        let (start, end) = (self.beyond[from].start.min(new.start), self.beyond[to - 1].end.max(new.end));
        self.beyond[from] = Block { start, end };
        self.beyond.drain(from + 1..to);
    }

    /// Chooses the blocks to report: the changed block first, then the blocks reported last (RFC 2018, section 4).
    fn choose_blocks(&mut self, new: Block) {
        let before = self.reported;
        self.reported = [Block::default(); BLOCKS];
        let mut count = 0;
        for block in std::iter::once(new).chain(before) {
            let Some(&whole) = self.holding(block) else { continue };
            if count < BLOCKS && !self.reported[..count].contains(&whole) {
                self.reported[count] = whole;
                count += 1;
            }
        }
    }

    /// Returns the block that contains the first byte of `block`.
    fn holding(&self, block: Block) -> Option<&Block> {
        let at = self.beyond.partition_point(|have| have.end <= block.start);
        self.beyond.get(at).filter(|have| !block.is_empty() && have.start <= block.start)
    }
}
