//! The hybrid switch (Etalon, sections 2.1 and 3.2): packets in, packets out, by packets or by circuit.
//!
//! ```text
//!                  +-- uplink of the rack, in turn --> inner queue of the pair --> downlink, in turn --+
//! arrive -> VOQ of |                                        | full                                     +-> deliver
//!           a pair |<--- loss queue, served first ----------+                                          |
//!                  +-- circuit to the destination, while its day lasts and it is this pair's ----------+
//! ```
//!
//! A rack's uplink goes round the racks it has packets for; a packet that finds the packet switch's own small queue of its pair
//! full goes back to its rack and waits there ahead of the others. A circuit has no queue but the pair's. A packet starts on a
//! circuit only if it ends before the day does; the released switch lets the last packet of a day run into the night.
//!
//! Where [`Routes`](crate::routing::Routes) say so, a circuit also takes packets for other racks than that it leads to; there they
//! wait in that rack's queue for their destination, ahead of its own, and come out where it leads.
//!
//! [`Switch::step`] is all there is: no clock, no socket, and no allocation once queues have been as long as they get. Time is
//! counted in whole nanoseconds, and the links carry the fractions ([`crate::link`]), so a link's rate is exact. What happens at the same
//! nanosecond happens in a fixed order: the calendar, what a link may now begin, what comes out of one, what the caller tells.

mod calendar;
mod detours;
mod events;
mod links;
mod queues;
mod resize;
mod ring;
mod settings;
mod trail;

use leeward_fabric::Nanos;

pub use events::{Balance, Ecn, Event, Full, Output, Packet, SwitchError, Via};
pub use resize::{CapacityChange, Resize, ResizeError};
pub use settings::{Settings, SettingsError};

use calendar::Calendar;
use detours::Detours;
use queues::{Queue, Store};
use ring::Sets;

use crate::link::{Link, Pace};
use crate::timers::{NEVER, Timers};

/// The queue of a pair at its source's top-of-rack switch.
#[derive(Clone, Copy, Debug)]
struct Voq {
    main: Queue,
    /// Those of other racks, passed on here.
    relay: Queue,
    loss: Queue,
    capacity: u32,
    bytes: u64,
}

/// A part of a pair's queue, in the order in which they are served.
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

    /// The part whose turn it is.
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

/// A rack's links, what is on them, and whose turn it is.
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
    /// The rack whose circuit leads here, and until when.
    circuit_from: Option<u32>,
    circuit_until: u64,
    /// The rack that a circuit leads to from here.
    circuit_to: Option<u32>,
}

/// A hybrid switch and the packets in it, each of which carries a `P`.
#[derive(Clone, Debug)]
pub struct Switch<P> {
    settings: Settings,
    now: u64,
    timers: Timers,
    /// Alarms are numbered by their kind, then, in so many bits, by rack.
    shift: u32,
    store: Store<P>,
    /// By source, then destination.
    voqs: Vec<Voq>,
    /// Those of the packet switch; by source, then destination.
    inner: Vec<Queue>,
    racks: Vec<Rack>,
    /// For each source the destinations with packets in their queue, and those whose packets keep off the packet switch.
    waiting: Sets,
    off: Sets,
    /// For each destination the sources with packets in the packet switch.
    inside: Sets,
    /// For each source the destinations its circuit to which is announced.
    announced: Sets,
    calendar: Calendar,
    next_turn: usize,
    week_began: u64,
    next_week: Option<Calendar>,
    /// The day that was begun last.
    day: u32,
    /// How packets go by circuits that do not lead to their destination, if they do.
    detours: Option<Box<Detours>>,
    balance: Balance,
    /// Bytes that began on a downlink, on a circuit; by source, then destination.
    carried: Vec<[u64; 2]>,
    /// Bytes that began on an uplink.
    raised: u64,
}

/// Kinds of alarms, in the order of what is due at the same time: the calendar, which has one, and for each rack what its links
/// begin and what comes out.
const CALENDAR: usize = 0;
const DOWN_FREE: usize = 1;
const UP_FREE: usize = 2;
const CIRCUIT_FREE: usize = 3;
const DOWN_OUT: usize = 4;
const CIRCUIT_OUT: usize = 5;
const UP_OUT: usize = 6;
const KINDS: usize = 7;

impl<P: Copy> Switch<P> {
    /// An empty switch at time 0, without circuits until there is a schedule.
    ///
    /// # Errors
    /// Settings out of bounds.
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
            next_turn: 0,
            week_began: 0,
            next_week: None,
            day: 0,
            detours: None,
            balance: Balance::default(),
            carried: vec![[0; 2]; racks * racks],
            raised: 0,
            settings,
        })
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When it must be told of the time next, at the latest, for what it does to be told in time. None: not until something comes.
    #[inline]
    pub fn wake_at(&self) -> Option<Nanos> {
        let at = self.timers.earliest();
        (at != NEVER).then_some(Nanos(at))
    }

    /// Bytes that came, went and were lost so far.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The bytes in the switch, on its links and in its queues, counted packet by packet.
    pub fn held(&self) -> u64 {
        let voqs = self.voqs.iter().flat_map(|voq| [&voq.main, &voq.relay, &voq.loss]);
        let links = self.racks.iter().flat_map(|rack| [&rack.on_up, &rack.on_down, &rack.on_circuit]);
        let queues = voqs.chain(&self.inner).chain(links);
        queues.flat_map(|queue| self.store.iter(queue)).map(|packet| u64::from(packet.bytes)).sum()
    }

    /// What is in a pair's queue, packets that were sent back or passed on here among it: packets and bytes.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn queued(&self, source: usize, destination: usize) -> (u32, u64) {
        let voq = &self.voqs[self.pair(source, destination)];
        (voq.len(), voq.bytes)
    }

    /// What a pair's queue may hold, in packets.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn capacity(&self, source: usize, destination: usize) -> u32 {
        self.voqs[self.pair(source, destination)].capacity
    }

    /// Bytes that have begun on uplinks to the packet switch. What it sent back counts each time.
    pub fn raised(&self) -> u64 {
        self.raised
    }

    /// The bytes of a pair that began on the last link of the packet switch, or on circuits.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn carried(&self, source: usize, destination: usize, via: Via) -> u64 {
        self.carried[self.pair(source, destination)][via as usize]
    }

    /// Whether a circuit leads from one rack to another now.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn has_circuit(&self, source: usize, destination: usize) -> bool {
        assert!(source < self.racks.len(), "rack {source}");
        self.racks[destination].circuit_from == Some(source as u32)
    }

    /// Does what is due up to `now`, then what it is told. What it does is put at the end of `out`, by time.
    ///
    /// # Errors
    /// A time that goes back, racks or a schedule that are none, a capacity of 0, routes of another schedule.
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

    /// Does what is due up to `until` or to the first moment at which something comes out, whichever is first, and returns that
    /// time: the same as waking it each time, at less cost.
    ///
    /// # Errors
    /// A time that goes back.
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
        for (what, rack) in [("source", source), ("destination", destination)] {
            if rack >= racks {
                return Err(SwitchError::NoRack { what, rack, racks });
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
                CALENDAR => self.turn(at, out),
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
