//! What a packet plant is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use leeward_circuits::routing::Routes;
use leeward_circuits::{Schedule, switch};
use leeward_fabric::{Bandwidth, Nanos};

use super::tcp;
use super::workload::Place;

/// What a host sends, limited by a token bucket that is full at the beginning, as virtual machines are in clouds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Which host.
    pub host: Place,
    /// The rate in the long run.
    pub rate: Bandwidth,
    /// What passes at the NIC's rate after a while without traffic, in bytes.
    pub bucket: u64,
}

/// A rack network, its hosts and their transport.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The switch between racks.
    pub switch: switch::Settings,
    /// Hosts of each rack; host `h` is in rack `h / hosts_per_rack`.
    pub hosts_per_rack: usize,
    /// The rate at which each host sends.
    pub nic: Bandwidth,
    /// Bytes of a connection that wait in its host's NIC at most; what more its window has room for waits in the socket (TCP small
    /// queues). None: no limit.
    pub nic_limit: Option<u64>,
    /// Hosts that send less than their NIC could.
    pub limits: Vec<Limit>,
    /// How long a packet takes from a host to another of its rack, once it is sent.
    pub local_delay: Nanos,
    /// How long after its start a flow is given up: nothing of it is sent from then on. None: never.
    pub give_up: Option<Nanos>,
    /// How both ends of every connection behave.
    pub tcp: tcp::Settings,
    /// How much later than it could a host starts to send a packet, at most: evenly spread, from the seed. 0 makes hosts as exact as
    /// the switch, and flows of the same length march in step.
    pub jitter: Nanos,
    /// What the jitter comes from.
    pub seed: u64,
    /// How often queues and what has arrived are recorded, if at all.
    pub sample_every: Option<Nanos>,
    /// Of which pairs of racks, as (source, destination).
    pub sampled: Vec<(usize, usize)>,
}

/// Settings that are none.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SettingsError {
    /// The switch's.
    #[error("switch: {0}")]
    Switch(#[from] switch::SettingsError),
    /// The transport's.
    #[error("tcp: {0}")]
    Tcp(#[from] tcp::SettingsError),
    /// A number that must be above 0.
    #[error("{name}: 0: must be above 0")]
    Zero {
        /// Which.
        name: &'static str,
    },
    /// A host that is not there, or twice.
    #[error("limits: {host}: must be a host of the network, and there once")]
    Limited {
        /// Which.
        host: Place,
    },
    /// A pair that is not there.
    #[error("sampled: pair {source_rack} to {destination} of {racks} racks, numbered from 0")]
    Pair {
        /// The rack the packets come from.
        source_rack: usize,
        /// The rack they go to.
        destination: usize,
        /// How many there are.
        racks: usize,
    },
}

impl Settings {
    /// The testbed of the Etalon paper (section 3.4): 16 hosts of 10 Gb/s a rack, Reno without ECN, of Linux 4.4 as its install
    /// scripts have it, where a connection has two bursts of 64 KiB in its NIC. The testbed's kernels ran at 20 times their own time,
    /// so their least retransmission timeout of 200 ms and all others are a twentieth.
    pub fn etalon(racks: usize) -> Settings {
        const DILATION: u64 = 20;
        let of_kernel = tcp::Settings::default();
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
                initial_timeout: dilated(of_kernel.initial_timeout),
                min_timeout: dilated(of_kernel.min_timeout),
                max_timeout: dilated(of_kernel.max_timeout),
                ack_delay: dilated(of_kernel.ack_delay),
                rack: tcp::RackUse::Repairs,
                rack_window: dilated(of_kernel.rack_window),
                min_probe: dilated(Nanos(10_000_000)),
                lone_probe: dilated(Nanos(200_000_000)),
                ..of_kernel
            },
            jitter: Nanos(0),
            seed: 0,
            sample_every: None,
            sampled: Vec::new(),
        }
    }

    /// The number of a host.
    pub(super) fn number(&self, host: Place) -> usize {
        host.rack as usize * self.hosts_per_rack + host.host as usize
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts_per_rack * self.switch.racks
    }

    /// Whether there can be such a plant.
    ///
    /// # Errors
    /// The first field that is out of bounds.
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
            let there = (host.rack as usize) < racks && (host.host as usize) < self.hosts_per_rack;
            if !there || !limited.insert(host) {
                return Err(SettingsError::Limited { host });
            }
        }
        match self.sampled.iter().find(|pair| pair.0 >= racks || pair.1 >= racks) {
            Some(&(source_rack, destination)) => Err(SettingsError::Pair { source_rack, destination, racks }),
            None => Ok(()),
        }
    }
}

/// From what the demand of the next week is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Demand {
    /// What is in the switch's queues.
    Queues,
    /// What applications have written and the switch has not seen (Etalon, section 5.2).
    Adus,
    /// What is in sockets: written and not acknowledged.
    Sockets,
    /// What has been written and has not arrived.
    Oracle,
}

/// Makes the schedule of the next week from bytes by source rack, then destination, or says why it cannot.
pub type Planner<'a> = Box<dyn FnMut(&[u64]) -> Result<Schedule, String> + 'a>;

/// What circuits there are.
pub enum Plan<'a> {
    /// None.
    Packets,
    /// A week that repeats.
    Fixed(Schedule),
    /// A week that repeats, and how packets go by its circuits.
    Routed(Schedule, Arc<Routes>),
    /// A week by the demand there is some time before it begins; the first at time 0, of what is written then.
    Weekly {
        /// How demand is known.
        demand: Demand,
        /// How long before the week it is asked for: what the scheduler takes. 1 ns at least.
        ahead: Nanos,
        /// What makes schedules of it.
        planner: Planner<'a>,
    },
}
