//! The trace format of the coflow benchmark: shuffles of a cluster at rack level, as background flows.
//!
//! [`leeward_coflows::trace`] reads the lines. Varys and Aalo (SIGCOMM 2014, 2015) publish an hour of Facebook's
//! cluster in this form. Sinbad's traces are from the same cluster.
//!
//! A reducer's megabytes (of 2^20 bytes, as the benchmark's own simulator, CoflowSim, counts them) come in equal parts
//! from all mappers. So each pair of a mapper and a reducer is one flow, which starts when the coflow arrives. A pair
//! within one rack crosses no link between racks and is dropped; the coflow and the provenance have the number of such
//! pairs. The format contains no file writes.

use leeward_coflows::Arrival;
use leeward_coflows::trace::{self, MEGABYTE, Shuffle};
use leeward_fabric::input::{Clock, InputError, Line, Lines, Text};
use leeward_fabric::{Bytes, Cluster, DomainId, Endpoint, HostId, Nanos};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Flow, Loaded, MOST_RECORDS, Workload};
use crate::settings::{Factor, Window, amount, check_rack_links, whole_bytes};

const HOSTS: Kind = Kind::named("coflow.hosts");

/// Background flows from a coflow trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coflow {
    /// The trace: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the trace.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the trace; by default up to the end of the run.
    pub duration: Option<Nanos>,
    /// Interval at which the used part repeats unchanged; no repetition if absent. For example, an hour of trace can
    /// fill a day.
    pub every: Option<Nanos>,
    /// Factor on the bytes of each flow.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// End points of the flows.
    #[serde(default)]
    pub spread: Spread,
    /// If true, the racks of a larger trace wrap around on a smaller cluster (rack id modulo racks);
    /// otherwise they are an error.
    #[serde(default)]
    pub fold: bool,
}

/// End point that represents a rack of the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// The rack itself: only links between racks carry the flow.
    #[default]
    Racks,
    /// A host of the rack, drawn for each mapper and reducer of a coflow.
    Hosts,
}

impl Coflow {
    /// Reads the trace.
    ///
    /// # Errors
    /// Returns an error with the line and field of the first invalid value, or if the trace does not fit the cluster.
    pub fn read(&self, text: Text, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        if self.spread == Spread::Racks {
            check_rack_links(cluster, "`spread: hosts`")
                .map_err(|message| InputError::new(&self.file, message).in_field("spread"))?;
        }
        let window = Window::new(self.from, self.duration, horizon);
        let mut lines = text.lines();
        let (racks, announced) = self.header(&mut lines, cluster)?;
        let (mut clock, mut coflows, mut used) = (Clock::default(), 0, 0);
        let mut builder = FlowBuilder {
            settings: self,
            cluster,
            seed,
            flows: Vec::new(),
            coflows: Vec::new(),
            bytes: 0,
            dropped_pairs: 0,
            dropped_bytes: 0,
        };
        while let Some(line) = lines.next_line()? {
            let shuffle = Shuffle::parse(line, racks)?;
            let arrival = clock.reach(&line, "arrival", shuffle.arrival)?;
            if let Some(start) = window.place(arrival) {
                used += 1;
                builder.add(&shuffle, coflows, start, line)?;
            }
            coflows += 1;
        }
        if coflows != announced {
            let message = format!(
                "the first line announces {announced} coflows, {coflows} follow: is the file complete?"
            );
            return Err(lines.error(message).in_field("coflows"));
        }
        let rounds = builder.repeat(self.every, horizon)?;
        let provenance = format!(
            "coflow {}: {used} of {coflows} coflows ({window}){rounds}, {} flows of {}; {} pairs within a rack dropped ({})",
            self.file,
            builder.flows.len(),
            amount(builder.bytes),
            builder.dropped_pairs,
            amount(builder.dropped_bytes)
        );
        let workload = Workload { flows: builder.flows, coflows: builder.coflows, ..Workload::default() };
        Ok(Loaded { workload, provenance })
    }

    /// Reads the numbers of racks and of coflows from the first line.
    fn header(&self, lines: &mut Lines, cluster: &Cluster) -> Result<(u32, u64), InputError> {
        let Some(line) = lines.next_line()? else { return Err(lines.error("the file is empty")) };
        let (racks, coflows) = trace::header(line)?;
        let rack_count = cluster.fabric.rack_count();
        match u32::try_from(racks) {
            Ok(racks) if racks > 0 && (racks as usize <= rack_count || self.fold) => Ok((racks, coflows)),
            Ok(racks) if racks > 0 => {
                let message =
                    format!("{racks} racks, but the cluster has {rack_count}; set `fold: true` to fold them");
                Err(line.error("racks", message))
            }
            _ => Err(line.error("racks", format!("{racks} racks: expected 1 to {}", u32::MAX))),
        }
    }
}

/// Converts coflows into flows, and counts them.
struct FlowBuilder<'a> {
    settings: &'a Coflow,
    cluster: &'a Cluster,
    seed: u64,
    flows: Vec<Flow>,
    coflows: Vec<Arrival>,
    /// Bytes of the generated flows.
    bytes: u128,
    /// Number of pairs within a rack.
    dropped_pairs: u64,
    /// Bytes of these pairs.
    dropped_bytes: u128,
}

impl FlowBuilder<'_> {
    fn add(&mut self, shuffle: &Shuffle, index: u64, start: f64, line: Line<'_>) -> Result<(), InputError> {
        if self.flows.len() + shuffle.mappers.len() * shuffle.reducers.len() > MOST_RECORDS {
            let message = format!("more than {MOST_RECORDS} flows; set a shorter `duration`");
            return Err(line.error("reducers", message));
        }
        let fabric = &self.cluster.fabric;
        let mut random = stream(self.seed, HOSTS, index);
        let spread = self.settings.spread;
        let mut endpoint = |rack: u32| {
            let rack = DomainId(rack % fabric.rack_count() as u32);
            match spread {
                Spread::Racks => (rack, Endpoint::Domain(rack)),
                Spread::Hosts => (rack, Endpoint::Host(HostId(random.random_range(fabric.hosts(rack))))),
            }
        };
        let mappers: Vec<_> = shuffle.mappers.iter().map(|&rack| endpoint(rack)).collect();
        let parts = mappers.len() as u64;
        let coflow = Some(self.coflows.len() as u32);
        let mut arrival = Arrival {
            id: shuffle.id.clone(),
            arrive: start,
            senders: shuffle.mappers.len() as u32,
            receivers: shuffle.reducers.len() as u32,
            ..Arrival::default()
        };
        for &(rack, megabytes) in &shuffle.reducers {
            let (to_rack, to) = endpoint(rack);
            let Some(bytes) = whole_bytes(megabytes * MEGABYTE * self.settings.scale.get()) else {
                return Err(line.error("reducers", format!("{megabytes:e} MB: too much for one reducer")));
            };
            // Sums of several reducers stay below the limit of one.
            if whole_bytes((arrival.bytes + arrival.local_bytes) as f64 + bytes as f64).is_none() {
                return Err(line.error("reducers", "too many bytes for one coflow"));
            }
            for (part, &(from_rack, from)) in (0..).zip(&mappers) {
                // Parts differ by at most one byte and add up to the whole.
                let bytes = bytes / parts + u64::from(part < bytes % parts);
                if from_rack == to_rack {
                    self.dropped_pairs += 1;
                    self.dropped_bytes += u128::from(bytes);
                    arrival.local_pairs += 1;
                    arrival.local_bytes += bytes;
                } else {
                    self.bytes += u128::from(bytes);
                    arrival.flows += 1;
                    arrival.bytes += bytes;
                    arrival.longest = arrival.longest.max(bytes);
                    self.flows.push(Flow { start, from, to, bytes: Bytes(bytes), coflow });
                }
            }
        }
        self.coflows.push(arrival);
        Ok(())
    }
}

impl FlowBuilder<'_> {
    /// Repeats all flows at an interval, to the end of the run; returns a note for the provenance.
    fn repeat(&mut self, every: Option<Nanos>, horizon: f64) -> Result<String, InputError> {
        let Some(gap) = every else { return Ok(String::new()) };
        let invalid = |message: String| InputError::new(&self.settings.file, message).in_field("every");
        if gap.0 == 0 {
            return Err(invalid("0s: must be positive".into()));
        }
        let (gap, count, coflows) = (gap.as_secs_f64(), self.flows.len(), self.coflows.len());
        let rounds = (horizon / gap).ceil().max(1.0);
        if rounds * count.max(coflows) as f64 > MOST_RECORDS as f64 {
            return Err(invalid(format!(
                "more than {MOST_RECORDS} flows or coflows; set a longer time or a shorter `duration`"
            )));
        }
        for round in 1..if coflows > 0 { rounds as usize } else { 1 } {
            let delay = round as f64 * gap;
            // Coflows are in order of arrival, so those before the horizon are the first of them.
            let first = self.coflows.len() as u32;
            let copies = self.flows[..count].iter().map(|flow| {
                let coflow = flow.coflow.map(|coflow| first + coflow);
                Flow { start: flow.start + delay, coflow, ..*flow }
            });
            let copies: Vec<Flow> = copies.filter(|flow| flow.start < horizon).collect();
            let arrivals = self.coflows[..coflows].iter().map(|coflow| Arrival {
                id: format!("{}/{round}", coflow.id),
                arrive: coflow.arrive + delay,
                ..coflow.clone()
            });
            let arrivals: Vec<Arrival> = arrivals.filter(|coflow| coflow.arrive < horizon).collect();
            self.coflows.extend(arrivals);
            self.bytes += copies.iter().map(|flow| u128::from(flow.bytes.0)).sum::<u128>();
            self.flows.extend(copies);
        }
        // If the interval is shorter than the repeated part, rounds overlap.
        self.flows.sort_by(|a, b| a.start.total_cmp(&b.start));
        Ok(format!(", every {gap} s"))
    }
}
