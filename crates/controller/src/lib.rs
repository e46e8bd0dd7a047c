//! The controller: one engine behind HTTP.
//!
//! ```text
//! HTTP --texts--> edge --Message--> Desk (in one task, with the engine) --Reply--> edge --texts--> HTTP
//!                  |                  |
//!       names, times, problems    decisions, clients, what waits
//! ```
//!
//! The desk is a plain value: messages and times in, replies out. One task owns it and hands it the messages of all
//! connections one after the other, so that each placement sees those before it; simultaneous placers cannot herd. What
//! the world writes (names, RFC 3339, JSON) is read and written by the edge and goes no further.
//!
//! What must not be lost is handed on as changes, and is kept by a store before whoever asked is told. Several services may
//! share a store: one leads and decides, and the others follow what it keeps until one of them leads in its place.

mod access;
mod clock;
mod described;
mod desk;
mod http;
mod log;
mod office;
mod probes;
mod reload;
mod service;
mod settings;
mod start;
mod store;
mod telemetry;
mod watch;

pub use access::{Access, Client, Denied, Guest, Hosts, NewToken, Rates, Role, Token, Tokens, certified};
pub use clock::{Clock, Hands};
pub use desk::{
    Called, Caller, Classes, Counts, Desk, DeviceState, Finding, HostReport, HostState, Labels, Lane, Left,
    Limit, Limits, LinkState, Message, Migration, MigrationAnswer, MigrationState, Part, Placement,
    Promising, RackContent, Rate, Rated, Reading, Record, Refused, ReplicasWish, Replies, Reply, Report,
    Request, Requests, ReservationState, Score, Seen, Shown, Skipped, Study, TaskState, TaskWish, TasksWish,
    TransferWish, Wish, WorkloadWish, World, Wrong,
};
pub use http::{Beside, understand};
pub use log::{is_json, log_end};
pub use office::{Closed, Maker, NewCluster, Office, OpenError, Position, Slots};
pub use reload::{Reload, Reloaded};
pub use service::{RunError, Service};
pub use settings::{
    Flags, Format, Level, LimitSettings, LogSettings, PolicySettings, ProbeSettings, PrometheusSettings,
    Settings, TelemetrySettings, TlsSettings,
};
pub use start::{Ready, StartError};
pub use store::{
    Change, Database, Durability, Held, Kind, Leadership, News, Origin, Postgres, Sqlite, State, Store,
    StoreError, Version,
};
pub use telemetry::{Ear, Plan, Telemetry};
