//! Scoreboard of a sender's outstanding segments, which decides on losses (RFC 6675, section 4).
//!
//! The scoreboard is a ring in the order of sequence numbers. Segments are numbered from the first segment ever sent,
//! so a number stays valid while the front of the ring moves. Sums by division are updated as segments change, so
//! nothing is recomputed.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

use super::division::{Division, State};
use super::segment::{BLOCKS, Block};

/// Number of later arrivals after which a segment counts as lost (`DupThresh`, RFC 6675, section 2). The RFC counts
/// bytes; the scoreboard counts whole segments.
const LATER: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// In flight, as far as the sender knows.
    Flying,
    /// Lost, and not sent again.
    Lost,
    /// Lost before and in flight again.
    Again,
    /// Acknowledged selectively.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    /// Time of its last transmission.
    at: Nanos,
    length: u32,
    /// Division of its last transmission.
    division: u8,
    fate: Fate,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

/// A sent segment, for retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRef {
    pub(super) number: u64,
    pub(super) start: u64,
    pub(super) length: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    ring: VecDeque<Sent>,
    /// Number of the first segment in the ring.
    first: u64,
    /// Number of lost segments, and a lower bound on the number of the first lost segment.
    lost: u32,
    lost_from: u64,
    /// Number of held segments, and the number after the last of them.
    held: u32,
    held_to: u64,
    /// Number of retransmitted segments in flight.
    again: u32,
    /// Blocks of the last acknowledgement; a repeated block contains nothing new.
    seen: [Block; BLOCKS],
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns true if some segment is missing and a later segment has arrived.
    pub(super) fn has_gap(&self) -> bool {
        self.held > 0
    }

    /// Returns true if exactly one segment is outstanding.
    pub(super) fn is_single(&self) -> bool {
        self.ring.len() == 1
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Adds a segment that is sent for the first time.
    pub(super) fn push(&mut self, start: u64, length: u32, at: Nanos, division: u8) {
        self.ring.push_back(Sent { start, at, length, division, fate: Fate::Flying });
    }

    /// Removes all bytes before `cumulative`, which have arrived.
    pub(super) fn acknowledge(&mut self, now: Nanos, cumulative: u64, divisions: &mut [Division]) {
        while let Some(&sent) = self.ring.front() {
            if sent.start >= cumulative {
                break;
            }
            let arrived = (cumulative.min(sent.end()) - sent.start) as u32;
            let whole = arrived == sent.length;
            let division = &mut divisions[usize::from(sent.division)];
            let bytes = u64::from(arrived);
            match sent.fate {
                Fate::Flying => division.flying -= bytes,
                Fate::Again => {
                    division.flying -= bytes;
                    self.again -= u32::from(whole);
                }
                Fate::Lost => {
                    division.lost -= bytes;
                    self.lost -= u32::from(whole);
                }
                Fate::Held => {
                    division.held -= bytes;
                    self.held -= u32::from(whole);
                }
            }
            if sent.fate != Fate::Held {
                division.delivered += bytes;
                division.rack.arrive(now, sent.at, sent.end(), sent.fate == Fate::Again, &division.trips);
            }
            if whole {
                self.ring.pop_front();
                self.first += 1;
            } else if let Some(front) = self.ring.front_mut() {
                (front.start, front.length) = (cumulative, sent.length - arrived);
            }
        }
    }

    /// Takes the blocks of an acknowledgement. Returns true if they contain anything new.
    pub(super) fn hold(&mut self, now: Nanos, blocks: &[Block; BLOCKS], divisions: &mut [Division]) -> bool {
        let seen = std::mem::replace(&mut self.seen, *blocks);
        let mut news = false;
        for block in blocks {
            if block.is_empty() {
                break;
            }
            // A block of the previous acknowledgement is known; only the bytes outside it are examined.
            let overlap = seen.iter().find(|overlap| {
                !overlap.is_empty() && overlap.start < block.end && block.start < overlap.end
            });
            let overlap = overlap.copied().unwrap_or(Block { start: block.end, end: block.end });
            news |= self.hold_block(now, block.start, block.end.min(overlap.start), divisions);
            news |= self.hold_block(now, block.start.max(overlap.end), block.end, divisions);
        }
        news
    }

    fn hold_block(&mut self, now: Nanos, start: u64, end: u64, divisions: &mut [Division]) -> bool {
        if start >= end {
            return false;
        }
        let mut at = self.ring.partition_point(|sent| sent.start < start);
        let mut news = false;
        while let Some(sent) = self.ring.get_mut(at).filter(|sent| sent.end() <= end) {
            let division = &mut divisions[usize::from(sent.division)];
            let bytes = u64::from(sent.length);
            match sent.fate {
                Fate::Flying => division.flying -= bytes,
                Fate::Again => {
                    division.flying -= bytes;
                    self.again -= 1;
                }
                Fate::Lost => {
                    division.lost -= bytes;
                    self.lost -= 1;
                }
                Fate::Held => {
                    at += 1;
                    continue;
                }
            }
            division.rack.arrive(now, sent.at, sent.end(), sent.fate == Fate::Again, &division.trips);
            sent.fate = Fate::Held;
            division.held += bytes;
            division.delivered += bytes;
            self.held += 1;
            self.held_to = self.held_to.max(self.first + at as u64 + 1);
            news = true;
            at += 1;
        }
        news
    }

    /// Marks segments as lost after enough later arrivals. Only arrivals of the same division count, because packets on
    /// paths of different lengths overtake each other (TDTCP, section 3). With `holes`, all segments before the last
    /// arrival count as arrived (FACK), but only within a division.
    pub(super) fn find_lost(&mut self, holes: bool, divisions: &mut [Division]) {
        let holes = holes && divisions.len() == 1;
        if self.held < LATER && !(holes && self.held > 0) {
            return;
        }
        for (number, division) in divisions.iter_mut().enumerate() {
            let last = match holes {
                true => self.held_to.checked_sub(u64::from(LATER)).filter(|&end| end > self.first),
                false => self.last_of(number, division.searched),
            };
            let Some(end) = last else { continue };
            let from = division.searched.max(self.first);
            division.searched = division.searched.max(end);
            for at in from..end {
                let sent = &mut self.ring[(at - self.first) as usize];
                if sent.fate == Fate::Flying && usize::from(sent.division) == number {
                    lose(sent, division);
                    note_lost(&mut self.lost, &mut self.lost_from, at);
                }
            }
        }
    }

    /// Returns the segment number below which segments of a division are lost, if it is beyond `searched`.
    fn last_of(&self, division: usize, searched: u64) -> Option<u64> {
        let mut left = LATER;
        for number in (searched.max(self.first)..self.held_to).rev() {
            let sent = &self.ring[(number - self.first) as usize];
            if sent.fate == Fate::Held && usize::from(sent.division) == division {
                left -= 1;
                if left == 0 {
                    return Some(number);
                }
            }
        }
        None
    }

    /// Marks segments as lost by time. Returns the time of the next check, if nothing arrives earlier.
    pub(super) fn find_late(&mut self, now: Nanos, divisions: &mut [Division]) -> Option<Nanos> {
        if self.held == 0 && self.again == 0 {
            return None;
        }
        let (enough, single) = (self.held >= LATER, divisions.len() == 1);
        let mut next: Option<Nanos> = None;
        for (at, sent) in self.ring.iter_mut().enumerate() {
            let division = &mut divisions[usize::from(sent.division)];
            match sent.fate {
                Fate::Lost | Fate::Held => continue,
                // All later segments in the ring were sent even later.
                Fate::Flying if single && division.rack.is_after(sent.at) => break,
                Fate::Flying | Fate::Again => {}
            }
            // Arrivals on other paths prove nothing about this one (TDTCP, section 3).
            let enough = enough && (single || division.held >= u64::from(LATER) * division.window.mss);
            let sure = enough || division.state != State::Open;
            let window = division.rack.window(&division.trips, sure);
            let Some(deadline) = division.rack.deadline(sent.at, window) else { continue };
            if deadline > now {
                next = Some(next.map_or(deadline, |next| next.min(deadline)));
                continue;
            }
            self.again -= u32::from(sent.fate == Fate::Again);
            lose(sent, division);
            note_lost(&mut self.lost, &mut self.lost_from, self.first + at as u64);
        }
        next
    }

    /// Marks segments of divisions in recovery as lost, by the rule of Linux 4.4 (see
    /// [`super::rack::Rack::is_late`]).
    pub(super) fn find_late_repairs(&mut self, least: Nanos, divisions: &mut [Division]) {
        let single = divisions.len() == 1;
        if divisions.iter().all(|division| division.state == State::Open) {
            return;
        }
        for (at, sent) in self.ring.iter_mut().enumerate() {
            let division = &mut divisions[usize::from(sent.division)];
            match sent.fate {
                Fate::Lost | Fate::Held => continue,
                // All later segments in the ring were sent even later.
                Fate::Flying if single && division.rack.is_after(sent.at) => break,
                Fate::Flying | Fate::Again => {}
            }
            if division.state == State::Open || !division.rack.is_late(sent.at, least, &division.trips) {
                continue;
            }
            self.again -= u32::from(sent.fate == Fate::Again);
            lose(sent, division);
            note_lost(&mut self.lost, &mut self.lost_from, self.first + at as u64);
        }
    }

    /// Marks all segments that are not held as lost, after the retransmission timer has expired.
    pub(super) fn lose_all(&mut self, divisions: &mut [Division]) {
        for sent in &mut self.ring {
            if matches!(sent.fate, Fate::Flying | Fate::Again) {
                lose(sent, &mut divisions[usize::from(sent.division)]);
                self.lost += 1;
            }
        }
        (self.again, self.lost_from) = (0, self.first);
    }

    /// Returns true if a retransmitted segment is in flight.
    pub(super) fn has_again(&self) -> bool {
        self.again > 0
    }

    /// Counts all lost segments as in flight.
    pub(super) fn find_all(&mut self, divisions: &mut [Division]) {
        for sent in self.ring.iter_mut().filter(|sent| sent.fate == Fate::Lost) {
            let division = &mut divisions[usize::from(sent.division)];
            division.lost -= u64::from(sent.length);
            division.flying += u64::from(sent.length);
            sent.fate = Fate::Flying;
        }
        self.lost = 0;
    }

    /// Returns the first lost segment.
    pub(super) fn next_lost(&mut self) -> Option<SegmentRef> {
        if self.lost == 0 {
            return None;
        }
        let from = (self.lost_from.max(self.first) - self.first) as usize;
        let at = from + self.ring.range(from..).position(|sent| sent.fate == Fate::Lost)?;
        self.lost_from = self.first + at as u64;
        Some(self.reference(at))
    }

    /// Returns the first segment in flight that a later segment has overtaken (rule 3 of `NextSeg`).
    pub(super) fn next_overtaken(&self) -> Option<SegmentRef> {
        let to = self.held_to.saturating_sub(self.first) as usize;
        let at = self.ring.range(..to).position(|sent| sent.fate == Fate::Flying)?;
        Some(self.reference(at))
    }

    /// Returns the last segment, if it is in flight for the first time (rule 4 of `NextSeg`).
    pub(super) fn last(&self) -> Option<SegmentRef> {
        let sent = self.ring.back()?;
        (sent.fate == Fate::Flying).then(|| self.reference(self.ring.len() - 1))
    }

    fn reference(&self, at: usize) -> SegmentRef {
        let sent = &self.ring[at];
        SegmentRef { number: self.first + at as u64, start: sent.start, length: sent.length }
    }

    /// Records the retransmission of a segment.
    pub(super) fn send_again(&mut self, number: u64, at: Nanos, division: u8, divisions: &mut [Division]) {
        let sent = &mut self.ring[(number - self.first) as usize];
        let before = &mut divisions[usize::from(sent.division)];
        if sent.fate == Fate::Lost {
            before.lost -= u64::from(sent.length);
            self.lost -= 1;
        } else {
            before.flying -= u64::from(sent.length);
        }
        self.again += 1;
        (sent.fate, sent.at, sent.division) = (Fate::Again, at, division);
        divisions[usize::from(division)].note_sent(sent.length);
    }
}

/// Counts the segment `number` as lost.
fn note_lost(lost: &mut u32, lost_from: &mut u64, number: u64) {
    *lost_from = if *lost == 0 { number } else { number.min(*lost_from) };
    *lost += 1;
}

fn lose(sent: &mut Sent, division: &mut Division) {
    sent.fate = Fate::Lost;
    division.flying -= u64::from(sent.length);
    division.lost += u64::from(sent.length);
}
