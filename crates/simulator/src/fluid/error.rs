//! What can be wrong with a call to the fluid simulator.

use leeward_fabric::ResourceId;

/// A refused call. Nothing has changed: the network is as it was before the call.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum FluidError {
    /// A capacity (or background load) that is no amount of work per second.
    #[error("resource {}: capacity {value}: must be zero or between 1e-30 and 1e30 native units per second", resource.0)]
    Capacity {
        /// The resource.
        resource: ResourceId,
        /// The value given.
        value: f64,
    },
    /// A resource that this network does not have.
    #[error("resource {}: unknown: this network has resources 0 to {last}", resource.0)]
    UnknownResource {
        /// The resource.
        resource: ResourceId,
        /// The highest number known.
        last: i64,
    },
    /// A hop whose work per byte is no amount of work.
    #[error("resource {}: work {value} per byte: must be zero or between 1e-30 and 1e30", resource.0)]
    Work {
        /// The resource of the hop.
        resource: ResourceId,
        /// The value given.
        value: f64,
    },
    /// A weight that is not a positive number.
    #[error("weight {value}: must be between 1e-30 and 1e30")]
    Weight {
        /// The value given.
        value: f64,
    },
    /// A rate cap that is not zero, positive or infinite.
    #[error("rate cap {value} bytes per second: must not be negative; infinity means uncapped")]
    Cap {
        /// The value given.
        value: f64,
    },
    /// A multiplicity of zero: an entry stands for at least one flow.
    #[error("multiplicity 0: an entry stands for at least one flow; remove it instead")]
    Multiplicity,
    /// An entry that was removed or never added.
    #[error("entry {entry}: unknown: it was removed or never added")]
    UnknownEntry {
        /// The number of the entry.
        entry: u32,
    },
    /// A flow that finished, was cancelled, or never started.
    #[error("flow {flow}: unknown: it has finished, was cancelled, or never started")]
    UnknownFlow {
        /// The flow, as [`super::FlowId::to_bits`] gives it.
        flow: u64,
    },
    /// A flow size that is no amount of bytes.
    #[error("size {value} bytes: must be finite and not negative")]
    Bytes {
        /// The value given.
        value: f64,
    },
    /// A time before the present of the network, or no time at all.
    #[error("time {given} s: must be finite and not before the present, {now} s")]
    Time {
        /// The time given.
        given: f64,
        /// The time the network has reached.
        now: f64,
    },
}
