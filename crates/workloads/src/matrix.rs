//! Traffic matrices between the ranks of an MPI program, or between racks, as background.
//!
//! A file is a square matrix of numbers as CSV without a header; a row is a source. With `pairs`, it is a CSV list with
//! three columns of these names: source, destination, amount; the first two count from 0. Numbers are bytes, or shares
//! of `total` or `rate`. A matrix contains no times. Its flows all start at once, and start again at intervals of
//! `every`. With `rate`, the matrix becomes rates on the links that its pairs cross.
//!
//! The host or rack of each rank is drawn at random, because a matrix contains no placement. In the order of the hosts,
//! neighbors would share a rack, which only some schedulers do; `order: file` selects this order. Traffic within one
//! host or rack crosses no link and is dropped. Rows and columns of zeros, which some files have at the end, need no
//! host.

use leeward_fabric::input::{Cell, InputError, Line, Lines, Text, read_matrix};
use leeward_fabric::{Bandwidth, Bytes, Cluster, DomainId, Endpoint, HostId, Load, Nanos, ResourceId};
use leeward_registry::random::{Kind, stream};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flows::Numbers;
use crate::list::List;
use crate::model::{Flow, Loaded, MOST_RECORDS, RateChange, Workload};
use crate::settings::{Factor, amount, check_rack_links, whole_bytes};

const ENDPOINTS: Kind = Kind::named("matrix.places");

/// Background from a traffic matrix.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The matrix: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Columns of source, destination and amount, if the file is a list of pairs instead of a square matrix.
    #[serde(default)]
    pub pairs: Option<[String; 3]>,
    /// Meaning of a row and column.
    #[serde(default)]
    pub numbers: Numbers,
    /// Assignment of rows to hosts or racks.
    #[serde(default)]
    pub order: Order,
    /// If true, rows wrap around if there are fewer hosts or racks than rows; otherwise this is an error.
    #[serde(default)]
    pub fold: bool,
    /// Total bytes of all flows of a round; by default the numbers are bytes.
    pub total: Option<Bytes>,
    /// Total rate, for rates on links instead of flows.
    pub rate: Option<Bandwidth>,
    /// Factor on bytes or rates.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// Start time.
    #[serde(default)]
    pub start: Nanos,
    /// Duration; default is up to the end of the run.
    pub duration: Option<Nanos>,
    /// Interval at which all flows start again; no repetition if absent.
    pub every: Option<Nanos>,
}

/// Assignment of rows and columns to hosts or racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Drawn from the seed.
    #[default]
    Drawn,
    /// In order: the first row is the first host or rack.
    File,
}

/// A non-zero number of the matrix.
struct Entry {
    from: Endpoint,
    to: Endpoint,
    amount: f64,
}

/// Entries of a file on a cluster.
#[derive(Default)]
struct Entries {
    pairs: Vec<Entry>,
    /// Sum of the pairs, and sum of the entries from an end to itself.
    sum: f64,
    local: f64,
}

impl Matrix {
    /// Reads the matrix.
    ///
    /// # Errors
    /// Returns an error for invalid settings, an invalid line, or a matrix without traffic.
    pub fn read(&self, text: Text, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        self.check(cluster)?;
        let endpoints = self.endpoints(cluster, seed);
        let mut lines = text.lines();
        let entries = match &self.pairs {
            Some(columns) => self.list(&mut lines, columns, &endpoints)?,
            None => self.square(&mut lines, &endpoints)?,
        };
        if entries.sum == 0.0 || !entries.sum.is_finite() {
            let sum = entries.sum;
            let message =
                format!("entries between distinct ends add up to {sum}: expected a finite sum above 0");
            return Err(lines.error(message));
        }
        let start = self.start.as_secs_f64();
        let end = self.duration.map_or(horizon, |duration| (start + duration.as_secs_f64()).min(horizon));
        match self.rate {
            Some(rate) => Ok(self.rates(&entries, rate, cluster, (start, end), horizon)),
            None => self.flows(&entries, (start, end), &lines),
        }
    }

    fn check(&self, cluster: &Cluster) -> Result<(), InputError> {
        let invalid = |field: &str, message: &str| Err(InputError::new(&self.file, message).in_field(field));
        if self.rate.is_some() && self.total.is_some() {
            return invalid("total", "`rate` makes rates, `total` flows: expected one of the two");
        }
        if self.rate.is_some() && self.every.is_some() {
            return invalid("every", "`rate` makes rates, which last; leave `every` out");
        }
        if self.every == Some(Nanos(0)) {
            return invalid("every", "0s: must be positive");
        }
        if self.numbers == Numbers::Racks {
            check_rack_links(cluster, "`numbers: hosts`")
                .map_err(|message| InputError::new(&self.file, message).in_field("numbers"))?;
        }
        Ok(())
    }

    /// Returns the end points of the rows, in order.
    fn endpoints(&self, cluster: &Cluster, seed: u64) -> Vec<Endpoint> {
        let fabric = &cluster.fabric;
        let mut endpoints: Vec<Endpoint> = match self.numbers {
            Numbers::Hosts => {
                (0..fabric.host_count() as u32).map(|number| Endpoint::Host(HostId(number))).collect()
            }
            Numbers::Racks => {
                (0..fabric.rack_count() as u32).map(|number| Endpoint::Domain(DomainId(number))).collect()
            }
        };
        if self.order == Order::Drawn {
            endpoints.shuffle(&mut stream(seed, ENDPOINTS, 0));
        }
        endpoints
    }

    fn square(&self, lines: &mut Lines, endpoints: &[Endpoint]) -> Result<Entries, InputError> {
        let mut entries = Entries::default();
        read_matrix(lines, |line, row, column, amount| {
            self.add(&mut entries, line, (row, column), amount, endpoints)
        })?;
        Ok(entries)
    }

    fn list(
        &self,
        lines: &mut Lines,
        columns: &[String; 3],
        endpoints: &[Endpoint],
    ) -> Result<Entries, InputError> {
        let [from, to, amount] = columns;
        let list = List::open(lines, columns.iter().map(String::as_str), [])?;
        let mut entries = Entries::default();
        while let Some(line) = lines.next_line()? {
            let cells: [Cell<'_>; 3] = list.cells(&line)?;
            let pair = (line.count(from, "a source", cells[0])?, line.count(to, "a destination", cells[1])?);
            let amount = line.number(amount, "an amount", cells[2])?;
            self.add(&mut entries, &line, pair, amount, endpoints)?;
        }
        Ok(entries)
    }

    fn add(
        &self,
        entries: &mut Entries,
        line: &Line<'_>,
        (from, to): (u64, u64),
        amount: f64,
        endpoints: &[Endpoint],
    ) -> Result<(), InputError> {
        if amount == 0.0 {
            return Ok(());
        }
        let count = endpoints.len() as u64;
        let last = from.max(to);
        if last >= count && !self.fold {
            let things = if self.numbers == Numbers::Hosts { "hosts" } else { "racks" };
            let message = format!(
                "row or column {last} (from 0), but the cluster has {count} {things}; set `fold: true` to fold them"
            );
            return Err(line.error("columns", message));
        }
        let [from, to] = [from, to].map(|number| endpoints[(number % count) as usize]);
        if from == to {
            entries.local += amount;
            return Ok(());
        }
        if entries.pairs.len() == MOST_RECORDS {
            return Err(line.error("columns", format!("more than {MOST_RECORDS} pairs")));
        }
        entries.pairs.push(Entry { from, to, amount });
        entries.sum += amount;
        Ok(())
    }

    fn flows(
        &self,
        entries: &Entries,
        (start, end): (f64, f64),
        lines: &Lines,
    ) -> Result<Loaded, InputError> {
        let wanted = self.total.map_or(entries.sum, |total| total.0 as f64) * self.scale.get();
        if whole_bytes(wanted).is_none() {
            return Err(lines.error(format!("{wanted:e} bytes: too much for one round")));
        }
        // Each flow gets the growth of the rounded running sum, so that all flows together have the exact total.
        let (mut sum, mut assigned, mut round) = (0.0, 0, Vec::new());
        for Entry { from, to, amount } in &entries.pairs {
            sum += amount;
            let until = (sum / entries.sum * wanted).round() as u64;
            let bytes = Bytes(until.saturating_sub(assigned));
            assigned = assigned.max(until);
            if bytes.0 > 0 {
                round.push(Flow { start: 0.0, from: *from, to: *to, bytes, coflow: None });
            }
        }
        let gap = self.every.map_or(f64::INFINITY, Nanos::as_secs_f64);
        let starts = start < end && !round.is_empty();
        let rounds = if starts { ((end - start) / gap).ceil().max(1.0) } else { 0.0 };
        if rounds * round.len() as f64 > MOST_RECORDS as f64 {
            let message = format!("more than {MOST_RECORDS} flows; set a longer time");
            return Err(InputError::new(&self.file, message).in_field("every"));
        }
        let mut flows = Vec::with_capacity(round.len() * rounds as usize);
        for number in 0..rounds as u32 {
            let at = if number == 0 { start } else { start + f64::from(number) * gap };
            flows.extend(round.iter().filter(|_| at < end).map(|flow| Flow { start: at, ..*flow }));
        }
        let provenance = format!(
            "matrix {}: {} pairs, {} in each of {} rounds; {} dropped, and {} pairs of less than a byte",
            self.file,
            round.len(),
            amount(u128::from(assigned)),
            rounds,
            self.local_share(entries),
            entries.pairs.len() - round.len()
        );
        Ok(Loaded { workload: Workload { flows, ..Workload::default() }, provenance })
    }

    fn rates(
        &self,
        entries: &Entries,
        rate: Bandwidth,
        cluster: &Cluster,
        (start, end): (f64, f64),
        horizon: f64,
    ) -> Loaded {
        let bytes_per_second = rate.bytes_per_second() * self.scale.get();
        let mut loads = vec![0.0; cluster.fabric.resource_count()];
        let mut hops = Vec::new();
        for Entry { from, to, amount } in &entries.pairs {
            hops.clear();
            cluster.fabric.path(&[*from, *to], &mut hops);
            for hop in &hops {
                loads[hop.resource.index()] += hop.work * bytes_per_second * (amount / entries.sum);
            }
        }
        let resources = (0..).map(ResourceId).zip(loads).filter(|(_, load)| *load >= 0.5);
        let rates: Vec<RateChange> = resources
            .map(|(resource, load)| RateChange { at: start, resource, rate: Load(load.round() as i64) })
            .collect();
        let above =
            rates.iter().filter(|change| change.rate > cluster.capacities.get(change.resource)).count();
        let mut all = if start < end { rates } else { Vec::new() };
        if end < horizon {
            let ends: Vec<_> =
                all.iter().map(|change| RateChange { at: end, rate: Load(0), ..*change }).collect();
            all.extend(ends);
        }
        let provenance = format!(
            "matrix {}: {} pairs as {} rate changes; {above} are above their link's capacity; {} dropped",
            self.file,
            entries.pairs.len(),
            all.len(),
            self.local_share(entries)
        );
        Loaded { workload: Workload { rates: all, ..Workload::default() }, provenance }
    }

    /// Returns the local share of the matrix, for the provenance.
    fn local_share(&self, entries: &Entries) -> String {
        let things = if self.numbers == Numbers::Hosts { "host" } else { "rack" };
        format!("{:.1} % within a {things}", 100.0 * entries.local / (entries.local + entries.sum))
    }
}
