//! ONC RPC version 2 over TCP (RFC 5531): records, and the headers of calls and replies.
//!
//! ```text
//! bytes of a connection --Marking--> parts --Records--> Record (a call as it came) --Call--> program, procedure
//!                                      '----> ends and numbers of replies, which pass on in pieces
//! ```

mod marking;
mod message;
mod record;

pub use marking::{Marking, MarkingError, Part};
pub use message::{
    Accepted, Call, Credential, HeaderError, PROGRAM_END, Protection, call, call_with_payload, program,
    reply, results,
};
pub use record::{HEAD, Record, Records};
