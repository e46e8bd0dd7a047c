//! Bytes used on the file systems of a host's volumes, and in total.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use leeward_fabric::Bytes;
use leeward_fabric::input::excerpt;
use rustix::fs::{StatVfs, statvfs};

/// Bytes on a host's volumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Storage {
    /// Bytes used.
    pub used: Bytes,
    /// Bytes used, and those that programs without privileges can still write. Blocks that are reserved for the
    /// superuser do not count, so a volume is full when `df` shows 100 %.
    pub capacity: Bytes,
}

/// Storage of a file system.
fn storage(volume: &StatVfs) -> Storage {
    let used = volume.f_blocks.saturating_sub(volume.f_bfree).saturating_mul(volume.f_frsize);
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    Storage { used: Bytes(used), capacity: Bytes(used.saturating_add(free)) }
}

/// Storage of the file systems of these folders. A file system with several of the folders counts once.
///
/// # Errors
/// The first folder that cannot be read: without it, the sum would be too small.
pub fn read(volumes: &[PathBuf]) -> Result<Storage, String> {
    let (mut seen, mut sum) = (BTreeSet::new(), Storage::default());
    for path in volumes {
        let of_path =
            |why: String| format!("used bytes: volume `{}`: {why}", excerpt(&path.to_string_lossy()));
        let (device, one) = read_one(path).map_err(|error| of_path(error.to_string()))?;
        if one.capacity == Bytes(0) {
            return Err(of_path("the file system stores no data; name the folder of a disk".to_owned()));
        }
        if seen.insert(device) {
            sum.used.0 = sum.used.0.saturating_add(one.used.0);
            sum.capacity.0 = sum.capacity.0.saturating_add(one.capacity.0);
        }
    }
    Ok(sum)
}

/// Device number and storage of the file system with a folder.
fn read_one(path: &Path) -> io::Result<(u64, Storage)> {
    Ok((fs::metadata(path)?.dev(), storage(&statvfs(path)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_blocks_are_no_capacity() {
        let folder = tempfile::tempdir().expect("a folder");
        let read = statvfs(folder.path()).expect("a file system");
        let volume = StatVfs { f_frsize: 4_096, f_blocks: 1_000, f_bfree: 300, f_bavail: 250, ..read };
        assert_eq!(storage(&volume), Storage { used: Bytes(700 * 4_096), capacity: Bytes(950 * 4_096) });
        let faulty = StatVfs { f_blocks: u64::MAX, f_bfree: 0, f_bavail: u64::MAX, ..volume };
        assert_eq!(storage(&faulty), Storage { used: Bytes(u64::MAX), capacity: Bytes(u64::MAX) });
        let inverted = StatVfs { f_blocks: 10, f_bfree: 20, f_bavail: 0, ..volume };
        assert_eq!(storage(&inverted), Storage::default());
    }

    #[test]
    fn folders_of_one_file_system_count_once_and_a_missing_folder_gives_no_sum() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        for path in [&one, &other] {
            fs::create_dir(path).expect("a folder");
        }
        let read_single = read(std::slice::from_ref(&one)).expect("a file system");
        assert!(
            Bytes(0) < read_single.capacity && read_single.used <= read_single.capacity,
            "{read_single:?}"
        );
        let both = read(&[one.clone(), other]).expect("a file system");
        // Other programs write to the file system meanwhile.
        assert!(both.capacity.0 < read_single.capacity.0 * 3 / 2, "{both:?} {read_single:?}");
        let error = read(&[one, folder.path().join("missing")]).expect_err("no sum");
        assert!(error.contains("missing`: No such file or directory"), "{error}");
        let error = read(&["/proc".into()]).expect_err("no storage");
        assert!(error.contains("/proc`: the file system stores no data"), "{error}");
    }
}
