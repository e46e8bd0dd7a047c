//! Envelope of a stream of arrivals: the largest work in an interval of each length. The envelope contains only the
//! lengths that determine the r-b curve at some rate.
//!
//! C(i) is the total work of the arrivals up to and including i. Arrivals i to j bring C(j) - C(i-1) of work in t_j -
//! t_i seconds: the difference between a point after an arrival and a point before an arrival. The r-b curve is the
//! maximum of C(j) - C(i-1) - r (t_j - t_i) over i <= j. Only the upper hull of these differences is therefore needed.
//! The arrivals are divided into two halves. Every i of the earlier half pairs with every j of the later half, so the
//! hulls of the halves give the hull of these differences in linear time. Then each half is solved in the same way,
//! unless the current envelope already covers this half. The total is O(n log n) steps.
//!
//! Arrivals are processed in blocks. A long trace therefore needs little memory: one block, the lower hull of the
//! points before the block, and the current envelope. The hulls of a trace of a million requests have tens to hundreds
//! of points.

use super::hull::{Hull, HullBuilder, Point, differences, lower_hull, rising_hull};

/// Minimum number of arrivals per block. A block is larger if the hull of the points before it has more points. The
/// result does not depend on the size of blocks; 1024 arrivals fit the cache.
const BLOCK: usize = 1024;

/// All work at one moment, with the total work before and after it.
struct Moment {
    at: f64,
    work: f64,
    before: f64,
    after: f64,
}

/// Accepts moments in order of time and maintains their envelope.
#[derive(Default)]
pub(crate) struct Envelope {
    block: Vec<Moment>,
    before: Vec<Point>,
    envelope: HullBuilder,
    total: Sum,
}

/// A sum whose rounding error does not grow with the number of terms (Neumaier).
#[derive(Clone, Copy, Default)]
struct Sum {
    high: f64,
    low: f64,
}

impl Moment {
    fn start(&self) -> Point {
        Point { x: self.at, y: self.before }
    }

    fn end(&self) -> Point {
        Point { x: self.at, y: self.after }
    }
}

impl Sum {
    fn add(&mut self, term: f64) {
        let sum = self.high + term;
        self.low += if self.high >= term { (self.high - sum) + term } else { (term - sum) + self.high };
        self.high = sum;
    }

    fn value(self) -> f64 {
        self.high + self.low
    }
}

impl Envelope {
    /// Adds `work` at the time `at`, in seconds, which must not be before the last added time.
    pub fn push(&mut self, at: f64, work: f64) {
        if work == 0.0 {
            return;
        }
        let before = self.total.value();
        self.total.add(work);
        let after = self.total.value();
        match self.block.last_mut() {
            Some(last) if last.at == at => {
                last.work += work;
                last.after = after;
            }
            _ => {
                if self.block.len() >= BLOCK.max(self.before.len()) {
                    self.merge_block();
                }
                self.block.push(Moment { at, work, before, after });
            }
        }
    }

    /// Total work so far.
    pub fn total(&self) -> f64 {
        self.total.value()
    }

    /// The hull of the points (length in seconds, largest work in an interval of this length). It starts at 0 seconds
    /// and rises, with strictly decreasing slopes. Without arrivals it is a single point of zero work.
    pub fn finish(mut self) -> Hull {
        self.merge_block();
        self.envelope.finish()
    }

    /// Merges the block into the envelope, and into the hull of the points before the next block.
    fn merge_block(&mut self) {
        let largest = self.block.iter().map(|moment| moment.work).fold(0.0, f64::max);
        self.envelope.cover(&[Point { x: 0.0, y: largest }]);
        let mut scratch = Scratch::default();
        rising_hull(self.block.iter().map(Moment::end), &mut scratch.after);
        scratch.cross(&self.before, &mut self.envelope);
        cover_pairs(&self.block, &mut scratch, &mut self.envelope);
        lower_hull(
            self.before.drain(..).chain(self.block.drain(..).map(|moment| moment.start())),
            &mut scratch.before,
        );
        self.before = scratch.before;
    }
}

/// Reusable buffers for the hulls of two halves and their differences.
#[derive(Default)]
struct Scratch {
    before: Vec<Point>,
    after: Vec<Point>,
    difference_hull: Vec<Point>,
}

impl Scratch {
    /// Raises the envelope to cover the differences between the points of `after` and `before`.
    fn cross(&mut self, before: &[Point], envelope: &mut HullBuilder) {
        self.difference_hull.clear();
        differences(before, &self.after, &mut self.difference_hull);
        envelope.cover(&self.difference_hull);
    }
}

/// Raises the envelope to cover all pairs of these moments.
fn cover_pairs(moments: &[Moment], scratch: &mut Scratch, envelope: &mut HullBuilder) {
    if moments.len() < 2 || is_covered(moments, envelope) {
        return;
    }
    let (early, late) = moments.split_at(moments.len() / 2);
    let mut before = std::mem::take(&mut scratch.before);
    lower_hull(early.iter().map(Moment::start), &mut before);
    rising_hull(late.iter().map(Moment::end), &mut scratch.after);
    scratch.cross(&before, envelope);
    scratch.before = before;
    cover_pairs(early, scratch, envelope);
    cover_pairs(late, scratch, envelope);
}

/// True if no pair of these moments (at least two) is above the envelope. For most halves the recursion ends with this
/// test. The answer is exact if the envelope is straight over the lengths that occur. Otherwise the test uses a
/// straight line below the envelope, so the answer may be false although no pair is above the envelope.
fn is_covered(moments: &[Moment], envelope: &HullBuilder) -> bool {
    let (first, last) = (&moments[0], &moments[moments.len() - 1]);
    let shortest = moments.windows(2).map(|pair| pair[1].at - pair[0].at).fold(f64::INFINITY, f64::min);
    let longest = last.at - first.at;
    let (from, to) = (envelope.at(shortest), envelope.at(longest));
    let rate = if longest > shortest { (to - from) / (longest - shortest) } else { 0.0 };
    // The maximum of work minus rate x length over all pairs, compared with the value of the straight line.
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for moment in moments {
        let drained = rate * (moment.at - first.at);
        most = most.max((moment.after - first.before) - drained - least);
        least = least.min((moment.before - first.before) - drained);
    }
    most <= from - rate * shortest
}
