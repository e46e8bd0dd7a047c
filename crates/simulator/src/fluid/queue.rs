//! Which resource settles next: the one of the lowest level, about.

use super::members::Resource;

const NONE: u32 = u32::MAX;
const BUCKETS: usize = 4096;
const LAST: usize = BUCKETS - 1;

/// Resources that wait to be settled, in buckets of levels that differ by a 64th of an octave at most.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// The first resource of each bucket, and for each resource the next one.
    heads: Box<[u32; BUCKETS]>,
    next: Vec<u32>,
    /// Which buckets, and which groups of 64 buckets, are not empty.
    buckets: Box<[u64; 64]>,
    groups: u64,
    /// Exponent and highest bits of the mantissa of the levels in bucket 1.
    lowest: u32,
}

impl Queue {
    pub fn new(resources: usize) -> Queue {
        Queue {
            heads: Box::new([NONE; BUCKETS]),
            next: vec![NONE; resources],
            buckets: Box::new([0; 64]),
            groups: 0,
            lowest: 1,
        }
    }

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

    /// Levels from 2^-32 to 2^32 times the one covered last by exponent and the six highest bits of the mantissa,
    /// all others at the ends. The order of visits is a matter of time, not of the result.
    #[inline(always)]
    fn bucket(&self, level: f64) -> usize {
        (((level.to_bits() >> 46) as u32).saturating_sub(self.lowest) as usize).min(BUCKETS - 1)
    }

    /// Makes sure that levels like this one have buckets of their own.
    pub fn cover(&mut self, level: f64) {
        if matches!(self.bucket(level), 0 | LAST) && level < f64::INFINITY {
            self.lowest = ((level.to_bits() >> 46) as u32).saturating_sub(BUCKETS as u32 / 2);
        }
    }
}

/// The lesser of two numbers that are never NaN, in one instruction.
#[inline(always)]
pub(super) fn least(one: f64, other: f64) -> f64 {
    if one < other { one } else { other }
}
