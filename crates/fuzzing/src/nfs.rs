//! Target for streams of NFS clients and servers.

use bytes::Bytes;
use leeward_nfs::calls::{Handling, handling};
use leeward_nfs::mount;
use leeward_nfs::rpc::{Call, HEAD, Marking, Record, Records, results};
use leeward_nfs::work::place;

use crate::short;

/// Largest record.
const LIMIT: usize = 64 << 10;
/// Largest reply.
const LARGEST: u64 = 1 << 20;

/// Reads the input as a stream of calls and as a stream of replies, in chunks whose size the first byte chooses. The
/// records do not depend on the chunks, each has the bytes of the stream, and a call has a bounded size.
pub fn nfs(bytes: &[u8]) {
    let Some((&size, stream)) = bytes.split_first() else { return };
    let whole = records(stream, stream.len().max(1));
    assert_eq!(whole, records(stream, usize::from(size) + 1));
    let taken: usize = whole.iter().map(Vec::len).sum();
    assert_eq!(whole.concat(), stream[..taken]);
    let mut marking = Marking::new(LIMIT);
    let (mut rest, mut ends) = (stream, 0);
    while !rest.is_empty() {
        let Ok(part) = marking.step(rest) else { return };
        ends += usize::from(part.ends);
        rest = &rest[part.length..];
    }
    assert_eq!(ends, whole.len());
}

/// Bytes of the records of a stream that arrives in chunks, up to the first error.
fn records(stream: &[u8], chunk: usize) -> Vec<Vec<u8>> {
    let (mut reader, mut all) = (Records::new(LIMIT), Vec::new());
    for chunk in stream.chunks(chunk) {
        reader.push(Bytes::copy_from_slice(chunk));
        loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    check(&record);
                    all.push(record.into_pieces().flatten().collect());
                }
                Ok(None) => break,
                Err(error) => {
                    short(&error.to_string());
                    return all;
                }
            }
        }
    }
    all
}

fn check(record: &Record) {
    let mut buffer = [0; HEAD];
    let head = record.head(&mut buffer);
    assert!(head.len() == record.payload().min(HEAD) && record.size() <= LIMIT);
    match Call::read(head) {
        Ok(call) => {
            if let Handling::Queue(access) = handling(&call, head, record.payload(), LARGEST) {
                assert!(access.size <= LARGEST && place(0, &access) < 1 << 56);
            }
            if let Some(refusal) = mount::refusal(&call, head, "/vol") {
                assert!(results(&refusal[4..], call.xid).is_ok());
            }
        }
        Err(error) => short(&error.to_string()),
    }
    if let Ok(results) = results(head, 1) {
        if let Err(error) = mount::root(results) {
            short(&error.to_string());
        }
        if let Err(error) = mount::port(results) {
            short(&error.to_string());
        }
    }
}
