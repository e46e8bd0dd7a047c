//! Reports of demand: datagrams in which programs and the kernel say how much was written to a connection.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::error::LabError;
use crate::frame::Tuple;
use crate::inside::Inside;
use crate::switch::Shared;

/// Bytes of a report, and its first bytes: a mark and the version, little endian.
const LENGTH: usize = 32;
const MARK: u32 = 0x4c57_4144;
const VERSION: u8 = 1;
const WRITTEN: u8 = 1;
const CLOSED: u8 = 2;
/// Datagrams that may wait. The setting is of a namespace, and the kernel's default is small.
const WAITING: (&str, &str) = ("/proc/sys/net/unix/max_dgram_qlen", "16384");
/// Longest wait for a report, so that a stop is noticed.
const WAIT: Duration = Duration::from_millis(20);

/// A report of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Report {
    /// Bytes that were written so far.
    Written(Tuple, u64),
    Closed(Tuple),
}

/// Opens the socket for reports at a path, inside a namespace of the lab, whose limit of waiting datagrams it raises.
pub(crate) fn open(path: &Path, namespace: &str) -> Result<UnixDatagram, LabError> {
    let open = || {
        let inside = Inside::new()?;
        inside.enter(namespace)?;
        fs::write(WAITING.0, WAITING.1).map_err(LabError::system(WAITING.0))?;
        let failed = || LabError::system(path.display().to_string());
        let socket = UnixDatagram::bind(path).map_err(failed())?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed())?;
        socket.set_read_timeout(Some(WAIT)).map_err(failed())?;
        Ok(socket)
    };
    thread::scope(|scope| scope.spawn(open).join().expect("the thread does not panic"))
}

/// Passes reports to the demand until the lab stops.
pub(crate) fn receive(socket: &UnixDatagram, shared: &Shared) {
    let mut bytes = [0; LENGTH + 1];
    while !shared.is_stopped() {
        let Ok(length) = socket.recv(&mut bytes) else { continue };
        let (Some(report), Some(mut adus)) = (read(&bytes[..length]), shared.adus()) else { continue };
        match report {
            Report::Written(tuple, bytes) => adus.written(tuple, bytes),
            Report::Closed(tuple) => adus.closed(tuple),
        }
    }
}

/// Reads a report; `None` for anything else.
fn read(bytes: &[u8]) -> Option<Report> {
    let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
    let little = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    if little(0) != MARK || bytes[4] != VERSION {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let tuple = Tuple { source: (address(8), port(16)), destination: (address(12), port(18)) };
    match bytes[5] {
        WRITTEN => Some(Report::Written(tuple, u64::from(little(24)) | u64::from(little(28)) << 32)),
        CLOSED => Some(Report::Closed(tuple)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(kind: u8, total: u64) -> Vec<u8> {
        let mut bytes = MARK.to_le_bytes().to_vec();
        bytes.extend([VERSION, kind, 0, 0, 10, 1, 0, 2, 10, 2, 3, 2]);
        bytes.extend(40_000_u16.to_be_bytes());
        bytes.extend(5001_u16.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(total.to_le_bytes());
        bytes
    }

    #[test]
    fn a_report_has_its_connection_and_its_bytes() {
        let tuple = Tuple {
            source: (Ipv4Addr::new(10, 1, 0, 2), 40_000),
            destination: (Ipv4Addr::new(10, 2, 3, 2), 5001),
        };
        assert_eq!(read(&report(WRITTEN, 1 << 40)), Some(Report::Written(tuple, 1 << 40)));
        assert_eq!(read(&report(CLOSED, 0)), Some(Report::Closed(tuple)));
        assert_eq!(read(&report(3, 0)), None);
        let mut long = report(WRITTEN, 0);
        long.push(0);
        assert_eq!(read(&long), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            read(&bytes);
        }
    }
}
