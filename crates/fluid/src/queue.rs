//! Queue of resources to visit, approximately by level.
//!
//! Resources wait in buckets. The levels in a bucket are at most a 64th of an octave apart, and two layers of bitmaps
//! mark the non-empty buckets. So inserting a resource or removing the lowest one costs a few instructions, for any
//! number of waiting resources. Few visits come too early.

use super::members::Resource;

const NONE: u32 = u32::MAX;
const BUCKETS: usize = 4096;
const LAST: usize = BUCKETS - 1;

/// Waiting resources.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// First resource of each bucket.
    heads: Box<[u32; BUCKETS]>,
    /// For each waiting resource, the next one in its bucket.
    next: Vec<u32>,
    /// Bitmap of non-empty buckets.
    buckets: Box<[u64; 64]>,
    /// Bitmap of non-empty groups of 64 buckets.
    groups: u64,
    /// Exponent and highest bits of the mantissa of the levels in bucket 0; lower levels share this bucket.
    lowest: u32,
}

impl Queue {
    /// Creates an empty queue for `resources` resources.
    pub fn new(resources: usize) -> Queue {
        Queue {
            heads: Box::new([NONE; BUCKETS]),
            next: vec![NONE; resources],
            buckets: Box::new([0; 64]),
            groups: 0,
            lowest: 1,
        }
    }

    /// Inserts a resource, unless it waits already.
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

    /// Returns true if no resource waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Removes a resource of the lowest bucket.
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
        // The code has no branches, because they would be unpredictable.
        self.buckets[group] &= !(u64::from(*head == NONE) << bit);
        self.groups &= !(u64::from(self.buckets[group] == 0) << group);
        Some(r)
    }

    /// Returns the bucket of a level, by exponent and the six highest bits of the mantissa. Levels outside the 64
    /// distinguished octaves share the bucket at the nearer end. The order of visits affects the time, not the result.
    #[inline(always)]
    fn bucket(&self, level: f64) -> usize {
        (((level.to_bits() >> 46) as u32).saturating_sub(self.lowest) as usize).min(BUCKETS - 1)
    }

    /// Centers the 64 octaves around a level outside them.
    pub fn cover(&mut self, level: f64) {
        if matches!(self.bucket(level), 0 | LAST) && level < f64::INFINITY {
            self.lowest = ((level.to_bits() >> 46) as u32).saturating_sub(BUCKETS as u32 / 2);
        }
    }
}
