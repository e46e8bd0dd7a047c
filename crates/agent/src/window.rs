//! What a host did between two readings, or why that is not known.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

use crate::disks::Work;

/// What the interfaces carried together between two readings, and what disks did.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// When it begins by the wall clock, since 1970.
    pub from: Nanos,
    /// When it ends.
    pub until: Nanos,
    /// Bytes that the host sent.
    pub egress: u64,
    /// Bytes that it received.
    pub ingress: u64,
    /// What the interfaces carry at most each way now, in bits per second; `None` if one of them does not say.
    pub speed_bps: Option<u64>,
    /// Bytes that wait to be sent now, at cards below bonds too; `None` if that is not known of one of them.
    pub queued: Option<u64>,
    /// What each disk did that was there at both ends.
    pub disks: Vec<Work>,
}

impl Window {
    /// The mean rate of so many bytes, in bits per second.
    pub fn rate_bps(&self, bytes: u64) -> f64 {
        let seconds = Nanos(self.until.0 - self.from.0).as_secs_f64();
        8.0 * bytes as f64 / seconds
    }
}

/// Why a reading ends no window.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// It is the first.
    First,
    /// No interface is to be watched.
    NoInterface,
    /// No interface has this name that is to be watched; what the others carry is not all that the host does.
    Missing(String),
    /// An interface came, so what it carried before is not known.
    Came,
    /// An interface went, with what it carried last.
    Went,
    /// Counters began anew.
    Reset,
    /// The wall clock was set.
    ClockSet,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gap::Missing(name) => {
                let name = excerpt(name);
                return write!(f, "interface `{name}` is not there; /sys/class/net lists those that are");
            }
            Gap::First => "counters are read for the first time",
            Gap::NoInterface => "there is no interface to watch",
            Gap::Came => "an interface came",
            Gap::Went => "an interface went",
            Gap::Reset => "counters began anew",
            Gap::ClockSet => "the wall clock was set",
        })
    }
}
