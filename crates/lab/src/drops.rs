//! Frames that a host's kernel has dropped, as it counts them (rtnetlink): packets of a lab may be lost in its switch only.

use std::io;
use std::iter::Sum;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage, TcStats2};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::error::LabError;

/// Maximum length of a netlink datagram: the kernel fills pages of at most 32 KiB.
const LONGEST: usize = 32 << 10;

/// Frames that a host has dropped since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Drops {
    /// By the queue of the NIC.
    pub(crate) nic: u64,
    /// By the device: frames for which it had no room, and frames from the switch that it rejected.
    pub(crate) device: u64,
}

impl Sum for Drops {
    fn sum<I: Iterator<Item = Drops>>(drops: I) -> Drops {
        drops.fold(Drops::default(), |sum, one| Drops {
            nic: sum.nic + one.nic,
            device: sum.device + one.device,
        })
    }
}

/// Reader of a host's counters. It belongs to the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct DropReader(Socket);

impl DropReader {
    /// Opens a reader for the namespace of the current thread.
    pub(crate) fn open() -> Result<DropReader, LabError> {
        let open = || {
            let socket = Socket::new(NETLINK_ROUTE)?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(DropReader(socket))
        };
        open().map_err(LabError::system("netlink"))
    }

    /// Reads the counters of the host.
    pub(crate) fn read(&self) -> Result<Drops, LabError> {
        let requests = [
            RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default()),
            RouteNetlinkMessage::GetLink(LinkMessage::default()),
        ];
        let mut drops = Drops::default();
        for request in requests {
            self.dump(request, &mut drops).map_err(LabError::system("netlink"))?;
        }
        Ok(drops)
    }

    fn dump(&self, request: RouteNetlinkMessage, drops: &mut Drops) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(request));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        loop {
            let mut part = Vec::with_capacity(LONGEST);
            self.0.recv(&mut part, 0)?;
            if take(&part, drops)? {
                return Ok(());
            }
        }
    }
}

/// Adds the counters in one datagram of a reply; returns true if it was the last.
fn take(mut part: &[u8], drops: &mut Drops) -> io::Result<bool> {
    while let Some((length, _)) = part.split_first_chunk() {
        let length = (u32::from_ne_bytes(*length) as usize).clamp(4, part.len());
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&part[..length])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(queue)) => {
                drops.nic += dropped_by(&queue);
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                drops.device += dropped_at(&link);
            }
            _ => {}
        }
        // Messages begin at multiples of four bytes.
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn dropped_by(queue: &TcMessage) -> u64 {
    let statistics = queue.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Stats2(statistics) => Some(statistics),
        _ => None,
    });
    let drops = statistics.flatten().map(|part| match part {
        TcStats2::Queue(queue) => u64::from(queue.drops),
        _ => 0,
    });
    drops.sum()
}

fn dropped_at(link: &LinkMessage) -> u64 {
    let drops = link.attributes.iter().map(|attribute| match attribute {
        LinkAttribute::Stats64(of) => of.tx_dropped + of.tx_errors + of.rx_dropped + of.rx_errors,
        _ => 0,
    });
    drops.sum()
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::Stats64;
    use netlink_packet_route::tc::TcStatsQueue;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_rejected(bytes: Vec<u8>, length in 0_u32..64, kind in 16_u16..40) {
            let _ = take(&bytes, &mut Drops::default());
            let framed = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &bytes].concat();
            let _ = take(&framed, &mut Drops::default());
        }
    }

    fn datagram(message: RouteNetlinkMessage) -> Vec<u8> {
        let mut message = NetlinkMessage::from(message);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn drops_of_queues_and_devices_are_added() {
        let (mut queue, mut link) = (TcMessage::with_index(2), LinkMessage::default());
        let mut dropped = TcStatsQueue::default();
        dropped.drops = 3;
        queue.attributes = vec![TcAttribute::Stats2(vec![TcStats2::Queue(dropped)])];
        let mut counters = Stats64::default();
        (counters.tx_packets, counters.tx_dropped, counters.rx_dropped, counters.rx_errors) =
            (900, 10, 20, 40);
        link.attributes = vec![LinkAttribute::Stats64(counters)];
        let parts = [
            datagram(RouteNetlinkMessage::NewQueueDiscipline(queue.clone())),
            datagram(RouteNetlinkMessage::NewLink(link)),
            datagram(RouteNetlinkMessage::NewQueueDiscipline(queue)),
        ]
        .concat();
        let mut drops = Drops::default();
        assert!(!take(&parts, &mut drops).expect("a part"), "there may be more");
        assert_eq!(drops, Drops { nic: 6, device: 70 });
        assert_eq!([drops, drops].into_iter().sum::<Drops>(), Drops { nic: 12, device: 140 });
    }
}
