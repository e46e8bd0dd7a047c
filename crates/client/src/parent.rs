//! End of an enforcer whose agent ends: an agent that is killed cannot end the enforcers that it runs.

use std::io;

use rustix::process::{Signal, getppid, kill_process, set_parent_process_death_signal};

/// Environment variable with the process id of the agent that runs this enforcer.
pub const PARENT: &str = "LEEWARD_PARENT";

/// Lets the kernel send SIGTERM to this process when the agent that started it ends; does nothing without the variable
/// [`PARENT`].
///
/// # Errors
/// An error of the kernel, or for a variable that is not a process id.
pub fn end_with_parent() -> io::Result<()> {
    let Ok(text) = std::env::var(PARENT) else { return Ok(()) };
    let invalid = || io::Error::other(format!("{PARENT}={text}: expected a process id"));
    let parent: i32 = text.parse().ok().filter(|&pid| pid > 0).ok_or_else(invalid)?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The agent may have ended before.
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        kill_process(rustix::process::getpid(), Signal::TERM)?;
    }
    Ok(())
}
