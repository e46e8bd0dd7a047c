//! Shaping of requests: which request a server starts now, and when to ask again (SLO section 2.2).
//!
//! ```text
//! arrive --> limits --> order --> caps --> start --> (the device or link) --> complete
//!            tokens of a workload: held, or demoted behind all others
//!                       priorities, first come first served within one
//!                                 requests and bytes at once, starts behind a higher priority, batches of writes
//! ```
//!
//! The crate has no clock, no input or output and no random numbers: times are arguments. So the request simulator
//! and an enforcer on a real server use the same [`Server`]. A driver calls [`Server::arrive`] and
//! [`Server::complete`] as requests come and end. After each of them, and at [`Server::next_poll`], it calls
//! [`Server::poll`] until nothing starts.
//!
//! * **Limits** are token buckets of a workload, all enforced together. Tokens are taken when a request arrives, and
//!   not when it starts: a request that others delay does not wait for tokens again. A request larger than a bucket
//!   passes when all of the bucket's tokens are there.
//! * **Requests over a limit** are held back, or start after all others. Requests of a workload that wait for tokens
//!   keep their order.
//! * **Caps** apply to the next request in order alone: no later request passes one that a cap stops.
//! * **Workloads** come, change and go while requests wait, and may be suspended for a time. Requests may be cancelled
//!   while they wait.
//!
//! A decision takes logarithmic time in the numbers of workloads, priorities and waiting requests, and allocates
//! nothing once as many requests have waited before. A change of a workload's priority, or of its handling of
//! requests over a limit, takes linear time.

mod caps;
mod error;
mod heap;
mod in_service;
mod limiter;
mod order;
mod pool;
mod request;
mod server;
mod workload;

pub use caps::{Batch, Caps, StartCaps};
pub use error::ShapingError;
pub use order::Order;
pub use request::{Request, Ticket};
pub use server::{Arrival, Server, Start};
pub use workload::{OverLimit, Workload, WorkloadId};
