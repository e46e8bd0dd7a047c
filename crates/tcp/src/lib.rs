//! TCP as two state machines, a [`Sender`] and a [`Receiver`]. Inputs are times and packets, outputs are packets and
//! deadlines.
//!
//! A driver asks a sender for segments until it has none ([`Sender::next_segment`]), passes each [`Ack`] to
//! [`Sender::on_ack`], and calls `on_timer` at a deadline. Sending follows the RFCs (numbers in parentheses). They
//! cover loss detection by selective acknowledgements (6675) or by send times (8985), proportional rate reduction
//! (6937), the retransmission timer (6298) over timestamps (7323), and ECN (3168). A needless reduction of
//! the window may be undone (3522, 4015). The algorithms of [`control`] grow
//! and reduce a window: Reno (5681), CUBIC (9438), DCTCP (8257), or reTCP (Etalon, section 4.4). A sender with several
//! divisions has a window, a round-trip time and a recovery for each kind of path of its network (TDTCP, SIGCOMM 2022).
//!
//! A connection exists from the start and has no handshake; it ends with the sender's last byte. There is no
//! Nagle delay, no pacing and no path MTU discovery. Sequence numbers are bytes from 0 that never wrap.

pub mod control;
mod division;
mod error;
mod probe;
mod rack;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod settings;
mod undo;

pub use error::SettingsError;
pub use receiver::Receiver;
pub use segment::{Ack, BLOCKS, Block, Ecn, HEADER, MSS, Segment};
pub use sender::{Counts, Sender, State};
pub use settings::{RackUse, Settings};
