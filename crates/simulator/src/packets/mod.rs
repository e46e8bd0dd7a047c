//! The packet plant: hosts that send segments through switches, packet by packet.
//!
//! [`tcp`] is the transport: a sender and a receiver that do no input or output and read no clock, so that the same code runs over
//! a simulated network and under test over none. [`workload`] is what hosts have to send.

pub mod tcp;
pub mod workload;
