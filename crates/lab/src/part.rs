//! Parts of a lab: everything that it makes on the machine, and how each part is removed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, thread};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::process::end_inside;
use crate::programs::batch;

/// Folder in which `ip netns` keeps names of namespaces.
pub(crate) const NAMESPACES: &str = "/run/netns";
/// Folder with a folder of mounted disks for each lab.
pub(crate) const MOUNTS: &str = "/run/leeward-labs";
/// Folder of the files in which disks are stored. It is on a disk of the machine, unlike `/run`.
pub(crate) const IMAGES: &str = "/var/tmp/leeward-labs";
/// Attempts to remove a part that is in use for a moment, and the pause between them.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Something that a lab makes on the machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A network namespace, by its name. Programs in it end when it is removed.
    Namespace(String),
    /// A file.
    File(PathBuf),
    /// A folder. It is removed if it is empty.
    Folder(PathBuf),
    /// A mounted file system, by its folder.
    Mount(PathBuf),
    /// A control group, by its folder.
    Cgroup(PathBuf),
    /// A limit in a file of a control group that no lab made, by the device that it limits.
    Throttle {
        /// The file.
        file: PathBuf,
        /// Numbers of the device, `MAJOR:MINOR`.
        device: String,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

impl Part {
    fn path(&self) -> PathBuf {
        match self {
            Part::Namespace(name) => Path::new(NAMESPACES).join(name),
            Part::File(path)
            | Part::Folder(path)
            | Part::Mount(path)
            | Part::Cgroup(path)
            | Part::Throttle { file: path, .. } => path.clone(),
        }
    }

    /// Name of a namespace.
    fn namespace(&self) -> Option<&String> {
        match self {
            Part::Namespace(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if something of this name is on the machine.
    pub fn exists(&self) -> bool {
        self.path().symlink_metadata().is_ok()
    }

    /// Removes a part that is no namespace.
    fn remove(&self) -> Result<(), LabError> {
        let path = self.path();
        let removed = match self {
            Part::Namespace(name) => return remove_namespaces(&[name]),
            Part::Mount(path) => return unmount(path),
            Part::File(_) => fs::remove_file(&path),
            Part::Folder(_) => match fs::remove_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                removed => removed,
            },
            // A rate of 0 is no limit.
            Part::Throttle { device, .. } => fs::write(&path, format!("{device} 0")),
            Part::Cgroup(_) => patient(|| fs::remove_dir(&path)),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LabError::system(format!("cannot remove {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }
}

/// Removes the namespaces of these names that exist.
fn remove_namespaces(names: &[&String]) -> Result<(), LabError> {
    let exists = |name: &&&String| Path::new(NAMESPACES).join(name).exists();
    let script: String = names.iter().filter(exists).map(|name| format!("netns del {name}\n")).collect();
    if script.is_empty() {
        return Ok(());
    }
    batch("ip", &["-force", "-batch", "-"], &script).map(drop)
}

/// Unmounts a file system, if one is mounted on the folder.
fn unmount(folder: &Path) -> Result<(), LabError> {
    let device = |path: &Path| fs::metadata(path).map(|file| file.dev()).ok();
    if device(folder) == folder.parent().and_then(device) || !folder.exists() {
        return Ok(());
    }
    batch("umount", &[&folder.display().to_string()], "").map(drop)
}

/// Repeats the removal of something that a process which ends still uses.
fn patient(remove: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 1..ATTEMPTS {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(PAUSE),
            removed => return removed,
        }
    }
    remove()
}

/// Ends the programs in the namespaces of some parts, and removes the parts, the last one first. If a part cannot be
/// removed, the others are.
///
/// # Errors
/// Returns the first error.
pub(crate) fn remove_all(parts: &[Part]) -> Result<(), LabError> {
    let namespaces: Vec<PathBuf> =
        parts.iter().filter(|part| matches!(part, Part::Namespace(_))).map(Part::path).collect();
    end_inside(namespaces.iter().map(PathBuf::as_path));
    let mut result = Ok(());
    for parts in
        parts.chunk_by(|one, other| matches!((one, other), (Part::Namespace(_), Part::Namespace(_)))).rev()
    {
        let names: Vec<&String> = parts.iter().filter_map(Part::namespace).collect();
        result = result.and(match parts {
            [part] => part.remove(),
            _ => remove_namespaces(&names),
        });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_removed_in_reverse_order_and_those_that_are_gone_are_no_error() {
        let folder = std::env::temp_dir().join(format!("leeward-parts-{}", std::process::id()));
        let (gone, file) = (folder.join("gone"), folder.join("file"));
        let parts = [
            Part::Folder(folder.clone()),
            Part::File(gone.clone()),
            Part::File(file.clone()),
            Part::Folder(gone.clone()),
            Part::Mount(gone.clone()),
            Part::Cgroup(gone),
            Part::Namespace(format!("leeward-parts-{}", std::process::id())),
        ];
        fs::create_dir(&folder).expect("a folder");
        fs::write(&file, "").expect("a file");
        assert!(parts[0].exists() && parts[2].exists() && !parts[1].exists());
        remove_all(&parts).expect("nothing prevents it");
        assert!(!folder.exists());
        remove_all(&parts).expect("everything is gone");
    }

    #[test]
    fn a_folder_with_files_of_others_stays() {
        let folder = std::env::temp_dir().join(format!("leeward-others-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("file"), "").expect("a file");
        remove_all(&[Part::Folder(folder.clone())]).expect("no error");
        assert!(folder.join("file").exists());
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
