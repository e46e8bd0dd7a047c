//! The storage enforcer: an NFSv3 proxy that queues, prioritises and limits the requests of workloads, and records
//! traces (SLO section 2.2.1).
//!
//! ```text
//! client --TCP--> [proxy: calls --Queue (leeward-shaping)--> caps of the device] --TCP--> NFS server
//!                    ^ workloads by client and export          | counters, traces by workload
//!             SLO file, or a controller                        v
//! ```
//!
//! READ, WRITE and COMMIT wait in the queue of their workload, which is known by the address of the client and the
//! listener of the export. All other calls pass on at once and unread. A workload is served in order of arrival, the
//! highest priority within its limits comes first, and a request over the limits of its workload comes last. The work of
//! a request is its seconds of service in the device file, as in the request simulator, whose decisions are those of the
//! same crate `leeward-shaping`.
//!
//! NFS version 3 has no state: if the proxy or the server goes away, connections end, and clients send their calls
//! without a reply again. A request that waits when its connection ends never starts, so an earlier write of a client
//! cannot come after a later one.
//!
//! * [`xdr`], [`rpc`], [`calls`] and [`mount`] read the protocols. They know no sockets, and any bytes are a value or an
//!   error.
//! * [`workloads`] say who a request belongs to: those of a file ([`workload_file`]), or of a controller ([`received`], under
//!   the lease of [`control`]). [`work`] says how long a request keeps the device busy.
//! * [`queue`] decides, [`counters`], [`window`] and [`recorder`] keep what was seen.
//! * [`proxy`] has the sockets, [`server`] the start, [`settings`] and [`run`] the program.
//! * [`replay`] is a client: it sends the requests of a trace at their times.

pub mod caller;
pub mod calls;
pub mod clock;
pub mod control;
pub mod counters;
pub mod event;
pub mod mount;
pub mod outgoing;
pub mod proxy;
pub mod queue;
pub mod received;
pub mod recorder;
pub mod replay;
pub mod rpc;
pub mod run;
pub mod server;
pub mod settings;
pub mod window;
pub mod work;
pub mod workload_file;
pub mod workloads;
pub mod xdr;

pub use run::{Line, StopReason, run};
pub use settings::{Arguments, Settings};
