//! Signals that stop a program: as a file that can be waited for, and blocked until the program can end as it should.
//!
//! An enforcer that starts must not end before it can undo its work, so its agent starts it with SIGTERM blocked. The
//! signal waits until [`Signals::wait`] reads it, or until [`unblock_signals`].

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that stop a program: SIGINT, SIGTERM and SIGHUP.
pub struct Signals(SignalFd);

/// SIGINT, SIGTERM and SIGHUP.
fn all() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect()
}

/// Starts a program with SIGTERM blocked, as [`unblock_signals`] expects.
///
/// # Errors
/// An error of the kernel or of `start`.
pub fn start_with_sigterm_blocked<T>(start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = SigSet::from(Signal::SIGTERM).thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = start();
    before.thread_set_mask()?;
    started
}

/// Unblocks SIGINT, SIGTERM and SIGHUP in this thread. A program that an agent may run, and that has handlers of these
/// signals in place of [`Signals`], calls this once the handlers are there.
///
/// # Errors
/// An error of the kernel.
pub fn unblock_signals() -> io::Result<()> {
    Ok(all().thread_unblock()?)
}

impl Signals {
    /// Blocks the signals for this thread, and for threads and programs that it starts.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn block() -> io::Result<Signals> {
        let mask = all();
        mask.thread_block()?;
        Ok(Signals(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Waits for a signal for at most this time; returns true if there is one.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn wait(&self, time: Duration) -> io::Result<bool> {
        // Rounded up, so that a rest of less than a millisecond is not a busy loop.
        let time = if time.is_zero() { time } else { time + Duration::from_millis(1) };
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], time) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.0.read_signal()?.is_some())
    }
}
