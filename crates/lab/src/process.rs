//! Processes: the owner of a lab, and the programs that run in its namespaces.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// Time that programs have to end by themselves.
const GRACE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Time that the process of a lab has to remove it.
const PATIENCE: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// A process, identified beyond its end: process ids are used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Process {
    /// Id of the process.
    pub pid: u32,
    /// Its start, in ticks of the kernel since the boot.
    pub started: u64,
}

impl Process {
    /// This process.
    pub fn this() -> Process {
        let pid = std::process::id();
        Process { pid, started: start_of(pid).unwrap_or(0) }
    }

    /// Returns true if the process runs.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// Asks the process to end, by SIGTERM; returns whether it has ended in time.
    pub(crate) fn end(&self) -> bool {
        let open = || pidfd_open(Pid::from_raw(self.pid as i32)?, PidfdFlags::empty()).ok();
        // Its id may belong to another process now.
        let Some(process) = open().filter(|_| self.is_alive()) else { return true };
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        pidfd_send_signal(&process, Signal::TERM).is_err()
            || poll(&mut ended, Some(&PATIENCE)).unwrap_or(0) > 0
    }
}

/// Start of a process in ticks since the boot; `None` if there is no such process, or it has ended and nobody has waited
/// for it.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// Ends all programs in some namespaces, by SIGTERM and a second later by SIGKILL. This process is never ended.
pub(crate) fn end_inside<'a>(namespaces: impl Iterator<Item = &'a Path>) {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let ids: Vec<_> = namespaces.filter_map(id).collect();
    if ids.is_empty() {
        return;
    }
    let is_inside = |pid: u32| {
        id(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|namespace| ids.contains(&namespace))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes: Vec<OwnedFd> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| pid != std::process::id() && is_inside(pid))
        .filter_map(|pid| {
            let process = pidfd_open(Pid::from_raw(pid as i32)?, PidfdFlags::empty()).ok()?;
            // The process may have ended, and another one may have its id.
            is_inside(pid).then_some(process)
        })
        .collect();
    for signal in [Signal::TERM, Signal::KILL] {
        for process in &processes {
            // A process that has ended needs no signal.
            let _ = pidfd_send_signal(process, signal);
        }
        for process in &processes {
            let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&GRACE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        assert!(Process::this().is_alive());
        assert!(!Process { started: 1, ..Process::this() }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let process = Process { pid: child.id(), started: start_of(child.id()).expect("it runs") };
        assert!(process.is_alive());
        child.kill().expect("it runs");
        while process.is_alive() {
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{}", child.id())).exists(), "nobody has waited for it");
        child.wait().expect("its status");
        assert!(!process.is_alive());
    }
}
