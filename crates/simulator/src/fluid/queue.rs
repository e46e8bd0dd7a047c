//! Which resource is visited next: the one of the lowest level, about.
//!
//! Resources wait in buckets of levels that are at most a 64th of an octave apart, under two layers of bits
//! that tell which buckets are not empty. So to put a resource in or take the lowest one out costs a few
//! instructions, however many wait, and few visits come too early.

use super::members::Resource;

const NONE: u32 = u32::MAX;
const BUCKETS: usize = 4096;
const LAST: usize = BUCKETS - 1;

/// The resources that wait.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The first resource of each bucket.
    heads: Box<[u32; BUCKETS]>,
    /// For each resource that waits, the next one in its bucket.
    next: Vec<u32>,
    /// Which buckets are not empty.
    buckets: Box<[u64; 64]>,
    /// Which groups of 64 buckets are not empty.
    groups: u64,
    /// Exponent and highest bits of the mantissa of the levels in bucket 0; what is below is there, too.
    lowest: u32,
}

impl Queue {
    /// An empty queue for so many resources.
    pub fn new(resources: usize) -> Queue {
        Queue {
            heads: Box::new([NONE; BUCKETS]),
            next: vec![NONE; resources],
            buckets: Box::new([0; 64]),
            groups: 0,
            lowest: 1,
        }
    }

    /// Puts a resource in, if it does not wait already.
    #[inline(always)]
    pub fn push(&mut self, resource: &mut Resource, r: u32) {
        if resource.queued {
            return;
        }
        resource.queued = true;
        let bucket = self.bucket(resource.level);
        self.next[r as usize] = std::mem::replace(&mut self.heads[bucket], r);
        self.buckets[bucket / 64] |= 1 << (bucket % 64);
        self.groups |= 1 << (bucket / 64);
    }

    /// Whether none waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Takes out a resource of the lowest bucket.
    #[inline(always)]
    pub fn pop(&mut self, resources: &mut [Resource]) -> Option<u32> {
        if self.groups == 0 {
            return None;
        }
        let group = self.groups.trailing_zeros() as usize % 64;
        let bit = self.buckets[group].trailing_zeros() as usize % 64;
        let head = &mut self.heads[group * 64 + bit];
        let r = *head;
        resources[r as usize].queued = false;
        *head = self.next[r as usize];
        // Without branches: which way they went could not be predicted.
        self.buckets[group] &= !(u64::from(*head == NONE) << bit);
        self.groups &= !(u64::from(self.buckets[group] == 0) << group);
        Some(r)
    }

    /// By exponent and the six highest bits of the mantissa. Levels beyond the 64 octaves that are told apart
    /// share the bucket at that end: the order of visits is a matter of time, not of the result.
    #[inline(always)]
    fn bucket(&self, level: f64) -> usize {
        (((level.to_bits() >> 46) as u32).saturating_sub(self.lowest) as usize).min(BUCKETS - 1)
    }

    /// Puts the 64 octaves around a level that is beyond them.
    pub fn cover(&mut self, level: f64) {
        if matches!(self.bucket(level), 0 | LAST) && level < f64::INFINITY {
            self.lowest = ((level.to_bits() >> 46) as u32).saturating_sub(BUCKETS as u32 / 2);
        }
    }
}
