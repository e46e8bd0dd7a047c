//! Identity of a request: a key, or a client with a sequence number.

use std::sync::Arc;

/// What tells a request apart from others, so that one that is sent again is not decided again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// Who asks, and for the how-manieth time. The sequences of one client rise.
    Client {
        /// Its name.
        client: Arc<str>,
        /// The number of the request.
        sequence: u64,
    },
    /// A key that nobody else uses.
    Key(Arc<str>),
}
