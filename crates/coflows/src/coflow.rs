//! A coflow: its facts at its arrival, and its completion.

/// Longest flow of a short coflow, exclusive: 5 MB (Varys, SIGCOMM 2014, section 7), of 2^20 bytes each.
pub const SHORT: u64 = 5 << 20;

/// Largest number of flows of a narrow coflow (Varys, section 7).
pub const NARROW: u32 = 50;

/// A coflow as it arrives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrival {
    /// Id in its source.
    pub id: String,
    /// Arrival time, in seconds.
    pub arrive: f64,
    /// Number of senders.
    pub senders: u32,
    /// Number of receivers.
    pub receivers: u32,
    /// Width: the number of its flows, without pairs within a rack.
    pub flows: u32,
    /// Bytes of these flows.
    pub bytes: u64,
    /// Bytes of the longest of these flows.
    pub longest: u64,
    /// Number of pairs within a rack, which are no flows.
    pub local_pairs: u32,
    /// Bytes of these pairs.
    pub local_bytes: u64,
}

/// A coflow that arrived in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Coflow {
    /// Its facts.
    pub arrival: Arrival,
    /// Lower bound of its completion time in seconds: its effective bottleneck, as if it were alone in the network. The
    /// largest quotient over links of its bytes on the link and the link's capacity, at its arrival. Infinite if a link
    /// had no capacity.
    pub bound: f64,
    /// Time at which its last flow ended, in seconds.
    pub finished: Option<f64>,
}

/// A class of coflows by length and width (Varys, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Short and narrow.
    ShortNarrow,
    /// Long and narrow.
    LongNarrow,
    /// Short and wide.
    ShortWide,
    /// Long and wide.
    LongWide,
}

impl Coflow {
    /// Coflow completion time: from the arrival to the end of the last flow, in seconds.
    pub fn completion_time(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.arrival.arrive)
    }

    /// Completion time over its lower bound. `None` without bytes on the network.
    pub fn slowdown(&self) -> Option<f64> {
        let time = self.completion_time()?;
        (self.bound > 0.0 && self.bound < f64::INFINITY).then(|| time / self.bound)
    }

    /// Class by length and width. `None` without flows.
    pub fn class(&self) -> Option<Class> {
        let Arrival { flows, longest, .. } = self.arrival;
        (flows > 0).then_some(match (longest < SHORT, flows <= NARROW) {
            (true, true) => Class::ShortNarrow,
            (false, true) => Class::LongNarrow,
            (true, false) => Class::ShortWide,
            (false, false) => Class::LongWide,
        })
    }
}

impl Class {
    /// All classes, in the order of Varys's tables.
    pub const ALL: [Class; 4] = [Class::ShortNarrow, Class::LongNarrow, Class::ShortWide, Class::LongWide];

    /// Short name: `SN`, `LN`, `SW` or `LW`.
    pub fn name(self) -> &'static str {
        match self {
            Class::ShortNarrow => "SN",
            Class::LongNarrow => "LN",
            Class::ShortWide => "SW",
            Class::LongWide => "LW",
        }
    }
}
