//! What a schedule is made for: rates, the gap between days, and how long a week is.

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

/// The fastest rate of a link, which keeps a week's bytes countable.
const FASTEST: Bandwidth = Bandwidth(100_000_000_000_000);
/// The longest week.
const LONGEST: Nanos = Nanos(60_000_000_000);

/// What is no network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// A rate of a link that cannot be.
    #[error("{switch} rate: {rate}: must be above 0 and at most {FASTEST}")]
    Rate {
        /// Of which switch.
        switch: &'static str,
        /// The rate.
        rate: Bandwidth,
    },
    /// A week that cannot be.
    #[error("week: {week}: must be above 0 and at most {LONGEST}")]
    Week {
        /// The week.
        week: Nanos,
    },
    /// A night with no room for a day.
    #[error("night: {night}: must be shorter than the week of {week}")]
    Night {
        /// The night.
        night: Nanos,
        /// The week.
        week: Nanos,
    },
    /// A shortest day that no week has room for.
    #[error("minimum day: {min_day}: does not fit after a night of {night} in a week of {week}")]
    MinDay {
        /// The day.
        min_day: Nanos,
        /// The night before it.
        night: Nanos,
        /// The week.
        week: Nanos,
    },
}

impl Network {
    /// A network of links of a rate to each switch, with nights and weeks so long and no day shorter than `min_day`.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn new(
        circuit: Bandwidth,
        packet: Bandwidth,
        night: Nanos,
        week: Nanos,
        min_day: Nanos,
    ) -> Result<Network, NetworkError> {
        for (switch, rate) in [("circuit", circuit), ("packet", packet)] {
            if rate.0 == 0 || rate > FASTEST {
                return Err(NetworkError::Rate { switch, rate });
            }
        }
        if week.0 == 0 || week > LONGEST {
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

    /// How long circuits take to change.
    pub fn night(&self) -> Nanos {
        self.night
    }

    /// How long a schedule may be.
    pub fn week(&self) -> Nanos {
        self.week
    }

    /// The shortest day worth a night; 0 if any is.
    pub fn min_day(&self) -> Nanos {
        self.min_day
    }

    /// Whole bytes that a circuit carries in a time.
    pub fn carries(&self, time: Nanos) -> u64 {
        saturated(u128::from(self.circuit.0) * u128::from(time.0) / BITS_NS)
    }

    /// The time that a circuit needs for so many bytes, rounded up.
    pub fn takes(&self, bytes: u64) -> Nanos {
        Nanos(saturated((u128::from(bytes) * BITS_NS).div_ceil(self.circuit.0.into())))
    }

    /// The time that a link to the packet switch needs for so many bytes, rounded up.
    pub fn packets_take(&self, bytes: u64) -> Nanos {
        Nanos(saturated((u128::from(bytes) * BITS_NS).div_ceil(self.packet.0.into())))
    }
}

/// Bit/s times nanoseconds in a byte.
const BITS_NS: u128 = 8_000_000_000;

fn saturated(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Etalon's testbed (section 4): circuits of 80 Gb/s, packets at 10 Gb/s, nights of 20 us, days from 180 us, and the week of
/// 2 ms that it computes schedules for.
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
    fn what_is_no_network_is_named() {
        let says = |circuit, packet, night, week, min_day| {
            let times = [night, week, min_day].map(|us: u64| Nanos(us * 1000));
            let made = Network::new(Bandwidth(circuit), Bandwidth(packet), times[0], times[1], times[2]);
            made.unwrap_err().to_string()
        };
        assert_eq!(says(0, 1, 20, 2000, 0), "circuit rate: 0bps: must be above 0 and at most 100Tbps");
        assert_eq!(says(1, 0, 20, 2000, 0), "packet rate: 0bps: must be above 0 and at most 100Tbps");
        assert_eq!(says(1, 1, 20, 0, 0), "week: 0s: must be above 0 and at most 1min");
        assert_eq!(says(1, 1, 2000, 2000, 0), "night: 2ms: must be shorter than the week of 2ms");
        let short = "minimum day: 1.99ms: does not fit after a night of 20us in a week of 2ms";
        assert_eq!(says(1, 1, 20, 2000, 1990), short);
    }

    #[test]
    fn a_circuit_carries_what_its_rate_says() {
        let network = Network::default();
        assert_eq!(network.carries(Nanos(180_000)), 1_800_000);
        assert_eq!(network.takes(10_001), Nanos(1001));
        assert_eq!(network.packets_take(1250), Nanos(1000));
    }
}
