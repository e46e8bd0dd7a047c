//! Work of a request at the server's device, and its place there.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::FixedState;
use leeward_fabric::Nanos;
use leeward_traces::device::{Device, Head};
use leeward_traces::{Kind, Request};

use crate::calls::{Access, Operation};

/// Bytes of the range of places that a file gets: 1 TiB. An offset beyond it wraps.
const FILE_RANGE: u64 = 1 << 40;
/// Number of such ranges.
const FILE_RANGES: u64 = 1 << 15;

/// Computes the work of requests, in the order in which they arrive.
#[derive(Clone, Debug)]
pub struct DeviceWork {
    device: Option<Arc<Device>>,
    head: Head,
}

impl DeviceWork {
    /// Work at a device. Without a device, requests have no work.
    pub fn new(device: Option<Arc<Device>>) -> DeviceWork {
        DeviceWork { device, head: Head::default() }
    }

    /// Seconds of service of the next request. A COMMIT counts as a write without payload.
    pub fn seconds(&mut self, kind: Kind, size: u64, place: u64) -> f64 {
        let Some(device) = &self.device else { return 0.0 };
        let request = Request { at: Nanos(0), kind, size, offset: Some(place) };
        // Only a request without a place has no work.
        device.seconds(&mut self.head, &request).unwrap_or(0.0)
    }
}

/// Direction of a call's payload.
pub fn kind(operation: Operation) -> Kind {
    match operation {
        Operation::Read => Kind::Read,
        Operation::Write | Operation::Commit => Kind::Write,
    }
}

/// Place of a request on the volume, in bytes. The place of a file is unknown to a proxy. So each file has a range of
/// its own by a hash of its handle: requests that follow each other within a file have places that do, and requests to
/// two files are far apart, which costs a disk the longest seek.
pub fn place(export: usize, access: &Access<'_>) -> u64 {
    let hash = FixedState::with_seed(export as u64).hash_one(access.file);
    hash % FILE_RANGES * FILE_RANGE + access.offset % FILE_RANGE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(file: &[u8], offset: u64) -> Access<'_> {
        Access { operation: Operation::Read, file, offset, size: 4096 }
    }

    #[test]
    fn requests_that_follow_each_other_in_a_file_do_so_on_the_volume() {
        let place = |file: &str, offset| place(0, &access(file.as_bytes(), offset));
        assert_eq!(place("a", 8192) - place("a", 4096), 4096);
        assert!(place("a", 0).abs_diff(place("b", 0)) >= FILE_RANGE);
        assert!(place("a", u64::MAX) < FILE_RANGE * FILE_RANGES);
    }

    #[test]
    fn work_is_seconds_of_the_device_file() {
        let text = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}]}"#;
        let device = Device::from_text("ssd.json", text).unwrap();
        let mut work = DeviceWork::new(Some(Arc::new(device)));
        assert_eq!(work.seconds(Kind::Read, 4096, 0), 1e-3);
        assert_eq!(work.seconds(Kind::Write, 4096, 0), 2e-3);
        assert_eq!(work.seconds(kind(Operation::Commit), 0, 0), 2e-3);
        assert_eq!(DeviceWork::new(None).seconds(Kind::Read, 4096, 0), 0.0);
    }

    #[test]
    fn a_disk_seeks_between_files_and_not_within_one() {
        let text = "disk:\n  seek: [{distance_bytes: 0, seconds: 0.004}, {distance_bytes: 1000000, seconds: 0.009}]\n  \
                    read_bytes_per_second: 1e8\n  write_bytes_per_second: 1e8\n";
        let device = Device::from_text("disk.yaml", text).unwrap();
        let mut work = DeviceWork::new(Some(Arc::new(device)));
        let mut seconds = |file: &str, offset| {
            work.seconds(Kind::Read, 1_000_000, place(0, &access(file.as_bytes(), offset)))
        };
        let (seek, transfer) = (0.009, 0.01);
        assert_eq!(seconds("a", 0), seek + transfer);
        assert_eq!(seconds("a", 1_000_000), transfer);
        assert_eq!(seconds("b", 0), seek + transfer);
    }
}
