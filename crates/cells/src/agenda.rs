//! Events in order of time. Events of one time are in the order of their kinds, and then of their scheduling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use leeward_fabric::{HostId, Nanos};

use crate::digest::Digest;

/// An event of the simulation, in the order of events of one time.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The controller of a cell goes away (true), or comes back.
    Absent(u32, bool),
    /// The write in this slot ends.
    Ends(u32),
    /// A telemetry window ends; the number is that of the step that begins.
    Tick(u64),
    /// A message arrives at a cell.
    Arrives {
        /// Sender.
        from: u32,
        /// Receiver.
        to: u32,
        /// Content.
        message: Message,
    },
    /// A cell sends its digest to the others.
    Publish(u32),
    /// The lease of a grant of a cell is over.
    Lease(u32, u64),
    /// A request was not answered in time; the last number is that of the message.
    TimeOut(u64, u32),
}

/// A message between cells. The key of a request is the number of its block.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// State of the sender.
    Digest(Arc<Digest>),
    /// Please place the copies of this block.
    Ask(u64),
    /// Hosts of the copies, by their numbers in the sender; `None` if no host takes them. Also the sender's state, if
    /// answers carry it.
    Answer(u64, Option<Vec<HostId>>, Option<Arc<Digest>>),
    /// The block is written.
    Ended(u64),
    /// The block will not be written there.
    Cancelled(u64),
}

impl Event {
    /// Rank among events of one time.
    fn rank(&self) -> u8 {
        match self {
            Event::Absent(..) => 0,
            Event::Ends(_) => 1,
            Event::Tick(_) => 2,
            Event::Arrives { .. } => 3,
            Event::Publish(_) => 4,
            Event::Lease(..) => 5,
            Event::TimeOut(..) => 6,
        }
    }
}

/// A scheduled event; the greatest one is the next.
#[derive(Debug)]
struct Scheduled {
    at: Nanos,
    rank: u8,
    number: u64,
    event: Event,
}

impl Scheduled {
    fn key(&self) -> (Nanos, u8, u64) {
        (self.at, self.rank, self.number)
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Scheduled events.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Scheduled>,
    number: u64,
}

impl Agenda {
    /// Schedules an event.
    pub fn add(&mut self, at: Nanos, event: Event) {
        self.number += 1;
        self.heap.push(Scheduled { at, rank: event.rank(), number: self.number, event });
    }

    /// Time of the next event.
    pub fn next_time(&self) -> Option<Nanos> {
        self.heap.peek().map(|next| next.at)
    }

    /// Removes the next event.
    pub fn pop(&mut self) -> Option<(Nanos, Event)> {
        self.heap.pop().map(|next| (next.at, next.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_kind_then_by_scheduling() {
        let mut agenda = Agenda::default();
        let add: [(u64, Event); 6] = [
            (2, Event::Publish(1)),
            (1, Event::TimeOut(9, 1)),
            (2, Event::Ends(4)),
            (2, Event::Publish(0)),
            (1, Event::Tick(3)),
            (2, Event::Absent(0, true)),
        ];
        add.into_iter().for_each(|(at, event)| agenda.add(Nanos(at), event));
        assert_eq!(agenda.next_time(), Some(Nanos(1)));
        let order = std::iter::from_fn(|| agenda.pop()).map(|(at, event)| format!("{} {event:?}", at.0));
        let expected = [
            "1 Tick(3)",
            "1 TimeOut(9, 1)",
            "2 Absent(0, true)",
            "2 Ends(4)",
            "2 Publish(1)",
            "2 Publish(0)",
        ];
        assert!(order.eq(expected));
    }
}
