//! A scenario of the packet plant as users write it: YAML or JSON, quantities with their units.
//!
//! What is left out is as in the Etalon testbed. Fields have the names of the settings they become ([`Settings`],
//! [`leeward_circuits::switch::Settings`], [`tcp::Settings`]), so that an error names what stands in the file.

mod trains;
mod workload;

use leeward_circuits::schedulers::FixedDay;
use leeward_circuits::switch;
use leeward_fabric::{Bandwidth, Bytes, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use trains::{LimitFile, TrainFile};
pub use workload::{CollectiveFile, CollectiveKind, DfsioFile, FlowFile, LongFile, RingsFile, WorkloadFile};

use super::settings::{Demand, Settings};
use super::tcp;
use super::tcp::control::Control;

/// A scenario of the packet plant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketsFile {
    /// Racks, hosts, links and queues.
    #[serde(default)]
    pub network: NetworkFile,
    /// What makes the schedule of circuits. Without it there are none.
    pub scheduler: Option<SchedulerFile>,
    /// How packets go by circuits. Default: by those of their own pair of racks.
    pub routing: Option<RoutingFile>,
    /// How hosts send.
    #[serde(default)]
    pub tcp: TcpFile,
    /// Larger queues ahead of circuits (Etalon, section 4.2).
    pub resize: Option<ResizeFile>,
    /// What hosts have to send. May be left out where there are `trains`.
    pub workload: Option<WorkloadFile>,
    /// Trains of packets beside that.
    #[serde(default)]
    pub trains: Vec<TrainFile>,
    /// How long after its start a flow is given up: nothing of it is sent from then on. Default: never.
    pub give_up: Option<Nanos>,
    /// How long the run is, if the workload is not over before.
    pub horizon: Nanos,
    /// What random draws come from. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Queues to look at from time to time.
    pub sample: Option<SampleFile>,
}

fn one() -> u64 {
    1
}

/// Racks, hosts, links and queues. Defaults are those of the Etalon testbed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkFile {
    /// How many racks there are. Default 8.
    pub racks: usize,
    /// Hosts of each. Default 16.
    pub hosts_per_rack: usize,
    /// The rate at which each host sends. Default 10Gbps.
    pub nic: Bandwidth,
    /// Bytes of a connection that wait in its host's NIC at most; more waits in the socket. Default 128KiB; null: no limit.
    pub nic_limit: Option<Bytes>,
    /// Hosts that send less than their NIC could: a token bucket each. Default: none.
    pub limits: Vec<LimitFile>,
    /// The rate of a rack's link to the packet switch, and from it. Default 10Gbps.
    pub packet_rate: Bandwidth,
    /// The rate of a circuit. Default 80Gbps.
    pub circuit_rate: Bandwidth,
    /// How long a bit takes along a link to the packet switch. Default 5us.
    pub uplink_delay: Nanos,
    /// And along one from it. Default 5us.
    pub downlink_delay: Nanos,
    /// And along a circuit. Default 30us.
    pub circuit_delay: Nanos,
    /// From a host to another of its rack. Default 0s.
    pub local_delay: Nanos,
    /// How much later than it could a host starts to send a packet, at most, drawn evenly. Default 0s.
    pub jitter: Nanos,
    /// What a pair's queue at its rack's switch holds, in packets. Default 16.
    pub voq_capacity: u32,
    /// What the packet switch holds of a pair, in packets. Default 3.
    pub inner_capacity: u32,
    /// How many packets that the packet switch sent back are kept of a pair. Default 5.
    pub loss_capacity: u32,
    /// Whether a pair's packets keep off the packet switch from the night before its day on. Default true.
    pub packet_path_off: bool,
    /// Whether there is a packet switch. Without, all waits for circuits. Default true.
    pub packet_switch: bool,
    /// How many packets of other racks a rack keeps for a destination that it passes them on to. Default 1024.
    pub relay_capacity: u32,
    /// From how many packets in its queue on a packet is marked (ECN). Default: none is.
    pub mark_at: Option<u32>,
}

impl Default for NetworkFile {
    fn default() -> NetworkFile {
        let of = Settings::etalon(8);
        NetworkFile {
            racks: of.switch.racks,
            hosts_per_rack: of.hosts_per_rack,
            nic: of.nic,
            nic_limit: of.nic_limit.map(Bytes),
            limits: Vec::new(),
            packet_rate: of.switch.packet_rate,
            circuit_rate: of.switch.circuit_rate,
            uplink_delay: of.switch.uplink_delay,
            downlink_delay: of.switch.downlink_delay,
            circuit_delay: of.switch.circuit_delay,
            local_delay: of.local_delay,
            jitter: of.jitter,
            voq_capacity: of.switch.voq_capacity,
            inner_capacity: of.switch.inner_capacity,
            loss_capacity: of.switch.loss_capacity,
            packet_path_off: of.switch.packet_path_off,
            packet_switch: of.switch.packet_switch,
            relay_capacity: of.switch.relay_capacity,
            mark_at: of.switch.mark_at,
        }
    }
}

impl NetworkFile {
    /// The switch without what other parts of the file say of it.
    pub(super) fn switch(&self) -> switch::Settings {
        switch::Settings {
            racks: self.racks,
            packet_rate: self.packet_rate,
            circuit_rate: self.circuit_rate,
            uplink_delay: self.uplink_delay,
            downlink_delay: self.downlink_delay,
            circuit_delay: self.circuit_delay,
            voq_capacity: self.voq_capacity,
            inner_capacity: self.inner_capacity,
            loss_capacity: self.loss_capacity,
            packet_path_off: self.packet_path_off,
            packet_switch: self.packet_switch,
            relay_capacity: self.relay_capacity,
            mark_at: self.mark_at,
            resize: None,
            circuit_marks: None,
        }
    }
}

/// What makes the schedule of circuits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerFile {
    /// Its name, with settings after colons: `strobe`, `fixed`, `solstice`, `eclipse:keep_min_day=true`. Or else there are `days`.
    pub name: Option<String>,
    /// Days that repeat: each its `length` and its `circuits`, `[[0, 1]]` for one from rack 0 to rack 1. They may be shorter than
    /// `min_day`, and together longer than `week`.
    pub days: Option<Vec<FixedDay>>,
    /// From what the demand of each week is known. Without it one schedule, made of no demand, repeats.
    pub demand: Option<DemandFile>,
    /// How long circuits take to change. Default 20us.
    #[serde(default = "night")]
    pub night: Nanos,
    /// How long a schedule may be. Default 2ms.
    #[serde(default = "week")]
    pub week: Nanos,
    /// The shortest day. Default 180us.
    #[serde(default = "min_day")]
    pub min_day: Nanos,
    /// How long before a week its demand is asked for: what the scheduler takes. Default 1us.
    #[serde(default = "ahead")]
    pub ahead: Nanos,
}

/// How packets go by circuits of a schedule that repeats.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingFile {
    /// Its name, with settings after colons: `direct`, `vlb`, `vlb:seed=7`, `rotorlb`, `hoho:most_hops=2`.
    pub name: String,
}

fn night() -> Nanos {
    Nanos(20_000)
}

fn week() -> Nanos {
    Nanos(2_000_000)
}

fn min_day() -> Nanos {
    Nanos(180_000)
}

fn ahead() -> Nanos {
    Nanos(1_000)
}

/// From what demand is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DemandFile {
    /// The queues of racks' switches.
    Voq,
    /// What applications have written and the switch has not seen.
    Adu,
    /// What is written and not acknowledged.
    Socket,
    /// What is written and has not arrived.
    Oracle,
}

impl From<DemandFile> for Demand {
    fn from(of: DemandFile) -> Demand {
        match of {
            DemandFile::Voq => Demand::Queues,
            DemandFile::Adu => Demand::Adus,
            DemandFile::Socket => Demand::Sockets,
            DemandFile::Oracle => Demand::Oracle,
        }
    }
}

/// Larger queues ahead of circuits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeFile {
    /// What a queue holds away from its pair's day, in packets.
    pub small: u32,
    /// And ahead of the day and in it.
    pub big: u32,
    /// How long before the day it grows.
    pub tau: Nanos,
}

/// Queues to look at from time to time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleFile {
    /// How often.
    pub every: Nanos,
    /// Of which pairs of racks: `[[0, 1]]` is from rack 0 to rack 1.
    pub pairs: Vec<[usize; 2]>,
}

/// How hosts send. Defaults are Linux's, with times a twentieth of its, as under the testbed's dilation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpFile {
    /// What controls windows. Default reno.
    pub control: ControlFile,
    /// reTCP: by what a window grows when a circuit is told of. Default 2.
    pub alpha: Option<f64>,
    /// reTCP: by what it shrinks when it is told of no more. Default 0.5.
    pub beta: Option<f64>,
    /// reTCP: when hosts are told of a circuit. Default `at_circuit`.
    pub ece: Option<EceFile>,
    /// Kinds of paths with a window each; 2 is TDTCP. Default 1.
    pub divisions: u8,
    /// The largest payload of a segment, in bytes. Default 8948.
    pub mss: u32,
    /// Segments of the first window. Default 10.
    pub initial_window: u32,
    /// Bytes that may be unacknowledged at most. Default: no limit.
    pub receive_window: Option<u64>,
    /// Whether segments may be marked (DCTCP's always). Default false.
    pub ecn: bool,
    /// Whether losses are found by time (RFC 8985): `never`, `always`, or `repairs`, as in Linux 4.4: those that are found while others
    /// are repaired. Default repairs.
    pub rack: tcp::RackUse,
    /// Of `rack: repairs`: by how much later what has arrived must have been sent. Default 50us.
    pub rack_window: Nanos,
    /// Whether a silent path is probed. Default true.
    pub tail_probe: bool,
    /// The least wait before it is. Default 500us.
    pub min_probe: Nanos,
    /// How much longer it is when one segment alone is out. Default 10ms.
    pub lone_probe: Nanos,
    /// Whether a window starts anew after it was idle. Default true.
    pub restart_after_idle: bool,
    /// The retransmission timeout before any round trip. Default 50ms.
    pub initial_timeout: Nanos,
    /// By how much the retransmission timeout is above the round trip at least. Default 10ms.
    pub min_timeout: Nanos,
    /// The largest. Default 6s.
    pub max_timeout: Nanos,
    /// Segments that are acknowledged together. Default 2.
    pub ack_every: u32,
    /// The longest wait with an acknowledgement. Default 2ms.
    pub ack_delay: Nanos,
}

impl Default for TcpFile {
    fn default() -> TcpFile {
        let of = Settings::etalon(8).tcp;
        TcpFile {
            control: ControlFile::Reno,
            alpha: None,
            beta: None,
            ece: None,
            divisions: of.divisions,
            mss: of.mss,
            initial_window: of.initial_window,
            receive_window: None,
            ecn: of.ecn,
            rack: of.rack,
            rack_window: of.rack_window,
            tail_probe: of.tail_probe,
            min_probe: of.min_probe,
            lone_probe: of.lone_probe,
            restart_after_idle: of.restart_after_idle,
            initial_timeout: of.initial_timeout,
            min_timeout: of.min_timeout,
            max_timeout: of.max_timeout,
            ack_every: of.ack_every,
            ack_delay: of.ack_delay,
        }
    }
}

impl TcpFile {
    /// The transport's settings. `alpha` and `beta` are reTCP's alone; see [`super::scenario`].
    pub(super) fn settings(&self) -> tcp::Settings {
        let control = match self.control {
            ControlFile::Reno => Control::Reno,
            ControlFile::Cubic => Control::Cubic,
            ControlFile::Dctcp => Control::Dctcp,
            ControlFile::Retcp => {
                Control::Retcp { alpha: self.alpha.unwrap_or(2.0), beta: self.beta.unwrap_or(0.5) }
            }
        };
        tcp::Settings {
            control,
            divisions: self.divisions,
            mss: self.mss,
            initial_window: self.initial_window,
            receive_window: self.receive_window.unwrap_or(u64::MAX),
            ecn: self.ecn,
            rack: self.rack,
            rack_window: self.rack_window,
            tail_probe: self.tail_probe,
            min_probe: self.min_probe,
            lone_probe: self.lone_probe,
            restart_after_idle: self.restart_after_idle,
            initial_timeout: self.initial_timeout,
            min_timeout: self.min_timeout,
            max_timeout: self.max_timeout,
            ack_every: self.ack_every,
            ack_delay: self.ack_delay,
        }
    }
}

/// What controls windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlFile {
    /// NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// DCTCP; `network.mark_at` says from where on packets are marked.
    Dctcp,
    /// Reno that is told of circuits (Etalon, section 4.4).
    Retcp,
}

/// When hosts are told of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EceFile {
    /// While it is up, as Etalon's text says.
    AtCircuit,
    /// As early as `resize.tau` before, as its code does; 600us without `resize`.
    TauEarly,
}
