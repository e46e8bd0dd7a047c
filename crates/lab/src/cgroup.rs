//! Control group of a lab: BPF programs apply to the sockets of its processes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::names::LabName;

/// File of a group that lists its processes; writing a process to it moves the process.
pub(crate) const PROCESSES: &str = "cgroup.procs";

/// Folder of the group of a lab.
///
/// # Errors
/// Returns an error if no cgroup2 file system is mounted.
pub(crate) fn folder(name: &LabName) -> Result<PathBuf, LabError> {
    Ok(root()?.join(name.namespace("programs")))
}

/// Folder at which the cgroup2 file system is mounted.
///
/// # Errors
/// Returns an error if none is.
pub(crate) fn root() -> Result<PathBuf, LabError> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(LabError::system("/proc/self/mounts"))?;
    let mount = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (folder, kind) = (words.nth(1)?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(folder))
    });
    let missing = || std::io::Error::other("not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified");
    mount.ok_or_else(|| LabError::system("cgroup2")(missing()))
}

/// This process as a member of a lab's group. Dropping the value moves the process back; the lab removes the group.
#[derive(Debug)]
pub(crate) struct Membership {
    folder: PathBuf,
    home: PathBuf,
}

impl Membership {
    /// Makes a group, and moves this process into it.
    pub(crate) fn join(folder: PathBuf) -> Result<Membership, LabError> {
        let groups =
            fs::read_to_string("/proc/self/cgroup").map_err(LabError::system("/proc/self/cgroup"))?;
        // The line of the cgroup2 hierarchy.
        let path = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
        let home = root()?.join(path);
        fs::create_dir(&folder).map_err(LabError::system(folder.display().to_string()))?;
        let membership = Membership { folder, home };
        move_into(&membership.folder)?;
        Ok(membership)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // If this fails, the removal of the group fails and says so.
        let _ = move_into(&self.home);
    }
}

fn move_into(folder: &Path) -> Result<(), LabError> {
    let path = folder.join(PROCESSES);
    fs::write(&path, std::process::id().to_string()).map_err(LabError::system(path.display().to_string()))
}
