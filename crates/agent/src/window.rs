//! Window: traffic of a host between two readings, or the reason why it is unknown.

use std::fmt;

use leeward_fabric::Nanos;
use leeward_fabric::input::excerpt;

use crate::disks::DiskWork;

/// Total traffic of the interfaces between two readings, and the work of disks.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Start by the wall clock, in time since 1970.
    pub from: Nanos,
    /// End by the wall clock.
    pub until: Nanos,
    /// Bytes sent by the host.
    pub egress: u64,
    /// Bytes received by the host.
    pub ingress: u64,
    /// Total speed of the interfaces in each direction now, in bits per second; `None` if one of the interfaces reports
    /// no speed.
    pub speed_bps: Option<u64>,
    /// Bytes queued for sending now, including cards below bonds; `None` if the number is unknown for one of them.
    pub queued: Option<u64>,
    /// Work of each disk that was present at both ends.
    pub disks: Vec<DiskWork>,
}

impl Window {
    /// Mean rate of `bytes` over the window, in bits per second.
    pub fn rate_bps(&self, bytes: u64) -> f64 {
        let seconds = Nanos(self.until.0 - self.from.0).as_secs_f64();
        8.0 * bytes as f64 / seconds
    }
}

/// Reason why a reading ends no window.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gap {
    /// The first reading.
    First,
    /// No interface to watch.
    NoInterface,
    /// A selected interface does not exist, so the traffic of the other interfaces is only a part of the host's
    /// traffic.
    Missing(String),
    /// An interface appeared, so its earlier traffic is unknown.
    Appeared,
    /// An interface disappeared, so its last traffic is unknown.
    Disappeared,
    /// Counters were reset.
    Reset,
    /// The wall clock was set.
    ClockSet,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Gap::Missing(name) => {
                let name = excerpt(name);
                return write!(
                    f,
                    "interface `{name}` does not exist; /sys/class/net lists the existing ones"
                );
            }
            Gap::First => "first reading of the counters",
            Gap::NoInterface => "no interface to watch",
            Gap::Appeared => "an interface appeared",
            Gap::Disappeared => "an interface disappeared",
            Gap::Reset => "counters were reset",
            Gap::ClockSet => "the wall clock was set",
        })
    }
}
