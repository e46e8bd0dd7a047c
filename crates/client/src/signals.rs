//! Signals that stop a program, as a file that can be waited for.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that stop a program: SIGINT, SIGTERM and SIGHUP.
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks the signals for this thread and those that it starts. Programs that it runs have none of them blocked.
    ///
    /// # Errors
    /// An error of the kernel.
    pub fn block() -> io::Result<Signals> {
        let mut mask = SigSet::empty();
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| mask.add(signal));
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
