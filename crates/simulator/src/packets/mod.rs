//! The packet plant: hosts that send segments through a hybrid switch, packet by packet.
//!
//! ```text
//! Workload --writes--> Sender --segments--> NIC --> Switch --> Receiver --acknowledgements--> NIC --> Switch --> Sender
//!                                                     ^
//!                       Plan: a fixed week, or demand -+-> scheduler -> the next week
//! ```
//!
//! Trains of packets go from a host's NIC to their receiver without a transport, and when each packet came is kept.
//!
//! [`workload`] is what hosts have to send, [`tcp`] the transport and [`leeward_circuits::switch`] the switch: none of them does
//! input or output or reads a clock, so that the same code runs here, under test, and over real links. The
//! [`Plant`] is the loop between them: it has the hosts' NICs, the timers, and the [`Records`] of what happened. A host's NIC sends
//! at its rate from one queue without limit; what comes to a host is taken at once, as in the Etalon testbed, where only what
//! containers send is shaped. Hosts of one rack reach each other without the switch. Where copies of blocks go is asked of a
//! [`Placer`], that is of the policies that place replicas everywhere else.

pub mod file;
mod hosts;
mod placer;
mod plant;
mod records;
mod scenario;
mod settings;
pub mod tcp;
pub mod workload;

pub use placer::Placer;
pub use plant::{Plant, PlantError};
pub use records::{
    Arrival, BlockRecord, DayRecord, FlowRecord, Histogram, Records, Sample, Traffic, TrainRecord,
};
pub use scenario::{Outcome, Scenario, ScenarioError};
pub use settings::{Demand, Limit, Plan, Planner, Settings, SettingsError};
