//! Reads and shuffles across racks, as rates on links or as flows.
//!
//! Three kinds of traffic, whose mean bytes follow from the shares of Sinbad table 2:
//!
//! * reads: the same share of every link's capacity, always. Input is local for nine tasks in ten (section 4.1), and
//!   the other input comes from anywhere;
//! * wide shuffles: into and out of 30 to 100 % of the racks, each at a low rate (as mappers finish), for ten
//!   minutes;
//! * hot shuffles: into and out of some 6 % of the racks, at the full rate of their links (`ceiling`), for a minute
//!   or two; each rack has its own time.
//!
//! Hot shuffles cause the hotspots. Without a hot shuffle, links are about evenly loaded. During one, some 6 % of the
//! links are full, so the 95th percentile is a full link. Links are at 9 % on average, but Cv is above 1 for half of
//! the time, and the 95th percentile is above 75 % for a quarter of the time. Racks are drawn uniformly, so over hours
//! every link is equally likely to be hot (section 4.3). Wide shuffles determine how often the background of the least
//! predictable link leaves a band of 5 %: about every 90 s, as in the paper. In total there are 55 large shuffles an
//! hour. In the public coflow trace of this cluster, the largest 55 of 526 coflows carry 99 % of the bytes. Small ones
//! are left out here.
//!
//! Every twenty consecutive draws of gaps, widths and lengths hit each twentieth of their distribution once. Without
//! this rule, the hours would differ much, because an hour has only some 15 hot shuffles.

use std::collections::BTreeSet;

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster, DomainId, Endpoint, Load, ResourceId, Shape};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use rand::seq::{SliceRandom, index::sample};
use rand_chacha::ChaCha8Rng;

use super::settings::{Background, Facebook, WARM_UP, invalid};
use crate::model::{Flow, MOST_RECORDS, RateChange, Workload};
use crate::settings::amount;

/// A kind of shuffle.
struct Pattern {
    /// Random streams of gaps, widths and lengths, and then of each shuffle by number.
    draws: [Kind; 4],
    /// Range of the number of racks that it goes into, as a share of all racks. The number of racks that it comes from
    /// has the same range.
    racks: (f64, f64),
    /// Mean time at a rack. A shuffle takes half to one and a half times this time, and so does each of its racks.
    seconds: f64,
}

const WIDE: Pattern = Pattern {
    draws: [
        Kind::named("facebook.wide.gap"),
        Kind::named("facebook.wide.width"),
        Kind::named("facebook.wide.length"),
        Kind::named("facebook.wide"),
    ],
    racks: (0.3, 1.0),
    seconds: 600.0,
};
/// Rate of a wide shuffle at each rack, as a share of the rack's link. The value is fitted to section 4.3, like all
/// values here.
const WIDE_LEVEL: f64 = 0.0035;
/// Share of shuffled bytes in wide shuffles.
const WIDE_SHARE: f64 = 0.35;

const HOT: Pattern = Pattern {
    draws: [
        Kind::named("facebook.hot.gap"),
        Kind::named("facebook.hot.width"),
        Kind::named("facebook.hot.length"),
        Kind::named("facebook.hot"),
    ],
    racks: (0.05, 0.07),
    seconds: 100.0,
};

const READS: Kind = Kind::named("facebook.reads");
const WAVES: Kind = Kind::named("facebook.waves");
/// With `background: flows`, reads and a wide shuffle have one flow into each rack at this interval, in seconds.
const WAVE: f64 = 10.0;

/// An end point whose links may be bottlenecks: a rack, or a host of a hose mesh.
struct Site {
    endpoint: Endpoint,
    into: Option<ResourceId>,
    out_of: Option<ResourceId>,
    /// Capacities of both links, in bits per second.
    capacity: (f64, f64),
}

/// A shuffle from each rack in `from` to each rack in `to`. The `i`th element of either list ends at `ends[i]`.
struct Shuffle {
    start: f64,
    from: Vec<usize>,
    to: Vec<usize>,
    ends: Vec<f64>,
}

/// Generates the background of one run, and its note for the provenance.
pub(super) fn generate(
    settings: &Facebook,
    cluster: &Cluster,
    down: &BTreeSet<DomainId>,
    written_per_second: f64,
    seed: u64,
    horizon: f64,
) -> Result<(Workload, String), InputError> {
    let sites = sites(cluster, down);
    if settings.background == Background::None || written_per_second == 0.0 || sites.len() < 2 {
        return Ok((Workload::default(), "no background".to_owned()));
    }
    if cluster.fabric.shape() == Shape::Pipe {
        let message = "a pipe mesh has no link into a host that could be full; use `none`";
        return Err(invalid("background", message));
    }
    let shares = settings.shares;
    let crossing = written_per_second * f64::from(settings.crossings.get());
    let cross_rack = crossing / (shares.output.get() + shares.other.get());
    let capacity: f64 = sites.iter().map(|site| site.capacity.0 / 8.0).sum();
    let reads = cross_rack * shares.reads.get();
    // With phases, the shuffles belong to the jobs.
    let shuffled = if settings.phases.is_some() { 0.0 } else { cross_rack * shares.shuffle.get() };
    let ceiling = settings.ceiling.get();
    let per_second = |pattern: &Pattern, level: f64, bytes: f64| {
        bytes / (level * capacity * (pattern.racks.0 + pattern.racks.1) / 2.0 * pattern.seconds)
    };
    let wide_rate = per_second(&WIDE, WIDE_LEVEL, shuffled * WIDE_SHARE);
    let hot_rate = per_second(&HOT, ceiling, shuffled * (1.0 - WIDE_SHARE));
    let waves = 1.0 / WAVE + (wide_rate + hot_rate) * WIDE.seconds / WAVE;
    let events = (horizon + WARM_UP) * sites.len() as f64 * waves;
    if events > MOST_RECORDS as f64 {
        let message =
            format!("{events:.1e} background events: more than {MOST_RECORDS}; lower `load` or the horizon");
        return Err(invalid("load", message));
    }
    let wide = shuffles(&WIDE, wide_rate, sites.len(), seed, horizon);
    let hot = shuffles(&HOT, hot_rate, sites.len(), seed, horizon);
    let run = Run { sites: &sites, wide: &wide, hot: &hot, ceiling, seed, horizon };
    match settings.background {
        Background::Flows => Ok(run.flows(reads / capacity)),
        _ => Ok(run.rates(reads / capacity)),
    }
}

/// End points of the background: racks that are not down, or the hosts of a mesh.
fn sites(cluster: &Cluster, down: &BTreeSet<DomainId>) -> Vec<Site> {
    let fabric = &cluster.fabric;
    let site = |endpoint, into: Option<ResourceId>, out_of: Option<ResourceId>| {
        let capacity =
            |link: Option<ResourceId>| link.map_or(0.0, |link| cluster.capacities.get(link).0 as f64);
        Site { endpoint, into, out_of, capacity: (capacity(into), capacity(out_of)) }
    };
    match fabric.shape() {
        Shape::Tree => fabric
            .all_racks()
            .filter(|rack| !down.contains(rack))
            .map(|rack| site(Endpoint::Domain(rack), fabric.into_domain(rack), fabric.out_of_domain(rack)))
            .collect(),
        Shape::Hose | Shape::Pipe => fabric
            .all_hosts()
            .map(|host| site(Endpoint::Host(host), fabric.ingress(host), fabric.egress(host)))
            .collect(),
    }
}

/// Generates the shuffles of one kind, from before the run to its end.
fn shuffles(pattern: &Pattern, per_second: f64, sites: usize, seed: u64, horizon: f64) -> Vec<Shuffle> {
    let [mut gaps, mut widths, mut lengths] = [0, 1, 2]
        .map(|i| StratifiedDraws { stream: stream(seed, pattern.draws[i], 0), parts_left: Vec::new() });
    let (mut shuffles, mut start, mut index) = (Vec::new(), -WARM_UP, 0);
    if per_second == 0.0 {
        return shuffles;
    }
    loop {
        start -= (1.0 - gaps.draw()).ln() / per_second;
        if start >= horizon {
            return shuffles;
        }
        let (least, most) = pattern.racks;
        let width = (least + (most - least) * widths.draw()) * sites as f64;
        let length = pattern.seconds * (0.5 + lengths.draw());
        let mut random = stream(seed, pattern.draws[3], index);
        index += 1;
        // A small cluster has fewer shuffles instead of narrower ones.
        let racks = ((width + random.random::<f64>()) as usize).min(sites);
        let ends: Vec<f64> = (0..racks).map(|_| start + length * random.random_range(0.5..1.5)).collect();
        if ends.iter().all(|&end| end <= 0.0) {
            continue;
        }
        let (from, to) = if 2 * racks <= sites {
            let drawn = sample(&mut random, sites, 2 * racks).into_vec();
            (drawn[..racks].to_vec(), drawn[racks..].to_vec())
        } else {
            (sample(&mut random, sites, racks).into_vec(), sample(&mut random, sites, racks).into_vec())
        };
        shuffles.push(Shuffle { start, from, to, ends });
    }
}

/// Stratified draws from 0 to 1: every twenty consecutive draws lie in different twentieths.
struct StratifiedDraws {
    stream: ChaCha8Rng,
    parts_left: Vec<u8>,
}

impl StratifiedDraws {
    fn draw(&mut self) -> f64 {
        const PARTS: u8 = 20;
        let part = self.parts_left.pop().unwrap_or_else(|| {
            self.parts_left = (0..PARTS).collect();
            self.parts_left.shuffle(&mut self.stream);
            self.parts_left.pop().unwrap_or(0)
        });
        (f64::from(part) + self.stream.random::<f64>()) / f64::from(PARTS)
    }
}

/// Shuffles and their ends, ready for output as rates or as flows.
struct Run<'a> {
    sites: &'a [Site],
    wide: &'a [Shuffle],
    hot: &'a [Shuffle],
    ceiling: f64,
    seed: u64,
    horizon: f64,
}

impl Run<'_> {
    /// Returns the rate of every link over time; `reads` is the share of each link for reads.
    fn rates(&self, reads: f64) -> (Workload, String) {
        // Requested load of each link, as changes. The changes are integers, so they cancel exactly.
        let mut requested = Vec::new();
        let mut request = |link: Option<ResourceId>, capacity: f64, share: f64, from: f64, to: f64| {
            let bps = (capacity * share).round() as i64;
            let (from, to) = (from.max(0.0), to.min(self.horizon));
            if let Some(link) = link.filter(|_| from < to && bps > 0) {
                requested.push((from, link, bps, capacity));
                requested.push((to, link, -bps, capacity));
            }
        };
        for site in self.sites {
            request(site.into, site.capacity.0, reads, 0.0, self.horizon);
            request(site.out_of, site.capacity.1, reads, 0.0, self.horizon);
        }
        for (shuffles, level) in [(self.wide, WIDE_LEVEL), (self.hot, self.ceiling)] {
            for shuffle in shuffles {
                for (i, &end) in shuffle.ends.iter().enumerate() {
                    let (to, from) = (&self.sites[shuffle.to[i]], &self.sites[shuffle.from[i]]);
                    request(to.into, to.capacity.0, level, shuffle.start, end);
                    request(from.out_of, from.capacity.1, level, shuffle.start, end);
                }
            }
        }
        self.limit_rates(requested)
    }

    /// Sums the changes on each link, limited by the ceiling.
    fn limit_rates(&self, mut requested: Vec<(f64, ResourceId, i64, f64)>) -> (Workload, String) {
        requested.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let links = requested.iter().map(|change| change.1.index() + 1).max().unwrap_or(0);
        let mut sums = vec![(0, 0.0); links];
        let (mut bits_requested, mut bits_cut) = (0.0, 0.0);
        let mut rates = Vec::<RateChange>::new();
        for (at, resource, change, capacity) in requested {
            let (sum, since) = &mut sums[resource.index()];
            let most = (capacity * self.ceiling).round() as i64;
            bits_requested += *sum as f64 * (at - *since);
            bits_cut += (*sum - most).max(0) as f64 * (at - *since);
            (*sum, *since) = (*sum + change, at);
            let rate = Load((*sum).min(most));
            // Changes at the end of the run are dropped, and changes at the same time are merged.
            if at < self.horizon {
                match rates.last_mut().filter(|last| last.at == at && last.resource == resource) {
                    Some(last) => last.rate = rate,
                    None => rates.push(RateChange { at, resource, rate }),
                }
            }
        }
        let provenance = format!(
            "background of {} rate changes, {} into and out of racks ({:.1} % cut at the ceiling)",
            rates.len(),
            amount((bits_requested / 8.0 - bits_cut / 8.0) as u128),
            if bits_requested > 0.0 { 100.0 * bits_cut / bits_requested } else { 0.0 }
        );
        (Workload { rates, ..Workload::default() }, provenance)
    }

    /// Returns the same traffic as flows without rate limits.
    fn flows(&self, reads: f64) -> (Workload, String) {
        let mut flows = Vec::new();
        let mut send = |start: f64, from: usize, to: usize, bytes: f64| {
            let (from, to) = (self.sites[from].endpoint, self.sites[to].endpoint);
            if from != to && (0.0..self.horizon).contains(&start) && bytes >= 1.0 {
                flows.push(Flow { start, from, to, bytes: Bytes(bytes.round() as u64), coflow: None });
            }
        };
        let all_sites: Vec<usize> = (0..self.sites.len()).collect();
        // Only whole waves, so that a longer run begins with the same reads.
        let whole_run = (0.0, (self.horizon / WAVE).ceil() * WAVE);
        for (index, &to) in (0..).zip(&all_sites) {
            let mut random = stream(self.seed, READS, index);
            self.send_waves(&mut random, &all_sites, to, reads, whole_run, &mut send);
        }
        for (index, shuffle) in (0..).zip(self.wide) {
            let mut random = stream(self.seed, WAVES, index);
            for (&to, &end) in shuffle.to.iter().zip(&shuffle.ends) {
                self.send_waves(&mut random, &shuffle.from, to, WIDE_LEVEL, (shuffle.start, end), &mut send);
            }
        }
        for shuffle in self.hot {
            self.send_hot_shuffle(shuffle, &mut send);
        }
        flows.sort_by(|a, b| a.start.total_cmp(&b.start));
        let bytes: u128 = flows.iter().map(|flow| u128::from(flow.bytes.0)).sum();
        let provenance = format!("background of {} flows, {}", flows.len(), amount(bytes));
        (Workload { flows, ..Workload::default() }, provenance)
    }

    /// Sends traffic at the pace of tasks instead of links. In each wave, `to` fetches the bytes of one wave at rate
    /// `level` from one site of `from`.
    fn send_waves(
        &self,
        random: &mut ChaCha8Rng,
        from: &[usize],
        to: usize,
        level: f64,
        (start, end): (f64, f64),
        send: &mut impl FnMut(f64, usize, usize, f64),
    ) {
        let rate = self.sites[to].capacity.0 / 8.0 * level;
        let mut wave = start;
        while wave < end {
            let length = WAVE.min(end - wave);
            let pick = random.random_range(0..from.len());
            let other = if from[pick] == to { (pick + 1) % from.len() } else { pick };
            send(wave + length * random.random::<f64>(), from[other], to, rate * length);
            wave += WAVE;
        }
    }

    /// Sends a hot shuffle. The number of flows into each rack is chosen so that one more flow gets the capacity above
    /// the ceiling. Bytes moved before the run are left out.
    fn send_hot_shuffle(&self, shuffle: &Shuffle, send: &mut impl FnMut(f64, usize, usize, f64)) {
        let fetches = (self.ceiling / (1.0 - self.ceiling)).round().max(1.0);
        let start = shuffle.start.max(0.0);
        for (&to, &end) in shuffle.to.iter().zip(&shuffle.ends) {
            let bytes = self.sites[to].capacity.0 / 8.0 * self.ceiling * (end - start);
            for fetch in 0..fetches as usize {
                send(start, shuffle.from[(fetch + to) % shuffle.from.len()], to, bytes / fetches);
            }
        }
    }
}
