//! Fluid simulator: computes the rate of every flow of a network over time. Rates are weighted max-min fair (Bertsekas
//! and Gallager, Data Networks, section 6.5.2), and exact in continuous time.
//!
//! ```text
//! Network      flows over time: start, cancel, advance, carried work
//!   Clocks     virtual time of completions
//!     Completions, FlowClasses   the earliest prediction; the flows of one class
//!   MaxMin     the allocation: entries, and a level for each saturated resource
//!     cascade, handover     the solver; the limits of entries
//!     watch                 resources with spare capacity
//!     filling               solution from zero, if a cascade takes too long
//! ```
//!
//! # Model
//!
//! A *resource* has a capacity, in bits or in nanoseconds of service per second. An *entry* is a number `n` of equal
//! flows along one path, with a weight `w` and a rate cap. A flow takes `a` units of work on a resource for each of its
//! bytes. Rates `x` are weighted max-min fair if two conditions hold. No resource has more work than capacity, and no
//! `x / w` can rise without lowering another `x / w` that is not higher. These rates exist and are unique.
//!
//! The levels of the resources determine the rates. Each resource `r` has a level `s_r`, which is infinite if `r` is
//! not saturated. Each entry runs at the lowest level on its path, or at its *ceiling* if this is lower. The levels are
//! *settled* if each saturated resource is full, and no other resource is overloaded:
//!
//! ```text
//! sum over entries on r of  n a w min(s_r, what the rest of the path offers) = C_r
//! ```
//!
//! Settled levels give the max-min allocation. Take any entry below its ceiling. It runs at the level of some resource
//! `r` on its path, and `r` is full. No entry on `r` has a higher rate per weight, because all run at `s_r` or less.
//! This is the bottleneck condition (Bertsekas and Gallager, Data Networks, section 6.5.2), which characterizes the
//! max-min allocation.
//!
//! # Incremental updates
//!
//! An arrival, a completion or a new capacity disturbs few resources. The solver settles these one after another, the
//! lowest level first. A change of level disturbs the other saturated resources of the entries that it limits, and so
//! on, until all are settled again (`cascade`). A resource keeps the sums over its members. So a visit costs one
//! division, plus one addition for each entry that is limited there and crosses another saturated resource. Resources
//! that are not saturated are not visited. They grant their members allowances, and are involved only if a member
//! exceeds its allowance (`watch`). A change of level affects only higher levels, so nearly every visit to a resource
//! is the last one for this event. The cost of an event is about the number of levels that it changes, times the number
//! of entries that each level limits. A full solution costs the number of all entries, times the number of levels.
//!
//! Each saturated resource has a virtual clock (`clocks`). A change of its level therefore costs one new prediction,
//! not one for each flow. Flows of one class have the same path, and form one entry (`flow_class`). An event costs its
//! cascade, plus at most the logarithm of the number of flows.
//!
//! Finished flows leave no state. Sums that are updated by differences are recomputed periodically, to limit rounding
//! errors.

mod attach;
mod cascade;
mod clocks;
mod completions;
mod effort;
mod entry;
mod error;
mod filling;
mod flow_class;
mod flows;
mod handover;
mod level;
mod maxmin;
mod members;
mod network;
mod paths;
mod queue;
mod watch;

pub use effort::Effort;
pub use error::FluidError;
pub use flows::FlowId;
pub use maxmin::{EntryId, Limit, MaxMin};
pub use network::{Finished, Network};
