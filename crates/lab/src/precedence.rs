//! Precedence of the lab's threads over other programs, so that these do not delay packets.

use nix::libc;

/// Real time for which a thread runs before all ordinary programs, and then as the first of them, in nanoseconds. The
/// kernel stops threads that run before ordinary programs for more than 95 % of a second, for the rest of it
/// (`sched_rt_runtime_us`).
const BEFORE: u64 = 88_000_000;
const AMONG: u64 = 12_000_000;

/// Precedence of the current thread. Without the right to change it, the thread stays as it is; [`crate::Timing`] shows
/// the effect.
#[derive(Debug)]
pub(crate) struct Precedence {
    is_before: bool,
    until: u64,
}

impl Precedence {
    /// Gives the current thread precedence, and precise timers.
    pub(crate) fn take() -> Precedence {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        // On Linux this applies to the calling thread only.
        let _ = rustix::process::setpriority_process(None, -20);
        Precedence { is_before: false, until: 0 }
    }

    /// Changes the precedence when it is due. Call this often; `now` is the real time.
    #[inline]
    pub(crate) fn keep(&mut self, now: u64) {
        if now >= self.until {
            self.change(now);
        }
    }

    #[cold]
    fn change(&mut self, now: u64) {
        self.is_before = !self.is_before;
        self.until = now + if self.is_before { BEFORE } else { AMONG };
        set(if self.is_before { libc::SCHED_RR } else { libc::SCHED_OTHER });
    }
}

#[allow(unsafe_code, reason = "no library that the project uses wraps this call")]
fn set(policy: libc::c_int) {
    let sched_priority = i32::from(policy == libc::SCHED_RR);
    let parameter = libc::sched_param { sched_priority };
    // SAFETY: the kernel reads the parameter during the call; a wrong one is an error and changes nothing.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) };
}
