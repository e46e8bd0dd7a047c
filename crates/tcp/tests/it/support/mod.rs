//! A sender and a receiver over a toy link.

use std::collections::VecDeque;

use leeward_fabric::Nanos;
use leeward_tcp::{Ack, Ecn, Receiver, Segment, Sender, Settings};

/// Fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Arrives,
    /// Arrives this much later than in order.
    Late(Nanos),
    Lost,
    /// Arrives with a mark.
    Marked,
}

/// A link with a rate, a delay and a queue. Two functions decide on the fate of packets by their order.
pub struct Link<S, A> {
    /// Nanoseconds per byte.
    pub ns_per_byte: u64,
    /// One-way delay.
    pub delay: Nanos,
    /// Capacity of the queue in segments; further segments are lost.
    pub queue: usize,
    pub segments: S,
    pub acks: A,
}

/// A packet in flight, sorted by its arrival and then by its send order.
#[derive(Clone, Copy)]
enum Packet {
    Segment(Segment),
    Ack(Ack),
}

pub struct Run<S, A> {
    pub now: Nanos,
    pub sender: Sender,
    pub receiver: Receiver,
    pub link: Link<S, A>,
    travelling: Vec<(Nanos, u64, Packet)>,
    order: u64,
    segments: u64,
    acks: u64,
    /// End of the busy time of the link, and the departure times of waiting segments.
    busy: Nanos,
    leaving: VecDeque<Nanos>,
    pub lost: u64,
    divisions: u8,
    /// Number of segments sent beyond the window.
    beyond: u64,
}

impl<S: FnMut(u64, &Segment) -> Fate, A: FnMut(u64, &mut Ack) -> Fate> Run<S, A> {
    pub fn new(settings: Settings, link: Link<S, A>) -> Run<S, A> {
        Run {
            now: Nanos(0),
            sender: Sender::new(settings).unwrap(),
            receiver: Receiver::new(&settings).unwrap(),
            link,
            travelling: Vec::new(),
            order: 0,
            segments: 0,
            acks: 0,
            busy: Nanos(0),
            leaving: VecDeque::new(),
            lost: 0,
            divisions: settings.divisions,
            beyond: 0,
        }
    }

    fn travel(&mut self, at: Nanos, packet: Packet) {
        let at_index = self.travelling.partition_point(|&(then, order, _)| (then, order) > (at, self.order));
        self.travelling.insert(at_index, (at, self.order, packet));
        self.order += 1;
    }

    /// Sends all segments that the sender has.
    pub fn send(&mut self) {
        loop {
            let before = self.sender.in_flight();
            let Some(mut segment) = self.sender.next_segment(self.now) else { break };
            self.check_window(before);
            let fate = (self.link.segments)(self.segments, &segment);
            self.segments += 1;
            while self.leaving.front().is_some_and(|&left| left <= self.now) {
                self.leaving.pop_front();
            }
            if fate == Fate::Lost || self.leaving.len() > self.link.queue {
                self.lost += 1;
                continue;
            }
            let takes = u64::from(segment.wire_bytes()) * self.link.ns_per_byte;
            self.busy = self.busy.max(self.now).plus(Nanos(takes));
            self.leaving.push_back(self.busy);
            let late = if let Fate::Late(late) = fate { late } else { Nanos(0) };
            if fate == Fate::Marked && segment.ecn == Ecn::Capable {
                segment.ecn = Ecn::Marked;
            }
            self.travel(self.busy.plus(self.link.delay).plus(late), Packet::Segment(segment));
        }
    }

    /// Checks that at most a window is in flight. Exceptions are segments that may always be sent: one while nothing is
    /// in flight, the first segment of a recovery, and a probe.
    fn check_window(&mut self, before: u64) {
        let sender = &self.sender;
        if before > 0 && sender.in_flight() > sender.window() && self.divisions == 1 {
            self.beyond += 1;
            let counts = sender.counts();
            assert!(self.beyond <= counts.recoveries + counts.probes, "{sender:?}");
        }
    }

    fn send_ack(&mut self, ack: Option<Ack>) {
        let Some(mut ack) = ack else { return };
        let fate = (self.link.acks)(self.acks, &mut ack);
        self.acks += 1;
        let late = match fate {
            Fate::Lost => return,
            Fate::Late(late) => late,
            Fate::Arrives | Fate::Marked => Nanos(0),
        };
        self.travel(self.now.plus(self.link.delay).plus(late), Packet::Ack(ack));
    }

    /// Handles the next event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        self.send();
        let arrival = self.travelling.last().map(|&(at, ..)| at);
        let [sender, receiver] = [self.sender.deadline(), self.receiver.deadline()];
        let Some(next) = [arrival, sender, receiver].into_iter().flatten().min() else { return false };
        assert!(next >= self.now, "time goes back");
        self.now = next;
        if arrival == Some(next) {
            let (_, _, packet) = self.travelling.pop().unwrap();
            match packet {
                Packet::Segment(segment) => {
                    let ack = self.receiver.on_segment(self.now, &segment);
                    self.send_ack(ack);
                }
                Packet::Ack(ack) => self.sender.on_ack(self.now, &ack),
            }
        } else if receiver == Some(next) {
            let ack = self.receiver.on_timer(self.now);
            self.send_ack(ack);
        } else {
            self.sender.on_timer(self.now);
        }
        true
    }

    /// Returns the time of the next event.
    pub fn next(&mut self) -> Option<Nanos> {
        self.send();
        let arrival = self.travelling.last().map(|&(at, ..)| at);
        [arrival, self.sender.deadline(), self.receiver.deadline()].into_iter().flatten().min()
    }

    /// Handles all events up to a time.
    pub fn until(&mut self, end: Nanos) {
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
    }
}
