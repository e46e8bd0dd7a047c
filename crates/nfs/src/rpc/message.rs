//! Headers of calls and replies (RFC 5531, section 9).

use super::marking::{LAST, MARK};
use crate::xdr::{Reader, Writer, XdrError};

/// Version of the RPC protocol.
const VERSION: u32 = 2;
/// Types of messages.
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// Bytes of a message up to the end of its program.
pub const PROGRAM_END: usize = 16;
/// Longest body of a credential or verifier (RFC 5531, section 8.2).
const MOST_AUTH: u32 = 400;
/// Flavors of credentials.
const AUTH_NONE: u32 = 0;
const AUTH_SYS: u32 = 1;
const RPCSEC_GSS: u32 = 6;
/// Services of RPCSEC_GSS that wrap arguments (RFC 2203, section 5.3.1).
const GSS_INTEGRITY: u32 = 2;
const GSS_PRIVACY: u32 = 3;
/// States of accepted calls.
const SUCCESS: u32 = 0;
const PROG_UNAVAIL: u32 = 1;
const PROG_MISMATCH: u32 = 2;

/// A message that is no call of RPC version 2, or no successful reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// The header is not well-formed.
    #[error("a broken header: {0}")]
    Xdr(#[from] XdrError),
    /// A message of another type.
    #[error("a message of type {0}, not a call")]
    NotACall(u32),
    /// A message of another type, or of another call.
    #[error("a message that does not answer the call")]
    NotAReply,
    /// Another version of the RPC protocol.
    #[error("RPC version {0}: expected 2")]
    Version(u32),
    /// The server denied the call, usually because of its credential.
    #[error("call denied: credential rejected")]
    Denied,
    /// The server has not this program, version or procedure, or did not understand the arguments.
    #[error("call rejected by the server: {}", accepted_name(*.0))]
    Rejected(u32),
}

fn accepted_name(state: u32) -> &'static str {
    match state {
        PROG_UNAVAIL => "program unavailable",
        PROG_MISMATCH => "version of the program unavailable",
        3 => "procedure unavailable",
        4 => "garbage arguments",
        _ => "system error",
    }
}

/// Protection of a call's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// The arguments follow the header.
    #[default]
    None,
    /// The arguments follow their length and a sequence number (krb5i).
    Integrity,
    /// The arguments are encrypted (krb5p).
    Privacy,
}

/// Header of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Number by which the reply is matched.
    pub xid: u32,
    /// Program.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure.
    pub procedure: u32,
    /// Protection of the arguments.
    pub protection: Protection,
    /// Offset of the arguments in the message.
    pub arguments: usize,
}

impl Call {
    /// Reads the header from the beginning of a message.
    ///
    /// # Errors
    /// Fails for a message that is no call of RPC version 2, or that ends within the header.
    pub fn read(message: &[u8]) -> Result<Call, HeaderError> {
        let mut reader = Reader::new(message);
        let (xid, program) = begin(&mut reader)?;
        let (version, procedure) = (reader.u32()?, reader.u32()?);
        let (flavor, body) = (reader.u32()?, reader.opaque(MOST_AUTH)?);
        let _verifier = (reader.u32()?, reader.opaque(MOST_AUTH)?);
        let protection = if flavor == RPCSEC_GSS { protection(body)? } else { Protection::None };
        Ok(Call { xid, program, version, procedure, protection, arguments: reader.position() })
    }
}

/// Program of a call, from the first [`PROGRAM_END`] bytes of its message.
///
/// # Errors
/// Fails for a message that is no call of RPC version 2, or that ends before its program.
pub fn program(message: &[u8]) -> Result<u32, HeaderError> {
    begin(&mut Reader::new(message)).map(|(_, program)| program)
}

/// Number and program of a call.
fn begin(reader: &mut Reader<'_>) -> Result<(u32, u32), HeaderError> {
    let xid = reader.u32()?;
    match reader.u32()? {
        CALL => {}
        other => return Err(HeaderError::NotACall(other)),
    }
    match reader.u32()? {
        VERSION => {}
        other => return Err(HeaderError::Version(other)),
    }
    Ok((xid, reader.u32()?))
}

/// Protection by a credential of RPCSEC_GSS: version, procedure, sequence number, service, handle (RFC 2203, section 5).
fn protection(credential: &[u8]) -> Result<Protection, XdrError> {
    let mut reader = Reader::new(credential);
    let (_version, _procedure, _number) = (reader.u32()?, reader.u32()?, reader.u32()?);
    Ok(match reader.u32()? {
        GSS_INTEGRITY => Protection::Integrity,
        GSS_PRIVACY => Protection::Privacy,
        _ => Protection::None,
    })
}

/// Credential of a call that the proxy itself makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credential<'a> {
    /// No identity.
    None,
    /// A machine, and the user and group with these numbers on it.
    System {
        /// Name of the machine.
        machine: &'a str,
        /// Number of the user.
        user: u32,
        /// Number of the group.
        group: u32,
    },
}

/// A call as a record.
pub fn call(xid: u32, numbers: [u32; 3], credential: Credential<'_>, arguments: &[u8]) -> Vec<u8> {
    call_with_payload(xid, numbers, credential, arguments, 0)
}

/// The beginning of a call as a record. Further `payload` bytes complete it, so large data is sent without a copy.
pub fn call_with_payload(
    xid: u32,
    [program, version, procedure]: [u32; 3],
    credential: Credential<'_>,
    arguments: &[u8],
    payload: usize,
) -> Vec<u8> {
    let head = Writer::new().u32(xid).u32(CALL).u32(VERSION).u32(program).u32(version).u32(procedure);
    let head = match credential {
        Credential::None => head.u32(AUTH_NONE).u32(0),
        Credential::System { machine, user, group } => {
            let name = &machine.as_bytes()[..machine.len().min(255)];
            let body = Writer::new().u32(0).opaque(name).u32(user).u32(group).u32(0).into_bytes();
            head.u32(AUTH_SYS).opaque(&body)
        }
    };
    record(&head.u32(AUTH_NONE).u32(0).raw(arguments).into_bytes(), payload)
}

/// State of an accepted call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepted<'a> {
    /// The call was carried out, with these results.
    Success(&'a [u8]),
    /// There is no such program.
    ProgramUnavailable,
    /// The program has other versions, between these two.
    VersionMismatch {
        /// Lowest version.
        low: u32,
        /// Highest version.
        high: u32,
    },
}

/// A reply as a record.
pub fn reply(xid: u32, accepted: Accepted<'_>) -> Vec<u8> {
    let head = Writer::new().u32(xid).u32(REPLY).u32(0).u32(AUTH_NONE).u32(0);
    let message = match accepted {
        Accepted::Success(results) => head.u32(SUCCESS).raw(results),
        Accepted::ProgramUnavailable => head.u32(PROG_UNAVAIL),
        Accepted::VersionMismatch { low, high } => head.u32(PROG_MISMATCH).u32(low).u32(high),
    };
    record(&message.into_bytes(), 0)
}

/// Results in the reply to a call.
///
/// # Errors
/// Fails for a message that is no reply to this call, and for a reply that reports a failure.
pub fn results(message: &[u8], xid: u32) -> Result<&[u8], HeaderError> {
    let mut reader = Reader::new(message);
    if reader.u32()? != xid || reader.u32()? != REPLY {
        return Err(HeaderError::NotAReply);
    }
    if reader.u32()? != 0 {
        return Err(HeaderError::Denied);
    }
    let _verifier = (reader.u32()?, reader.opaque(MOST_AUTH)?);
    match reader.u32()? {
        SUCCESS => Ok(&message[reader.position()..]),
        state => Err(HeaderError::Rejected(state)),
    }
}

/// A message as one fragment, which further `payload` bytes complete.
fn record(message: &[u8], payload: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(MARK + message.len());
    record.extend_from_slice(&((message.len() + payload) as u32 | LAST).to_be_bytes());
    record.extend_from_slice(message);
    record
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn calls_are_read_as_they_were_written(
            numbers in any::<[u32; 3]>(),
            xid in any::<u32>(),
            machine in "[a-z0-9.-]{0,255}",
            arguments in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            for credential in [Credential::None, Credential::System { machine: &machine, user: 1, group: 2 }] {
                let record = call(xid, numbers, credential, &arguments);
                let message = &record[MARK..];
                let read = Call::read(message).unwrap();
                prop_assert_eq!((read.xid, [read.program, read.version, read.procedure]), (xid, numbers));
                prop_assert_eq!(read.protection, Protection::None);
                prop_assert_eq!(&message[read.arguments..], &arguments[..]);
                for length in 0..read.arguments {
                    prop_assert_eq!(Call::read(&message[..length]), Err(XdrError::Truncated.into()));
                }
            }
        }

        #[test]
        fn results_are_those_of_the_reply_to_the_call(xid in any::<u32>(), bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let record = reply(xid, Accepted::Success(&bytes));
            prop_assert_eq!(results(&record[MARK..], xid), Ok(&bytes[..]));
            prop_assert_eq!(results(&record[MARK..], xid.wrapping_add(1)), Err(HeaderError::NotAReply));
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Call::read(&bytes);
            let _ = results(&bytes, 7);
            let _ = protection(&bytes);
        }
    }

    #[test]
    fn messages_that_are_no_calls_and_failures_have_errors_of_their_own() {
        let mismatch = reply(7, Accepted::VersionMismatch { low: 3, high: 3 });
        assert_eq!(Call::read(&mismatch[MARK..]), Err(HeaderError::NotACall(REPLY)));
        assert_eq!(results(&mismatch[MARK..], 7), Err(HeaderError::Rejected(PROG_MISMATCH)));
        let other = Writer::new().u32(7).u32(CALL).u32(3).into_bytes();
        assert_eq!(Call::read(&other), Err(HeaderError::Version(3)));
        let denied = Writer::new().u32(7).u32(REPLY).u32(1).u32(1).u32(1).into_bytes();
        assert_eq!(results(&denied, 7), Err(HeaderError::Denied));
    }

    #[test]
    fn arguments_under_kerberos_are_plain_signed_or_encrypted() {
        for (service, expected) in
            [(1, Protection::None), (2, Protection::Integrity), (3, Protection::Privacy)]
        {
            let body = Writer::new().u32(1).u32(0).u32(9).u32(service).opaque(b"context").into_bytes();
            let head = Writer::new().u32(7).u32(CALL).u32(VERSION).u32(100_003).u32(3).u32(6);
            let message = head.u32(RPCSEC_GSS).opaque(&body).u32(RPCSEC_GSS).opaque(&[0; 20]).into_bytes();
            assert_eq!(Call::read(&message).map(|call| call.protection), Ok(expected));
        }
    }
}
