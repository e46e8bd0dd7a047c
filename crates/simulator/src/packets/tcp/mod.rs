//! TCP as two state machines, a [`Sender`] and a [`Receiver`]: times and packets in, packets and deadlines out.
//!
//! A plant asks a sender for segments until it has none ([`Sender::next_segment`]), hands each [`Ack`] to [`Sender::on_ack`], and
//! calls `on_timer` when a deadline has come. What is sent, and how much, is of the RFCs: loss by selective
//! acknowledgements (6675) or by time (8985), how a window shrinks while it is recovered (6937), the retransmission timer (6298) over timestamps
//! (7323), ECN (3168). How a window grows is of [`control`]: Reno (5681), CUBIC (9438), DCTCP (8257), or reTCP (Etalon, section
//! 4.4). A sender with more than one division keeps a window, a round-trip time and a recovery for each kind of path that its
//! network changes between (TDTCP, SIGCOMM 2022).
//!
//! A connection is there from the start and has no handshake; the sender's last byte is the end of it. There is no Nagle
//! delay, no pacing, no path MTU, and no undoing of a reduction that turns out to be needless. Sequence numbers are bytes from 0
//! that never wrap.

pub mod control;
mod division;
mod probe;
mod rack;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod settings;

pub use receiver::Receiver;
pub use segment::{Ack, BLOCKS, Block, Ecn, HEADER, MSS, Segment};
pub use sender::{Counts, Sender, State};
pub use settings::{RackUse, Settings, SettingsError};
