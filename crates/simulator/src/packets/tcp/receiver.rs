//! The side that bytes are sent to.

use leeward_fabric::Nanos;

use super::segment::{Ack, BLOCKS, Block, Ecn, Segment};
use super::settings::{Settings, SettingsError};

/// A receiver. It answers segments at once or by its [`Receiver::deadline`], at which [`Receiver::on_timer`] is to be called. A
/// deadline may be at once.
#[derive(Clone, Debug)]
pub struct Receiver {
    every: u32,
    delay: Nanos,
    /// Marks are echoed segment by segment, not until the sender has reacted.
    exact: bool,
    division: u8,
    /// All before this byte has arrived.
    next: u64,
    /// What has arrived beyond it: in order, apart from each other.
    beyond: Vec<Block>,
    /// Blocks as they were told last, the latest first.
    told: [Block; BLOCKS],
    /// Segments that wait for an acknowledgement, and until when.
    waiting: u32,
    timer: Option<Nanos>,
    /// The timestamp to be echoed (RFC 7323, section 4.3) and the division it came in.
    echo: Nanos,
    sent_in: u8,
    last_told: u64,
    /// The last segment was marked; without `exact`: one was since the sender has said that it reacted.
    marked: bool,
}

impl Receiver {
    /// A receiver that nothing has come to.
    ///
    /// # Errors
    /// What [`Settings::check`] finds.
    pub fn new(settings: &Settings) -> Result<Receiver, SettingsError> {
        settings.check()?;
        Ok(Receiver {
            every: settings.ack_every,
            delay: settings.ack_delay,
            exact: settings.control.echoes_exactly(),
            division: 0,
            next: 0,
            beyond: Vec::new(),
            told: [Block::default(); BLOCKS],
            waiting: 0,
            timer: None,
            echo: Nanos(0),
            sent_in: 0,
            last_told: 0,
            marked: false,
        })
    }

    /// The network has changed to another division.
    pub fn set_division(&mut self, division: u8) {
        self.division = division;
    }

    /// How many bytes have arrived in order: what the application has.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Takes a segment; returns what is answered at once.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) -> Option<Ack> {
        if segment.start <= self.last_told {
            (self.echo, self.sent_in) = (segment.sent, segment.division);
        }
        let before = self.note_mark(segment);
        let in_order = segment.start <= self.next && segment.end() > self.next && self.beyond.is_empty();
        if in_order {
            self.next = segment.end();
            self.waiting += 1;
            let due = before.is_none() && self.waiting >= self.every;
            if due {
                return Some(self.answer());
            }
            self.timer = self.timer.or(Some(now.plus(self.delay)));
            return before;
        }
        // At once what is out of order, repeated, or fills a gap (RFC 5681, section 4.2).
        self.take(Block { start: segment.start, end: segment.end() });
        if before.is_some() {
            self.timer = Some(now);
            return before;
        }
        Some(self.answer())
    }

    /// Takes a segment's mark. Where marks are echoed exactly and this one differs from that of segments that wait, these are
    /// answered first (RFC 8257, section 3.2).
    fn note_mark(&mut self, segment: &Segment) -> Option<Ack> {
        let marked = segment.ecn == Ecn::Marked;
        if !self.exact {
            self.marked = marked || (self.marked && !segment.reduced);
            return None;
        }
        let before = (self.waiting > 0 && marked != self.marked).then(|| self.answer());
        self.marked = marked;
        before
    }

    /// The deadline has come; before it this does nothing.
    pub fn on_timer(&mut self, now: Nanos) -> Option<Ack> {
        self.timer.is_some_and(|timer| timer <= now).then(|| self.answer())
    }

    /// When [`Receiver::on_timer`] is to be called, if at all.
    pub fn deadline(&self) -> Option<Nanos> {
        self.timer
    }

    fn answer(&mut self) -> Ack {
        self.waiting = 0;
        self.timer = None;
        self.last_told = self.next;
        Ack {
            cumulative: self.next,
            blocks: self.told,
            echo: self.echo,
            ece: self.marked,
            sent_in: self.sent_in,
            division: self.division,
        }
    }

    /// Takes bytes that are not simply the next ones.
    fn take(&mut self, new: Block) {
        if new.end > self.next && !new.is_empty() {
            self.insert(new);
        }
        if let Some(&front) = self.beyond.first().filter(|block| block.start <= self.next) {
            self.next = front.end;
            self.beyond.remove(0);
        }
        self.tell(new);
    }

    /// Joins a block with those that it touches.
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

    /// Which blocks are told: the one that has changed, then those told last (RFC 2018, section 4).
    fn tell(&mut self, new: Block) {
        let before = self.told;
        self.told = [Block::default(); BLOCKS];
        let mut count = 0;
        for block in std::iter::once(new).chain(before) {
            let Some(&whole) = self.holding(block) else { continue };
            if count < BLOCKS && !self.told[..count].contains(&whole) {
                self.told[count] = whole;
                count += 1;
            }
        }
    }

    /// The block that holds the first byte of another.
    fn holding(&self, block: Block) -> Option<&Block> {
        let at = self.beyond.partition_point(|have| have.end <= block.start);
        self.beyond.get(at).filter(|have| !block.is_empty() && have.start <= block.start)
    }
}
