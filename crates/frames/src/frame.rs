//! A snapshot as columns of whole numbers, and its JSON: whole, or as the difference from an earlier one.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::{Fabric, Nanos};
use leeward_ledger::Epoch;
use leeward_records::{Clock, ClusterVersion, Modes};
use leeward_service::NetworkSnapshot;
use serde::Serialize;
use serde_json::Value;

use crate::selection::Selection;
use crate::tables::{Column, Source, Values};

/// Stands for an unknown value.
const UNKNOWN: i64 = i64::MIN;

/// Chosen values of a snapshot.
pub struct Frame {
    /// Id, under which readers know it.
    pub id: Arc<str>,
    /// Number of the snapshot.
    pub number: u64,
    /// Time of the snapshot.
    pub at: Nanos,
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// End of the newest accepted window of a link.
    telemetry: Option<Nanos>,
    version: ClusterVersion,
    modes: Modes,
    fabric: Arc<Fabric>,
    clients: Vec<(Arc<str>, u64)>,
    /// For each chosen table, its columns. Columns of names are empty.
    tables: Vec<Vec<Vec<i64>>>,
}

/// A client of a snapshot, and the sequence of its last included request; `None` if it is forgotten.
#[derive(Serialize)]
struct Client<'a> {
    client: &'a str,
    sequence: Option<u64>,
}

impl Frame {
    /// Reads the chosen values of a snapshot.
    pub fn read(id: Arc<str>, snapshot: &NetworkSnapshot, selection: &Selection) -> Frame {
        let source = Source { snapshot, resolution: selection.resolution };
        let tables = selection.tables.iter().map(|(table, columns)| {
            let rows = (table.rows)(&snapshot.fabric);
            let values = |column: &&Column| match column.values {
                Values::Names(_) => Vec::new(),
                Values::Numbers(read) | Values::Flags(read) | Values::Times(read) => {
                    (0..rows).map(|row| read(&source, row).unwrap_or(UNKNOWN)).collect()
                }
            };
            columns.iter().map(values).collect()
        });
        Frame {
            id,
            number: snapshot.number,
            at: snapshot.at,
            epoch: snapshot.epoch,
            telemetry: snapshot.links.iter().filter_map(|link| link.until).max(),
            version: snapshot.version,
            modes: snapshot.modes,
            fabric: snapshot.fabric.clone(),
            clients: snapshot.clients.clone(),
            tables: tables.collect(),
        }
    }

    /// True if both frames, of one selection, show the same.
    pub fn shows_same(&self, other: &Frame) -> bool {
        let Frame { at, epoch, version, modes, clients, tables, .. } = self;
        (at, epoch, version, modes) == (&other.at, &other.epoch, &other.version, &other.modes)
            && Arc::ptr_eq(&self.fabric, &other.fabric)
            && clients == &other.clients
            && tables == &other.tables
    }

    /// True if the rows of both frames are the same links, racks, hosts and devices.
    pub fn has_rows_of(&self, other: &Frame) -> bool {
        Arc::ptr_eq(&self.fabric, &other.fabric)
    }

    /// Memory of the values, in bytes.
    pub fn bytes(&self) -> usize {
        let values: usize = self.tables.iter().flatten().map(Vec::len).sum();
        values * size_of::<i64>() + self.clients.len() * size_of::<(Arc<str>, u64)>()
    }

    /// The frame as JSON: whole, or the difference from the frame `base` of the same selection and cluster.
    pub fn json(&self, selection: &Selection, base: Option<&Frame>, clock: &Clock) -> Vec<u8> {
        let mut out = Vec::with_capacity(1 << 16);
        out.push(b'{');
        field(&mut out, "id", &self.id);
        field(&mut out, "since", &base.map(|base| &base.id));
        field(&mut out, "epoch", &self.epoch);
        field(&mut out, "time", &clock.text(self.at));
        field(&mut out, "telemetry", &self.telemetry.map(|at| clock.text(at)));
        field(&mut out, "cluster_version", &self.version.to_string());
        field(&mut out, "modes", &self.modes);
        field(&mut out, "resolution", &selection.resolution);
        for (index, (table, columns)) in selection.tables.iter().enumerate() {
            key(&mut out, table.name);
            out.push(b'{');
            let before = base.map(|base| &base.tables[index][..]);
            let changed = before.map(|before| changed_rows(&self.tables[index], before));
            if let Some(changed) = &changed {
                key(&mut out, "rows");
                let last = std::iter::once(0).chain(changed.iter().copied());
                list(&mut out, changed.iter().zip(last), |out, (row, last)| {
                    number(out, (row - last) as i128)
                });
                out.push(b',');
            }
            for (at, column) in columns.iter().enumerate() {
                let values = &self.tables[index][at];
                let names = matches!(column.values, Values::Names(_));
                match (before, &changed) {
                    // The names are those of the base.
                    (Some(_), Some(_)) if names => continue,
                    (Some(before), Some(changed)) => {
                        key(&mut out, column.name);
                        let before = &before[at];
                        list(&mut out, changed.iter(), |out, &row| match column.values {
                            Values::Numbers(_) => difference(out, before[row], values[row]),
                            _ => value(out, column.values, &self.fabric, clock, row, values),
                        });
                    }
                    _ => {
                        key(&mut out, column.name);
                        let rows = 0..(table.rows)(&self.fabric);
                        list(&mut out, rows, |out, row| {
                            value(out, column.values, &self.fabric, clock, row, values);
                        });
                    }
                }
                out.push(b',');
            }
            close(&mut out, b'}');
            out.push(b',');
        }
        key(&mut out, "clients");
        write(&mut out, &self.changed_clients(base));
        out.push(b'}');
        out
    }

    /// Clients whose sequence differs from that of the base; without a base, all clients.
    fn changed_clients<'a>(&'a self, base: Option<&'a Frame>) -> Vec<Client<'a>> {
        let known = |frame: Option<&'a Frame>| -> BTreeMap<&'a str, u64> {
            let clients = frame.into_iter().flat_map(|frame| &frame.clients);
            clients.map(|(client, sequence)| (&**client, *sequence)).collect()
        };
        let (before, now) = (known(base), known(Some(self)));
        let forgotten = before.keys().filter(|client| !now.contains_key(*client));
        let forgotten = forgotten.map(|client| Client { client, sequence: None });
        let changed =
            self.clients.iter().filter(|(client, sequence)| before.get(&**client) != Some(sequence));
        let changed = changed.map(|(client, sequence)| Client { client, sequence: Some(*sequence) });
        changed.chain(forgotten).collect()
    }
}

/// Rows of a table in which a value differs.
fn changed_rows(now: &[Vec<i64>], before: &[Vec<i64>]) -> Vec<usize> {
    let rows = now.iter().map(Vec::len).max().unwrap_or(0);
    let mut changed = vec![false; rows];
    for (now, before) in now.iter().zip(before) {
        for ((changed, now), before) in changed.iter_mut().zip(now).zip(before) {
            *changed |= now != before;
        }
    }
    (0..rows).filter(|&row| changed[row]).collect()
}

/// Number to add to the value before, which is 0 if it was unknown; null if the value is unknown now.
fn difference(out: &mut Vec<u8>, before: i64, now: i64) {
    let known = |value: i64| if value == UNKNOWN { 0 } else { i128::from(value) };
    if now == UNKNOWN { out.extend(b"null") } else { number(out, i128::from(now) - known(before)) }
}

fn value(out: &mut Vec<u8>, values: Values, fabric: &Fabric, clock: &Clock, row: usize, all: &[i64]) {
    let now = all.get(row).copied().filter(|&value| value != UNKNOWN);
    match values {
        Values::Names(name) => write(out, &name(fabric, row)),
        Values::Numbers(_) => write(out, &now),
        Values::Flags(_) => write(out, &now.map(|flag| flag != 0)),
        Values::Times(_) => write(out, &now.map(|at| clock.text(Nanos(at as u64)))),
    }
}

fn number(out: &mut Vec<u8>, value: i128) {
    match i64::try_from(value) {
        Ok(value) => write(out, &value),
        Err(_) => out.extend(value.to_string().bytes()),
    }
}

fn list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut item: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for one in items {
        item(out, one);
        out.push(b',');
    }
    close(out, b']');
}

/// Ends a list or an object, whose last item may have a comma.
fn close(out: &mut Vec<u8>, end: u8) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(end);
}

fn key(out: &mut Vec<u8>, name: &str) {
    write(out, name);
    out.push(b':');
}

fn field(out: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    key(out, name);
    write(out, value);
    out.push(b',');
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    // Numbers and texts are always serializable, and a vector takes all bytes.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend(Value::Null.to_string().bytes());
    }
}
