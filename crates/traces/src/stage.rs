//! Stages on the path of a request.

use std::fmt;

/// A stage of a request's path. Requests pass the three stages in this order, and each stage has its own queues, curves
/// and limits (SLO section 2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// From the client to the server; work is bytes.
    NetworkIn,
    /// At the server's device; work is seconds of service.
    Storage,
    /// From the server to the client; work is bytes.
    NetworkOut,
}

impl Stage {
    /// All stages, in the order in which a request passes them.
    pub const ALL: [Stage; 3] = [Stage::NetworkIn, Stage::Storage, Stage::NetworkOut];

    /// Name of the stage, for users.
    pub fn name(self) -> &'static str {
        match self {
            Stage::NetworkIn => "network-in",
            Stage::Storage => "storage",
            Stage::NetworkOut => "network-out",
        }
    }

    /// The stage with this name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_parse_from_their_displayed_names() {
        for stage in Stage::ALL {
            assert_eq!(Stage::from_name(&stage.to_string()), Some(stage));
        }
        assert_eq!(Stage::from_name("network"), None);
    }
}
