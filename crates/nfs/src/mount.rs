//! The protocols by which a client finds and mounts an export: MOUNT (RFC 1813, appendix I) and the port mapper
//! (RFC 1833).
//!
//! A client reaches both NFS and MOUNT at the one port of a listener, with `port=` and `mountport=` (Linux) or `nfsport=`
//! and `mountport=` (libnfs). So no port mapper is needed in front of the proxy, and the ports of the server's own
//! programs stay as they are.

use crate::rpc::{Accepted, Call, Protection, reply};
use crate::xdr::{Reader, Writer, XdrError};

/// Number of the program MOUNT.
pub const MOUNT: u32 = 100_005;
/// Version of MOUNT that belongs to NFS version 3.
pub const VERSION: u32 = 3;
/// Procedure that mounts a path.
pub const MNT: u32 = 1;
/// Procedure that ends a mount.
pub const UMNT: u32 = 3;

/// Number of the port mapper's program.
pub const PORTMAP: u32 = 100_000;
/// Version of the port mapper that is asked.
pub const PORTMAP_VERSION: u32 = 2;
/// Procedure that returns the port of a program.
pub const GETPORT: u32 = 3;
/// TCP in arguments of the port mapper.
const TCP: u32 = 6;

/// Longest path, in bytes.
const MOST_PATH: u32 = 1024;
/// Longest file handle, in bytes.
const MOST_HANDLE: u32 = 64;
/// State of a mount that is not allowed.
const ACCESS_DENIED: u32 = 13;

/// Reason why a server does not mount a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MountError {
    /// The server's answer.
    #[error("{}", state_name(*.0))]
    State(u32),
    /// The answer is not well-formed.
    #[error("a broken answer: {0}")]
    Xdr(#[from] XdrError),
}

fn state_name(state: u32) -> &'static str {
    match state {
        1 => "not owner",
        2 => "no such export",
        5 => "I/O error at the server",
        ACCESS_DENIED => "permission denied: the server does not export it to this host",
        20 => "not a directory",
        22 => "invalid path",
        63 => "path too long",
        10004 => "not supported",
        _ => "failure at the server",
    }
}

/// Arguments of a mount or of its end.
pub fn path_arguments(path: &str) -> Vec<u8> {
    Writer::new().opaque(path.as_bytes()).into_bytes()
}

/// Handle of the root in the results of a mount.
///
/// # Errors
/// Fails with the reason of the server.
pub fn root(results: &[u8]) -> Result<&[u8], MountError> {
    let mut reader = Reader::new(results);
    match reader.u32()? {
        0 => Ok(reader.opaque(MOST_HANDLE)?),
        state => Err(MountError::State(state)),
    }
}

/// Arguments of a request for the TCP port of a program.
pub fn port_arguments(program: u32, version: u32) -> Vec<u8> {
    Writer::new().u32(program).u32(version).u32(TCP).u32(0).into_bytes()
}

/// Port in the results of the port mapper; `None` for a program that is not there.
///
/// # Errors
/// Fails for results that are no number.
pub fn port(results: &[u8]) -> Result<Option<u16>, XdrError> {
    let port = Reader::new(results).u32()?;
    Ok(u16::try_from(port).ok().filter(|&port| port > 0))
}

/// Reply of the proxy to a mount of a path that is neither the export nor below it; `None` for all other calls, which
/// pass on. Requests of a listener count for one export, so other exports must not be mounted there.
pub fn refusal(call: &Call, head: &[u8], export: &str) -> Option<Vec<u8>> {
    if call.program != MOUNT || call.procedure != MNT || call.protection != Protection::None {
        return None;
    }
    let path = head.get(call.arguments..).and_then(|rest| Reader::new(rest).opaque(MOST_PATH).ok());
    if path.is_some_and(|path| is_within(path, export.as_bytes())) {
        return None;
    }
    Some(reply(call.xid, Accepted::Success(&Writer::new().u32(ACCESS_DENIED).into_bytes())))
}

/// True for a path that is the export, or below it.
fn is_within(path: &[u8], export: &[u8]) -> bool {
    let (path, export) = (parts(path), parts(export));
    !path.contains(&&b".."[..]) && path.starts_with(&export)
}

/// Names of the folders and of the file of a path.
fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{Credential, call, results};

    fn refused(path: &[u8], export: &str) -> bool {
        let arguments = Writer::new().opaque(path).into_bytes();
        let message = call(5, [MOUNT, VERSION, MNT], Credential::None, &arguments).split_off(4);
        let refusal = refusal(&Call::read(&message).unwrap(), &message, export);
        if let Some(refusal) = &refusal {
            let results = results(&refusal[4..], 5).unwrap();
            assert_eq!(root(results), Err(MountError::State(ACCESS_DENIED)));
        }
        refusal.is_some()
    }

    #[test]
    fn a_listener_mounts_its_export_and_the_paths_below() {
        for path in ["/vol", "/vol/", "//vol/./a", "/vol/a/b"] {
            assert!(!refused(path.as_bytes(), "/vol"), "{path}");
        }
        for path in ["/", "", "/volume", "/other", "/vol/../other", "vo"] {
            assert!(refused(path.as_bytes(), "/vol"), "{path}");
        }
        assert!(!refused(b"/anything", "/"));
        assert!(refused(&[b'/'; 1025], "/"));
    }

    #[test]
    fn other_procedures_of_mount_pass_on() {
        for procedure in [0, 2, UMNT, 4, 5] {
            let message = call(5, [MOUNT, VERSION, procedure], Credential::None, &[]).split_off(4);
            assert_eq!(refusal(&Call::read(&message).unwrap(), &message, "/vol"), None);
        }
    }

    #[test]
    fn answers_are_a_handle_or_a_reason_and_a_port_or_none() {
        let handle = Writer::new().u32(0).opaque(b"root").u32(1).u32(1).into_bytes();
        assert_eq!(root(&handle), Ok(&b"root"[..]));
        let missing = root(&Writer::new().u32(2).into_bytes()).unwrap_err();
        assert_eq!(missing.to_string(), "no such export");
        assert_eq!(root(&[]), Err(MountError::Xdr(XdrError::Truncated)));
        let number = |port| Writer::new().u32(port).into_bytes();
        assert_eq!((port(&number(2049)), port(&number(0))), (Ok(Some(2049)), Ok(None)));
        assert_eq!((port(&number(1 << 16)), port(&[])), (Ok(None), Err(XdrError::Truncated)));
    }
}
