//! Media of servers: the time that a disk, an SSD or memory takes, with a queue before it and a cache for writes.

use std::collections::VecDeque;

/// Media of a kind.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Medium {
    pub name: String,
    /// Nanoseconds of a byte read, and of a byte written.
    pub read: f64,
    pub write: f64,
    /// Time of an access before its bytes, such as a seek, in nanoseconds.
    pub access: u64,
    /// Number of accesses at once.
    pub parallel: usize,
    /// Processing of an operation by the server, in nanoseconds: of each, and of each byte.
    pub processing: u64,
    pub processing_per_byte: f64,
    /// Bytes of writes that a cache holds until they are on the device. `None`: writes end on the device.
    pub cache: Option<u64>,
}

/// A device of a host.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    /// Times at which the device is free for one more access.
    free: Vec<u64>,
    /// Writes in the cache: the time at which each is on the device, and its bytes.
    cached: VecDeque<(u64, u64)>,
    cached_bytes: u64,
}

impl Medium {
    /// Time that the server processes an operation of this size.
    fn process(&self, bytes: u64) -> u64 {
        self.processing.saturating_add((bytes as f64 * self.processing_per_byte).round() as u64)
    }

    /// Time of an access to the device.
    fn access(&self, bytes: u64, per_byte: f64) -> u64 {
        self.access.saturating_add((bytes as f64 * per_byte).round() as u64)
    }
}

impl Device {
    pub fn new(medium: &Medium) -> Device {
        Device { free: vec![0; medium.parallel.max(1)], cached: VecDeque::new(), cached_bytes: 0 }
    }

    /// Time at which the answer of a read is ready.
    pub fn read(&mut self, medium: &Medium, now: u64, bytes: u64) -> u64 {
        let read = self.serve(now, medium.access(bytes, medium.read));
        read.saturating_add(medium.process(bytes))
    }

    /// Time at which a write is safe: in the cache if that has room, else on the device.
    pub fn write(&mut self, medium: &Medium, now: u64, bytes: u64) -> u64 {
        let processed = now.saturating_add(medium.process(bytes));
        let written = self.serve(processed, medium.access(bytes, medium.write));
        let Some(cache) = medium.cache else { return written };
        while let Some(&(at, flushed)) = self.cached.front() {
            if at > processed {
                break;
            }
            self.cached.pop_front();
            self.cached_bytes -= flushed;
        }
        if self.cached_bytes.saturating_add(bytes) > cache {
            return written;
        }
        self.cached.push_back((written, bytes));
        self.cached_bytes += bytes;
        processed
    }

    /// Serves an access in order of request. Returns its end.
    fn serve(&mut self, now: u64, work: u64) -> u64 {
        let mut earliest = 0;
        for place in 1..self.free.len() {
            if self.free[place] < self.free[earliest] {
                earliest = place;
            }
        }
        let end = now.max(self.free[earliest]).saturating_add(work);
        self.free[earliest] = end;
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(parallel: usize, cache: Option<u64>) -> Medium {
        let name = "disk".to_owned();
        let (processing, processing_per_byte) = (10, 0.5);
        Medium { name, read: 1.0, write: 2.0, access: 1000, parallel, processing, processing_per_byte, cache }
    }

    #[test]
    fn reads_wait_for_those_before_them_and_are_processed_at_once() {
        let medium = medium(1, None);
        let mut disk = Device::new(&medium);
        assert_eq!(disk.read(&medium, 0, 100), 1100 + 60);
        assert_eq!(disk.read(&medium, 0, 100), 2200 + 60);
        assert_eq!(disk.read(&medium, 5000, 100), 6100 + 60);
    }

    #[test]
    fn accesses_at_once_share_nothing() {
        let medium = medium(2, None);
        let mut ssd = Device::new(&medium);
        let ends: Vec<u64> = (0..3).map(|_| ssd.read(&medium, 0, 100)).collect();
        assert_eq!(ends, [1160, 1160, 2260]);
    }

    #[test]
    fn writes_end_in_a_cache_with_room_and_delay_later_reads() {
        let medium = medium(1, Some(150));
        let mut disk = Device::new(&medium);
        // Processed after 60, on the disk after 1,200 more.
        assert_eq!(disk.write(&medium, 0, 100), 60);
        // The cache is full, so the second write ends on the disk.
        assert_eq!(disk.write(&medium, 0, 100), 60 + 2 * 1200);
        assert_eq!(disk.read(&medium, 60, 100), 60 + 2 * 1200 + 1100 + 60);
        // The first write has left the cache.
        assert_eq!(disk.write(&medium, 10_000, 100), 10_060);
    }
}
