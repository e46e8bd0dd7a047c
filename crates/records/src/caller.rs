//! Identity of a request: a key, or a client with a sequence number.

use std::sync::Arc;

/// Identity of a request. A repeated request returns the first decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// A client, with the sequence number of its request. Sequence numbers of one client increase.
    Client {
        /// Name of the client.
        client: Arc<str>,
        /// Sequence number of the request.
        sequence: u64,
    },
    /// A unique key.
    Key(Arc<str>),
}
