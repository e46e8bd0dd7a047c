//! Scenario file of the packet simulator: YAML or JSON, with quantities that have units.
//!
//! Missing fields have the values of the Etalon testbed. Fields have the names of the settings that they set
//! ([`Settings`], [`leeward_circuits::switch::Settings`], [`tcp::Settings`]), so that an error names the
//! field of the file.

mod trains;
mod workload;

use leeward_circuits::schedulers::FixedDay;
use leeward_circuits::switch;
use leeward_fabric::{Bandwidth, Bytes, Nanos};
use leeward_tcp as tcp;
use leeward_tcp::control::Control;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use trains::{LimitFile, TrainFile};
pub use workload::{CollectiveFile, CollectiveKind, DfsioFile, FlowFile, LongFile, RingsFile, WorkloadFile};

use super::settings::{Demand, Settings};

/// A scenario of the packet simulator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketsFile {
    /// Racks, hosts, links and queues.
    #[serde(default)]
    pub network: NetworkFile,
    /// Schedule of circuits. Default: no circuits.
    pub scheduler: Option<SchedulerFile>,
    /// Routing of packets over circuits. Default: packets use circuits of their own pair of racks.
    pub routing: Option<RoutingFile>,
    /// TCP settings of hosts.
    #[serde(default)]
    pub tcp: TcpFile,
    /// Larger queues ahead of circuits (Etalon, section 4.2).
    pub resize: Option<ResizeFile>,
    /// Traffic of hosts. Optional if there are `trains`.
    pub workload: Option<WorkloadFile>,
    /// Trains of packets in addition to the workload.
    #[serde(default)]
    pub trains: Vec<TrainFile>,
    /// Time after its start at which a flow is abandoned and sends nothing more. Default: never.
    pub give_up: Option<Nanos>,
    /// Longest duration of the run; a run ends earlier if its workload ends earlier.
    pub horizon: Nanos,
    /// Seed of random draws. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Queues to sample.
    pub sample: Option<SampleFile>,
}

fn one() -> u64 {
    1
}

/// Racks, hosts, links and queues. The defaults are the settings of the Etalon testbed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkFile {
    /// Number of racks. Default 8.
    pub racks: usize,
    /// Number of hosts per rack. Default 16.
    pub hosts_per_rack: usize,
    /// Send rate of each host. Default 10Gbps.
    pub nic: Bandwidth,
    /// Largest number of bytes of a connection in its host's NIC; the rest waits in the socket. Default 128KiB; null
    /// for no limit.
    pub nic_limit: Option<Bytes>,
    /// Hosts with a rate limit below their NIC's rate; each has a token bucket. Default: none.
    pub limits: Vec<LimitFile>,
    /// Rate of a rack's link to the packet switch, and of the link back. Default 10Gbps.
    pub packet_rate: Bandwidth,
    /// Rate of a circuit. Default 80Gbps.
    pub circuit_rate: Bandwidth,
    /// Propagation delay of a link to the packet switch. Default 5us.
    pub uplink_delay: Nanos,
    /// Propagation delay of a link from the packet switch. Default 5us.
    pub downlink_delay: Nanos,
    /// Propagation delay of a circuit. Default 30us.
    pub circuit_delay: Nanos,
    /// Delay between hosts of one rack. Default 0s.
    pub local_delay: Nanos,
    /// Largest random delay before a host starts to send a packet, uniform. Default 0s.
    pub jitter: Nanos,
    /// Capacity of a pair's queue at its rack's switch, in packets. Default 16.
    pub voq_capacity: u32,
    /// Capacity of a pair's queue in the packet switch, in packets. Default 3.
    pub inner_capacity: u32,
    /// Capacity for a pair's packets that the packet switch sent back, in packets. Default 5.
    pub loss_capacity: u32,
    /// If true, a pair's packets avoid the packet switch from the night before the pair's day. Default true.
    pub packet_path_off: bool,
    /// If false, there is no packet switch and all packets wait for circuits. Default true.
    pub packet_switch: bool,
    /// Capacity of a rack for packets that it relays for other racks, per destination, in packets. Default 1024.
    pub relay_capacity: u32,
    /// Queue length in packets from which packets are marked (ECN). Default: no marks.
    pub mark_at: Option<u32>,
}

impl Default for NetworkFile {
    fn default() -> NetworkFile {
        let etalon = Settings::etalon(8);
        NetworkFile {
            racks: etalon.switch.racks,
            hosts_per_rack: etalon.hosts_per_rack,
            nic: etalon.nic,
            nic_limit: etalon.nic_limit.map(Bytes),
            limits: Vec::new(),
            packet_rate: etalon.switch.packet_rate,
            circuit_rate: etalon.switch.circuit_rate,
            uplink_delay: etalon.switch.uplink_delay,
            downlink_delay: etalon.switch.downlink_delay,
            circuit_delay: etalon.switch.circuit_delay,
            local_delay: etalon.local_delay,
            jitter: etalon.jitter,
            voq_capacity: etalon.switch.voq_capacity,
            inner_capacity: etalon.switch.inner_capacity,
            loss_capacity: etalon.switch.loss_capacity,
            packet_path_off: etalon.switch.packet_path_off,
            packet_switch: etalon.switch.packet_switch,
            relay_capacity: etalon.switch.relay_capacity,
            mark_at: etalon.switch.mark_at,
        }
    }
}

impl NetworkFile {
    /// Returns the switch settings without those from other parts of the file.
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

/// Schedule of circuits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulerFile {
    /// Scheduler name, with settings after colons: `strobe`, `fixed`, `solstice`,
    /// `eclipse:keep_min_day=true`. Alternative: `days`.
    pub name: Option<String>,
    /// Days that repeat, each with its `length` and its `circuits`; `[[0, 1]]` is one circuit from rack 0 to
    /// rack 1. Days may be shorter than `min_day`, and together longer than `week`.
    pub days: Option<Vec<FixedDay>>,
    /// Source of the demand of each week. Default: one schedule, computed without demand, repeats.
    pub demand: Option<DemandFile>,
    /// Reconfiguration time of circuits. Default 20us.
    #[serde(default = "night")]
    pub night: Nanos,
    /// Longest duration of a schedule. Default 2ms.
    #[serde(default = "week")]
    pub week: Nanos,
    /// Shortest day. Default 180us.
    #[serde(default = "min_day")]
    pub min_day: Nanos,
    /// Time before a week at which its demand is read; this is the scheduler's computing time. Default 1us.
    #[serde(default = "ahead")]
    pub ahead: Nanos,
}

/// Routing of packets over the circuits of a schedule that repeats.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingFile {
    /// Routing name, with settings after colons: `direct`, `vlb`, `vlb:seed=7`, `rotorlb`,
    /// `hoho:most_hops=2`.
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

/// Source of the demand estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DemandFile {
    /// Bytes in the queues of racks' switches.
    Voq,
    /// Bytes that applications have written and the switch has not seen.
    Adu,
    /// Bytes written and not acknowledged.
    Socket,
    /// Bytes written that have not arrived.
    Oracle,
}

impl From<DemandFile> for Demand {
    fn from(demand: DemandFile) -> Demand {
        match demand {
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
    /// Queue capacity outside its pair's day, in packets.
    pub small: u32,
    /// Queue capacity ahead of the day and during it, in packets.
    pub big: u32,
    /// Time before the day at which the queue grows.
    pub tau: Nanos,
}

/// Queues to sample.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleFile {
    /// Sampling interval.
    pub every: Nanos,
    /// Sampled pairs of racks: `[[0, 1]]` is from rack 0 to rack 1.
    pub pairs: Vec<[usize; 2]>,
}

/// TCP settings of hosts. The defaults are Linux's, with times divided by twenty, as under the testbed's dilation.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpFile {
    /// Congestion control. Default reno.
    pub control: ControlFile,
    /// reTCP: factor of the window, and of slow start's threshold, when a circuit is announced. Default 2.
    pub alpha: Option<f64>,
    /// reTCP: factor of the window, and of slow start's threshold, when the announcement ends. Default 0.5.
    pub beta: Option<f64>,
    /// reTCP: time of the announcement of a circuit to hosts. Default `at_circuit`.
    pub ece: Option<EceFile>,
    /// Number of path kinds with their own window; 2 is TDTCP. Default 1.
    pub divisions: u8,
    /// Largest payload of a segment, in bytes. Default 8948.
    pub mss: u32,
    /// Size of the first window, in segments. Default 10.
    pub initial_window: u32,
    /// Largest number of unacknowledged bytes. Default: no limit.
    pub receive_window: Option<u64>,
    /// If true, segments are ECN-capable (DCTCP's always are). Default false.
    pub ecn: bool,
    /// Loss detection by time (RFC 8985): `never`, `always`, or `repairs`. With `repairs`, as in Linux 4.4,
    /// it applies while other losses are repaired. Default repairs.
    pub rack: tcp::RackUse,
    /// For `rack: repairs`: minimum difference of send times. A segment is lost if a segment that was sent later
    /// by more than this difference has arrived. Default 50us.
    pub rack_window: Nanos,
    /// If true, a reduction of the window is undone if no segment was lost (RFC 3522, RFC 4015), as in Linux. Default
    /// false.
    pub undo: bool,
    /// If true, a probe is sent after two round trips without an acknowledgement. Default true.
    pub tail_probe: bool,
    /// Shortest wait before a probe. Default 500us.
    pub min_probe: Nanos,
    /// Additional wait before a probe if a single segment is outstanding. Default 10ms.
    pub lone_probe: Nanos,
    /// If true, an idle window shrinks to the first window. Default true.
    pub restart_after_idle: bool,
    /// Retransmission timeout before the first round-trip sample. Default 50ms.
    pub initial_timeout: Nanos,
    /// Smallest margin of the retransmission timeout above the round trip. Default 10ms.
    pub min_timeout: Nanos,
    /// Largest retransmission timeout. Default 6s.
    pub max_timeout: Nanos,
    /// Number of segments per acknowledgement. Default 2.
    pub ack_every: u32,
    /// Number of segments that are acknowledged one by one, at the beginning of a connection and after a repeated
    /// segment. 16 in Linux. Default 0.
    pub quick_acks: u32,
    /// Number of segments at the beginning of a connection with which the receiver raises its window. Each is
    /// acknowledged at once. Default 0.
    pub growth_acks: u32,
    /// Longest delay of an acknowledgement. Default 2ms.
    pub ack_delay: Nanos,
}

impl Default for TcpFile {
    fn default() -> TcpFile {
        let etalon = Settings::etalon(8).tcp;
        TcpFile {
            control: ControlFile::Reno,
            alpha: None,
            beta: None,
            ece: None,
            divisions: etalon.divisions,
            mss: etalon.mss,
            initial_window: etalon.initial_window,
            receive_window: None,
            ecn: etalon.ecn,
            rack: etalon.rack,
            rack_window: etalon.rack_window,
            undo: etalon.undo,
            tail_probe: etalon.tail_probe,
            min_probe: etalon.min_probe,
            lone_probe: etalon.lone_probe,
            restart_after_idle: etalon.restart_after_idle,
            initial_timeout: etalon.initial_timeout,
            min_timeout: etalon.min_timeout,
            max_timeout: etalon.max_timeout,
            ack_every: etalon.ack_every,
            quick_acks: etalon.quick_acks,
            growth_acks: etalon.growth_acks,
            ack_delay: etalon.ack_delay,
        }
    }
}

impl TcpFile {
    /// Returns the transport's settings. `alpha` and `beta` apply only to reTCP; see [`super::scenario`].
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
            undo: self.undo,
            tail_probe: self.tail_probe,
            min_probe: self.min_probe,
            lone_probe: self.lone_probe,
            restart_after_idle: self.restart_after_idle,
            initial_timeout: self.initial_timeout,
            min_timeout: self.min_timeout,
            max_timeout: self.max_timeout,
            ack_every: self.ack_every,
            quick_acks: self.quick_acks,
            growth_acks: self.growth_acks,
            ack_delay: self.ack_delay,
        }
    }
}

/// Congestion control algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlFile {
    /// NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// DCTCP; `network.mark_at` sets the queue length from which packets are marked.
    Dctcp,
    /// Reno with announcements of circuits (Etalon, section 4.4).
    Retcp,
}

/// Time of the announcement of a circuit to hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EceFile {
    /// While the circuit is up, as in Etalon's text.
    AtCircuit,
    /// Earlier by `resize.tau`, as in Etalon's code; by 600us without `resize`.
    TauEarly,
}
