//! What a sender has outstanding, segment by segment, and which of it is lost (RFC 6675, section 4).
//!
//! A ring in the order of sequence numbers. Segments are numbered from the first that was ever sent, so that a number stays
//! true while the front of the ring moves. Sums are kept by division as segments change, so that nothing is added up anew.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

use super::division::{Division, State};
use super::segment::{BLOCKS, Block};

/// Later segments that have arrived when one is taken to be lost (`DupThresh`, RFC 6675, section 2). Whole segments stand for
/// the bytes that the RFC counts.
const LATER: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// On its way, as far as is known.
    Flying,
    /// Lost, and not sent again.
    Lost,
    /// Lost once and on its way again.
    Again,
    /// Acknowledged selectively.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    /// Its last transmission.
    at: Nanos,
    length: u32,
    /// Of its last transmission.
    division: u8,
    fate: Fate,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

/// A segment that was sent, for who sends it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) number: u64,
    pub(super) start: u64,
    pub(super) length: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    ring: VecDeque<Sent>,
    /// The number of the first in the ring.
    first: u64,
    /// How many are lost, and a number below which none is.
    lost: u32,
    lost_from: u64,
    /// How many are held, and the number after the last.
    held: u32,
    held_to: u64,
    /// How many are on their way again.
    again: u32,
    /// The blocks of the last acknowledgement, which say nothing new.
    seen: [Block; BLOCKS],
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Whether later segments have arrived than one that has not.
    pub(super) fn has_gap(&self) -> bool {
        self.held > 0
    }

    /// Whether one segment alone is outstanding.
    pub(super) fn is_single(&self) -> bool {
        self.ring.len() == 1
    }

    pub(super) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Takes a segment that is sent for the first time.
    pub(super) fn push(&mut self, start: u64, length: u32, at: Nanos, division: u8) {
        self.ring.push_back(Sent { start, at, length, division, fate: Fate::Flying });
    }

    /// All before `cumulative` has arrived.
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

    /// Takes the blocks of an acknowledgement. Returns whether they say anything new.
    pub(super) fn hold(&mut self, now: Nanos, blocks: &[Block; BLOCKS], divisions: &mut [Division]) -> bool {
        let seen = std::mem::replace(&mut self.seen, *blocks);
        let mut news = false;
        for block in blocks {
            if block.is_empty() {
                break;
            }
            // What a block of before holds is known: only what is beside it is looked at.
            let known = seen
                .iter()
                .find(|known| !known.is_empty() && known.start < block.end && block.start < known.end);
            let known = known.copied().unwrap_or(Block { start: block.end, end: block.end });
            news |= self.hold_block(now, block.start, block.end.min(known.start), divisions);
            news |= self.hold_block(now, block.start.max(known.end), block.end, divisions);
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

    /// Finds what is lost because enough later segments have arrived. Only those of the same division count: paths of
    /// different lengths overtake each other (TDTCP, section 3). With `holes`, segments before the last that has arrived count as
    /// if they had (FACK); not between divisions.
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

    /// The number before which segments of a division are lost, if it is beyond `searched`.
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

    /// Finds what is lost because of the time that has passed. Returns when to look again, if
    /// nothing arrives until then.
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
                // All after it were sent later still.
                Fate::Flying if single && division.rack.is_after(sent.at) => break,
                Fate::Flying | Fate::Again => {}
            }
            // Those of other paths say nothing of this one (TDTCP, section 3).
            let enough = enough && (single || division.held >= u64::from(LATER) * division.window.mss);
            let sure = enough || division.state != State::Open;
            let window = division.rack.window(&division.trips, sure);
            let Some(waits) = division.rack.waits(sent.at, window) else { continue };
            if waits > now {
                next = Some(next.map_or(waits, |next| next.min(waits)));
                continue;
            }
            self.again -= u32::from(sent.fate == Fate::Again);
            lose(sent, division);
            note_lost(&mut self.lost, &mut self.lost_from, self.first + at as u64);
        }
        next
    }

    /// Finds what is lost of divisions that repair losses, by the rule of Linux 4.4 (see [`super::rack::Rack::is_late`]).
    pub(super) fn find_late_repairs(&mut self, least: Nanos, divisions: &mut [Division]) {
        let single = divisions.len() == 1;
        if divisions.iter().all(|division| division.state == State::Open) {
            return;
        }
        for (at, sent) in self.ring.iter_mut().enumerate() {
            let division = &mut divisions[usize::from(sent.division)];
            match sent.fate {
                Fate::Lost | Fate::Held => continue,
                // All after it were sent later still.
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

    /// All that is not held is lost: the retransmission timer has expired.
    pub(super) fn lose_all(&mut self, divisions: &mut [Division]) {
        for sent in &mut self.ring {
            if matches!(sent.fate, Fate::Flying | Fate::Again) {
                lose(sent, &mut divisions[usize::from(sent.division)]);
                self.lost += 1;
            }
        }
        (self.again, self.lost_from) = (0, self.first);
    }

    /// The first that is lost.
    pub(super) fn next_lost(&mut self) -> Option<Known> {
        if self.lost == 0 {
            return None;
        }
        let from = (self.lost_from.max(self.first) - self.first) as usize;
        let at = from + self.ring.range(from..).position(|sent| sent.fate == Fate::Lost)?;
        self.lost_from = self.first + at as u64;
        Some(self.known(at))
    }

    /// The first that is on its way and that another has overtaken (rule 3 of `NextSeg`).
    pub(super) fn next_overtaken(&self) -> Option<Known> {
        let to = self.held_to.saturating_sub(self.first) as usize;
        let at = self.ring.range(..to).position(|sent| sent.fate == Fate::Flying)?;
        Some(self.known(at))
    }

    /// The last, if it is on its way for the first time (rule 4 of `NextSeg`).
    pub(super) fn last(&self) -> Option<Known> {
        let sent = self.ring.back()?;
        (sent.fate == Fate::Flying).then(|| self.known(self.ring.len() - 1))
    }

    fn known(&self, at: usize) -> Known {
        let sent = &self.ring[at];
        Known { number: self.first + at as u64, start: sent.start, length: sent.length }
    }

    /// Takes it that a segment is sent again.
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

/// Counts one more that is lost, of the given number.
fn note_lost(lost: &mut u32, lost_from: &mut u64, number: u64) {
    *lost_from = if *lost == 0 { number } else { number.min(*lost_from) };
    *lost += 1;
}

fn lose(sent: &mut Sent, division: &mut Division) {
    sent.fate = Fate::Lost;
    division.flying -= u64::from(sent.length);
    division.lost += u64::from(sent.length);
}
