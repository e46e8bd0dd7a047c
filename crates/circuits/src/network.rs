//! Network parameters that a schedule depends on: rates, the night between days, the length of a week.

use leeward_fabric::{Bandwidth, Nanos};

/// A network of racks under a packet switch and a circuit switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    circuit: Bandwidth,
    packet: Bandwidth,
    night: Nanos,
    week: Nanos,
    min_day: Nanos,
}

/// Largest rate of a link, so that a week's bytes can be counted.
const MAX_RATE: Bandwidth = Bandwidth(100_000_000_000_000);
/// Longest week.
const MAX_WEEK: Nanos = Nanos(60_000_000_000);

/// Invalid network parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// A rate of 0 or above the limit.
    #[error("{switch} rate: {rate}: must be above 0 and at most {MAX_RATE}")]
    Rate {
        /// `circuit` or `packet`.
        switch: &'static str,
        /// Invalid rate.
        rate: Bandwidth,
    },
    /// A week of 0 or above the limit.
    #[error("week: {week}: must be above 0 and at most {MAX_WEEK}")]
    Week {
        /// Invalid week.
        week: Nanos,
    },
    /// A night as long as the week or longer.
    #[error("night: {night}: must be shorter than the week of {week}")]
    Night {
        /// Invalid night.
        night: Nanos,
        /// Length of a week.
        week: Nanos,
    },
    /// A minimum day that does not fit into a week.
    #[error("minimum day: {min_day}: does not fit after a night of {night} in a week of {week}")]
    MinDay {
        /// Invalid minimum day.
        min_day: Nanos,
        /// Length of the night before it.
        night: Nanos,
        /// Length of a week.
        week: Nanos,
    },
}

impl Network {
    /// Creates a network from the rates of circuits and of links to the packet switch, and the lengths of night, week
    /// and minimum day.
    ///
    /// # Errors
    /// Returns the first value out of range.
    pub fn new(
        circuit: Bandwidth,
        packet: Bandwidth,
        night: Nanos,
        week: Nanos,
        min_day: Nanos,
    ) -> Result<Network, NetworkError> {
        for (switch, rate) in [("circuit", circuit), ("packet", packet)] {
            if rate.0 == 0 || rate > MAX_RATE {
                return Err(NetworkError::Rate { switch, rate });
            }
        }
        if week.0 == 0 || week > MAX_WEEK {
            return Err(NetworkError::Week { week });
        }
        if night >= week {
            return Err(NetworkError::Night { night, week });
        }
        if min_day > week.since(night) {
            return Err(NetworkError::MinDay { min_day, night, week });
        }
        Ok(Network { circuit, packet, night, week, min_day })
    }

    /// Rate of a circuit.
    pub fn circuit(&self) -> Bandwidth {
        self.circuit
    }

    /// Rate of a rack's link to the packet switch.
    pub fn packet(&self) -> Bandwidth {
        self.packet
    }

    /// Time that circuits take to change.
    pub fn night(&self) -> Nanos {
        self.night
    }

    /// Longest length of a schedule.
    pub fn week(&self) -> Nanos {
        self.week
    }

    /// Length of the shortest useful day; 0 for no minimum.
    pub fn min_day(&self) -> Nanos {
        self.min_day
    }

    /// Whole bytes that a circuit carries in `time`.
    pub fn carries(&self, time: Nanos) -> u64 {
        to_u64_saturating(u128::from(self.circuit.0) * u128::from(time.0) / BITS_NS)
    }

    /// Time that a circuit needs for `bytes`, rounded up to nanoseconds.
    pub fn takes(&self, bytes: u64) -> Nanos {
        Nanos(to_u64_saturating((u128::from(bytes) * BITS_NS).div_ceil(self.circuit.0.into())))
    }

    /// Time that a link to the packet switch needs for `bytes`, rounded up to nanoseconds.
    pub fn packets_take(&self, bytes: u64) -> Nanos {
        Nanos(to_u64_saturating((u128::from(bytes) * BITS_NS).div_ceil(self.packet.0.into())))
    }
}

/// Product of a rate in bit/s and a time in nanoseconds that amounts to one byte.
const BITS_NS: u128 = 8_000_000_000;

fn to_u64_saturating(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Etalon's testbed (section 4): circuits of 80 Gb/s, packet links of 10 Gb/s, nights of 20 us, days of at least 180
/// us, weeks of 2 ms.
impl Default for Network {
    fn default() -> Network {
        Network {
            circuit: Bandwidth(80_000_000_000),
            packet: Bandwidth(10_000_000_000),
            night: Nanos(20_000),
            week: Nanos(2_000_000),
            min_day: Nanos(180_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_networks_are_rejected() {
        let message = |circuit, packet, night, week, min_day| {
            let times = [night, week, min_day].map(|us: u64| Nanos(us * 1000));
            let network = Network::new(Bandwidth(circuit), Bandwidth(packet), times[0], times[1], times[2]);
            network.unwrap_err().to_string()
        };
        assert_eq!(message(0, 1, 20, 2000, 0), "circuit rate: 0bps: must be above 0 and at most 100Tbps");
        assert_eq!(message(1, 0, 20, 2000, 0), "packet rate: 0bps: must be above 0 and at most 100Tbps");
        assert_eq!(message(1, 1, 20, 0, 0), "week: 0s: must be above 0 and at most 1min");
        assert_eq!(message(1, 1, 2000, 2000, 0), "night: 2ms: must be shorter than the week of 2ms");
        let short = "minimum day: 1.99ms: does not fit after a night of 20us in a week of 2ms";
        assert_eq!(message(1, 1, 20, 2000, 1990), short);
    }

    #[test]
    fn a_circuit_carries_bytes_at_its_rate() {
        let network = Network::default();
        assert_eq!(network.carries(Nanos(180_000)), 1_800_000);
        assert_eq!(network.takes(10_001), Nanos(1001));
        assert_eq!(network.packets_take(1250), Nanos(1000));
    }
}
