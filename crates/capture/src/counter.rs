//! Counters of interfaces, which sFlow agents send beside their samples.

use std::net::IpAddr;

/// Counters of an interface at one time, as exported by sFlow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// Time of the reading, in nanoseconds since 1970.
    pub time_ns: i64,
    /// Address of the agent.
    pub agent: IpAddr,
    /// Number of the interface (ifIndex).
    pub interface: u32,
    /// Speed of the interface in bits per second; 0 is unknown.
    pub speed_bps: u64,
    /// Received bytes since an arbitrary start.
    pub in_octets: u64,
    /// Sent bytes since an arbitrary start.
    pub out_octets: u64,
}
