//! Control groups that throttle disks: one for each host.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Control groups that throttle disks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Groups {
    /// The controller `blkio` of version 1, by its folder.
    One(PathBuf),
    /// The controller `io` of version 2, by the folder of the hierarchy.
    Two(PathBuf),
}

impl Groups {
    /// Finds the control groups of this machine; `None` if it cannot throttle disks.
    pub fn detect() -> Option<Groups> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        Groups::of(&mounts, controllers_of)
    }

    /// Finds the control groups in a list of mounts; `controllers` reads those of a hierarchy of version 2.
    fn of(mounts: &str, controllers: impl Fn(&Path) -> String) -> Option<Groups> {
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mut two = None;
        for mount in fields {
            let [_, folder, kind, options, ..] = mount[..] else { continue };
            let folder = PathBuf::from(folder);
            match kind {
                "cgroup" if options.split(',').any(|option| option == "blkio") => {
                    return Some(Groups::One(folder));
                }
                "cgroup2" if controllers(&folder).split_whitespace().any(|name| name == "io") => {
                    two = Some(Groups::Two(folder));
                }
                _ => {}
            }
        }
        two
    }

    /// Folder of the control group of a host.
    pub fn folder(&self, group: &str) -> PathBuf {
        let (Groups::One(root) | Groups::Two(root)) = self;
        root.join(group)
    }

    /// Limits of a device in the group of its host: files and their texts.
    pub fn limits(&self, group: &str, device: &str, read: u64, write: u64) -> Vec<(PathBuf, String)> {
        let folder = self.folder(group);
        match self {
            Groups::One(_) => {
                let file = |way| folder.join(format!("blkio.throttle.{way}_bps_device"));
                vec![(file("read"), format!("{device} {read}")), (file("write"), format!("{device} {write}"))]
            }
            Groups::Two(_) => vec![(folder.join("io.max"), format!("{device} rbps={read} wbps={write}"))],
        }
    }

    /// File that limits what the kernel writes later on behalf of programs. Version 1 counts it for the group of the
    /// kernel, but only for the disk's own device; version 2 counts it for the group of the program.
    pub fn write_back(&self) -> Option<PathBuf> {
        match self {
            Groups::One(root) => Some(root.join("blkio.throttle.write_bps_device")),
            Groups::Two(_) => None,
        }
    }

    /// Makes the control group of a host.
    pub fn make(&self, group: &str) -> Result<(), LabError> {
        if let Groups::Two(root) = self {
            let present = controllers_of(root);
            // The kernel counts what it writes later only with the controller of memory; some machines have none.
            let has_memory = present.split_whitespace().any(|name| name == "memory");
            let path = root.join("cgroup.subtree_control");
            let what = format!("{}, for the rates of `devices`", path.display());
            fs::write(path, if has_memory { "+io +memory" } else { "+io" })
                .map_err(LabError::system(what))?;
        }
        let folder = self.folder(group);
        fs::create_dir(&folder).map_err(LabError::system(folder.display().to_string()))
    }
}

/// Controllers of a hierarchy of version 2.
fn controllers_of(folder: &Path) -> String {
    fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_both_versions_have_the_rates() {
        let root = std::env::temp_dir().join(format!("leeward-groups-{}", std::process::id()));
        let read = |file: &str| fs::read_to_string(root.join(file)).expect("it was written");
        let throttle = |groups: &Groups| {
            groups.make("host").expect("a folder");
            for (file, limit) in groups.limits("host", "7:1", 1000, 2000) {
                fs::write(file, limit).expect("the folder exists");
            }
        };
        for (present, enabled) in [("cpu io memory\n", "+io +memory"), ("io\n", "+io")] {
            fs::create_dir(&root).expect("a new folder");
            fs::write(root.join("cgroup.controllers"), present).expect("a file");
            let two = Groups::Two(root.clone());
            throttle(&two);
            assert_eq!(read("cgroup.subtree_control"), enabled);
            assert_eq!(read("host/io.max"), "7:1 rbps=1000 wbps=2000");
            assert_eq!(two.write_back(), None);
            fs::remove_dir_all(&root).expect("it is there");
        }
        fs::create_dir(&root).expect("a new folder");
        let one = Groups::One(root.clone());
        throttle(&one);
        assert_eq!(read("host/blkio.throttle.read_bps_device"), "7:1 1000");
        assert_eq!(read("host/blkio.throttle.write_bps_device"), "7:1 2000");
        assert_eq!(one.write_back(), Some(root.join("blkio.throttle.write_bps_device")));
        fs::remove_dir_all(&root).expect("it is there");
        let error = Groups::Two(root.clone()).make("host").expect_err("no such folder").to_string();
        assert!(error.contains("cgroup.subtree_control, for the rates of `devices`: "), "{error}");
    }

    #[test]
    fn version_1_comes_first_and_version_2_needs_its_controller() {
        let one = "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0\n";
        let two = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let (with, without) = (|_: &Path| "cpu io memory\n".to_owned(), |_: &Path| String::new());
        let blkio = Some(Groups::One("/sys/fs/cgroup/blkio".into()));
        let io = Some(Groups::Two("/sys/fs/cgroup/unified".into()));
        assert_eq!(Groups::of(&format!("{two}{one}"), with), blkio);
        assert_eq!(Groups::of(two, with), io);
        assert_eq!(Groups::of(two, without), None);
        assert_eq!(Groups::of("tmpfs / tmpfs rw 0 0\n", with), None);
    }
}
