//! Snapshots of the network in columns of whole numbers, for readers of the service: the columns that a reader chose, as
//! JSON, whole or as the difference from an earlier snapshot, compressed. Each is made once for all its readers, on a
//! thread beside those that decide.

mod encoding;
mod frame;
mod selection;
mod shapes;
mod store;
mod tables;

pub use encoding::{Encoding, StreamEncoder};
pub use selection::{InvalidSelection, RESOLUTIONS, Selection, pattern};
pub use shapes::Snapshot;
pub use store::{Base, Snapshots};
