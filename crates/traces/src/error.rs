//! Errors about the work of requests.

use leeward_fabric::input::format_number;

/// A failure to compute the work of a request.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum WorkError {
    /// A setting out of range.
    #[error("{name} {}: expected a number from 0 to 1e9", format_number(*.number))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The rejected number.
        number: f64,
    },
    /// A request without an offset at a disk whose seek time depends on it.
    #[error(
        "the request at {at} s has no offset, and the disk's seek time depends on it; take a trace with offsets, \
         or a constant seek time"
    )]
    NoOffset {
        /// Time of the request, in seconds.
        at: f64,
    },
}
