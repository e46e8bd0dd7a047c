//! Conversion of port readings to link loads, without I/O and without a clock.
//!
//! A link can consist of several ports, whose bits add up. Each port has its own reading times, so a link's window is
//! the interval that the readings of all its ports cover. The window starts at the end of the previous window, or later
//! if a port is new or its counter restarted. It ends at the earliest of the ports' last readings. A silent port delays
//! the windows of its link, so the link's load becomes unknown. After five minutes the meter drops the port, and the
//! link continues without it. If another port of the link began when it ended, because a label changed, both are one
//! port: the silent one is dropped after three intervals.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::{Capacities, Fabric, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::parse_load;

use super::answer::{Series, format_labels};
use super::counter::{Counter, Step, Unit, is_count};
use super::map::{Direction, Labels, Map, Mapping};

/// Time after which a silent port is dropped.
pub const SILENCE_LIMIT: Nanos = Nanos(300 * Nanos::SECOND.0);
/// Factor by which one reading may exceed a port's speed. Readings are late if a switch answers slowly, so a full port
/// may appear to exceed its speed.
const SPEED_TOLERANCE: f64 = 2.0;
/// Largest value of `ifSpeed`, which means that its 32 bits cannot hold the speed.
const SPEED_TOP: f64 = 4_294_967_295.0;
/// Largest valid speed, in bit/s; a higher value has the wrong unit.
const MAX_SPEED: f64 = 1e15;

/// Readings of ports and links.
pub struct Meter {
    map: Map,
    interval: Nanos,
    ports: BTreeMap<(Direction, Labels), Port>,
    /// Port speeds in bit/s, with the time of each reading.
    speeds: BTreeMap<Labels, (f64, Nanos)>,
    /// Links with at least one window, and the end of their last window.
    last_windows: BTreeMap<ResourceId, Nanos>,
}

struct Port {
    mapping: Mapping,
    /// Link of the port, if the cluster has it.
    link: Option<ResourceId>,
    counter: Counter,
    /// Time of the first reading.
    since: Nanos,
    /// True if the port continues one that was dropped.
    follows: bool,
}

/// Cluster that has the links.
pub struct Topology<'a> {
    /// Fabric that resolves names.
    pub fabric: &'a Fabric,
    /// Capacities of the cluster file.
    pub capacities: &'a Capacities,
}

/// Answers of one round.
#[derive(Default)]
pub struct PortReadings {
    /// Counter series of each answered direction.
    pub counters: Vec<(Direction, Vec<Series>)>,
    /// Speed series.
    pub speeds: Vec<Series>,
}

/// Result of a round.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RoundResult {
    /// Windows with the loads of links, in the order of their ends.
    pub windows: Vec<Window>,
    /// Capacities of links with a reported port speed.
    pub speeds: BTreeMap<ResourceId, Load>,
    /// Counts of new readings by kind.
    pub steps: Steps,
    /// Statistics of all ports.
    pub ports: Ports,
}

/// Loads of links over one interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Start of the window.
    pub from: Nanos,
    /// End of the window.
    pub until: Nanos,
    /// Average loads over the window.
    pub loads: Vec<(ResourceId, Load)>,
}

/// Counts of readings by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// Counter growth.
    pub grew: u64,
    /// Restarts of counters.
    pub restarted: u64,
    /// Growth beyond the speed of a port.
    pub jumped: u64,
    /// Growth of a value that had repeated, beyond the speed of the port: only its part since the last repetition counts.
    pub caught_up: u64,
    /// Growth of a counter of 32 bits that may have overflowed once more.
    pub ambiguous: u64,
    /// Invalid readings: a time in the future, or an impossible speed or load.
    pub impossible: u64,
}

/// Statistics of all ports.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ports {
    /// Number of ports with a link of the cluster. A port counts once per direction.
    pub links: usize,
    /// Number of ports that the map ignores, or whose rule excludes the direction.
    pub ignored: usize,
    /// Number of ports that are neither ignored nor on a link of the cluster.
    pub unmapped: usize,
    /// Description of the first unmapped port.
    pub first_unmapped: Option<String>,
    /// Directions without any port.
    pub silent_directions: Vec<Direction>,
    /// True if any port reported a speed.
    pub speeds: bool,
    /// Rules without a matching port.
    pub idle_rules: Vec<usize>,
    /// Number of links with a window in the last three intervals.
    pub heard: usize,
    /// Links that had a window before, but not in the last three intervals.
    pub silent: Vec<ResourceId>,
    /// Median time between two readings of a port.
    pub spacing: Option<Nanos>,
    /// Time of the newest reading.
    pub newest: Option<Nanos>,
}

/// Bits of a link, as the sum over its ports.
#[derive(Clone, Copy)]
struct LinkSum {
    from: Nanos,
    until: Nanos,
    bits: f64,
}

impl Meter {
    /// A meter without readings.
    pub fn new(map: Map, interval: Nanos) -> Meter {
        Meter {
            map,
            interval,
            ports: BTreeMap::new(),
            speeds: BTreeMap::new(),
            last_windows: BTreeMap::new(),
        }
    }

    /// Processes the answers of a round; `engine_time` converts milliseconds since 1970 to engine time.
    pub fn process(
        &mut self,
        topology: &Topology<'_>,
        now: Nanos,
        answers: PortReadings,
        engine_time: impl Fn(i64) -> Option<Nanos>,
    ) -> RoundResult {
        let mut steps = Steps::default();
        let ahead = now.plus(self.interval);
        let valid_time =
            |at: i64| engine_time(at).filter(|&at| at <= ahead && now.since(at) <= SILENCE_LIMIT);
        self.drop_silent(now);
        let speeds = self.without_copies(answers.speeds);
        let counters: Vec<(Direction, Vec<Series>)> = answers
            .counters
            .into_iter()
            .map(|(direction, series)| (direction, self.without_copies(series)))
            .collect();
        self.update_speeds(speeds, &mut steps, valid_time);
        self.add_ports(topology, &counters, valid_time);
        let port_counts = self.port_counts();
        for (direction, series) in counters {
            for Series { labels, readings } in series {
                let key = (direction, labels);
                let Some(port) = self.ports.get_mut(&key) else { continue };
                let speed = self.speeds.get(&key.1).map(|&(speed, _)| speed).filter(|&speed| speed > 0.0);
                let share = port.link.and_then(|link| Some(share(topology, link, *port_counts.get(&link)?)));
                let max_rate =
                    SPEED_TOLERANCE * speed.or(share.map(|share| share as f64)).unwrap_or(f64::INFINITY);
                let unit = Unit { bits: self.map.metrics.unit, narrow: self.map.metrics.narrow, max_rate };
                for (at, value) in readings {
                    let Some(at) = valid_time(at) else {
                        steps.impossible += u64::from(engine_time(at).is_none_or(|at| at > ahead));
                        continue;
                    };
                    match port.counter.read(at, value, unit) {
                        Step::Grew => steps.grew += 1,
                        Step::Restarted => steps.restarted += 1,
                        Step::Jumped => steps.jumped += 1,
                        Step::CaughtUp => steps.caught_up += 1,
                        Step::Ambiguous => steps.ambiguous += 1,
                        Step::Nothing => {}
                    }
                }
            }
        }
        self.drop_followed(now);
        let windows = self.windows(&mut steps);
        RoundResult {
            windows,
            // Without the ports that others followed.
            speeds: self.capacities(topology, &self.port_counts()),
            steps,
            ports: self.port_statistics(now),
        }
    }

    /// Series without the labels of copies. Of several copies, the first in the order of labels counts, unless its last
    /// reading is more than an interval older than that of another.
    fn without_copies(&self, series: Vec<Series>) -> Vec<Series> {
        if self.map.replica_labels.is_empty() {
            return series;
        }
        let mut originals: BTreeMap<Labels, Series> = BTreeMap::new();
        for Series { mut labels, readings } in series {
            labels.retain(|(name, _)| !self.map.replica_labels.contains(name));
            let copy = Series { labels: labels.clone(), readings };
            let last = |series: &Series| series.readings.last().map_or(i64::MIN, |&(at, _)| at);
            let original = originals.entry(labels).or_insert_with(|| copy.clone());
            if last(&copy) > last(original).saturating_add(self.interval.0.cast_signed() / 1_000_000) {
                *original = copy;
            }
        }
        originals.into_values().collect()
    }

    fn update_speeds(&mut self, series: Vec<Series>, steps: &mut Steps, time: impl Fn(i64) -> Option<Nanos>) {
        for Series { labels, readings } in series {
            let Some((at, value)) = readings.last().and_then(|&(at, value)| Some((time(at)?, value))) else {
                continue;
            };
            let speed = value * self.map.metrics.speed_unit;
            if speed > MAX_SPEED {
                steps.impossible += 1;
            } else if speed >= 0.0 && !(SPEED_TOP..SPEED_TOP + 1.0).contains(&value) {
                // Some exporters report -1 for an unknown speed, and `ifSpeed` its greatest value for every speed beyond.
                self.speeds.insert(labels, (speed, at));
            }
        }
    }

    /// Adds new ports, with their first valid reading.
    fn add_ports(
        &mut self,
        topology: &Topology<'_>,
        counters: &[(Direction, Vec<Series>)],
        time: impl Fn(i64) -> Option<Nanos>,
    ) {
        for (direction, series) in counters {
            for Series { labels, readings } in series {
                let key = (*direction, labels.clone());
                if self.ports.contains_key(&key) {
                    continue;
                }
                let mut valid = readings.iter().filter(|(_, value)| is_count(*value));
                let first = valid.find_map(|&(at, value)| Some((time(at)?, value)));
                let Some((at, value)) = first else { continue };
                let mapping = self.map.mapping(labels, *direction);
                let link = match &mapping {
                    Mapping::Link(name, _) => topology.fabric.resource(name),
                    _ => None,
                };
                let link = link.filter(|&link| topology.fabric.kind(link) != ResourceKind::Device);
                self.ports.insert(
                    key,
                    Port { mapping, link, counter: Counter::new(at, value), since: at, follows: false },
                );
            }
        }
    }

    fn drop_silent(&mut self, now: Nanos) {
        let is_recent = |last: Nanos| now.since(last) <= SILENCE_LIMIT;
        self.ports.retain(|_, port| is_recent(port.counter.known().1));
        self.speeds.retain(|_, &mut (_, at)| is_recent(at));
    }

    /// Drops silent ports that another port follows: one of the same link and direction that began after the last reading.
    /// Each port follows at most one.
    fn drop_followed(&mut self, now: Nanos) {
        let limit = self.silence();
        let mut silent: Vec<(Nanos, (Direction, Labels))> = Vec::new();
        for (key, port) in self.ports.iter().filter(|(_, port)| port.link.is_some()) {
            let (_, last) = port.counter.known();
            if now.since(last) > limit {
                silent.push((last, key.clone()));
            }
        }
        // A port follows the latest of those that ended before it.
        silent.sort_unstable_by(|a, b| b.cmp(a));
        for (last, key) in silent {
            let link = self.ports.get(&key).and_then(|port| port.link);
            let next = self.ports.iter_mut().find(|((direction, _), port)| {
                *direction == key.0 && port.link == link && port.since > last && !port.follows
            });
            if let Some((_, port)) = next {
                port.follows = true;
                self.ports.remove(&key);
            }
        }
    }

    /// Time without readings after which a port or link is silent.
    fn silence(&self) -> Nanos {
        Nanos(self.interval.0.saturating_mul(3))
    }

    /// Number of ports of each link.
    fn port_counts(&self) -> BTreeMap<ResourceId, i64> {
        let mut port_counts = BTreeMap::new();
        for link in self.ports.values().filter_map(|port| port.link) {
            *port_counts.entry(link).or_default() += 1;
        }
        port_counts
    }

    /// Complete windows with the loads of links.
    fn windows(&mut self, steps: &mut Steps) -> Vec<Window> {
        let mut sums: BTreeMap<ResourceId, LinkSum> = BTreeMap::new();
        for port in self.ports.values() {
            let Some(link) = port.link else { continue };
            let (from, until) = port.counter.known();
            let sum = sums.entry(link).or_insert(LinkSum { from, until, bits: 0.0 });
            (sum.from, sum.until) = (sum.from.max(from), sum.until.min(until));
        }
        sums.retain(|_, sum| sum.from < sum.until);
        for port in self.ports.values_mut() {
            if let Some(sum) = port.link.and_then(|link| sums.get_mut(&link)) {
                sum.bits += port.counter.take(sum.from, sum.until);
            }
        }
        let mut windows: BTreeMap<(Nanos, Nanos), Vec<(ResourceId, Load)>> = BTreeMap::new();
        for (link, LinkSum { from, until, bits }) in sums {
            match parse_load(bits / until.since(from).as_secs_f64()) {
                Ok(load) => {
                    self.last_windows.insert(link, until);
                    windows.entry((until, from)).or_default().push((link, load));
                }
                Err(_) => steps.impossible += 1,
            }
        }
        windows.into_iter().map(|((until, from), loads)| Window { from, until, loads }).collect()
    }

    /// Capacities of links with a reported port speed. A port without a reported speed counts with its share of the
    /// capacity in the cluster file, and so does a port of speed 0 that carries traffic.
    fn capacities(
        &self,
        topology: &Topology<'_>,
        port_counts: &BTreeMap<ResourceId, i64>,
    ) -> BTreeMap<ResourceId, Load> {
        let mut sums: BTreeMap<ResourceId, (f64, bool)> = BTreeMap::new();
        for ((_, labels), port) in &self.ports {
            let Some(link) = port.link else { continue };
            let speed = self.speeds.get(labels).map(|&(speed, _)| speed);
            let speed = speed.filter(|&speed| speed > 0.0 || !port.counter.is_growing());
            let share = share(topology, link, port_counts.get(&link).copied().unwrap_or(1)) as f64;
            let (sum, reported) = sums.entry(link).or_default();
            (*sum, *reported) = (*sum + speed.unwrap_or(share), *reported || speed.is_some());
        }
        let reported = sums.into_iter().filter(|(_, (_, reported))| *reported);
        reported.map(|(link, (sum, _))| (link, Load(sum.round() as i64))).collect()
    }

    fn port_statistics(&self, now: Nanos) -> Ports {
        let mut ports = Ports { speeds: !self.speeds.is_empty(), ..Ports::default() };
        let (mut matched, mut spacings) = (BTreeSet::new(), Vec::new());
        for ((direction, labels), port) in &self.ports {
            ports.newest = ports.newest.max(Some(port.counter.known().1));
            if let Mapping::Link(_, Some(rule)) | Mapping::Unnamed(rule, _) = port.mapping {
                matched.insert(rule);
            }
            let problem = match &port.mapping {
                Mapping::Ignored => {
                    ports.ignored += 1;
                    continue;
                }
                Mapping::Link(..) if port.link.is_some() => {
                    ports.links += 1;
                    spacings.extend(port.counter.spacing());
                    continue;
                }
                Mapping::Link(name, _) => format!("the cluster has no link `{name}`"),
                Mapping::Unknown => "no rule matches".to_owned(),
                Mapping::Unnamed(rule, reason) => format!("links[{rule}]: {reason}"),
            };
            ports.unmapped += 1;
            ports.first_unmapped.get_or_insert_with(|| {
                format!("{} ({}): {problem}", format_labels(labels), direction.name())
            });
        }
        let directions = self.map.metrics.queries.iter().map(|&(direction, _)| direction);
        ports.silent_directions =
            directions.filter(|direction| !self.ports.keys().any(|(known, _)| known == direction)).collect();
        if !self.ports.is_empty() {
            ports.idle_rules = (0..self.map.rules()).filter(|rule| !matched.contains(rule)).collect();
        }
        let limit = self.silence();
        let silent = self.last_windows.iter().filter(|&(_, &until)| now.since(until) > limit);
        ports.silent = silent.map(|(&link, _)| link).collect();
        ports.heard = self.last_windows.len() - ports.silent.len();
        spacings.sort_unstable();
        ports.spacing = spacings.get(spacings.len() / 2).copied();
        ports
    }
}

/// Share of a port in its link's capacity from the cluster file.
fn share(topology: &Topology<'_>, link: ResourceId, ports: i64) -> i64 {
    (topology.capacities.get(link).0 / ports.max(1)).max(1)
}
