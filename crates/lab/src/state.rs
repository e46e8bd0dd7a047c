//! State file of a lab: the names of everything that it makes, so that another process can remove it after the lab was
//! killed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::names::LabName;
use crate::programs::batch;

/// Folder of the state files of labs.
const FOLDER: &str = "/run/leeward-labs";
/// Folder in which `ip netns` keeps names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// Folder in which `ip netns exec` looks for files of a namespace.
const HOSTS_FILES: &str = "/etc/netns";

/// State of a lab: its process, and the names of everything that it makes. The file is written before anything is
/// made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Name of the lab.
    pub name: String,
    /// Process that owns the lab.
    pub pid: u32,
    /// Start of this process, in ticks of the kernel: process ids are used again.
    pub started: u64,
    /// Namespaces, in the order of their hosts.
    pub namespaces: Vec<String>,
    /// Folders that the lab makes: files of its namespaces.
    pub folders: Vec<PathBuf>,
}

/// Start of a process in ticks since the boot; `None` if there is no such process.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

impl State {
    /// Records that this process is about to make a lab. Removes first what a lab of this name left that is no longer
    /// alive.
    ///
    /// # Errors
    /// Returns an error if a lab of this name is up, or the file cannot be written.
    pub fn begin(name: &LabName, namespaces: Vec<String>) -> Result<State, LabError> {
        if let Some(old) = State::read(name)? {
            if old.is_alive() {
                return Err(LabError::InUse { name: old.name, pid: old.pid });
            }
            old.remove()?;
        }
        let pid = std::process::id();
        let folders: Vec<PathBuf> =
            namespaces.iter().map(|namespace| Path::new(HOSTS_FILES).join(namespace)).collect();
        let of_others = namespaces.iter().map(|namespace| Path::new(NAMESPACES).join(namespace));
        if let Some(path) = of_others.chain(folders.iter().cloned()).find(|path| path.exists()) {
            return Err(LabError::Exists(path.display().to_string()));
        }
        let started = start_of(pid).unwrap_or(0);
        let state = State { name: name.to_string(), pid, started, namespaces, folders };
        fs::create_dir_all(FOLDER).map_err(LabError::system(FOLDER))?;
        let path = State::path(name.as_str());
        // A complete file appears at once, and only if there is none: two labs of a name cannot begin together.
        let temporary = path.with_extension(format!("{pid}"));
        let write = || {
            fs::write(&temporary, serde_json::to_vec(&state)?)?;
            fs::hard_link(&temporary, &path)
        };
        let written = write();
        let _ = fs::remove_file(&temporary);
        written.map_err(LabError::system(path.display().to_string()))?;
        Ok(state)
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LabError::system(path.display().to_string())(error)),
        };
        let invalid = |error: serde_json::Error| LabError::system(path.display().to_string())(error.into());
        serde_json::from_str(&text).map(Some).map_err(invalid)
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

    /// Returns true if the process that owns the lab runs.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// Removes everything that the lab made, and its state file. Namespaces and folders that are already gone are no
    /// error.
    ///
    /// # Errors
    /// Returns an error if a namespace cannot be removed.
    pub fn remove(&self) -> Result<(), LabError> {
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_file(folder.join("hosts"));
            let _ = fs::remove_dir(folder);
        }
        let exists = |name: &&String| Path::new(NAMESPACES).join(name).exists();
        let script: String =
            self.namespaces.iter().filter(exists).map(|name| format!("netns del {name}\n")).collect();
        if !script.is_empty() {
            batch("ip", &["-force", "-batch", "-"], &script)?;
        }
        let path = State::path(&self.name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(LabError::system(path.display().to_string())(error))
            }
            _ => Ok(()),
        }
    }
}
