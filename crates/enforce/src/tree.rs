//! The tree of HTB classes of an interface, and the marks of packets: as wanted, and as the kernel has them.
//!
//! ```text
//! root 7ee0: -- 7ee0:1 the link -- 7ee0:2   all other packets: last
//!                              \-- 7ee0:10  a workload with one bucket
//!                              \-- 7ee0:11 -- 7ee0:12  a workload with two buckets, which hold at once
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use leeward_promises::levels::{LEVELS, class_selector};

use crate::limits::Limit;

/// Major number of the enforcer's root qdisc. Handles that the kernel draws begin at 8000, and scripts count from 1.
pub const HANDLE: u16 = 0x7ee0;
/// Major number of the qdisc of all other packets.
pub const LEAF: u16 = 0x7ee1;
/// Minor number of the class of the link.
pub const LINK: u16 = 0x1;
/// Minor number of the class of all other packets.
pub const OTHERS: u16 = 0x2;
/// First minor number of workloads.
pub const FIRST: u16 = 0x10;
/// Level of best effort, which is the last one.
pub const BEST_EFFORT: u8 = LEVELS;
/// Guarantee of every class but the link's, in bytes per second: the least that HTB takes. A class sends one packet a
/// minute by its guarantee, ahead of its priority.
const GUARANTEE: u64 = 1;
/// Largest frame of Ethernet without its checksum, in bytes.
pub const FRAME: u32 = 1514;
const MICROSECONDS_PER_SECOND: u128 = 1_000_000;
/// Bursts of the link last as long as the kernel's timer may be late: 0.2 ms.
const BURSTS_PER_SECOND: u64 = 5_000;

/// A class of HTB. Rates are in bytes per second, bursts in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Class {
    /// Minor number of the class around it; 0 at the root.
    pub parent: u16,
    /// Rate that it sends ahead of all priorities.
    pub rate: u64,
    /// Burst of that rate.
    pub burst: u32,
    /// Rate up to which it borrows.
    pub ceil: u64,
    /// Burst of the borrowing.
    pub cburst: u32,
    /// Priority, 0 first; only that of a class without children counts, others have 0.
    pub prio: u8,
}

impl Class {
    /// The link of this rate.
    pub fn link(rate: u64) -> Class {
        let burst = (rate / BURSTS_PER_SECOND).clamp(u64::from(2 * FRAME), u64::from(u32::MAX)) as u32;
        let burst = in_microseconds(rate, burst);
        Class { parent: 0, rate, burst, ceil: rate, cburst: burst, prio: 0 }
    }

    /// All other packets on a link of this rate.
    pub fn others(link: u64) -> Class {
        Class::unlimited(link, BEST_EFFORT)
    }

    /// A class of this priority that only the link limits.
    pub fn unlimited(link: u64, prio: u8) -> Class {
        let Class { ceil, cburst, .. } = Class::link(link);
        Class::limited(LINK, Limit { rate: ceil, burst: cburst }, prio)
    }

    /// A class with one token bucket. Its burst is rounded up to whole microseconds, because versions of `tc` such as 6.1
    /// cut the rest off.
    pub fn limited(parent: u16, Limit { rate, burst }: Limit, prio: u8) -> Class {
        Class { parent, rate: GUARANTEE, burst: 1, ceil: rate, cburst: in_microseconds(rate, burst), prio }
    }

    /// True if the classes are the same but for the rounding of bursts: the kernel keeps them as times in steps of 64 ns.
    pub fn is_like(&self, other: &Class) -> bool {
        let is_near =
            |one: u32, other: u32, rate: u64| u64::from(one.abs_diff(other)) <= 2 + rate / 10_000_000;
        let exact = |class: &Class| (class.parent, class.rate, class.ceil, class.prio);
        exact(self) == exact(other)
            && is_near(self.burst, other.burst, self.rate)
            && is_near(self.cburst, other.cburst, self.ceil)
    }
}

/// The least burst of whole microseconds at this rate that is not below `burst`, in bytes; at most the largest number.
fn in_microseconds(rate: u64, burst: u32) -> u32 {
    let (rate, burst) = (u128::from(rate), u128::from(burst));
    let microseconds = (burst * MICROSECONDS_PER_SECOND).div_ceil(rate.max(1));
    (microseconds * rate).div_ceil(MICROSECONDS_PER_SECOND).try_into().unwrap_or(u32::MAX)
}

/// Addresses of packets, both of one family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pair {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
}

/// Class and level of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Minor number of the class.
    pub class: u16,
    /// Level, 0 first.
    pub level: u8,
}

/// Marks by addresses.
pub type Marks = BTreeMap<Pair, Mark>;

/// The enforcer's part of an interface, as the kernel has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// True if the root qdisc is the enforcer's.
    pub is_rooted: bool,
    /// True if packets without a class do not go to the class of all other packets.
    pub misses_default: bool,
    /// Kind of the qdisc of all other packets; `None` for HTB's FIFO.
    pub leaf: Option<String>,
    /// Classes by their minor numbers.
    pub classes: BTreeMap<u16, Class>,
    /// Marks of packets.
    pub marks: Marks,
}

impl State {
    /// Minor numbers of the children of each class.
    pub fn children(&self) -> BTreeMap<u16, Vec<u16>> {
        let mut children: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
        for (&id, class) in &self.classes {
            children.entry(class.parent).or_default().push(id);
        }
        children
    }

    /// Classes from the one below the link's down to `leaf`; `None` if the class is not below the link's.
    pub fn chain(&self, leaf: u16) -> Option<Vec<u16>> {
        let mut chain = vec![leaf];
        let mut class = self.classes.get(&leaf)?;
        while class.parent != LINK {
            // A chain is at most as long as HTB nests; a longer one is a circle of a broken reading.
            if chain.len() > 8 {
                return None;
            }
            chain.push(class.parent);
            class = self.classes.get(&class.parent)?;
        }
        chain.reverse();
        Some(chain)
    }
}

/// The wanted tree of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Rate of the link in bytes per second.
    pub link: u64,
    /// Kind of the qdisc of all other packets; `None` for HTB's FIFO.
    pub leaf: Option<String>,
    /// Workloads in the order of their names.
    pub workloads: Vec<WantedWorkload>,
}

/// The wanted class of a workload, or of several workloads that no address tells apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WantedWorkload {
    /// Names of the workloads.
    pub names: Vec<String>,
    /// Level, 0 first.
    pub level: u8,
    /// Limits, which hold at once; at most [`MOST_BUCKETS`](crate::limits::MOST_BUCKETS).
    pub limits: Vec<Limit>,
    /// Addresses of its packets.
    pub pairs: BTreeSet<Pair>,
}

impl WantedWorkload {
    /// Number of its classes.
    pub fn depth(&self) -> usize {
        self.limits.len().max(1)
    }
}

/// Name of a level's DSCP: class selector 7 for the first level, down to 0 for best effort. As the byte of the IP header
/// it is (7 - level) << 5.
pub fn dscp(level: u8) -> String {
    format!("cs{}", class_selector(level))
}

/// Class as `tc` writes it.
pub fn class_id(minor: u16) -> String {
    format!("{HANDLE:x}:{minor:x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As `tc` 6.1 and the kernel round it: to whole microseconds, and to ticks of 64 ns.
        #[test]
        fn the_burst_of_a_class_is_kept_and_none_is_smaller(rate in 1_u64..20_000_000_000, milliseconds in 0.0_f64..60_000.0) {
            let burst = (rate as f64 * milliseconds / 1e3).min(4e9) as u32;
            let class = Class::limited(LINK, Limit { rate, burst }, 3);
            prop_assert!(class.cburst >= burst);
            prop_assert!(u64::from(class.cburst - burst) <= 1 + rate / 1_000_000);
            let microseconds = u128::from(class.cburst) * MICROSECONDS_PER_SECOND / u128::from(rate);
            let ticks = microseconds * 1000 / 64;
            let kept = (u128::from(rate) * ticks * 64 / 1_000_000_000) as u32;
            prop_assert!(class.is_like(&Class { cburst: kept, ..class }), "{} {kept}", class.cburst);
        }
    }

    #[test]
    fn levels_have_the_class_selectors_of_the_thesis() {
        let names: Vec<String> = (0..=BEST_EFFORT).map(dscp).collect();
        assert_eq!(names, ["cs7", "cs6", "cs5", "cs4", "cs3", "cs2", "cs1", "cs0"]);
    }

    #[test]
    fn bursts_may_differ_by_the_kernels_rounding_and_rates_not_at_all() {
        let class = Class::limited(LINK, Limit { rate: 1_250_000_000, burst: 100_000 }, 3);
        assert!(class.is_like(&Class { cburst: 99_920, ..class }));
        assert!(!class.is_like(&Class { cburst: 99_000, ..class }));
        assert!(!class.is_like(&Class { ceil: class.ceil + 1, ..class }));
        assert!(!class.is_like(&Class { prio: 2, ..class }));
        assert!(!class.is_like(&Class { parent: FIRST, ..class }));
    }

    #[test]
    fn the_burst_of_a_link_is_0_2_ms_and_at_least_two_frames() {
        assert_eq!(Class::link(1_250_000_000).burst, 250_000);
        assert_eq!(Class::link(25_000_000).burst, 5_000);
        assert_eq!(Class::link(1_000_000).burst, 3_028);
    }

    #[test]
    fn a_chain_begins_below_the_link_and_a_circle_is_none() {
        let limit = Limit { rate: 1, burst: 1 };
        let mut state = State::default();
        state.classes.insert(0x10, Class::limited(LINK, limit, 0));
        state.classes.insert(0x11, Class::limited(0x10, limit, 0));
        assert_eq!(state.chain(0x11), Some(vec![0x10, 0x11]));
        assert_eq!(state.chain(0x12), None);
        state.classes.insert(0x10, Class::limited(0x11, limit, 0));
        assert_eq!(state.chain(0x11), None);
    }
}
