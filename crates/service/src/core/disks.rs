//! Disks with names that the cluster does not have. If a host has one device and reports one disk, the disk is that
//! device, under its first reported name. There is no match for a single disk with another name later, or for a host
//! with several disks from the start. Such a disk may be the boot disk that remains after the device failed.

use std::collections::BTreeMap;

use leeward_fabric::ResourceId;

/// Name of the disks of a host with one device, in a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportedDiskName {
    /// One disk, with this name.
    Only(String),
    /// Several disks.
    Several,
}

/// First reported names, by the host's only device.
#[derive(Debug, Default)]
pub(crate) struct Disks(BTreeMap<ResourceId, ReportedDiskName>);

impl Disks {
    /// True if the reported disk is the device.
    pub fn is(&mut self, device: ResourceId, called: &ReportedDiskName) -> bool {
        let known = self.0.entry(device).or_insert_with(|| called.clone());
        matches!(called, ReportedDiskName::Only(_)) && *known == *called
    }

    /// All known names.
    pub fn all(&self) -> impl Iterator<Item = (ResourceId, &ReportedDiskName)> {
        self.0.iter().map(|(&device, called)| (device, called))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn called() -> impl Strategy<Value = ReportedDiskName> {
        prop_oneof!["sd[a-c]".prop_map(ReportedDiskName::Only), Just(ReportedDiskName::Several),]
    }

    proptest! {
        /// Arbitrary reports about two hosts.
        #[test]
        fn the_first_reported_disk_of_a_host_is_its_device(
            said in prop::collection::vec((0_u32..2, called()), 1..40),
        ) {
            let mut disks = Disks::default();
            for (at, (host, called)) in said.iter().enumerate() {
                let first = said[..=at].iter().find(|(of, _)| of == host).map(|(_, first)| first);
                let is = disks.is(ResourceId(*host), called);
                prop_assert_eq!(is, first == Some(called) && *called != ReportedDiskName::Several);
            }
        }
    }
}
