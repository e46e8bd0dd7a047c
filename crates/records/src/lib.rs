//! Records: decisions, requests and changes by the names of hosts and links, as stores persist them and the HTTP API
//! shows them. Ids of hosts and links are valid for one fabric only, and records are kept longer.

mod caller;
mod change;
mod clock;
mod decision;
mod ids;
mod migration;
pub mod schema;
mod spec;

pub use self::caller::Caller;
pub use self::change::{Change, Origin, State, StoredEntry, Version};
pub use self::clock::{Clock, ClockReadings};
pub use self::decision::{DecisionDetails, DecisionRecord, Limit};
pub use self::ids::{ClusterVersion, DecisionId};
pub use self::migration::{Migration, MigrationState};
pub use self::spec::{
    Classes, PlacementSpec, Rate, ReplicasSpec, TaskSpec, TasksSpec, TransferSpec, WorkloadSpec,
};
