//! Calls of NFS version 3 (RFC 1813) that the proxy has to know: READ, WRITE and COMMIT, with their file, offset and
//! size. All other calls pass on unread, but for the size of the reply that READDIR and READDIRPLUS allow.

use crate::rpc::{Call, Protection};
use crate::xdr::{Reader, XdrError};

/// Number of the program NFS.
pub const NFS: u32 = 100_003;
/// The version of NFS that the proxy reads.
pub const VERSION: u32 = 3;
/// Procedure that reads from a file (RFC 1813, section 3.3.6).
pub const READ: u32 = 6;
/// Procedure that writes to a file (section 3.3.7).
pub const WRITE: u32 = 7;
/// Procedure that makes earlier writes durable (section 3.3.21).
pub const COMMIT: u32 = 21;
/// Procedures that list a folder (sections 3.3.16 and 3.3.17).
const READDIR: u32 = 16;
const READDIRPLUS: u32 = 17;

/// Longest file handle, in bytes.
const MOST_HANDLE: u32 = 64;
/// Bytes of a read whose arguments are encrypted or broken: the most that servers usually return.
const UNKNOWN_READ: u64 = 1 << 20;
/// Bytes of a reply besides its payload: the header, attributes of files, a name.
const REPLY: u64 = 2 << 10;
/// Bytes of a reply of another program, such as an access control list.
const OTHER_REPLY: u64 = 32 << 10;

/// A call that uses the server's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// COMMIT.
    Commit,
}

/// Arguments of a call that uses the server's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access<'m> {
    /// The procedure.
    pub operation: Operation,
    /// Handle of the file; empty if the arguments cannot be read.
    pub file: &'m [u8],
    /// First byte of the file; 0 if the arguments cannot be read.
    pub offset: u64,
    /// Bytes of payload; 0 for a COMMIT.
    pub size: u64,
}

impl Access<'_> {
    /// Bytes of the reply, at most about this number.
    pub fn reply(&self) -> u64 {
        if self.operation == Operation::Read { REPLY + self.size } else { REPLY }
    }
}

/// Handling of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handling<'m> {
    /// The call waits in the queue of its workload.
    Queue(Access<'m>),
    /// The call passes on at once. The reply has at most about this number of bytes.
    Pass(u64),
    /// NFS of another version, whose reads and writes would evade the limits.
    OtherVersion,
}

/// Handling of a call. `head` is the beginning of its message, `payload` the number of bytes of the whole message, and
/// `largest` the number of bytes that a reply can have.
///
/// A READ or WRITE whose arguments cannot be read is queued as well, with the size of its message or 1 MiB. Otherwise a
/// client could evade its limits with arguments that only the server understands.
pub fn handling<'m>(call: &Call, head: &'m [u8], payload: usize, largest: u64) -> Handling<'m> {
    if call.program != NFS {
        return Handling::Pass(OTHER_REPLY);
    }
    if call.version != VERSION {
        return Handling::OtherVersion;
    }
    let operation = match call.procedure {
        READ => Operation::Read,
        WRITE => Operation::Write,
        COMMIT => Operation::Commit,
        READDIR | READDIRPLUS => {
            return Handling::Pass(REPLY + listing(call, head).unwrap_or(largest).min(largest));
        }
        _ => return Handling::Pass(REPLY),
    };
    let rest = payload.saturating_sub(call.arguments) as u64;
    let access = access(operation, call, head).unwrap_or_else(|_| {
        let size = match operation {
            Operation::Read => UNKNOWN_READ,
            Operation::Write => rest,
            Operation::Commit => 0,
        };
        Access { operation, file: &[], offset: 0, size }
    });
    let most = if operation == Operation::Write { rest } else { largest };
    Handling::Queue(Access { size: access.size.min(most), ..access })
}

/// Bytes of a reply to READDIR or READDIRPLUS that the arguments allow.
fn listing(call: &Call, head: &[u8]) -> Result<u64, XdrError> {
    let mut reader = arguments(call, head)?;
    let _folder = reader.opaque(MOST_HANDLE)?;
    let (_cookie, _verifier, mut count) = (reader.u64()?, reader.u64()?, reader.u32()?);
    if call.procedure == READDIRPLUS {
        // The first number is the size without attributes.
        count = reader.u32()?;
    }
    Ok(count.into())
}

/// Reader of the arguments of a call.
fn arguments<'m>(call: &Call, head: &'m [u8]) -> Result<Reader<'m>, XdrError> {
    if call.protection == Protection::Privacy {
        return Err(XdrError::Truncated);
    }
    let mut reader = Reader::new(head.get(call.arguments..).ok_or(XdrError::Truncated)?);
    if call.protection == Protection::Integrity {
        let (_length, _number) = (reader.u32()?, reader.u32()?);
    }
    Ok(reader)
}

fn access<'m>(operation: Operation, call: &Call, head: &'m [u8]) -> Result<Access<'m>, XdrError> {
    let mut reader = arguments(call, head)?;
    let file = reader.opaque(MOST_HANDLE)?;
    let (offset, count) = (reader.u64()?, u64::from(reader.u32()?));
    let size = match operation {
        Operation::Read => count,
        // The required stability of the write, and the length of its data.
        Operation::Write => {
            let (_stable, length) = (reader.u32()?, u64::from(reader.u32()?));
            count.max(length)
        }
        Operation::Commit => 0,
    };
    Ok(Access { operation, file, offset, size })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rpc::{Credential, call};
    use crate::xdr::Writer;

    /// Message of a call, without its mark.
    fn message(numbers: [u32; 3], arguments: &[u8]) -> Vec<u8> {
        let user = Credential::System { machine: "client", user: 1000, group: 100 };
        call(9, numbers, user, arguments).split_off(4)
    }

    fn handled(message: &[u8], largest: u64) -> Handling<'_> {
        handling(&Call::read(message).unwrap(), message, message.len(), largest)
    }

    proptest! {
        #[test]
        fn reads_writes_and_commits_have_their_file_offset_and_size(
            file in prop::collection::vec(any::<u8>(), 0..=64),
            offset in any::<u64>(),
            count in 0u32..100_000,
        ) {
            let place = Writer::new().opaque(&file).u64(offset).u32(count).into_bytes();
            let read = message([NFS, VERSION, READ], &place);
            let expected = |operation, size| Handling::Queue(Access { operation, file: &file, offset, size });
            prop_assert_eq!(handled(&read, 1 << 20), expected(Operation::Read, count.into()));
            prop_assert_eq!(handled(&read, 10), expected(Operation::Read, u64::from(count).min(10)));
            let data = vec![7; count as usize];
            let write = Writer::new().raw(&place).u32(0).opaque(&data).into_bytes();
            let write = message([NFS, VERSION, WRITE], &write);
            prop_assert_eq!(handled(&write, 10), expected(Operation::Write, count.into()));
            let commit = message([NFS, VERSION, COMMIT], &place);
            prop_assert_eq!(handled(&commit, 1 << 20), expected(Operation::Commit, 0));
        }

        #[test]
        fn no_arguments_let_a_call_evade_its_queue(
            procedure in prop::sample::select(vec![READ, WRITE, COMMIT]),
            arguments in prop::collection::vec(any::<u8>(), 0..120),
        ) {
            let message = message([NFS, VERSION, procedure], &arguments);
            match handled(&message, 1 << 22) {
                Handling::Queue(access) => prop_assert!(access.size <= 1 << 22),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn other_calls_pass_on_and_other_versions_do_not() {
        for procedure in (0..=21).filter(|number| ![READ, WRITE, COMMIT].contains(number)) {
            let handling = message([NFS, VERSION, procedure], &[]);
            assert!(matches!(handled(&handling, 1), Handling::Pass(_)), "{procedure}");
        }
        // Access control lists and locks.
        for program in [100_227, 100_021] {
            assert_eq!(handled(&message([program, 3, READ], &[]), 1), Handling::Pass(OTHER_REPLY));
        }
        for version in [2, 4] {
            assert_eq!(handled(&message([NFS, version, 1], &[]), 1), Handling::OtherVersion);
        }
    }

    #[test]
    fn the_reply_of_a_listing_has_the_size_that_its_arguments_allow() {
        let folder = Writer::new().opaque(b"folder").u64(1).u64(2).u32(4096).u32(32_768).into_bytes();
        for (procedure, size) in [(READDIR, 4096), (READDIRPLUS, 32_768)] {
            let message = message([NFS, VERSION, procedure], &folder);
            assert_eq!(handled(&message, 1 << 20), Handling::Pass(REPLY + size));
            assert_eq!(handled(&message, 100), Handling::Pass(REPLY + 100));
            assert_eq!(handled(&message[..message.len() - 24], 1 << 20), Handling::Pass(REPLY + (1 << 20)));
        }
    }

    #[test]
    fn a_size_is_at_most_that_of_the_message_or_of_the_largest_reply() {
        let arguments = Writer::new().opaque(b"file").u64(0).u32(u32::MAX).u32(0).u32(u32::MAX).into_bytes();
        for (procedure, expected) in [(READ, 1 << 22), (WRITE, arguments.len() as u64)] {
            let message = message([NFS, VERSION, procedure], &arguments);
            let Handling::Queue(access) = handled(&message, 1 << 22) else { panic!("queued") };
            assert_eq!(access.size, expected);
        }
    }
}
