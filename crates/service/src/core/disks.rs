//! Disks that a report has under names which the cluster does not know. The only disk of a host that has one device is taken
//! for that, by the name under which it first came. One that comes alone later under another name, or had others beside it
//! before, is another disk: the boot disk that is left when the one that counts has died.

use std::collections::BTreeMap;

use leeward_fabric::ResourceId;

/// What a report calls the disks of a host that has one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Called {
    /// There is one, of this name.
    Only(String),
    /// There are several.
    Several,
}

/// What the disks of hosts were called first, by their only device.
#[derive(Debug, Default)]
pub(crate) struct Disks(BTreeMap<ResourceId, Called>);

impl Disks {
    /// Whether the disk of a report is the device.
    pub fn is(&mut self, device: ResourceId, called: &Called) -> bool {
        let known = self.0.entry(device).or_insert_with(|| called.clone());
        matches!(called, Called::Only(_)) && *known == *called
    }

    /// What is known.
    pub fn all(&self) -> impl Iterator<Item = (ResourceId, &Called)> {
        self.0.iter().map(|(&device, called)| (device, called))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn called() -> impl Strategy<Value = Called> {
        prop_oneof!["sd[a-c]".prop_map(Called::Only), Just(Called::Several),]
    }

    proptest! {
        /// Whatever reports say of two hosts, in whatever order.
        #[test]
        fn a_device_is_one_disk_for_good_and_none_where_there_were_several_first(
            said in prop::collection::vec((0_u32..2, called()), 1..40),
        ) {
            let mut disks = Disks::default();
            for (at, (host, called)) in said.iter().enumerate() {
                let first = said[..=at].iter().find(|(of, _)| of == host).map(|(_, first)| first);
                let is = disks.is(ResourceId(*host), called);
                prop_assert_eq!(is, first == Some(called) && *called != Called::Several);
            }
        }
    }
}
