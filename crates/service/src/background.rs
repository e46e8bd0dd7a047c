//! Work that no placement and no report waits for: it runs on threads of low priority, so that it takes only a small
//! share of a core that requests need too. They are the threads of the runtime for blocking work, which keep the
//! priority: all blocking work may run at it.

use std::sync::LazyLock;

use rustix::process::{getpriority_process, setpriority_process};
use tokio::task::JoinError;

/// Niceness of such a thread above that of the process. The scheduler of Linux gives it a tenth of the share of another
/// thread.
const NICER: i32 = 10;
/// Greatest niceness of Linux.
const NICEST: i32 = 19;

/// Runs work on a thread of the runtime for blocking work, and waits for its result.
///
/// # Errors
/// The work panicked, or the runtime is shutting down.
pub async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    tokio::task::spawn_blocking(|| {
        // The thread may have run other work before, and keeps the priority.
        lower_priority();
        work()
    })
    .await
}

/// Lowers the priority of this thread for good.
pub(crate) fn lower_priority() {
    static NICENESS: LazyLock<i32> =
        LazyLock::new(|| (getpriority_process(None).unwrap_or(0) + NICER).min(NICEST));
    // Without a process id, Linux changes the calling thread. A system that refuses leaves the priority as it is.
    let _ = setpriority_process(None, *NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_of_the_work_has_a_low_priority() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let before = getpriority_process(None).expect("a priority");
        for _ in 0..2 {
            let inside = runtime.block_on(in_background(|| getpriority_process(None).expect("a priority")));
            assert_eq!(inside.expect("no panic"), (before + NICER).min(NICEST));
        }
        assert_eq!(getpriority_process(None).expect("a priority"), before);
    }
}
