//! Work inside a network namespace.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::LabError;
use crate::part::NAMESPACES;

/// A thread's visit to namespaces. Sockets and devices that the thread opens belong to the namespace that it is in.
///
/// Dropping the visit returns the thread to its own namespace.
#[derive(Debug)]
pub struct Inside {
    home: File,
}

impl Inside {
    /// Prepares visits of the current thread.
    ///
    /// # Errors
    /// Returns an error if the thread's own namespace cannot be opened.
    pub fn new() -> Result<Inside, LabError> {
        let home = File::open("/proc/thread-self/ns/net");
        Ok(Inside { home: home.map_err(LabError::system("/proc/thread-self/ns/net"))? })
    }

    /// Moves the current thread into a namespace.
    ///
    /// # Errors
    /// Returns an error if the namespace does not exist, or the thread may not enter it.
    pub fn enter(&self, namespace: &str) -> Result<(), LabError> {
        let path = format!("{NAMESPACES}/{namespace}");
        let file = File::open(&path).map_err(LabError::system(path.clone()))?;
        move_into(&file).map_err(LabError::system(path))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // A thread in a namespace that is gone can do no harm: its sockets fail.
        let _ = move_into(&self.home);
    }
}

fn move_into(namespace: &File) -> std::io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
