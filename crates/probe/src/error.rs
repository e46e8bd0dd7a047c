//! Errors of measurements.

use std::io;

/// Reason that a measurement failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProbeError {
    /// A setting out of range.
    #[error("{field}: {message}")]
    Setting {
        /// Field.
        field: String,
        /// Its value and the expected range.
        message: String,
    },
    /// A system error here or at a peer: unknown host, connection refused, timeout.
    #[error("{what}: {message}")]
    System {
        /// Subject of the error, usually an address.
        what: String,
        /// Message of the system.
        message: String,
    },
    /// A peer refuses the request.
    #[error("{peer}: {message}")]
    Refused {
        /// Address of the peer.
        peer: String,
        /// Reason.
        message: String,
    },
    /// A peer is busy with another measurement; a later retry may succeed.
    #[error("{peer}: busy with another measurement")]
    Busy {
        /// Address of the peer.
        peer: String,
    },
    /// A peer violates the protocol.
    #[error("{peer}: {message}; does `leeward probe listen` of this version run there?")]
    Protocol {
        /// Address of the peer.
        peer: String,
        /// Message received and message expected.
        message: String,
    },
    /// The caller stopped the survey.
    #[error("stopped")]
    Stopped,
    /// A measurement without a usable result.
    #[error("{0}")]
    Nothing(String),
}

impl ProbeError {
    /// Error for a setting out of range.
    pub fn setting(field: impl Into<String>, message: impl Into<String>) -> ProbeError {
        ProbeError::Setting { field: field.into(), message: message.into() }
    }

    /// Error for a peer's refusal, with the start of its message on one line, because a peer may send anything.
    pub fn refused(peer: impl Into<String>, message: &str) -> ProbeError {
        ProbeError::Refused { peer: peer.into(), message: excerpt(message) }
    }

    /// Converts a system error about `what`.
    pub fn system(what: impl ToString, error: &io::Error) -> ProbeError {
        let message = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "connection refused; is `leeward probe listen` running there?".to_owned()
            }
            io::ErrorKind::AddrInUse => "address already in use; choose another port".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "timeout".to_owned(),
            io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
            _ => error.to_string(),
        };
        ProbeError::System { what: what.to_string(), message }
    }
}

/// Maximum number of characters quoted from a peer's message.
const LONGEST: usize = 200;

/// Start of a peer's text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let text = text.trim();
    let shown: String =
        text.chars().take(LONGEST).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if shown.len() < text.len() { shown + "..." } else { shown }
}
