//! Settings of a packet simulator.

use std::collections::BTreeSet;
use std::sync::Arc;

use leeward_circuits::routing::Routes;
use leeward_circuits::{Schedule, switch};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_tcp as tcp;

use super::workload::Place;

/// Rate limit of a host: a token bucket that is full at the start, as for virtual machines in clouds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Host with the limit.
    pub host: Place,
    /// Long-term rate.
    pub rate: Bandwidth,
    /// Bytes that pass at the NIC's rate after an idle time.
    pub bucket: u64,
}

/// A rack network, its hosts and their transport.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The switch between racks.
    pub switch: switch::Settings,
    /// Hosts of each rack; host `h` is in rack `h / hosts_per_rack`.
    pub hosts_per_rack: usize,
    /// Send rate of each host.
    pub nic: Bandwidth,
    /// Largest number of bytes of a connection in its host's NIC; the rest of its window waits in the socket (TCP small
    /// queues). `None` for no limit.
    pub nic_limit: Option<u64>,
    /// Hosts with a rate limit below their NIC.
    pub limits: Vec<Limit>,
    /// Delay of a sent packet to another host of its rack.
    pub local_delay: Nanos,
    /// Time after its start at which a flow is abandoned and sends nothing more. `None`: never.
    pub give_up: Option<Nanos>,
    /// TCP settings of both ends of every connection.
    pub tcp: tcp::Settings,
    /// Largest random delay before a host starts to send a packet. Delays are uniform draws. With 0, hosts are as exact
    /// as the switch, and flows of the same length proceed in lockstep.
    pub jitter: Nanos,
    /// Seed of the jitter.
    pub seed: u64,
    /// Interval between samples of queues and arrived bytes; `None`: no samples.
    pub sample_every: Option<Nanos>,
    /// Sampled pairs of racks, as (source, destination).
    pub sampled: Vec<(usize, usize)>,
}

/// Invalid settings.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// Invalid switch settings.
    #[error("switch: {0}")]
    Switch(#[from] switch::SettingsError),
    /// Invalid transport settings.
    #[error("tcp: {0}")]
    Tcp(#[from] tcp::SettingsError),
    /// A setting is 0 and must be above 0.
    #[error("{name}: 0: must be above 0")]
    Zero {
        /// Name of the setting.
        name: &'static str,
    },
    /// A limited host does not exist, or is listed twice.
    #[error("limits: {host}: must be a host of the network, listed once")]
    Limited {
        /// The host.
        host: Place,
    },
    /// A sampled pair does not exist.
    #[error(
        "sampled: pair {source_rack} to {destination} does not exist: the network has {racks} racks, numbered from 0"
    )]
    Pair {
        /// Source rack.
        source_rack: usize,
        /// Destination rack.
        destination: usize,
        /// Number of racks.
        racks: usize,
    },
}

impl Settings {
    /// The testbed of the Etalon paper (section 3.4): 16 hosts of 10 Gb/s per rack, and Linux 4.4's Reno without ECN,
    /// as in its install scripts. A connection has two bursts of 64 KiB in its NIC. The testbed dilated the time of its
    /// kernels by a factor of 20. Their smallest retransmission timeout of 200 ms, and all other times, are therefore
    /// divided by 20.
    pub fn etalon(racks: usize) -> Settings {
        const DILATION: u64 = 20;
        let kernel = tcp::Settings::default();
        let dilated = |time: Nanos| Nanos(time.0 / DILATION);
        Settings {
            switch: switch::Settings::etalon(racks),
            hosts_per_rack: 16,
            nic: Bandwidth(10_000_000_000),
            nic_limit: Some(2 * 65_536),
            limits: Vec::new(),
            local_delay: Nanos(0),
            give_up: None,
            tcp: tcp::Settings {
                initial_timeout: dilated(kernel.initial_timeout),
                min_timeout: dilated(kernel.min_timeout),
                max_timeout: dilated(kernel.max_timeout),
                ack_delay: dilated(kernel.ack_delay),
                rack: tcp::RackUse::Repairs,
                rack_window: dilated(kernel.rack_window),
                min_probe: dilated(Nanos(10_000_000)),
                lone_probe: dilated(Nanos(200_000_000)),
                ..kernel
            },
            jitter: Nanos(0),
            seed: 0,
            sample_every: None,
            sampled: Vec::new(),
        }
    }

    /// Returns the index of a host.
    pub(super) fn number(&self, host: Place) -> usize {
        host.rack as usize * self.hosts_per_rack + host.host as usize
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts_per_rack * self.switch.racks
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns the first setting that is out of bounds.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.switch.check()?;
        self.tcp.check()?;
        let zeros = [
            ("hosts_per_rack", self.hosts_per_rack == 0),
            ("nic", self.nic.0 == 0),
            ("nic_limit", self.nic_limit == Some(0)),
            ("give_up", self.give_up == Some(Nanos(0))),
            ("sample_every", self.sample_every == Some(Nanos(0))),
            ("limits", self.limits.iter().any(|limit| limit.rate.0 == 0)),
        ];
        if let Some(&(name, _)) = zeros.iter().find(|(_, zero)| *zero) {
            return Err(SettingsError::Zero { name });
        }
        let racks = self.switch.racks;
        let mut limited = BTreeSet::new();
        for &Limit { host, .. } in &self.limits {
            let exists = (host.rack as usize) < racks && (host.host as usize) < self.hosts_per_rack;
            if !exists || !limited.insert(host) {
                return Err(SettingsError::Limited { host });
            }
        }
        match self.sampled.iter().find(|pair| pair.0 >= racks || pair.1 >= racks) {
            Some(&(source_rack, destination)) => Err(SettingsError::Pair { source_rack, destination, racks }),
            None => Ok(()),
        }
    }
}

/// Source of the demand estimate for the next week.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Demand {
    /// Bytes in the switch's queues.
    Queues,
    /// Bytes that applications have written and the switch has not seen (Etalon, section 5.2).
    Adus,
    /// Bytes in sockets: written and not acknowledged.
    Sockets,
    /// Bytes written that have not arrived.
    Oracle,
}

/// Computes the schedule of the next week from bytes by source rack, then destination, or returns the reason
/// for failure.
pub type Planner<'a> = Box<dyn FnMut(&[u64]) -> Result<Schedule, String> + Send + 'a>;

/// Plan of circuits.
pub enum Plan<'a> {
    /// No circuits.
    Packets,
    /// A week that repeats.
    Fixed(Schedule),
    /// A week that repeats, with the routes of packets over its circuits.
    Routed(Schedule, Arc<Routes>),
    /// A new week each time, computed from the demand some time before the week begins. The first week begins at time
    /// 0, from the demand written at that time.
    Weekly {
        /// Source of the demand estimate.
        demand: Demand,
        /// Time before the week at which the simulator requests its schedule: the scheduler's computing time. At least
        /// 1 ns.
        ahead: Nanos,
        /// Computes schedules from demand.
        planner: Planner<'a>,
    },
}
