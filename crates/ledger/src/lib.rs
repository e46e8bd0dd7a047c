//! The ledger: the known load of every link and device.
//!
//! ```text
//! telemetry --samples-->  Ledger  <--transactions-- engine      facts in
//!                           |
//!                         View (a borrow and a private what-if)  numbers out, one for each question
//! ```
//!
//! The ledger stores facts, not estimates of a policy. Telemetry moves the estimate of the carried load. An entry for each
//! piece of placed or promised work covers the time until telemetry shows it ([`Fade`]). From the same sums a view
//! derives the number that each kind of reader needs:
//!
//! | number | used by | definition |
//! | --- | --- | --- |
//! | [`View::expected_capacity`] | Sinbad | C - min(C, M + sum of bytes/time to the next report) |
//! | [`View::residual`] | best effort | max(0, limit C - L), zero where L is unknown |
//! | [`View::share`] | Choreo | rate that n new elastic flows would get |
//! | [`View::utilization_with`] | UTP, migration | (L + x) / C |
//! | [`View::unreserved`] | packing, admission | limit C - R; telemetry plays no part |
//! | [`View::envelopes`] | bounds of delay, by readers outside this repository | every envelope promised at a queue |
//!
//! C is the capacity that the ledger assumes, M the measured load, L = M + load that is committed and not yet measured,
//! and R the sum of reserved rates. Time is an argument everywhere; the crate reads no clock and does no I/O.

mod age;
mod derived;
mod domain_sums;
mod entry;
mod epoch;
mod estimate;
mod ledger;
mod loads;
mod new_settings;
mod numbers;
mod pending;
mod sample;
mod settings;
mod share;
mod snapshot;
mod state;
mod stored;
mod telemetry;
mod transact;
mod view;

pub use age::Clock;
pub use entry::{CommitError, Demand, Entry, EntryId, Fade, Owner, OwnerKind, Sign, Transaction};
pub use epoch::Epoch;
pub use estimate::{Estimate, EstimateValues};
pub use ledger::Ledger;
pub use loads::{MeasuredLoads, find_link, parse_connections, parse_load, read_cross_traffic, read_loads};
pub use numbers::Numbers;
pub use sample::{DiscardedSamples, Sample};
pub use settings::{Initial, LedgerSettings, Missing, SettingsError};
pub use snapshot::Snapshot;
pub use state::Promise;
pub use view::{Checkpoint, FifoError, Scratch, View};
