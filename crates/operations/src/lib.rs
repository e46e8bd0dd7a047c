//! The simulator of operations: reads and writes of storage, and queries of them, over TCP on the racks of a cluster
//! (Hotspots, section 4).
//!
//! ```text
//! job --stages--> worker --steps--> operation --call--> request --> server: processing, device or cache --> answer
//!                                                        |  TCP over the ports of hosts, racks and pods  |
//! ```
//!
//! A **job** has stages, one after another. A stage has workers on hosts, all at once, and ends with its last worker. A
//! **worker** follows steps: it computes, or has operations, some of them at once. So a query is a job, an arriving read is a
//! job with one worker and one step, and background is workers that think and transfer for ever.
//!
//! An **operation** is a read or a write of one size. Its call carries a request to the server and an answer back, over a
//! TCP connection that later calls between these hosts use again. The server takes time for processing, and its device
//! for seeks and bytes; a write may end in a cache and reach the device later. If a chunk of a stripe comes late, a read
//! may fetch other chunks instead (section 3.4).
//!
//! The **network** is the tree of a cluster file. Each link is a port with a rate, a buffer, and a queue length from which
//! it marks packets. A port of a network with classes of service has a queue for each class, and shares its link by their
//! weights. The core between racks, or pods, never limits. Records have each operation, job and worker, and the traffic
//! of racks' links by class.
//!
//! A [`Scenario`] is read from a file and run. A run is a function of its scenario: each job and worker draws by numbers of its
//! own, so the same operations come in runs that differ in load or policy.

mod agenda;
mod draws;
mod event;
pub mod file;
mod media;
mod network;
mod placed;
mod plan;
mod records;
mod scenario;
mod simulator;
mod transport;

pub use records::{JobRecord, LinkRecord, OperationRecord, Records, Traffic, WorkerRecord};
pub use scenario::{RunError, Scenario};
