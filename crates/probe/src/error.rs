//! What goes wrong with a measurement.

use std::io;

/// Why there is no measurement.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProbeError {
    /// A setting is out of its bounds.
    #[error("{field}: {message}")]
    Setting {
        /// The field.
        field: String,
        /// Its value and what was expected.
        message: String,
    },
    /// Something cannot be done here or there: no such host, nobody listens, no answer.
    #[error("{what}: {message}")]
    System {
        /// What it was about: mostly an address.
        what: String,
        /// What the system says.
        message: String,
    },
    /// A peer says no.
    #[error("{peer}: {message}")]
    Refused {
        /// Its address.
        peer: String,
        /// Why.
        message: String,
    },
    /// A peer measures something already; asked again later it may not.
    #[error("{peer}: a measurement is under way there")]
    Busy {
        /// Its address.
        peer: String,
    },
    /// A peer does not speak the protocol.
    #[error("{peer}: {message}; does `leeward probe listen` of this version run there?")]
    Protocol {
        /// Its address.
        peer: String,
        /// What it said and what was expected.
        message: String,
    },
    /// Whoever wanted it told us to stop.
    #[error("stopped")]
    Stopped,
    /// What was measured says nothing.
    #[error("{0}")]
    Nothing(String),
}

impl ProbeError {
    /// A setting that is out of its bounds.
    pub fn setting(field: impl Into<String>, message: impl Into<String>) -> ProbeError {
        ProbeError::Setting { field: field.into(), message: message.into() }
    }

    /// What a peer says no with: the beginning of it on one line, since a peer may say anything.
    pub fn refused(peer: impl Into<String>, message: &str) -> ProbeError {
        ProbeError::Refused { peer: peer.into(), message: beginning(message) }
    }

    /// What the system says about something.
    pub fn system(what: impl ToString, error: &io::Error) -> ProbeError {
        let hint = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "nobody listens there; start `leeward probe listen`".to_owned()
            }
            io::ErrorKind::AddrInUse => "somebody listens there already; give another port".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
            _ => error.to_string(),
        };
        ProbeError::System { what: what.to_string(), message: hint }
    }
}

/// Letters of what somebody else says that are repeated.
const LONGEST: usize = 200;

/// The beginning of a text from elsewhere, on one line.
pub(crate) fn beginning(text: &str) -> String {
    let text = text.trim();
    let shown: String =
        text.chars().take(LONGEST).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if shown.len() < text.len() { shown + "..." } else { shown }
}
