//! Hybrid switch of a packet switch and a circuit switch (Etalon, sections 2.1 and 3.2).
//!
//! ```text
//!                  +-- uplink of the rack, in turn --> inner queue of the pair --> downlink, in turn --+
//! arrive -> VOQ of |                                        | full                                     +-> deliver
//!           a pair |<--- loss queue, served first ----------+                                          |
//!                  +-- circuit to the destination, while its day lasts and it is this pair's ----------+
//! ```
//!
//! A rack's uplink serves the destinations of its packets one after another. If the packet switch's own small queue of
//! a pair is full, the packet goes back to its rack and waits there before the others. A circuit has no queue other
//! than the pair's.
//!
//! Deviation: a packet starts on a circuit only if its transmission ends before the day does. In the released switch,
//! the last packet of a day may run into the night.
//!
//! If [`Routes`](crate::routing::Routes) permit it, a circuit also carries packets for other racks. They wait at the
//! circuit's end in the queue for their destination, before that rack's own packets, and continue over that rack's
//! circuits.
//!
//! [`Switch::step`] is the only entry point. It uses no clock and no sockets, and allocates nothing when queues have
//! reached their largest size. Time is in whole nanoseconds. Links keep the fractions ([`crate::link`]), so link rates
//! are exact. Events at the same nanosecond have a fixed order: the calendar, packets that links may start, packets
//! that leave links, the caller's event.

mod calendar;
mod detours;
mod events;
mod links;
mod packet_trace;
mod queues;
mod resize;
mod ring;
mod settings;

use leeward_fabric::Nanos;

pub use events::{Balance, Ecn, Event, Full, Output, Packet, SwitchError, Via};
pub use resize::{Resize, ResizeError};
pub use settings::{Settings, SettingsError};

use calendar::Calendar;
use detours::Detours;
use queues::{Queue, Store};
use ring::Sets;

use crate::link::{Link, Pace};
use crate::timers::{NEVER, Timers};

/// Virtual output queue: the queue of a pair at its source's top-of-rack switch.
#[derive(Clone, Copy, Debug)]
struct Voq {
    main: Queue,
    /// Packets of other racks, forwarded here.
    relay: Queue,
    loss: Queue,
    capacity: u32,
    bytes: u64,
}

/// A part of a pair's queue; parts are served in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Loss,
    Relay,
    Main,
}

impl Voq {
    #[inline]
    fn is_empty(&self) -> bool {
        self.main.is_empty() && self.loss.is_empty() && self.relay.is_empty()
    }

    #[inline]
    fn len(&self) -> u32 {
        self.main.len() + self.relay.len() + self.loss.len()
    }

    /// Part to serve next.
    #[inline]
    fn first(&self) -> Part {
        match (self.loss.is_empty(), self.relay.is_empty()) {
            (false, _) => Part::Loss,
            (true, false) => Part::Relay,
            (true, true) => Part::Main,
        }
    }

    #[inline]
    fn part(&self, part: Part) -> &Queue {
        match part {
            Part::Loss => &self.loss,
            Part::Relay => &self.relay,
            Part::Main => &self.main,
        }
    }

    #[inline]
    fn part_mut(&mut self, part: Part) -> &mut Queue {
        match part {
            Part::Loss => &mut self.loss,
            Part::Relay => &mut self.relay,
            Part::Main => &mut self.main,
        }
    }
}

/// Links of a rack, the packets on them, and the positions of its round robins.
#[derive(Clone, Copy, Debug)]
struct Rack {
    up: Link,
    down: Link,
    circuit: Link,
    on_up: Queue,
    on_down: Queue,
    on_circuit: Queue,
    up_turn: u32,
    down_turn: u32,
    /// Source rack of the circuit to this rack, and the circuit's end.
    circuit_from: Option<u32>,
    circuit_until: u64,
    /// Rack that this rack's circuit leads to.
    circuit_to: Option<u32>,
}

/// A hybrid switch and the packets in it; each packet carries a `P`.
#[derive(Clone, Debug)]
pub struct Switch<P> {
    settings: Settings,
    now: u64,
    timers: Timers,
    /// Number of bits for the rack in the number of an alarm; the higher bits are the kind.
    shift: u32,
    store: Store<P>,
    /// Pair queues by source, then destination.
    voqs: Vec<Voq>,
    /// Queues of the packet switch by source, then destination.
    inner: Vec<Queue>,
    racks: Vec<Rack>,
    /// For each source: destinations with packets in their queue.
    waiting: Sets,
    /// For each source: destinations that must not use the packet switch.
    off: Sets,
    /// For each destination: sources with packets in the packet switch.
    inside: Sets,
    /// For each source: destinations to which its circuit is announced.
    announced: Sets,
    calendar: Calendar,
    next_event: usize,
    week_began: u64,
    next_week: Option<Calendar>,
    /// Last day that began.
    day: u32,
    /// State of routes over circuits that do not lead to a packet's destination; `None` for direct routes.
    detours: Option<Box<Detours>>,
    balance: Balance,
    /// Bytes that started on a downlink and on a circuit, by source, then destination.
    sent_bytes: Vec<[u64; 2]>,
    /// Bytes that started on an uplink.
    uplink_bytes: u64,
}

/// Kinds of alarms, in the order in which simultaneous ones are handled. The calendar has one alarm. Then, for each
/// rack, come packets that its links may start, and packets that leave links.
const CALENDAR: usize = 0;
const DOWN_FREE: usize = 1;
const UP_FREE: usize = 2;
const CIRCUIT_FREE: usize = 3;
const DOWN_OUT: usize = 4;
const CIRCUIT_OUT: usize = 5;
const UP_OUT: usize = 6;
const KINDS: usize = 7;

impl<P: Copy> Switch<P> {
    /// Creates an empty switch at time 0. It has no circuits until it gets a schedule.
    ///
    /// # Errors
    /// Returns the first setting out of range.
    pub fn new(settings: Settings) -> Result<Switch<P>, SettingsError> {
        settings.check()?;
        let racks = settings.racks;
        let shift = racks.next_power_of_two().ilog2();
        let (empty, capacity) = (Queue::default(), settings.voq_capacity);
        let voq = Voq { main: empty, relay: empty, loss: empty, capacity, bytes: 0 };
        let packet = Link::new(Pace::of(settings.packet_rate));
        let rack = Rack {
            up: packet,
            down: packet,
            circuit: Link::new(Pace::of(settings.circuit_rate)),
            on_up: Queue::default(),
            on_down: Queue::default(),
            on_circuit: Queue::default(),
            up_turn: 0,
            down_turn: 0,
            circuit_from: None,
            circuit_until: 0,
            circuit_to: None,
        };
        Ok(Switch {
            now: 0,
            timers: Timers::new(KINDS << shift),
            shift,
            store: Store::new(),
            voqs: vec![voq; racks * racks],
            inner: vec![Queue::default(); racks * racks],
            racks: vec![rack; racks],
            waiting: Sets::new(racks, racks),
            off: Sets::new(racks, racks),
            inside: Sets::new(racks, racks),
            announced: Sets::new(racks, racks),
            calendar: Calendar::default(),
            next_event: 0,
            week_began: 0,
            next_week: None,
            day: 0,
            detours: None,
            balance: Balance::default(),
            sent_bytes: vec![[0; 2]; racks * racks],
            uplink_bytes: 0,
            settings,
        })
    }

    /// Settings of the switch.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Time of the next required call to [`Switch::step`], so that no output is late; `None` if nothing happens before
    /// the next input.
    #[inline]
    pub fn wake_at(&self) -> Option<Nanos> {
        let at = self.timers.earliest();
        (at != NEVER).then_some(Nanos(at))
    }

    /// Bytes arrived, delivered and dropped so far.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// Bytes on links and in queues, counted packet by packet.
    pub fn buffered_bytes(&self) -> u64 {
        let voqs = self.voqs.iter().flat_map(|voq| [&voq.main, &voq.relay, &voq.loss]);
        let links = self.racks.iter().flat_map(|rack| [&rack.on_up, &rack.on_down, &rack.on_circuit]);
        let queues = voqs.chain(&self.inner).chain(links);
        queues.flat_map(|queue| self.store.iter(queue)).map(|packet| u64::from(packet.bytes)).sum()
    }

    /// Packets and bytes in a pair's queue, including packets that the packet switch sent back and packets forwarded
    /// here.
    ///
    /// # Panics
    /// Panics if either rack does not exist.
    pub fn queued(&self, source: usize, destination: usize) -> (u32, u64) {
        let voq = &self.voqs[self.pair(source, destination)];
        (voq.len(), voq.bytes)
    }

    /// Capacity of a pair's queue in packets.
    ///
    /// # Panics
    /// Panics if either rack does not exist.
    pub fn capacity(&self, source: usize, destination: usize) -> u32 {
        self.voqs[self.pair(source, destination)].capacity
    }

    /// Bytes that have started on uplinks to the packet switch. A packet that the packet switch sends back counts each
    /// time.
    pub fn uplink_bytes(&self) -> u64 {
        self.uplink_bytes
    }

    /// Bytes of a pair that started on the last link of the packet switch, or on circuits.
    ///
    /// # Panics
    /// Panics if either rack does not exist.
    pub fn sent_bytes(&self, source: usize, destination: usize, via: Via) -> u64 {
        self.sent_bytes[self.pair(source, destination)][via as usize]
    }

    /// Time at which the current week began; `None` without a schedule.
    #[inline]
    pub fn week_began(&self) -> Option<Nanos> {
        (self.calendar.length > 0).then_some(Nanos(self.week_began))
    }

    /// Returns true if a circuit from one rack to the other is up.
    ///
    /// # Panics
    /// Panics if either rack does not exist.
    pub fn has_circuit(&self, source: usize, destination: usize) -> bool {
        assert!(source < self.racks.len(), "rack {source}");
        self.racks[destination].circuit_from == Some(source as u32)
    }

    /// Advances to `now`, then handles `event`. Appends outputs to `out` in order of time.
    ///
    /// # Errors
    /// Returns an error for a time before the last one, an invalid rack or schedule, a capacity of 0, or routes of
    /// another schedule.
    #[inline]
    pub fn step(&mut self, now: Nanos, event: Event<P>, out: &mut Vec<Output<P>>) -> Result<(), SwitchError> {
        if now.0 < self.now {
            return Err(SwitchError::Backwards { now, before: Nanos(self.now) });
        }
        self.advance(now.0, out);
        self.now = now.0;
        match event {
            Event::Wake => Ok(()),
            Event::Arrive(packet) => self.arrive(packet, out),
            Event::SetCapacity { source, destination, packets } => {
                self.check_pair(source, destination)?;
                if packets == 0 {
                    return Err(SwitchError::NoCapacity { source_rack: source, destination });
                }
                let pair = self.pair(source, destination);
                self.voqs[pair].capacity = packets;
                Ok(())
            }
            Event::NewWeek(schedule) => self.new_week(&schedule, out),
            Event::Routes(routes) => self.set_routes(routes),
        }
    }

    /// Advances to `until` or to the first time with an output, whichever is earlier, and returns that time. Equivalent
    /// to repeated [`Event::Wake`] steps, at less cost.
    ///
    /// # Errors
    /// Returns an error for a time before the last one.
    #[inline]
    pub fn run(&mut self, until: Nanos, out: &mut Vec<Output<P>>) -> Result<Nanos, SwitchError> {
        let before = out.len();
        loop {
            let at = self.timers.earliest().min(until.0);
            self.step(Nanos(at), Event::Wake, out)?;
            if at == until.0 || out.len() > before {
                return Ok(Nanos(at));
            }
        }
    }

    fn check_pair(&self, source: usize, destination: usize) -> Result<(), SwitchError> {
        let racks = self.racks.len();
        for (end, rack) in [("source", source), ("destination", destination)] {
            if rack >= racks {
                return Err(SwitchError::NoRack { end, rack, racks });
            }
        }
        Ok(())
    }

    #[inline]
    fn pair(&self, source: usize, destination: usize) -> usize {
        debug_assert!(destination < self.racks.len());
        source * self.racks.len() + destination
    }

    #[inline]
    fn set(&mut self, kind: usize, rack: usize, at: u64) {
        self.timers.set(kind << self.shift | rack, at);
    }

    #[inline]
    fn is_set(&self, kind: usize, rack: usize) -> bool {
        self.timers.get(kind << self.shift | rack) != NEVER
    }

    #[inline]
    fn advance(&mut self, until: u64, out: &mut Vec<Output<P>>) {
        loop {
            let at = self.timers.earliest();
            if at > until || at == NEVER {
                return;
            }
            let alarm = self.timers.first();
            let rack = alarm & ((1 << self.shift) - 1);
            match alarm >> self.shift {
                CALENDAR => self.run_calendar(at, out),
                DOWN_FREE => self.begin_down(rack, at),
                UP_FREE => self.begin_up(rack, at),
                CIRCUIT_FREE => self.begin_circuit(rack, at),
                DOWN_OUT => self.deliver(rack, at, Via::Packet, out),
                CIRCUIT_OUT => self.deliver(rack, at, Via::Circuit, out),
                _ => self.leave_up(rack, at, out),
            }
        }
    }

    fn arrive(&mut self, mut packet: Packet<P>, out: &mut Vec<Output<P>>) -> Result<(), SwitchError> {
        let (source, destination) = (packet.source as usize, packet.destination as usize);
        self.check_pair(source, destination)?;
        packet.entered = Nanos(self.now);
        self.balance.entered += u64::from(packet.bytes);
        let queue = match &mut self.detours {
            None => destination,
            Some(detours) => detours.queue(source, destination),
        };
        let pair = self.pair(source, queue);
        let voq = &mut self.voqs[pair];
        if voq.main.len() >= voq.capacity {
            self.drop(packet, self.now, Full::Voq, out);
            return Ok(());
        }
        if self.settings.mark_at.is_some_and(|mark_at| voq.main.len() >= mark_at)
            && packet.ecn == Ecn::Capable
        {
            packet.ecn = Ecn::Congested;
        }
        self.store.push(&mut voq.main, packet, 0);
        voq.bytes += u64::from(packet.bytes);
        self.waiting.put(source, queue, true);
        self.offer(source, queue, self.now);
        Ok(())
    }

    fn drop(&mut self, packet: Packet<P>, at: u64, by: Full, out: &mut Vec<Output<P>>) {
        self.balance.dropped += u64::from(packet.bytes);
        out.push(Output::Drop { packet, at: Nanos(at), by });
    }
}
