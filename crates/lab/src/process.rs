//! Processes: the owner of a lab, and the programs that run in its namespaces.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::clock::real_now;
use crate::error::LabError;

/// Time that programs have to end by themselves.
const GRACE: Duration = Duration::from_secs(1);
/// Time that the process of a lab has to remove it.
const PATIENCE: Duration = Duration::from_secs(60);

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
        Process::of(pid).unwrap_or(Process { pid, started: 0 })
    }

    /// Process of an id; `None` if there is none, or it has ended.
    pub(crate) fn of(pid: u32) -> Option<Process> {
        Some(Process { pid, started: start_of(pid)? })
    }

    /// Returns true if the process runs.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// Asks the process to end, by SIGTERM; returns whether it has ended in time.
    ///
    /// # Errors
    /// Returns an error if the process cannot be signalled.
    pub(crate) fn end(&self) -> Result<bool, LabError> {
        let Some(process) = self.open()? else { return Ok(true) };
        match pidfd_send_signal(&process, Signal::TERM) {
            Err(Errno::SRCH) => return Ok(true),
            sent => sent.map_err(|error| self.failed(error))?,
        }
        wait_for(&process, Deadline::after(PATIENCE)).map_err(|error| self.failed(error))
    }

    /// Handle of the process; `None` if it has ended.
    fn open(&self) -> Result<Option<OwnedFd>, LabError> {
        let Some(pid) = Pid::from_raw(self.pid as i32) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => Ok(None),
            // Its id may belong to another process now.
            opened => Ok(Some(opened.map_err(|error| self.failed(error))?).filter(|_| self.is_alive())),
        }
    }

    fn failed(&self, error: Errno) -> LabError {
        LabError::system(format!("process {}", self.pid))(error.into())
    }
}

/// Real time of the machine's monotonic clock.
fn now() -> Duration {
    Duration::from_nanos(real_now())
}

/// A moment of that clock.
#[derive(Clone, Copy)]
struct Deadline(Duration);

impl Deadline {
    fn after(duration: Duration) -> Deadline {
        Deadline(now() + duration)
    }

    fn left(self) -> Duration {
        self.0.saturating_sub(now())
    }
}

/// Waits for the end of a process; returns whether it has ended in time.
fn wait_for(process: &OwnedFd, until: Deadline) -> Result<bool, Errno> {
    loop {
        let left = Timespec::try_from(until.left()).map_err(|_| Errno::INVAL)?;
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            polled => return polled.map(|ready| ready > 0),
        }
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

/// Ends all programs in some namespaces, by SIGTERM and a second later by SIGKILL, also those that start in the
/// meantime. This process is never ended.
pub(crate) fn end_inside<'a>(namespaces: impl Iterator<Item = &'a Path>) {
    let ids: Vec<_> = namespaces.filter_map(id).collect();
    if ids.is_empty() {
        return;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let until = Deadline::after(GRACE);
        let mut signalled: Vec<Process> = Vec::new();
        loop {
            let inside = processes_in(&ids);
            if inside.is_empty() {
                return;
            }
            for (process, handle) in &inside {
                if !signalled.contains(process) {
                    signalled.push(*process);
                    // A process that has ended needs no signal.
                    let _ = pidfd_send_signal(handle, signal);
                }
            }
            for (_, handle) in &inside {
                let _ = wait_for(handle, until);
            }
            if until.left().is_zero() {
                break;
            }
        }
    }
}

/// Identity of a file.
fn id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()
}

/// Processes in namespaces, except this one.
fn processes_in(namespaces: &[(u64, u64)]) -> Vec<(Process, OwnedFd)> {
    let is_inside = |pid: u32| {
        id(Path::new(&format!("/proc/{pid}/ns/net"))).is_some_and(|namespace| namespaces.contains(&namespace))
    };
    let open = |pid: u32| {
        let process = Process::of(pid)?;
        let handle = process.open().ok()??;
        // The process may have ended, and another one may have its id.
        is_inside(pid).then_some((process, handle))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| pid != std::process::id() && is_inside(pid))
        .filter_map(open)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::NAMESPACES;
    use crate::programs::batch;

    #[test]
    fn a_process_that_has_ended_or_whose_id_is_used_again_is_not_signalled() {
        assert!(Process { started: 1, ..Process::this() }.end().expect("nothing to signal"));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let process = Process::of(child.id()).expect("it runs");
        assert!(process.end().expect("it is ours"));
        child.wait().expect("its status");
        assert!(process.end().expect("it has ended"));
    }

    #[test]
    fn programs_that_ignore_the_end_share_one_grace_and_new_ones_end_too() {
        let root = if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") };
        if leeward_testing::require("namespaces", root).is_none() {
            return;
        }
        let name = format!("leeward-end-{}", std::process::id());
        batch("ip", &["netns", "add", &name], "").expect("a new namespace");
        let path = Path::new(NAMESPACES).join(&name);
        let scripts = [
            "trap '' TERM; echo; while :; do sleep 1; done",
            "trap '' TERM; echo; while :; do sleep 1; done",
            "trap 'sleep 600 & exit' TERM; echo; while :; do sleep 0.01; done",
        ];
        let mut children = scripts.map(|script| {
            let mut command = std::process::Command::new("ip");
            command.args(["netns", "exec", &name, "sh", "-c", script]);
            command.stdout(std::process::Stdio::piped()).spawn().expect("a shell")
        });
        for child in &mut children {
            let mut line = [0];
            std::io::Read::read_exact(child.stdout.as_mut().expect("it is piped"), &mut line)
                .expect("a line");
        }
        let begin = now();
        end_inside(std::iter::once(path.as_path()));
        let elapsed = now() - begin;
        let left = processes_in(&[id(&path).expect("it is there")]);
        batch("ip", &["netns", "del", &name], "").expect("it is ours");
        for mut child in children {
            child.wait().expect("its status");
        }
        assert!(left.is_empty(), "{left:?}");
        assert!(elapsed >= GRACE && elapsed < 2 * GRACE, "{elapsed:?}");
    }

    #[test]
    fn a_process_is_alive_until_it_ends() {
        assert!(Process::this().is_alive());
        assert!(!Process { started: 1, ..Process::this() }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a program");
        let process = Process::of(child.id()).expect("it runs");
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
