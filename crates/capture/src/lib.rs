//! Traffic matrices from packets: bytes between pairs of places, from captures and from the exports of switches and
//! routers.
//!
//! ```text
//! pcap, pcapng --frames--> packet -----------------------------\
//!                            \--UDP--> exports: sFlow, NetFlow --> Flow --Places--> Matrix: bytes[interval][i][j]
//! IPFIX file --------------------------/                              \--> Discards: uncounted traffic, with reasons
//! ```
//!
//! Choreo takes traffic matrices from "sFlow or tcpdump" (section 2.1). A [`Flow`] is the content of one packet or
//! one exported record: addresses, bytes, packets, sampling rate. [`Places`] map addresses to hosts, racks or
//! services. Traffic without a place is counted and listed, as is everything that cannot be read. With [`Classes`], traffic
//! is counted by class of service, and [`Matrix::link_loads`] are the loads of links by class.
//!
//! Sampled traffic is scaled by its sampling rate, which causes an error. From `n` sampled packets the number of
//! packets is known within 196 √(1/n) % at 95 % confidence (Phaal and Panchen, "Packet Sampling Basics", published by
//! sFlow.org). The error of bytes is larger, because packets differ in size: [`Cell::standard_error`].
//!
//! The input is parsed by etherparse (headers) and pcap-parser (files). This crate parses sFlow, NetFlow and IPFIX
//! itself, for the reasons in `exports/sflow.rs` and `exports/templates.rs`.

mod capture;
mod classes;
mod counter;
mod discards;
mod exports;
mod flow;
mod frames;
mod links;
mod matrix;
mod packet;
pub mod places;
mod settings;

pub use capture::{Capture, OpenFile};
pub use classes::{ClassId, Classes};
pub use counter::Counter;
pub use discards::{Discard, Discards, Reason};
pub use exports::Direction;
pub use flow::{Flow, Size};
pub use links::LinkLoad;
pub use matrix::{Cell, Matrix, Pair, Source};
pub use packet::Tunnels;
pub use places::Places;
pub use settings::{Content, Settings};
