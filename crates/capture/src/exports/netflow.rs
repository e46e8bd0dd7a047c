//! NetFlow 5 and 9 and IPFIX: records of flows. Exporters send the layout of records in templates, and their sampling
//! in options.
//!
//! Each exporter has its own templates. Sets of records that arrive before their template wait for it, and records that
//! arrive before their sampling rate, or before the start of their exporter's clock, wait for the end of all files. All
//! bytes of a datagram are read, are padding, or are counted as [`Reason::BrokenDatagram`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use leeward_fabric::Dscp;

use super::fields::{Clock, Fields, MILLI, Moment, SECOND, field};
use super::records::{Content, Counter, ports};
use super::sampling::{Rate, Sampler, Sampling, rate};
use super::sequence::{Arrived, Unit};
use super::templates::{self, Change, LEAST_ID, OPTIONS_TEMPLATES, TEMPLATES, Template};
use super::{Arrival, Context, Exporter};
use crate::discards::Reason;

/// Largest number of exporters, each with its own templates.
const MOST_EXPORTERS: usize = 4096;
/// Largest number of bytes of all exporters that wait for templates.
const MOST_WAITING: usize = 64 << 20;
/// Bytes that a waiting set needs in addition to its own.
const OVERHEAD: usize = size_of::<Waiting>();
/// Largest memory of the templates of all exporters, in fields.
const MOST_FIELDS: usize = 4 << 20;
/// Largest number of records that wait for the sampling rate or the start of their exporter.
const MOST_PENDING: usize = 1 << 19;
/// Bytes of a header and of a record in NetFlow 5.
const V5: (usize, usize) = (24, 48);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    version: u16,
    from: Option<IpAddr>,
    /// Number of a file of messages; such files may be of different exporters.
    file: Option<usize>,
    /// IPFIX has templates per session, which includes the port; NetFlow has templates per exporter.
    port: u16,
    /// Observation domain; in NetFlow 5, type and number of the engine.
    domain: u32,
}

/// The data of one exporter that later datagrams need.
#[derive(Default)]
struct State {
    templates: BTreeMap<u16, Rc<Template>>,
    sampling: Sampling,
    /// First and latest stated start of the exporter's clock, in nanoseconds since 1970.
    boot_ns: Option<(i64, i64)>,
    waiting: Vec<Waiting>,
}

/// A set of records whose template has not arrived.
struct Waiting {
    id: u16,
    set: Vec<u8>,
    clock: Clock,
    at: (usize, u64),
}

/// A record that waits for options.
struct Pending {
    key: Key,
    /// Number of the file, and of its record.
    at: (usize, u64),
    content: Content,
    rate: Rate,
}

/// Memory that all exporters share.
#[derive(Default)]
struct Shared {
    waiting: usize,
    fields: usize,
    pending: Vec<Pending>,
}

#[derive(Default)]
pub struct Exporters {
    exporters: BTreeMap<Key, State>,
    shared: Shared,
}

impl Exporters {
    /// Reads a datagram: one message, or several.
    pub fn read(&mut self, datagram: &[u8], arrival: Arrival, context: &mut Context<'_, '_>) {
        let mut rest = datagram;
        while rest.iter().any(|&byte| byte != 0) {
            let version = word(rest, 0).unwrap_or(0) as u16;
            let (header, stated) = match version {
                5 => (V5.0, V5.0 + V5.1 * word(rest, 2).unwrap_or(0)),
                9 => (20, rest.len()),
                10 => (16, word(rest, 2).unwrap_or(0)),
                _ => (0, 0),
            };
            let key = Key {
                version,
                from: arrival.from.map(|(address, _)| address),
                file: arrival.from.is_none().then_some(arrival.file),
                port: arrival.from.map_or(0, |(_, port)| if version == 10 { port } else { 0 }),
                domain: match version {
                    5 => word(rest, 20).unwrap_or(0) as u32,
                    9 => long(rest, 16),
                    _ => long(rest, 12),
                },
            };
            let mut counter = counter(&key, (arrival.file, arrival.record), context);
            if header == 0 || stated < header || rest.len() < header {
                return counter.broken(rest.len(), "a datagram without a header of NetFlow or IPFIX");
            }
            if !self.exporters.contains_key(&key) && self.exporters.len() >= MOST_EXPORTERS {
                return counter.refuse(Reason::TooManyExporters, "", rest.len() as u64);
            }
            let (message, after) = rest.split_at(stated.min(rest.len()));
            let state = self.exporters.entry(key).or_default();
            let clock = Clock {
                sent_ns: i64::from(long(message, if version == 10 { 4 } else { 8 })) * SECOND,
                uptime_ms: (version < 10).then(|| long(message, 4)),
            };
            let mut reader = Reader {
                key,
                clock,
                file: arrival.file,
                state,
                shared: &mut self.shared,
                counter,
                records: Some(0),
            };
            let consistent = match version {
                5 => reader.v5(message),
                _ => reader.sets(&message[header..]),
            };
            reader.sequence(message, consistent);
            if stated > message.len() && consistent {
                reader.counter.broken(stated - message.len(), "a datagram that ends too early");
            }
            rest = after;
        }
    }

    /// Counts the records that wait for options, and the sets that wait for their template.
    pub fn finish(&mut self, context: &mut Context<'_, '_>) {
        for pending in self.shared.pending.drain(..) {
            let Pending { key, at, content, rate } = pending;
            let state = self.exporters.get(&key);
            let rate = match rate {
                Rate::Stated(rate) => Some(rate),
                Rate::Of(sampler) => state.and_then(|state| state.sampling.before(sampler)),
            };
            let boot_ns = state.and_then(|state| state.boot_ns).map(|(first, _)| first);
            counter(&key, at, context).count(&content, rate, boot_ns);
        }
        for (key, state) in std::mem::take(&mut self.exporters) {
            for Waiting { id, set, at, .. } in state.waiting {
                counter(&key, at, context).no_template(id, key.domain, set.len());
            }
        }
        self.shared = Shared::default();
    }
}

fn counter<'a, 'b, 'c>(
    key: &Key,
    (file, record): (usize, u64),
    context: &'a mut Context<'b, 'c>,
) -> Counter<'a, 'b, 'c> {
    context.sink.discards.set_file(file);
    let protocol = match key.version {
        5 => "netflow 5",
        9 => "netflow 9",
        _ => "ipfix",
    };
    Counter { exporter: Exporter { protocol, address: key.from, file: key.file }, record, context }
}

/// A message that is being read.
struct Reader<'a, 'b, 'c, 'd> {
    key: Key,
    clock: Clock,
    file: usize,
    state: &'a mut State,
    shared: &'a mut Shared,
    counter: Counter<'b, 'c, 'd>,
    /// Number of records in the message, unless a part of it is not readable.
    records: Option<u32>,
}

impl Reader<'_, '_, '_, '_> {
    /// Compares the sequence number of a message with the expected one.
    fn sequence(&mut self, message: &[u8], consistent: bool) {
        let stated = word(message, 2).map(|count| count as u32);
        let (at, unit, units) = match self.key.version {
            5 => (16, Unit::Records, stated),
            9 => (12, Unit::Datagrams, Some(1)),
            _ => (8, Unit::Records, self.records),
        };
        // Some exporters of NetFlow 9 count records, and others count messages in other versions.
        let others = if self.key.version == 9 { [self.records, stated] } else { [Some(1), None] };
        let arrived = Arrived { number: long(message, at), units: units.filter(|_| consistent), others };
        self.counter.context.sequences.arrive(self.counter.exporter, self.key.domain, unit, arrived);
    }

    /// Reads the records of NetFlow 5; `false` if the message ends inside a record.
    fn v5(&mut self, message: &[u8]) -> bool {
        self.clock.sent_ns += i64::from(long(message, 12).min(999_999_999));
        // The upper two bits are the sampling mode.
        let rate = match word(message, 22).unwrap_or(0) as u32 & 0x3fff {
            0 => Rate::Of(Sampler::default()),
            rate => {
                let late = self.state.sampling.learn_all(rate);
                self.counter.late(late);
                Rate::Stated(rate)
            }
        };
        let mut records = message[V5.0..].chunks_exact(V5.1);
        for record in &mut records {
            let port = |at| word(record, at).map(|port| port as u16);
            let at = |at| self.clock.at_uptime(long(record, at).into()).map_or(Moment::Unknown, Moment::At);
            let content = Content {
                ends: (Some(IpAddr::from(four(record, 0))), Some(IpAddr::from(four(record, 4)))),
                ports: ports(record[38], port(32), port(34)),
                dscp: Some(Dscp::of_traffic_class(record[39])),
                octets: Some(long(record, 20).into()),
                frame_octets: None,
                packets: Some(long(record, 16).into()),
                start: at(24),
                end: at(28),
                sent_ns: self.clock.sent_ns,
                way: None,
                discarded: false,
                contradict: false,
                total: false,
            };
            self.take(content, rate);
        }
        let rest = records.remainder();
        if !rest.is_empty() {
            self.counter.broken(rest.len(), "an incomplete record");
        }
        rest.is_empty()
    }

    /// Reads sets; `false` if the message ends inside a set.
    fn sets(&mut self, mut rest: &[u8]) -> bool {
        while rest.iter().any(|&byte| byte != 0) {
            let (id, length) = (word(rest, 0).unwrap_or(0) as u16, word(rest, 2).unwrap_or(0));
            let Some(set) = rest.get(4..length) else {
                self.counter.broken(rest.len(), &format!("set {id} with a length of {length}"));
                return false;
            };
            rest = &rest[length..];
            // Some exporters send the templates of NetFlow 9 in IPFIX.
            let in_ipfix = self.key.version == 10 && id < 4;
            if id >= LEAST_ID {
                self.data(id, set);
            } else if in_ipfix || TEMPLATES[0] == id || OPTIONS_TEMPLATES[0] == id {
                self.templates(id, set);
            } else {
                self.counter.broken(set.len() + 4, &format!("set {id}, which is of an unknown kind"));
            }
        }
        true
    }

    fn templates(&mut self, id: u16, set: &[u8]) {
        let mut changes = Vec::new();
        let broken = templates::read(id, set, |change| changes.push(change));
        for change in changes {
            let (templates, room) = (&mut self.state.templates, &mut self.shared.fields);
            match change {
                Change::Add(id, template) if *room + template.weight() > MOST_FIELDS => {
                    let bytes = 4 * template.weight();
                    self.counter
                        .broken(bytes, &format!("template {id}, which is beyond the limit of all templates"));
                }
                Change::Add(id, template) => {
                    *room += template.weight();
                    if let Some(before) = templates.insert(id, Rc::new(template)) {
                        *room -= before.weight();
                    }
                    self.replay(id);
                }
                Change::Withdraw(id) => {
                    *room -= templates.remove(&id).map_or(0, |template| template.weight());
                }
                Change::WithdrawAll { options } => templates.retain(|_, template| {
                    let stays = template.options != options;
                    *room -= if stays { 0 } else { template.weight() };
                    stays
                }),
            }
        }
        if broken > 0 {
            self.counter.broken(broken, &format!("set {id} of templates"));
        }
    }

    /// Reads the sets that wait for a template.
    fn replay(&mut self, id: u16) {
        let (found, left) = std::mem::take(&mut self.state.waiting).into_iter().partition(|set| set.id == id);
        self.state.waiting = left;
        let now = (self.clock, self.file, self.counter.record, self.records);
        let found: Vec<Waiting> = found;
        for Waiting { id, set, clock, at } in found {
            self.shared.waiting -= set.len() + OVERHEAD;
            self.clock = clock;
            self.locate(at.0, at.1);
            self.data(id, &set);
        }
        (self.clock, self.records) = (now.0, now.3);
        self.locate(now.1, now.2);
    }

    /// Continues with a record of a file.
    fn locate(&mut self, file: usize, record: u64) {
        (self.file, self.counter.record) = (file, record);
        self.counter.context.sink.discards.set_file(file);
    }

    /// Reads a set of records.
    fn data(&mut self, id: u16, set: &[u8]) {
        let Some(template) = self.state.templates.get(&id).map(Rc::clone) else {
            self.records = None;
            if self.shared.waiting + set.len() + OVERHEAD > MOST_WAITING {
                return self.counter.no_template(id, self.key.domain, set.len());
            }
            self.shared.waiting += set.len() + OVERHEAD;
            let (clock, at) = (self.clock, (self.file, self.counter.record));
            self.state.waiting.push(Waiting { id, set: set.to_vec(), clock, at });
            return;
        };
        let broken = template.divide(set, |fields| {
            self.records = self.records.map(|records| records + 1);
            if template.options {
                self.options(fields);
            } else {
                let rate = rate(fields, id);
                for content in self.counter.contents(fields, self.clock).into_iter().flatten() {
                    self.take(content, rate);
                }
            }
        });
        if broken > 0 {
            self.records = None;
            self.counter.broken(broken, &format!("set {id}, which do not fit its template"));
        }
    }

    fn options(&mut self, options: &Fields<'_>) {
        let late = self.state.sampling.learn(options);
        self.counter.late(late);
        if let Some(boot) = options.time(field::BOOT_MS, MILLI) {
            let (first, _) = self.state.boot_ns.unwrap_or((boot, boot));
            self.state.boot_ns = Some((first, boot));
        }
    }

    /// Counts a record, or keeps it until options that it depends on have arrived.
    fn take(&mut self, content: Content, rate: Rate) {
        let sampling = &mut self.state.sampling;
        let known = match rate {
            Rate::Stated(rate) => Some(rate),
            Rate::Of(sampler) => sampling.now(sampler),
        };
        let boot_ns = self.state.boot_ns.map(|(_, latest)| latest);
        let waits = known.is_none() || boot_ns.is_none() && content.needs_boot();
        if waits && self.shared.pending.len() < MOST_PENDING {
            let rate = known.map_or(rate, Rate::Stated);
            return self.shared.pending.push(Pending {
                key: self.key,
                at: (self.file, self.counter.record),
                content,
                rate,
            });
        }
        if known.is_none() {
            sampling.skip();
        }
        self.counter.count(&content, known, boot_ns);
    }
}

/// A number of two bytes; `None` behind the end.
fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?])))
}

/// A number of four bytes; 0 behind the end.
fn long(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(four(bytes, at))
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    let four = bytes.get(at..at + 4).unwrap_or_default();
    four.try_into().unwrap_or_default()
}
