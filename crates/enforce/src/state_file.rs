//! State file of the enforcer: the interfaces that it programs, so that another process can undo its work.
//!
//! The file is written before an interface is changed, and replaced as a whole. A lock beside it excludes a second
//! enforcer. Both names contain the number of the network namespace, because namespaces share `/run`. The folder belongs to
//! the enforcer's user, and no name in it is followed: who may write to it could let root overwrite any file.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::EnforceError;
use crate::nft::Hook;

/// Network namespace of this thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Interfaces with the hooks of their tables.
pub(crate) type Taken = BTreeMap<String, Hook>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    interfaces: Taken,
}

/// State file of the enforcer that has the lock.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    taken: Taken,
    #[expect(dead_code, reason = "the lock is released when the file is closed")]
    lock: File,
}

impl StateFile {
    /// Takes the lock, and reads the interfaces that an earlier enforcer left.
    ///
    /// # Errors
    /// An error if an enforcer runs, if the folder cannot be written or is another user's, or if the file is broken.
    pub fn open(folder: &Path) -> Result<StateFile, EnforceError> {
        let failed = |path: &Path| EnforceError::system(path.display().to_string());
        let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.map_err(failed(folder))?;
        check_owner(folder, &fs::metadata(folder).map_err(failed(folder))?)?;
        let path = path(folder)?;
        let beside = path.with_extension("lock");
        let mut lock =
            options().read(true).write(true).create(true).open(&beside).map_err(failed(&beside))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = lock.read_to_string(&mut text);
                let owner = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(EnforceError::Running(owner));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&beside)(error)),
        }
        let mut write = || {
            lock.set_len(0)?;
            writeln!(lock, "{}", std::process::id())
        };
        write().map_err(failed(&beside))?;
        let taken = read_from(&path)?;
        Ok(StateFile { path, taken, lock })
    }

    /// Interfaces of the enforcer, or of the one before.
    pub fn taken(&self) -> &Taken {
        &self.taken
    }

    /// Records an interface that the enforcer is about to change.
    ///
    /// # Errors
    /// An error if the file cannot be written.
    pub fn add(&mut self, name: &str, hook: Hook) -> Result<(), EnforceError> {
        if self.taken.get(name) == Some(&hook) {
            return Ok(());
        }
        self.taken.insert(name.to_owned(), hook);
        self.write()
    }

    /// Removes an interface on which nothing is left.
    ///
    /// # Errors
    /// An error if the file cannot be written.
    pub fn remove(&mut self, name: &str) -> Result<(), EnforceError> {
        if self.taken.remove(name).is_none() {
            return Ok(());
        }
        self.write()
    }

    fn write(&self) -> Result<(), EnforceError> {
        let failed = || EnforceError::system(self.path.display().to_string());
        if self.taken.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed()(error)),
                _ => Ok(()),
            };
        }
        // A complete file appears at once.
        let temporary = self.path.with_extension("new");
        let write = || {
            let mut file = options().write(true).create(true).truncate(true).open(&temporary)?;
            file.write_all(&serde_json::to_vec(&Contents { interfaces: self.taken.clone() })?)?;
            file.sync_all()?;
            fs::rename(&temporary, &self.path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed()(error)
        })
    }
}

/// Interfaces of the enforcer of this namespace, whether it runs or not.
///
/// # Errors
/// An error if the file is broken.
pub(crate) fn read(folder: &Path) -> Result<Taken, EnforceError> {
    read_from(&path(folder)?)
}

/// Options for files of the folder, which follow no link.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// Rejects a folder that another user may change.
fn check_owner(folder: &Path, metadata: &fs::Metadata) -> Result<(), EnforceError> {
    let (owner, own) = (metadata.uid(), geteuid().as_raw());
    if owner == own && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    let path = folder.display().to_string();
    Err(EnforceError::ForeignFolder { path, owner, mode: metadata.mode() & 0o777, own })
}

fn path(folder: &Path) -> Result<PathBuf, EnforceError> {
    let number = fs::metadata(NAMESPACE).map_err(EnforceError::system(NAMESPACE))?.ino();
    Ok(folder.join(format!("enforce-net-{number}.json")))
}

fn read_from(path: &Path) -> Result<Taken, EnforceError> {
    let mut text = String::new();
    match options().read(true).open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::new()),
        Err(error) => return Err(EnforceError::system(path.display().to_string())(error)),
    };
    let broken = |error: serde_json::Error| EnforceError::Broken {
        path: path.display().to_string(),
        problem: error.to_string(),
    };
    serde_json::from_str(&text).map(|contents: Contents| contents.interfaces).map_err(broken)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_second_enforcer_is_refused_and_the_next_one_knows_the_interfaces() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = StateFile::open(folder.path()).expect("nobody has the lock");
        file.add("eth0", Hook::Egress).expect("the folder is ours");
        file.add("eth1", Hook::Postrouting).expect("the folder is ours");
        let error = StateFile::open(folder.path()).expect_err("the lock is taken");
        assert!(matches!(error, EnforceError::Running(Some(pid)) if pid == std::process::id()), "{error}");
        assert_eq!(read(folder.path()).expect("a file"), *file.taken());
        drop(file);
        let mut file = StateFile::open(folder.path()).expect("the lock is free");
        assert_eq!(file.taken().len(), 2);
        file.remove("eth0").expect("the folder is ours");
        file.remove("eth1").expect("the folder is ours");
        let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().collect();
        assert_eq!(left.len(), 1, "only the lock is left: {left:?}");
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").expect("the folder is ours");
        let own = folder.path().join("own");
        let path = {
            drop(StateFile::open(&own).expect("a new folder"));
            path(&own).expect("a namespace")
        };
        for extension in ["lock", "new", "json"] {
            let name = path.with_extension(extension);
            let _ = fs::remove_file(&name);
            std::os::unix::fs::symlink(&victim, &name).expect("the folder is ours");
            let changed = StateFile::open(&own).and_then(|mut file| file.add("eth0", Hook::Egress));
            assert!(matches!(changed, Err(EnforceError::System { .. })), "{extension}: {changed:?}");
            assert_eq!(fs::read_to_string(&victim).expect("it is there"), "precious", "{extension}");
            let _ = fs::remove_file(&name);
        }
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("the folder is ours");
        let error = StateFile::open(&own).expect_err("anybody may write there").to_string();
        assert!(error.contains("mode 777"), "{error}");
        // The root of the file system is root's.
        if !geteuid().is_root() {
            let metadata = fs::metadata("/").expect("there is one");
            assert!(check_owner(Path::new("/"), &metadata).is_err());
        }
    }

    #[test]
    fn a_broken_file_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(path(folder.path()).expect("a namespace"), "{\"interfaces\": 3}")
            .expect("the folder is ours");
        let error = StateFile::open(folder.path()).expect_err("broken").to_string();
        assert!(error.contains("enforce-net-") && error.contains("the state file is broken"), "{error}");
    }
}
