//! The packet simulator simulates hosts that send segments through a hybrid switch, packet by packet, in the setting of
//! Etalon and TDTCP.
//!
//! ```text
//! Workload --writes--> Sender --segments--> NIC --> Switch --> Receiver --acknowledgements--> NIC --> Switch --> Sender
//!                                                     ^
//!                       Plan: a fixed week, or demand -+-> scheduler -> the next week
//! ```
//!
//! Trains of packets go from a host's NIC to their receiver without a transport. The simulator records the arrival time
//! of each packet.
//!
//! [`workload`] describes the traffic of hosts, [`leeward_tcp`] is the transport and [`leeward_circuits::switch`] the
//! switch. None of them does input or output or reads a clock, so the same code runs here, under test, and over real
//! links. The [`Simulator`] is the loop between them: it has the hosts' NICs, the timers, and the [`Records`] of the
//! run. A host's NIC sends at its rate from one unbounded queue. A host takes arriving packets at once, as in the
//! Etalon testbed, which shapes only the traffic that containers send. Hosts of one rack reach each other without the
//! switch. A [`Placer`] places copies of blocks with the replica policies.

pub mod file;
mod hosts;
mod placer;
mod records;
mod scenario;
mod settings;
mod simulator;
pub mod workload;

pub use placer::Placer;
pub use records::{
    Arrival, BlockRecord, DayRecord, FlowRecord, Histogram, Records, Sample, Traffic, TrainRecord,
};
pub use scenario::{Outcome, Scenario, ScenarioError};
pub use settings::{Demand, Limit, Plan, Planner, Settings, SettingsError};
pub use simulator::{Simulator, SimulatorError};
