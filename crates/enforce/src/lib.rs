//! The network enforcer of a host: it applies the priorities and rate limits of promised workloads to the packets that
//! leave the host (Zhu's thesis, section 2.2.2).
//!
//! ```text
//! packed.yaml, controller --read--> HostPromises --plan--> Wanted --\
//!               addresses                                           difference --> Program --tc, nft--> kernel
//!                         kernel --tc -j, netlink, nft -j--> State --/
//! ```
//!
//! [`HostPromises`] are those of a file, or those of a controller under a lease; without a controller, they are removed
//! when the lease ends. [`plan`](plan::plan) and [`difference`](difference::difference) are pure. A
//! [`Program`](difference::Program) adds and changes classes first, then switches all packets to them in one transaction,
//! and deletes classes only when they are empty: packets of a workload always have a class, and no packet is lost. The
//! first program of an interface is the difference from nothing, so `--dry-run` prints what runs.
//!
//! **Limits and priorities at the host are HTB.** Each class has a tiny guarantee and borrows from the link up to its
//! `ceil` and `cburst`, which are one token bucket. Further buckets of a workload are classes around it: HTB lends only
//! through classes that are all within their buckets. `rate` and `burst` would be a second bucket of a class, but HTB
//! serves them before every priority and beyond the rate of the link, so they hold no limit. The thesis has a PRIO queue
//! around HTB; the `prio` of HTB's leaves orders the same borrowing, and every kernel with HTB has it.
//!
//! **Packets find their class, and get their DSCP, in one nftables table** for each interface, by source and destination
//! address. Maps take the same time for one workload as for 10,000, a table is replaced in one transaction, and IPv6 is as
//! IPv4. The thesis' DSMARK has left Linux; filters of `tc` would need two classifiers (u32 or flower, and pedit with
//! csum), which are searched one after another. The hook is netdev's egress, which also sees packets of bridged virtual
//! machines, or else inet's postrouting (Linux before 5.16).
//!
//! Nothing of another owner is changed: an interface whose root qdisc is neither the kernel's default nor the enforcer's
//! own is reported and left alone.

mod classes;
pub mod difference;
mod drift;
mod enforcer;
mod error;
mod event;
mod facts;
mod interface;
pub mod limits;
pub mod nft;
pub mod plan;
mod programs;
mod promises;
mod promises_file;
mod received;
mod rehearsal;
mod report;
mod run;
mod settings;
mod sources;
mod state_file;
mod status;
pub mod tc;
pub mod tree;
mod undo;

pub use enforcer::Enforcer;
pub use error::{EnforceError, StartError};
pub use event::Event;
pub use leeward_client::unblock_signals;
pub use promises::{Bucket, Direction, HostPromises, LeftOut, WorkloadPromise};
pub use promises_file::read_promises;
pub use rehearsal::{InterfaceProgram, Rehearsal, rehearse};
pub use run::{StopReason, run, undo};
pub use settings::{Arguments, Mode, Settings};
pub use status::{InterfaceStatus, LimitStatus, Status, WorkloadStatus, status};
