//! Queue lengths at interfaces: reads the backlog of their queueing disciplines over netlink.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Maximum length of a netlink datagram: the kernel fills pages of at most 32 KiB.
const LONGEST: usize = 32 << 10;

/// Netlink socket to the kernel.
pub(crate) struct Queues(Socket);

impl Queues {
    /// Opens the socket.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn open() -> io::Result<Queues> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Queues(socket))
    }

    /// Bytes queued for sending at each interface, by its index.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn read(&self) -> io::Result<BTreeMap<u32, u64>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(request));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let mut queues = BTreeMap::new();
        loop {
            let mut part = Vec::with_capacity(LONGEST);
            self.0.recv(&mut part, 0)?;
            if take(&part, &mut queues)? {
                return Ok(queues);
            }
        }
    }
}

/// Processes one datagram of a reply; returns true if it was the last. Messages that cannot be parsed are skipped,
/// because some disciplines have options that the library does not know.
fn take(mut part: &[u8], queues: &mut BTreeMap<u32, u64>) -> io::Result<bool> {
    while let Some((length, _)) = part.split_first_chunk() {
        let length = (u32::from_ne_bytes(*length) as usize).clamp(4, part.len());
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&part[..length]);
        match message.map(|message| message.payload) {
            Ok(NetlinkPayload::Done(_)) => return Ok(true),
            Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
            Ok(NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(message))) => {
                queues.extend(root_backlog(&message));
            }
            _ => {}
        }
        // Messages begin at multiples of four bytes.
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Backlog of an interface, if the message is about its outermost discipline. The outermost backlog includes the inner
/// ones.
fn root_backlog(message: &TcMessage) -> Option<(u32, u64)> {
    let index = u32::try_from(message.header.index).ok()?;
    let statistics = message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Stats2(statistics) => Some(statistics),
        _ => None,
    });
    let backlog = statistics?.iter().find_map(|part| match part {
        TcStats2::Queue(queue) => Some(queue.backlog),
        _ => None,
    });
    (message.header.parent == TcHandle::ROOT).then_some((index, u64::from(backlog?)))
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::tc::TcStatsQueue;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes: Vec<u8>, length in 0_u32..64) {
            let _ = take(&bytes, &mut BTreeMap::new());
            let framed = [&length.to_ne_bytes()[..], &36_u16.to_ne_bytes(), &bytes].concat();
            let _ = take(&framed, &mut BTreeMap::new());
        }
    }

    #[test]
    fn the_outermost_discipline_gives_the_backlog() {
        let datagram = |index: i32, parent: TcHandle, backlog: u32| {
            let mut one = TcMessage::with_index(index);
            one.header.parent = parent;
            let mut queue = TcStatsQueue::default();
            queue.backlog = backlog;
            one.attributes = vec![TcAttribute::Stats2(vec![TcStats2::Queue(queue)])];
            let mut message = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(one));
            message.finalize();
            let mut bytes = vec![0; message.buffer_len()];
            message.serialize(&mut bytes);
            bytes
        };
        let inner = TcHandle { major: 1, minor: 1 };
        let parts =
            [datagram(2, TcHandle::ROOT, 3_000), datagram(2, inner, 1_500), datagram(3, TcHandle::ROOT, 0)]
                .concat();
        let mut queues = BTreeMap::new();
        assert!(!take(&parts, &mut queues).expect("a part"), "there may be more");
        assert_eq!(queues, BTreeMap::from([(2, 3_000), (3, 0)]));
    }
}
