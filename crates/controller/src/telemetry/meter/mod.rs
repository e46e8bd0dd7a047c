//! From readings of ports to loads of links. No input or output, no clock.
//!
//! Ports that are one link add up. Each is read at times of its own, so a link's window is what its ports share: from the
//! end of the window before to the earliest of their last readings. A port that is silent holds its link back, which becomes
//! unknown; after five minutes it is forgotten, and the others go on without it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::{Capacities, Fabric, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::load_of;

use super::answer::{Series, shown};
use super::counter::{Counter, Step, Unit, is_count};
use super::map::{Labels, Map, Place, Way};

/// After so long a port that is silent is forgotten.
pub const FORGOTTEN: Nanos = Nanos(300 * Nanos::SECOND.0);
/// Times what it can carry that a port is not believed to have carried, once: readings are as late as a switch is slow to
/// answer, so a port that is full may seem to carry somewhat more.
const TOO_FAST: f64 = 2.0;
/// Bits per second that no port carries: its unit is wrong.
const MOST_SPEED: f64 = 1e15;

/// What ports were read to count.
pub struct Meter {
    map: Map,
    interval: Nanos,
    ports: BTreeMap<(Way, Labels), Port>,
    /// What ports can carry, in bit/s, and when they said so.
    speeds: BTreeMap<Labels, (f64, Nanos)>,
    /// Links with a window, and the end of the last one.
    heard: BTreeMap<ResourceId, Nanos>,
}

struct Port {
    place: Place,
    /// Its link, if the cluster has it.
    link: Option<ResourceId>,
    counter: Counter,
}

/// The cluster that names of links are of.
pub struct Ground<'a> {
    /// What names mean.
    pub fabric: &'a Fabric,
    /// What its file says that links carry.
    pub capacities: &'a Capacities,
}

/// What Prometheus told at a time.
#[derive(Default)]
pub struct Heard {
    /// Of each way that it answered.
    pub counters: Vec<(Way, Vec<Series>)>,
    /// What ports can carry.
    pub speeds: Vec<Series>,
}

/// What follows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Taken {
    /// Windows, the earliest end first, and what links carried in them.
    pub windows: Vec<Window>,
    /// What links can carry of which a port said its speed.
    pub speeds: BTreeMap<ResourceId, Load>,
    /// Readings that say something new, by what they say.
    pub steps: Steps,
    /// How all ports stand.
    pub ports: Ports,
}

/// What links carried over the same time.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Its beginning.
    pub from: Nanos,
    /// Its end.
    pub until: Nanos,
    /// Means over it.
    pub loads: Vec<(ResourceId, Load)>,
}

/// Readings, by what they say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// How much counters grew.
    pub grew: u64,
    /// That they began anew.
    pub restarted: u64,
    /// That they grew as no port does.
    pub jumped: u64,
    /// Nothing that could be: a time ahead, a speed that no port has.
    pub impossible: u64,
}

/// How all ports stand.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ports {
    /// That are links of the cluster, each way counted.
    pub links: usize,
    /// That the map ignores, or says nothing of this way.
    pub ignored: usize,
    /// That are no links of the cluster, and the first of them.
    pub strange: usize,
    /// The first of these.
    pub stranger: Option<String>,
    /// Ways without any port.
    pub silent_ways: Vec<Way>,
    /// Whether a speed was told of any.
    pub speeds: bool,
    /// Rules that no port matches.
    pub idle_rules: Vec<usize>,
    /// Links with a window in the last three intervals.
    pub heard: usize,
    /// Links without one, that had one before.
    pub silent: Vec<ResourceId>,
    /// How far apart readings of a port are, in the median.
    pub spacing: Option<Nanos>,
    /// The last reading of any.
    pub newest: Option<Nanos>,
}

/// A link as the sum of its ports.
#[derive(Clone, Copy)]
struct Bundle {
    from: Nanos,
    until: Nanos,
    bits: f64,
}

impl Meter {
    /// Nothing was heard yet.
    pub fn new(map: Map, interval: Nanos) -> Meter {
        Meter { map, interval, ports: BTreeMap::new(), speeds: BTreeMap::new(), heard: BTreeMap::new() }
    }

    /// Takes in what was told; `times` makes milliseconds since 1970 a time of the engine's.
    pub fn take(
        &mut self,
        ground: &Ground<'_>,
        now: Nanos,
        told: Heard,
        times: impl Fn(i64) -> Option<Nanos>,
    ) -> Taken {
        let mut steps = Steps::default();
        let ahead = now.plus(self.interval);
        let time = |at: i64| times(at).filter(|&at| at <= ahead && now.since(at) <= FORGOTTEN);
        self.forget(now);
        self.hear_speeds(told.speeds, &mut steps, time);
        self.meet(ground, &told.counters, time);
        let members = self.members();
        for (way, series) in told.counters {
            for Series { labels, readings } in series {
                let key = (way, labels);
                let Some(port) = self.ports.get_mut(&key) else { continue };
                let speed = self.speeds.get(&key.1).map(|&(speed, _)| speed).filter(|&speed| speed > 0.0);
                let share = port.link.and_then(|link| Some(share(ground, link, *members.get(&link)?)));
                let too_fast = TOO_FAST * speed.or(share.map(|share| share as f64)).unwrap_or(f64::INFINITY);
                let unit = Unit { bits: self.map.metrics.unit, narrow: self.map.metrics.narrow, too_fast };
                for (at, value) in readings {
                    let Some(at) = time(at) else {
                        steps.impossible += u64::from(times(at).is_none_or(|at| at > ahead));
                        continue;
                    };
                    match port.counter.read(at, value, unit) {
                        Step::Grew => steps.grew += 1,
                        Step::Restarted => steps.restarted += 1,
                        Step::Jumped => steps.jumped += 1,
                        Step::Nothing => {}
                    }
                }
            }
        }
        let windows = self.windows(&mut steps);
        Taken { windows, speeds: self.sums(ground, &members), steps, ports: self.stand(now) }
    }

    fn hear_speeds(&mut self, series: Vec<Series>, steps: &mut Steps, time: impl Fn(i64) -> Option<Nanos>) {
        for Series { labels, readings } in series {
            let Some((at, value)) = readings.last().and_then(|&(at, value)| Some((time(at)?, value))) else {
                continue;
            };
            let speed = value * self.map.metrics.speed_unit;
            if speed > MOST_SPEED {
                steps.impossible += 1;
            } else if speed >= 0.0 {
                // Some say -1 where they do not know.
                self.speeds.insert(labels, (speed, at));
            }
        }
    }

    /// Ports that are seen for the first time, by the first reading that counts.
    fn meet(
        &mut self,
        ground: &Ground<'_>,
        told: &[(Way, Vec<Series>)],
        time: impl Fn(i64) -> Option<Nanos>,
    ) {
        for (way, series) in told {
            for Series { labels, readings } in series {
                let key = (*way, labels.clone());
                if self.ports.contains_key(&key) {
                    continue;
                }
                let mut valid = readings.iter().filter(|(_, value)| is_count(*value));
                let first = valid.find_map(|&(at, value)| Some((time(at)?, value)));
                let Some((at, value)) = first else { continue };
                let place = self.map.place(labels, *way);
                let link = match &place {
                    Place::Link(name, _) => ground.fabric.resource(name),
                    _ => None,
                };
                let link = link.filter(|&link| ground.fabric.kind(link) != ResourceKind::Device);
                self.ports.insert(key, Port { place, link, counter: Counter::new(at, value) });
            }
        }
    }

    fn forget(&mut self, now: Nanos) {
        let is_heard = |last: Nanos| now.since(last) <= FORGOTTEN;
        self.ports.retain(|_, port| is_heard(port.counter.known().1));
        self.speeds.retain(|_, &mut (_, at)| is_heard(at));
    }

    /// How many ports each link has.
    fn members(&self) -> BTreeMap<ResourceId, i64> {
        let mut members = BTreeMap::new();
        for link in self.ports.values().filter_map(|port| port.link) {
            *members.entry(link).or_default() += 1;
        }
        members
    }

    /// Windows that are complete, and what links carried in them.
    fn windows(&mut self, steps: &mut Steps) -> Vec<Window> {
        let mut bundles: BTreeMap<ResourceId, Bundle> = BTreeMap::new();
        for port in self.ports.values() {
            let Some(link) = port.link else { continue };
            let (from, until) = port.counter.known();
            let bundle = bundles.entry(link).or_insert(Bundle { from, until, bits: 0.0 });
            (bundle.from, bundle.until) = (bundle.from.max(from), bundle.until.min(until));
        }
        bundles.retain(|_, bundle| bundle.from < bundle.until);
        for port in self.ports.values_mut() {
            if let Some(bundle) = port.link.and_then(|link| bundles.get_mut(&link)) {
                bundle.bits += port.counter.take(bundle.from, bundle.until);
            }
        }
        let mut windows: BTreeMap<(Nanos, Nanos), Vec<(ResourceId, Load)>> = BTreeMap::new();
        for (link, Bundle { from, until, bits }) in bundles {
            match load_of(bits / until.since(from).as_secs_f64()) {
                Ok(load) => {
                    self.heard.insert(link, until);
                    windows.entry((until, from)).or_default().push((link, load));
                }
                Err(_) => steps.impossible += 1,
            }
        }
        windows.into_iter().map(|((until, from), loads)| Window { from, until, loads }).collect()
    }

    /// What links can carry of which a port said its speed. A port that does not say it has its part of what the cluster says.
    fn sums(&self, ground: &Ground<'_>, members: &BTreeMap<ResourceId, i64>) -> BTreeMap<ResourceId, Load> {
        let mut sums: BTreeMap<ResourceId, (f64, bool)> = BTreeMap::new();
        for ((_, labels), port) in &self.ports {
            let Some(link) = port.link else { continue };
            let speed = self.speeds.get(labels).map(|&(speed, _)| speed);
            let share = share(ground, link, members.get(&link).copied().unwrap_or(1)) as f64;
            let (sum, told) = sums.entry(link).or_default();
            (*sum, *told) = (*sum + speed.unwrap_or(share), *told || speed.is_some());
        }
        let told = sums.into_iter().filter(|(_, (_, told))| *told);
        told.map(|(link, (sum, _))| (link, Load(sum.round() as i64))).collect()
    }

    fn stand(&self, now: Nanos) -> Ports {
        let mut ports = Ports { speeds: !self.speeds.is_empty(), ..Ports::default() };
        let (mut matched, mut spacings) = (BTreeSet::new(), Vec::new());
        for ((way, labels), port) in &self.ports {
            ports.newest = ports.newest.max(Some(port.counter.known().1));
            if let Place::Link(_, Some(rule)) | Place::Unnamed(rule, _) = port.place {
                matched.insert(rule);
            }
            let strange = match &port.place {
                Place::Ignored => {
                    ports.ignored += 1;
                    continue;
                }
                Place::Link(..) if port.link.is_some() => {
                    ports.links += 1;
                    spacings.extend(port.counter.spacing());
                    continue;
                }
                Place::Link(name, _) => format!("the cluster has no link `{name}`"),
                Place::Unknown => "no rule matches".to_owned(),
                Place::Unnamed(rule, why) => format!("links[{rule}]: {why}"),
            };
            ports.strange += 1;
            ports.stranger.get_or_insert_with(|| format!("{} ({}): {strange}", shown(labels), way.name()));
        }
        let asked = self.map.metrics.queries.iter().map(|&(way, _)| way);
        ports.silent_ways = asked.filter(|way| !self.ports.keys().any(|(one, _)| one == way)).collect();
        if !self.ports.is_empty() {
            ports.idle_rules = (0..self.map.rules()).filter(|rule| !matched.contains(rule)).collect();
        }
        let lasts = Nanos(self.interval.0.saturating_mul(3));
        let silent = self.heard.iter().filter(|&(_, &until)| now.since(until) > lasts);
        ports.silent = silent.map(|(&link, _)| link).collect();
        ports.heard = self.heard.len() - ports.silent.len();
        spacings.sort_unstable();
        ports.spacing = spacings.get(spacings.len() / 2).copied();
        ports
    }
}

/// A port's part of what the cluster says of its link.
fn share(ground: &Ground<'_>, link: ResourceId, members: i64) -> i64 {
    (ground.capacities.get(link).0 / members.max(1)).max(1)
}
