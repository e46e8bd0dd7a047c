//! Errors of calls to the fluid simulator.

use leeward_fabric::ResourceId;

/// A rejected call. The network is unchanged.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum FluidError {
    /// An invalid capacity or background load.
    #[error("resource {}: capacity {value}: must be zero or between 1e-30 and 1e30 native units per second", resource.0)]
    Capacity {
        /// The resource.
        resource: ResourceId,
        /// The given value.
        value: f64,
    },
    /// The network has no such resource.
    #[error("resource {}: unknown: this network has resources 0 to {last}", resource.0)]
    UnknownResource {
        /// The resource.
        resource: ResourceId,
        /// Highest known number.
        last: i64,
    },
    /// An invalid work per byte of a hop.
    #[error("resource {}: work {value} per byte: must be zero or between 1e-30 and 1e30", resource.0)]
    Work {
        /// The resource of the hop.
        resource: ResourceId,
        /// The given value.
        value: f64,
    },
    /// An invalid weight.
    #[error("weight {value}: must be between 1e-30 and 1e30")]
    Weight {
        /// The given value.
        value: f64,
    },
    /// An invalid rate cap: negative or NaN.
    #[error("rate cap {value} bytes per second: must not be negative; infinity means uncapped")]
    Cap {
        /// The given value.
        value: f64,
    },
    /// A flow count of zero: an entry is for at least one flow.
    #[error("multiplicity 0: an entry stands for at least one flow; remove it instead")]
    Multiplicity,
    /// The entry was removed or never added.
    #[error("entry {entry}: unknown: it was removed or never added")]
    UnknownEntry {
        /// Number of the entry.
        entry: u32,
    },
    /// The flow finished, was cancelled, or never started.
    #[error("flow {flow}: unknown: it has finished, was cancelled, or never started")]
    UnknownFlow {
        /// The flow, as [`super::FlowId::to_bits`] returns it.
        flow: u64,
    },
    /// An invalid flow size.
    #[error("size {value} bytes: must be finite and not negative")]
    Bytes {
        /// The given value.
        value: f64,
    },
    /// A time before the current time of the network, or not finite.
    #[error("time {given} s: must be finite and not before the present, {now} s")]
    Time {
        /// The given time.
        given: f64,
        /// Current time of the network.
        now: f64,
    },
}
