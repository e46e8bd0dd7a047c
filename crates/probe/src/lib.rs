//! Active measurement of a network from its hosts alone, without help from the network (Choreo, section 3).
//!
//! ```text
//!                 survey: meshes, bottlenecks, calibration; one path over time
//!                    | Order                              ^ Estimate, TransferReport, hops
//!                    v                                    |
//!                 control: listening hosts agree on Train and Transfer
//!                    |                                    ^ TrainReport
//!                    v                                    |
//!                 sockets: sendmmsg, recvmmsg, kernel timestamps, error queues
//!
//! TrainReport --estimate--> rate     TransferReport --cross, bottleneck--> competing connections, shared links
//! hops --topology--> racks --rules--> experiments --shared_links--> capacities of shared links
//! rates, shared links --mesh--> a cluster file         rates --calibrate, stability--> their accuracy
//! all of it --report--> output of commands and of the service
//! ```
//!
//! The modules of the last four lines are arithmetic without input, output or clock; they return a number or an error
//! for any report. [`link`] simulates a token bucket to test them. A peer's reports are checked before use, and its
//! requests are checked against [`Limits`].
//!
//! Our own choices, where the paper gives no answer or a real network differs: trains that overflow a queue and senders
//! that are too slow ([`estimate`](estimate())); the meaning of "significant" ([`bottleneck`]); the accepted error
//! ([`calibrate`]).

pub mod bottleneck;
pub mod calibrate;
mod collect;
pub mod control;
pub mod cross;
mod error;
mod estimate;
pub mod link;
pub mod mesh;
mod mesh_rates;
mod numbers;
pub mod report;
pub mod rules;
pub mod shared_links;
mod sockets;
pub mod stability;
pub mod survey;
pub mod topology;
mod train;
mod transfer_report;
mod wire;

pub use collect::{Burst, Collector, TrainReport};
pub use error::ProbeError;
pub use estimate::{Estimate, MATHIS_C, NEAR, SendStatistics, estimate};
pub use mesh_rates::{apply_mesh, mesh_shape};
pub use numbers::{deviation, mean, quantile};
pub use train::{Congestion, Limits, Train, Transfer};
pub use transfer_report::{SLOT_NS, TransferReport};
pub use wire::{HEADER, Head};
