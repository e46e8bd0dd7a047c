//! An app with the names of its tasks, and the limits on its size.

use super::AppRequest;

/// Largest number of tasks of an app; a larger count is a mistake.
pub(super) const MOST_TASKS: usize = 100_000;
/// Largest number of transfers of an app; a transfer between names with a `count` counts once for each pair of tasks.
pub(super) const MOST_TRANSFERS: usize = 2_000_000;
/// Largest number of phases of an app: its major ones (Choreo section 7.2).
pub(super) const MOST_PHASES: usize = 20;
/// Largest sum of bytes of a traffic matrix.
pub(super) const MOST_BYTES: f64 = (1_u64 << 62) as f64;

/// An app, or a job of independent tasks.
#[derive(Clone, PartialEq, Debug)]
pub struct App {
    /// Display name.
    pub name: String,
    /// Names of its tasks, in the order of the request.
    pub names: Vec<String>,
    /// Command line of the program of each task; `None` for a task that only transfers.
    pub commands: Vec<Option<String>>,
    /// The request, with id and job 0; its only constraints are those between its tasks.
    pub request: AppRequest,
}
