//! Ports: the sending end of a link, with a buffer.
//!
//! A port of one class serves packets in order of arrival. It therefore knows at a packet's arrival when the packet leaves,
//! and keeps no queue: limits on waiting bytes are limits on waiting times.
//!
//! A port of several classes has a queue for each. Classes share the link by their weights, by self-clocked fair queueing
//! (Golestani, INFOCOM 1994): a packet has a tag, the virtual time at which its class would have sent it by its share, and the
//! packet with the least tag is next. The time is the tag of the packet on the link.

use leeward_circuits::link::{Link, Pace};
use leeward_fabric::Bandwidth;

use super::packet::{NONE, Packets};
use crate::records::Traffic;

/// Fraction bits of a tag.
const FRACTION: u32 = 16;

/// Limits of the queue of a port, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Most bytes that wait; further packets are dropped. `u64::MAX` for no limit.
    pub buffer: u64,
    /// Waiting bytes of a class from which its packets are marked. `u64::MAX` for no marks.
    pub mark_at: u64,
}

impl Limits {
    /// No limit and no marks, as of a host's own queue.
    pub const NONE: Limits = Limits { buffer: u64::MAX, mark_at: u64::MAX };
}

/// Outcome for a packet that arrives at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Offer {
    /// The packet arrives at the end of the link at this time.
    Sent(u64),
    /// The packet waits. If there is a time, the port is free then and must be served.
    Waits(Option<u64>),
    /// The buffer is full.
    Dropped,
}

/// A packet that a port has begun to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Departure {
    pub packet: u32,
    /// Time of its arrival at the end of the link.
    pub arrives: u64,
    /// Time at which the port is free and must be served again; `None` if no packet waits.
    pub free_at: Option<u64>,
}

/// A port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    link: Link,
    /// Time on the link after the packet has left the port.
    delay: u64,
    limits: Limits,
    /// The limits as waiting times at the present rate.
    longest: u64,
    marks_from: u64,
    /// Queues of several classes.
    queues: Option<Box<Queues>>,
    /// Traffic of each class since it was last taken; empty if it does not count.
    traffic: Vec<Traffic>,
}

#[derive(Clone, Debug)]
struct Queues {
    classes: Vec<Class>,
    /// Bytes of all classes that wait.
    bytes: u64,
    /// Tag of the last packet that was sent.
    time: u64,
    /// True if the port is to be served when it is free.
    is_awaited: bool,
}

#[derive(Clone, Debug)]
struct Class {
    weight: u64,
    first: u32,
    last: u32,
    bytes: u64,
    /// Tag of the first packet that waits, and of the last one that was sent.
    tag: u64,
    sent_tag: u64,
}

impl Class {
    /// Tag of a packet after one with the tag `after`.
    fn tag_after(&self, after: u64, bytes: u32) -> u64 {
        after.saturating_add((u64::from(bytes) << FRACTION) / self.weight)
    }
}

impl Port {
    /// Creates an idle port. `weights` are those of the classes; `counts` is true if traffic counts.
    pub fn new(rate: Bandwidth, delay: u64, limits: Limits, weights: &[u32], counts: bool) -> Port {
        let class = |&weight: &u32| Class {
            weight: u64::from(weight.max(1)),
            first: NONE,
            last: NONE,
            bytes: 0,
            tag: 0,
            sent_tag: 0,
        };
        let queues =
            Queues { classes: weights.iter().map(class).collect(), bytes: 0, time: 0, is_awaited: false };
        let mut port = Port {
            link: Link::new(Pace::of(rate)),
            delay,
            limits,
            longest: 0,
            marks_from: 0,
            queues: (weights.len() > 1).then(|| Box::new(queues)),
            traffic: if counts { vec![Traffic::default(); weights.len()] } else { Vec::new() },
        };
        port.set_rate(rate);
        port
    }

    /// Changes the rate; a packet on the link is not affected.
    pub fn set_rate(&mut self, rate: Bandwidth) {
        let pace = Pace::of(rate);
        // A link without bytes is free at once.
        self.link = Link::new(pace).after(self.link.free_at(), 0);
        let time = |bytes: u64| match u32::try_from(bytes) {
            Ok(bytes) => Link::new(pace).after(0, bytes).free_at(),
            Err(_) => u64::MAX,
        };
        (self.longest, self.marks_from) = (time(self.limits.buffer), time(self.limits.mark_at));
    }

    /// Takes the traffic that has been counted.
    pub fn take_traffic(&mut self) -> Vec<Traffic> {
        let none = vec![Traffic::default(); self.traffic.len()];
        std::mem::replace(&mut self.traffic, none)
    }

    /// Handles a packet that arrives at the port.
    #[inline]
    pub fn offer(&mut self, now: u64, number: u32, packets: &mut Packets) -> Offer {
        if self.queues.is_some() {
            return self.offer_to_class(now, number, packets);
        }
        let packet = packets.get_mut(number);
        let start = now.max(self.link.free_at());
        let wait = start - now;
        if wait > self.longest {
            if let Some(traffic) = self.traffic.first_mut() {
                traffic.dropped += 1;
            }
            return Offer::Dropped;
        }
        let marked = wait > self.marks_from && packet.mark();
        self.link = self.link.after(start, packet.bytes);
        if let Some(traffic) = self.traffic.first_mut() {
            traffic.count(packet.bytes, wait, marked);
        }
        Offer::Sent(self.link.free_at() + self.delay)
    }

    fn offer_to_class(&mut self, now: u64, number: u32, packets: &mut Packets) -> Offer {
        let Some(queues) = self.queues.as_deref_mut() else { return Offer::Dropped };
        let packet = packets.get_mut(number);
        let (bytes, index) = (packet.bytes, usize::from(packet.class));
        let Some(class) = queues.classes.get_mut(index) else { return Offer::Dropped };
        let is_idle = queues.bytes == 0 && self.link.free_at() <= now;
        if is_idle {
            class.sent_tag = class.tag_after(queues.time.max(class.sent_tag), bytes);
            queues.time = class.sent_tag;
            self.link = self.link.after(now, bytes);
            if let Some(traffic) = self.traffic.get_mut(index) {
                traffic.count(bytes, 0, false);
            }
            return Offer::Sent(self.link.free_at() + self.delay);
        }
        if queues.bytes.saturating_add(u64::from(bytes)) > self.limits.buffer {
            if let Some(traffic) = self.traffic.get_mut(index) {
                traffic.dropped += 1;
            }
            return Offer::Dropped;
        }
        if class.bytes > self.limits.mark_at
            && packet.mark()
            && let Some(traffic) = self.traffic.get_mut(index)
        {
            traffic.marked += 1;
        }
        (packet.entered, packet.next) = (now, NONE);
        if class.first == NONE {
            class.first = number;
            class.tag = class.tag_after(queues.time.max(class.sent_tag), bytes);
        } else {
            packets.get_mut(class.last).next = number;
        }
        class.last = number;
        class.bytes += u64::from(bytes);
        queues.bytes += u64::from(bytes);
        if std::mem::replace(&mut queues.is_awaited, true) {
            return Offer::Waits(None);
        }
        Offer::Waits(Some(self.link.free_at().max(now)))
    }

    /// Sends the next packet of a port with classes that is free; `None` if no packet waits.
    pub fn serve(&mut self, now: u64, packets: &mut Packets) -> Option<Departure> {
        let queues = self.queues.as_deref_mut()?;
        queues.is_awaited = false;
        let waiting = queues.classes.iter().enumerate().filter(|(_, class)| class.first != NONE);
        let (index, _) = waiting.min_by_key(|(_, class)| class.tag)?;
        let class = &mut queues.classes[index];
        let number = class.first;
        let packet = packets.get(number);
        let (bytes, wait, next) = (packet.bytes, now.saturating_sub(packet.entered), packet.next);
        class.first = next;
        class.bytes -= u64::from(bytes);
        class.sent_tag = class.tag;
        queues.time = class.tag;
        if next == NONE {
            class.last = NONE;
        } else {
            class.tag = class.tag_after(class.sent_tag, packets.get(next).bytes);
        }
        queues.bytes -= u64::from(bytes);
        self.link = self.link.after(now, bytes);
        let free_at = (queues.bytes > 0).then(|| self.link.free_at());
        queues.is_awaited = free_at.is_some();
        if let Some(traffic) = self.traffic.get_mut(index) {
            traffic.count(bytes, wait, false);
        }
        Some(Departure { packet: number, arrives: self.link.free_at() + self.delay, free_at })
    }
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Nanos;
    use leeward_tcp::{Ecn, HEADER, Segment};
    use proptest::prelude::*;

    use super::super::packet::{Packet, Path, Payload};
    use super::*;

    /// A packet of 1,000 bytes, or of another size.
    fn packet(class: u8, bytes: u32) -> Packet {
        let segment = Segment {
            start: 0,
            sent: Nanos(0),
            length: bytes - HEADER,
            again: false,
            ecn: Ecn::Capable,
            reduced: false,
            division: 0,
        };
        Packet::new(Payload::Data(segment), 0, class, Path::new([0]))
    }

    fn is_marked(packet: &Packet) -> bool {
        matches!(packet.payload, Payload::Data(segment) if segment.ecn == Ecn::Marked)
    }

    const RATE: Bandwidth = Bandwidth(8_000_000_000);

    #[test]
    fn a_port_of_one_class_sends_in_order_marks_and_drops() {
        let mut packets = Packets::default();
        let limits = Limits { buffer: 3000, mark_at: 1000 };
        let mut port = Port::new(RATE, 500, limits, &[1], true);
        let offers: Vec<Offer> = (0..6)
            .map(|_| {
                let number = packets.add(packet(0, 1000));
                port.offer(0, number, &mut packets)
            })
            .collect();
        // A packet takes 1,000 ns. The packet on the link counts as waiting for the time that it still takes.
        let sent = |at| Offer::Sent(at);
        let expected = [sent(1500), sent(2500), sent(3500), sent(4500), Offer::Dropped, Offer::Dropped];
        assert_eq!(offers, expected);
        let marks: Vec<bool> = (0..4).map(|number| is_marked(packets.get(number))).collect();
        assert_eq!(marks, [false, false, true, true]);
        let traffic = port.take_traffic();
        assert_eq!(traffic, [Traffic { bytes: 4000, packets: 4, dropped: 2, marked: 2, waited: 6000 }]);
        assert_eq!(port.take_traffic(), [Traffic::default()]);
    }

    #[test]
    fn a_changed_rate_counts_from_the_next_packet_on() {
        let mut packets = Packets::default();
        let mut port = Port::new(RATE, 0, Limits::NONE, &[1], false);
        let numbers = [packets.add(packet(0, 1000)), packets.add(packet(0, 1000))];
        assert_eq!(port.offer(0, numbers[0], &mut packets), Offer::Sent(1000));
        port.set_rate(Bandwidth(RATE.0 / 2));
        assert_eq!(port.offer(0, numbers[1], &mut packets), Offer::Sent(3000));
    }

    /// Serves all packets that wait; returns the classes in the order of their departure.
    fn drain(port: &mut Port, packets: &mut Packets, mut free_at: Option<u64>) -> Vec<u8> {
        let mut classes = Vec::new();
        while let Some(at) = free_at {
            let departure = port.serve(at, packets).expect("a packet waits");
            classes.push(packets.take(departure.packet).class);
            free_at = departure.free_at;
        }
        classes
    }

    #[test]
    fn classes_share_a_link_by_their_weights() {
        let mut packets = Packets::default();
        let mut port = Port::new(RATE, 0, Limits::NONE, &[8, 4, 1], true);
        let mut free_at = None;
        for _ in 0..260 {
            for class in 0..3 {
                let number = packets.add(packet(class, 1000));
                match port.offer(0, number, &mut packets) {
                    Offer::Waits(Some(at)) => free_at = Some(at),
                    Offer::Waits(None) | Offer::Sent(_) => {}
                    Offer::Dropped => panic!("the buffer has no limit"),
                }
            }
        }
        let classes = drain(&mut port, &mut packets, free_at);
        let first: Vec<usize> =
            (0..3).map(|class| classes[..260].iter().filter(|&&one| one == class).count()).collect();
        assert!((158..=162).contains(&first[0]) && (78..=82).contains(&first[1]), "{first:?}");
        assert!((18..=22).contains(&first[2]), "{first:?}");
        let traffic = port.take_traffic();
        assert!(traffic.iter().all(|class| class.packets == 260 && class.dropped == 0), "{traffic:?}");
    }

    proptest! {
        #[test]
        fn a_class_keeps_its_order_and_a_busy_port_never_idles(
            arrivals in prop::collection::vec((0_u64..3000, 0_u8..3, 100_u32..9000), 1..100),
        ) {
            let mut packets = Packets::default();
            let mut port = Port::new(RATE, 0, Limits::NONE, &[8, 4, 1], false);
            let (mut now, mut pending, mut departed) = (0, None, Vec::new());
            let mut busy = 0_u64;
            let mut end = 0_u64;
            for (gap, class, bytes) in arrivals {
                now += gap;
                while let Some(at) = pending.filter(|&at| at <= now) {
                    let departure = port.serve(at, &mut packets).expect("a packet waits");
                    departed.push(departure.packet);
                    pending = departure.free_at;
                }
                let number = packets.add(packet(class, bytes));
                end = end.max(now) + u64::from(bytes);
                busy += u64::from(bytes);
                match port.offer(now, number, &mut packets) {
                    Offer::Sent(_) => departed.push(number),
                    Offer::Waits(at) => pending = at.or(pending),
                    Offer::Dropped => return Err(TestCaseError::fail("the buffer has no limit")),
                }
            }
            let mut last = None;
            while let Some(at) = pending {
                let departure = port.serve(at, &mut packets).expect("a packet waits");
                departed.push(departure.packet);
                last = Some(departure.arrives);
                pending = departure.free_at;
            }
            // A byte takes a nanosecond.
            if let Some(last) = last {
                prop_assert_eq!(last, end);
            }
            prop_assert!(busy >= 100);
            for class in 0..3 {
                let of_class: Vec<u32> =
                    departed.iter().copied().filter(|&number| packets.get(number).class == class).collect();
                prop_assert!(of_class.is_sorted(), "{:?}", of_class);
            }
        }
    }
}
