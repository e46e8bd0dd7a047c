//! Events of a run.

/// An event at a time. Numbers refer to tables of the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A packet arrives at its next port, or at its host.
    Packet(u32),
    /// A port with queues is free for its next packet.
    Port(u32),
    /// Check of the timers of a connection's sender.
    Sender(u32),
    /// Check of the timer of a connection's receiver.
    Receiver(u32),
    /// A server has the answer of a call.
    Served(u32),
    /// A worker has finished a computation.
    Computed(u32),
    /// A job of this kind arrives.
    Arrival(u32),
    /// An operation does not wait longer for its chunk.
    Degrade(u32),
    /// A link gets another rate.
    Change(u32),
    /// A window of telemetry ends.
    Sample,
}
