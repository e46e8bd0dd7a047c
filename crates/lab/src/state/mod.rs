//! State file of a lab: everything that it makes, so that another process can remove it.
//!
//! A lab belongs to a process and goes with it, or it belongs to none and is up until [`State::down`]. The file is written
//! before anything is made. One lock, on the folder of all state files, orders the decisions of processes; the process
//! that removes a lab owns it first.

mod failures;
mod leftovers;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::machine::Machine;
use crate::names::LabName;
use crate::part::{IMAGES, MOUNTS, Part, remove_all};
use crate::process::Process;

pub use failures::Failure;

/// Folder of the state files of labs.
const FOLDER: &str = MOUNTS;
/// End of the names of state files.
const STATE: &str = ".json";
/// File of a lab's folder with its latest view.
pub(crate) const VIEW: &str = "view.json";
/// File in which a view is written.
pub(crate) const NEW_VIEW: &str = "view.new";
/// Folder in which `ip netns exec` looks for files of a namespace.
const FILES: &str = "/etc/netns";

/// State of a lab.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Name of the lab.
    pub name: String,
    /// Process that owns the lab. `None` if it is up until [`State::down`].
    pub owner: Option<Process>,
    /// Everything that the lab makes, in this order.
    pub parts: Vec<Part>,
    /// Machines at which programs run.
    pub machines: Vec<Machine>,
}

/// Lock on the folder of state files, which exists as long as the lock.
struct Lock(#[expect(dead_code, reason = "the lock is released when the file is closed")] File);

impl Lock {
    fn take() -> Result<Lock, LabError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        let take = || loop {
            fs::create_dir_all(FOLDER)?;
            let folder = match File::open(FOLDER) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            flock(&folder, FlockOperation::LockExclusive)?;
            // The process that had the lock may have removed the folder.
            let locked = folder.metadata()?;
            if fs::metadata(FOLDER).is_ok_and(|current| current.ino() == locked.ino()) {
                return Ok(Lock(folder));
            }
        };
        take().map_err(LabError::system(FOLDER))
    }
}

impl State {
    /// Records that this process is about to make a lab of these parts. Removes first what a lab of this name left whose
    /// process has ended.
    ///
    /// # Errors
    /// Returns an error if a lab of this name is up, if a part exists that no lab made, or if the file cannot be written.
    pub fn begin(name: &LabName, parts: Vec<Part>, machines: Vec<Machine>) -> Result<State, LabError> {
        loop {
            let lock = Lock::take()?;
            if let Some(old) = State::read(name)? {
                if old.is_up() {
                    return Err(LabError::InUse { name: old.name });
                }
                let old = old.claim()?;
                drop(lock);
                old.remove()?;
                continue;
            }
            if let Some(part) = parts.iter().find(|part| part.exists()) {
                return Err(LabError::Exists { part: part.to_string(), name: name.to_string() });
            }
            Failure::forget(name);
            return State { name: name.to_string(), owner: None, parts, machines }.claim();
        }
    }

    /// Makes this process the owner of the lab.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn claim(self) -> Result<State, LabError> {
        self.with_owner(Some(Process::this()))
    }

    /// Makes the lab one without an owner: it stays when this process ends.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn release(self) -> Result<State, LabError> {
        self.with_owner(None)
    }

    fn with_owner(mut self, owner: Option<Process>) -> Result<State, LabError> {
        self.owner = owner;
        self.write()?;
        Ok(self)
    }

    /// Records a part that the lab is about to make.
    pub(crate) fn add(&mut self, part: Part) -> Result<(), LabError> {
        self.parts.push(part);
        self.write()
    }

    /// Writes the file.
    pub(crate) fn write(&self) -> Result<(), LabError> {
        let path = State::path(&self.name);
        // A complete file appears at once.
        let temporary = path.with_extension(format!("{}", std::process::id()));
        let write = || {
            fs::write(&temporary, serde_json::to_vec(self)?)?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            LabError::system(path.display().to_string())(error)
        })
    }

    fn path(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}{STATE}"))
    }

    /// Reads the state of a lab; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file is not a state file.
    pub fn read(name: &LabName) -> Result<Option<State>, LabError> {
        let path = State::path(name.as_str());
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LabError::system(path.display().to_string())(error)),
        };
        let broken = |error: serde_json::Error| LabError::Broken {
            name: name.to_string(),
            path: path.display().to_string(),
            problem: error.to_string(),
        };
        serde_json::from_str(&text).map(Some).map_err(broken)
    }

    /// Names of all labs with a state file, in order.
    pub fn all() -> Vec<LabName> {
        names_with(STATE)
    }

    /// Time of the last change of a lab's owner: that at which it was up. `None` without a state file.
    pub fn since(name: &LabName) -> Option<SystemTime> {
        fs::metadata(State::path(name.as_str())).and_then(|file| file.modified()).ok()
    }

    /// Returns true if the lab has circuits and stands for programs: its owner is there for its switch only.
    pub fn stands(&self) -> bool {
        let view = Path::new(FOLDER).join(&self.name).join(VIEW);
        self.parts.contains(&Part::File(view))
    }

    /// Returns true if the lab has no owner, or its owner runs.
    pub fn is_up(&self) -> bool {
        self.owner.is_none_or(|owner| owner.is_alive())
    }

    /// Removes a lab that no process owns, or whose process has ended, or that stands: its process is ended then. Without
    /// a state file, as after a reboot, or with a broken one, removes everything that has the name of the lab.
    ///
    /// # Errors
    /// Returns an error if nothing has the name, if the process that owns the lab does not end, or if a part cannot be
    /// removed.
    pub fn down(name: &LabName) -> Result<(), LabError> {
        let mut lock = Lock::take()?;
        let mut state = State::read_or_find(name)?;
        if let Some(owner) = state.owner.filter(Process::is_alive) {
            let owned = LabError::Owned { name: state.name.clone(), pid: owner.pid };
            if !state.stands() {
                return Err(owned);
            }
            drop(lock);
            if !owner.end()? {
                return Err(owned);
            }
            // The process has removed the lab, except for parts that it could not remove.
            lock = Lock::take()?;
            state = match State::read(name)? {
                Some(state) if !state.is_up() => state,
                // Another process removes the lab, or a new one has its name.
                Some(_) => return Ok(()),
                None => {
                    remove_empty_folders();
                    return Ok(());
                }
            };
        }
        let state = state.claim()?;
        Failure::forget(name);
        drop(lock);
        state.remove()
    }

    /// State of a lab: that of its file, or everything on the machine that has its name. The caller has the lock.
    fn read_or_find(name: &LabName) -> Result<State, LabError> {
        let found = match State::read(name) {
            Ok(Some(state)) => return Ok(state),
            Ok(None) => leftovers::find(name),
            Err(LabError::Broken { .. }) => return Ok(leftovers::find(name)),
            Err(error) => return Err(error),
        };
        if found.parts.is_empty() {
            remove_empty_folders();
            return Err(Failure::not_up(name));
        }
        Ok(found)
    }

    /// Removes everything that the lab made, and its state file. Parts that are already gone are no error.
    ///
    /// # Errors
    /// Returns an error if a part cannot be removed. The file stays, so that another attempt is possible.
    pub fn remove(&self) -> Result<(), LabError> {
        remove_all(&self.parts)?;
        let _lock = Lock::take()?;
        let path = State::path(&self.name);
        let removed = match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(LabError::system(path.display().to_string())(error))
            }
            _ => Ok(()),
        };
        remove_empty_folders();
        removed
    }

    /// Removes the lab when a value is dropped: an error can only be written to stderr.
    pub(crate) fn remove_on_drop(&self) {
        if let Err(error) = self.remove() {
            let name = &self.name;
            let _ = writeln!(
                io::stderr(),
                "warning: lab `{name}` is not completely removed: {error}; run `leeward lab down --name {name}`"
            );
        }
    }

    /// Makes all folders, and the files of namespaces, which have this text.
    ///
    /// # Errors
    /// Returns an error if one cannot be made.
    pub(crate) fn write_files(&self, text: &str) -> Result<(), LabError> {
        // Under the lock, nobody removes an empty folder above them.
        let _lock = Lock::take()?;
        for part in &self.parts {
            let made = match part {
                Part::Folder(path) => fs::create_dir_all(path),
                Part::File(path) if path.starts_with(FILES) => fs::write(path, text),
                _ => Ok(()),
            };
            made.map_err(LabError::system(part.to_string()))?;
        }
        Ok(())
    }
}

/// Names of labs with a file that ends like this, in order.
fn names_with(end: &str) -> Vec<LabName> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(end)?.to_owned())).collect();
    names.sort();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Folder of a lab that stands.
pub(crate) fn folder_of(name: &LabName) -> PathBuf {
    Path::new(FOLDER).join(name.as_str())
}

/// Parts that are files of a namespace: the names of hosts, where `ip netns exec` looks for them.
pub(crate) fn files_of(namespace: &str) -> [Part; 2] {
    let folder = Path::new(FILES).join(namespace);
    let hosts = folder.join("hosts");
    [Part::Folder(folder), Part::File(hosts)]
}

/// Removes the folders that all labs share, if they are empty. The caller has the lock.
fn remove_empty_folders() {
    for folder in [FILES, IMAGES, FOLDER] {
        // A folder with files stays.
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests;
