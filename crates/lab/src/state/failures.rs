//! Errors that ended labs: a file for each, which stays when the lab is gone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{FOLDER, Lock, names_with};
use crate::error::LabError;
use crate::names::LabName;

/// End of the names of these files.
const LAST_ERROR: &str = ".last-error";

/// Error that ended a lab of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Name of the lab.
    pub name: LabName,
    /// Time of the error.
    pub at: SystemTime,
    /// Its text.
    pub text: String,
}

impl Failure {
    /// Records the error that ended a lab, until a lab of this name comes up or [`super::State::down`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn record(name: &LabName, text: &str) -> Result<(), LabError> {
        // Under the lock, nobody removes the folder.
        let _lock = Lock::take()?;
        let path = Failure::path(name);
        fs::write(&path, text).map_err(LabError::system(path.display().to_string()))
    }

    /// Error that ended the last lab of a name.
    pub fn of(name: &LabName) -> Option<Failure> {
        let path = Failure::path(name);
        let at = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        Some(Failure { name: name.clone(), at, text: fs::read_to_string(path).ok()? })
    }

    /// Error of a command for a lab that is not up, with the error that ended it.
    pub fn not_up(name: &LabName) -> LabError {
        LabError::NotUp { name: name.to_string(), error: Failure::of(name).map(|failure| failure.text) }
    }

    /// Errors of all labs, by name.
    pub fn all() -> Vec<Failure> {
        names_with(LAST_ERROR).iter().filter_map(Failure::of).collect()
    }

    /// Removes the error of a name.
    pub(super) fn forget(name: &LabName) {
        // Without an error, there is no file.
        let _ = fs::remove_file(Failure::path(name));
    }

    pub(super) fn path(name: &LabName) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}{LAST_ERROR}"))
    }
}
