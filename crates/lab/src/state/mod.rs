//! State file of a lab: everything that it makes, so that another process can remove it.
//!
//! A lab belongs to a process and goes with it, or it belongs to none and is up until [`State::down`]. The file is written
//! before anything is made. One lock, on the folder of all state files, orders the decisions of processes; the process
//! that removes a lab owns it first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::groups::Groups;
use crate::machine::Machine;
use crate::names::LabName;
use crate::part::{IMAGES, MOUNTS, NAMESPACES, Part, remove_all};
use crate::process::Process;

/// Folder of the state files of labs.
const FOLDER: &str = MOUNTS;
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
                return Err(LabError::Exists(part.to_string()));
            }
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
        Path::new(FOLDER).join(format!("{name}.json"))
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
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()))
            .collect();
        names.sort();
        names.iter().filter_map(|name| name.parse().ok()).collect()
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

    /// Removes a lab that no process owns, or whose process has ended, or that stands: its process is ended then. If its state file is broken, removes everything
    /// that has the name of the lab.
    ///
    /// # Errors
    /// Returns an error if no such lab is up, if the process that owns it runs, or if a part cannot be removed.
    pub fn down(name: &LabName) -> Result<(), LabError> {
        let lock = Lock::take()?;
        let state = match State::read(name) {
            Ok(None) => {
                remove_empty_folders();
                return Err(LabError::NotUp(name.to_string()));
            }
            Ok(Some(state)) => state,
            Err(LabError::Broken { .. }) => State::by_name(name),
            Err(error) => return Err(error),
        };
        if let Some(owner) = state.owner.filter(Process::is_alive) {
            let owned = LabError::Owned { name: state.name.clone(), pid: owner.pid };
            if !state.stands() {
                return Err(owned);
            }
            // The process removes the lab itself.
            drop(lock);
            return if owner.end() { Ok(()) } else { Err(owned) };
        }
        let state = state.claim()?;
        drop(lock);
        state.remove()
    }

    /// State of a lab whose file is broken: everything on the machine that has its name.
    fn by_name(name: &LabName) -> State {
        let entries = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort();
            names
        };
        let of_lab = |folder: &Path| {
            let mut names = entries(folder);
            names.retain(|entry| name.machine(entry).is_some());
            names
        };
        let mut parts = Vec::new();
        let images = Path::new(IMAGES).join(name.as_str());
        parts.push(Part::Folder(images.clone()));
        parts.extend(entries(&images).into_iter().map(|image| Part::File(images.join(image))));
        let mounts = Path::new(MOUNTS).join(name.as_str());
        parts.push(Part::Folder(mounts.clone()));
        for host in entries(&mounts).into_iter().map(|host| mounts.join(host)) {
            parts.push(Part::Folder(host.clone()));
            for disk in entries(&host).into_iter().map(|disk| host.join(disk)) {
                parts.extend([Part::Folder(disk.clone()), Part::Mount(disk)]);
            }
        }
        if let Some(Groups::One(groups) | Groups::Two(groups)) = Groups::detect() {
            parts.extend(of_lab(&groups).into_iter().map(|group| Part::Cgroup(groups.join(group))));
        }
        parts.extend(of_lab(Path::new(FILES)).iter().flat_map(|namespace| files_of(namespace)));
        parts.extend(of_lab(Path::new(NAMESPACES)).into_iter().map(Part::Namespace));
        State { name: name.to_string(), owner: None, parts, machines: Vec::new() }
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
mod tests {
    use super::*;

    fn name(of: &str) -> LabName {
        format!("test-{of}-{}", std::process::id()).parse().expect("a valid name")
    }

    fn is_root() -> bool {
        leeward_testing::require(
            "labs",
            if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") },
        )
        .is_some()
    }

    #[test]
    fn a_lab_has_one_owner_and_its_name_is_in_use_until_it_is_removed() {
        if !is_root() {
            return;
        }
        let name = name("owner");
        let state = State::begin(&name, Vec::new(), Vec::new()).expect("a new name");
        assert!(state.is_up() && State::all().contains(&name) && State::since(&name).is_some());
        assert!(matches!(State::begin(&name, Vec::new(), Vec::new()), Err(LabError::InUse { .. })));
        assert!(matches!(State::down(&name), Err(LabError::Owned { .. })));
        let state = state.release().expect("it is ours");
        assert!(matches!(State::begin(&name, Vec::new(), Vec::new()), Err(LabError::InUse { .. })));
        assert_eq!(State::read(&name).expect("a state file"), Some(state));
        State::down(&name).expect("nobody owns it");
        assert!(matches!(State::down(&name), Err(LabError::NotUp(_))));
    }

    #[test]
    fn what_a_process_left_that_has_ended_is_removed_by_the_next_lab_of_the_name() {
        if !is_root() {
            return;
        }
        let name = name("left");
        let [part, file] = files_of(&name.namespace("r0h0"));
        let Part::Folder(folder) = part.clone() else { unreachable!() };
        let parts = vec![part, file];
        let state = State::begin(&name, parts.clone(), Vec::new()).expect("a new name");
        state.write_files("").expect("a folder");
        let ended = Process { started: 1, ..Process::this() };
        state.with_owner(Some(ended)).expect("it is ours");
        let state = State::begin(&name, parts, Vec::new()).expect("the owner has ended");
        assert!(!folder.exists());
        state.remove().expect("it is ours");
    }

    #[test]
    fn a_broken_state_file_is_named_and_can_be_removed() {
        if !is_root() {
            return;
        }
        let name = name("broken");
        State::begin(&name, Vec::new(), Vec::new()).expect("a new name");
        fs::write(State::path(name.as_str()), "{").expect("root may write");
        let [Part::Folder(folder), _] = files_of(&name.namespace("r0h0")) else { unreachable!() };
        fs::create_dir_all(&folder).expect("root may write");
        assert!(State::all().contains(&name));
        for error in [State::read(&name).map(drop), State::begin(&name, Vec::new(), Vec::new()).map(drop)] {
            assert!(matches!(error, Err(LabError::Broken { .. })), "{error:?}");
        }
        State::down(&name).expect("everything has its name");
        assert!(!folder.exists() && !State::all().contains(&name));
    }

    #[test]
    fn of_many_threads_one_makes_a_lab() {
        if !is_root() {
            return;
        }
        let name = name("race");
        let ended = Process { started: 1, ..Process::this() };
        State::begin(&name, Vec::new(), Vec::new())
            .and_then(|state| state.with_owner(Some(ended)))
            .expect("a new name");
        let states: Vec<State> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| State::begin(&name, Vec::new(), Vec::new()).ok())).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(states.len(), 1);
        states[0].remove().expect("it is ours");
    }
}
