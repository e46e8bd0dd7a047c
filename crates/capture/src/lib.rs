//! Traffic matrices from packets: who sent how many bytes to whom, from captures and from what switches and routers
//! export.
//!
//! ```text
//! pcap, pcapng --frames--> packet -----------------------------\
//!                            \--UDP--> exports: sFlow, NetFlow --> Flow --Places--> Matrix: bytes[interval][i][j]
//! IPFIX file --------------------------/                              \--> Discards: what was not counted, and why
//! ```
//!
//! Choreo takes traffic matrices from "sFlow or tcpdump" (section 2.1). A [`Flow`] is what one packet or one exported
//! record says: addresses, bytes, packets, how many packets each seen one stands for. [`Places`] turn addresses into
//! hosts, racks or services; what belongs nowhere is counted and listed, as is everything that cannot be read.
//!
//! Sampled traffic is scaled by its sampling rate, with the error that comes of it: from `n` sampled packets the number
//! of packets is known within 196 √(1/n) % at 95 % confidence (Phaal and Panchen, "Packet Sampling Basics", which
//! sFlow.org publishes). That of bytes is greater, since packets differ in size: [`Cell::standard_error`].
//!
//! What comes from outside is read by etherparse (headers), pcap-parser (files) and netflow_parser (NetFlow, IPFIX).
//! sFlow is read here: its layout is fixed, and the parser there is for it (sflow-parser 0.7) recurses as deep as a
//! datagram says, until the stack ends, and gives up a whole datagram for one record it does not know.

mod capture;
mod discards;
mod exports;
mod flow;
mod frames;
mod matrix;
mod packet;
pub mod places;

pub use capture::{Capture, Content, Open, Settings};
pub use discards::{Discard, Discards, Reason};
pub use exports::Counter;
pub use flow::{Flow, Size};
pub use matrix::{Cell, Matrix, Pair, Source};
pub use places::Places;
