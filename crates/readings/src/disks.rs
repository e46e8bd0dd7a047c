//! Reported disks with names that the cluster does not have. If a host has one device and reports one disk, the disk is
//! that device, under its first reported name. A disk with another name later is not the device, and neither is a disk
//! of a host whose first report had several disks. Such a disk may be the boot disk that remains after the device
//! failed.

use std::collections::BTreeMap;

use leeward_fabric::ResourceId;

/// Disks in a report of a host with one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportedDiskName {
    /// One disk, with this name.
    Only(String),
    /// Several disks.
    Several,
}

/// First reported names, by the host's only device.
#[derive(Debug, Default)]
pub struct Disks(BTreeMap<ResourceId, ReportedDiskName>);

impl Disks {
    /// True if the reported disk is the device. The first reported name is remembered.
    pub fn is_device(&mut self, device: ResourceId, name: &ReportedDiskName) -> bool {
        let first = self.0.entry(device).or_insert_with(|| name.clone());
        matches!(name, ReportedDiskName::Only(_)) && *first == *name
    }

    /// The known names of devices from `first` on and before `end`.
    pub fn between(
        &self,
        first: ResourceId,
        end: ResourceId,
    ) -> impl Iterator<Item = (ResourceId, &ReportedDiskName)> {
        self.0.range(first..end).map(|(&device, name)| (device, name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn disk_name() -> impl Strategy<Value = ReportedDiskName> {
        prop_oneof!["sd[a-c]".prop_map(ReportedDiskName::Only), Just(ReportedDiskName::Several),]
    }

    proptest! {
        /// Arbitrary reports about two hosts.
        #[test]
        fn the_first_reported_disk_of_a_host_is_its_device(
            reports in prop::collection::vec((0_u32..2, disk_name()), 1..40),
        ) {
            let mut disks = Disks::default();
            for (index, (host, name)) in reports.iter().enumerate() {
                let first = reports[..=index].iter().find(|(other, _)| other == host).map(|(_, first)| first);
                let is_device = disks.is_device(ResourceId(*host), name);
                prop_assert_eq!(is_device, first == Some(name) && *name != ReportedDiskName::Several);
            }
        }
    }
}
