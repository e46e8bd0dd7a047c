//! Placement of one block by the policy `leeward`: ranks racks by their links, then the hosts of the best few racks.

use std::cmp::Reverse;

use leeward_fabric::{DomainId, HostId, Load, Nanos, ResourceId, Shape};

use super::circuit::Turns;
use super::fault_domains::spreads;
use super::first_replica::{explain_chosen, new_copies, no_known_candidate};
use super::level::{Failure, Level, Ranked};
use super::path_estimates::{MissingCounters, Passage, PathEstimates, Rate, lower};
use super::uplink::{Guideline, UplinkClass, tour};
use super::{Layout, ReplicaRequest};
use crate::constraints::{Constraint, Filter};
use crate::decision::sight;
use crate::ties::Ties;
use crate::{Candidate, Considered, Context, Limit, Refusal, Verdict};

/// Number of steps from 0 to [`ChainSearch::top_rate`]. Rates are compared in whole steps.
const RATE_STEPS: f64 = 8.0;
/// Step of fill, as a share of the average. Fills are compared in whole steps.
const FILL_STEP: f64 = 0.05;
/// Largest difference from the average fill, in steps; larger differences count as this one.
const MOST_FILL_STEPS: i64 = 1000;
/// Largest number of racks in which hosts are examined, for each group of copies and sample.
const RACKS_EXAMINED: usize = 5;
/// Bonus of a partner rack, in rate steps: more than the steps of any rate.
const PARTNER_BONUS: i64 = 1 << 20;

/// Search for the hosts of one block.
pub(super) struct ChainSearch<'s, 'c, 'a, 'l> {
    pub request: &'s ReplicaRequest,
    pub context: &'c Context<'a, 'l>,
    pub filter: Filter<'s>,
    pub ties: Ties,
    pub guideline: Option<Guideline>,
    pub estimates: PathEstimates<'c, 'l>,
    /// Schedule of partner racks, on a network of circuits.
    pub turns: Option<Turns>,
    /// Partner rack for the current group of copies.
    pub partner: Option<DomainId>,
    /// Average fill of the hosts.
    pub mean_fill: f64,
    /// Number of racks to rank in the first attempt; on a mesh, number of hosts. The rest is ranked only if none of
    /// them fits.
    pub sample: usize,
    /// Highest possible rate of the block, in bit/s: limited by the fastest device and by the first host's widest link.
    pub top_rate: f64,
    /// Multiple of a disk's free rate above which more link rate has no value.
    pub headroom: f64,
    /// Explanation of the decision.
    pub why: Vec<Considered>,
    /// End of the measurement window of the oldest load that the decision uses.
    pub oldest: Option<Nanos>,
}

/// Hosts for a group of copies.
struct Group {
    hosts: Vec<HostId>,
    /// Rate by which the worst host is ranked, in bit/s.
    ranking_rate: f64,
    /// Rate of the block at the worst host.
    rate: Rate,
    listed: Vec<ExplanationEntry>,
}

/// A candidate in the explanation.
struct ExplanationEntry {
    /// Rank; `None` if the load is unknown.
    ranked: Option<Ranked>,
    candidate: Candidate,
    rate: Option<Rate>,
    verdict: Verdict,
}

impl ExplanationEntry {
    fn new(ranked: Ranked, rate: Rate, verdict: Verdict) -> ExplanationEntry {
        ExplanationEntry { ranked: Some(ranked), candidate: ranked.2.0, rate: Some(rate), verdict }
    }
}

impl ChainSearch<'_, '_, '_, '_> {
    /// Places the copies besides the first.
    ///
    /// # Errors
    /// [`Refusal`] if telemetry is missing, or no host is eligible.
    pub fn place(&mut self, remote_racks: u8) -> Result<(), Refusal> {
        let placed = self.filter.used.len();
        let first =
            explain_chosen(self.request, &new_copies(self.request, self.filter.used.clone()), self.context);
        let mut failure = None;
        for spread in spreads(self.request, remote_racks, &self.filter)? {
            self.filter.used.truncate(placed);
            self.why.clone_from(&first);
            self.oldest = None;
            let mut failed = None;
            for &copies in &spread.groups {
                spread.close(&mut self.filter);
                failed = self.place_group(copies).err();
                if failed.is_some() {
                    break;
                }
            }
            match failed {
                None => return Ok(()),
                Some(failed) => failure = failure.or(Some(failed)),
            }
        }
        Err(match failure {
            Some(Failure::Unseen(newest)) => {
                Refusal::NoTelemetry { newest: (newest > Nanos(0)).then_some(newest) }
            }
            _ => no_known_candidate(&self.filter, |host| self.is_unseen(host)),
        })
    }

    /// Places a group of copies in the best rack of a sample. If no rack of the sample takes all of them, places them
    /// in the best of the other racks. On a mesh, hosts replace racks.
    fn place_group(&mut self, copies: usize) -> Result<(), Failure> {
        let view = &*self.context.view;
        let fabric = view.fabric();
        // The first new copy of a block with existing ones comes from its source.
        let new = self.filter.used.get(self.request.constraints.existing.len()..).unwrap_or_default();
        let from = new.last().copied().or(self.request.writer);
        if let (Layout::Chain, Some(from)) = (self.request.layout, from) {
            self.estimates.set_from(from);
        }
        self.partner = self.partner_now();
        let tree = fabric.shape() == Shape::Tree;
        let count = if tree { fabric.rack_count() } else { fabric.host_count() };
        let begin = self.ties.rank(self.filter.used.len() as u64) % count as u64;
        let nth = tour(begin as usize, count);
        let sample = self.sample.min(count);
        let (mut level, mut listed, mut failed) = (Level::default(), Vec::new(), None);
        for part in [0..sample, sample..count].into_iter().filter(|part| !part.is_empty()) {
            // The partner comes first, even if it is outside the sample.
            let partner = self.partner;
            let ahead = partner.filter(|_| part.start == 0);
            let part = part.map(|step| nth(step) as u32);
            let group = if tree {
                let others = part.map(DomainId).filter(|&rack| Some(rack) != partner);
                ahead.into_iter().chain(others).for_each(|rack| self.rank_rack(rack, &mut level));
                self.best_rack(&mut level, copies, &mut listed)
            } else {
                let hosts = part.map(HostId);
                // On a mesh, a link without a counter has unknown load. In a tree, the load of the rack's link is
                // known.
                let missing =
                    MissingCounters { links: false, ..self.estimates.missing_counters(hosts.clone()) };
                self.rank_hosts(hosts, missing, &mut level);
                self.best_hosts(&mut level, missing, copies, &mut listed)
            };
            match group {
                Ok(group) => {
                    self.filter.used.extend(group.hosts);
                    self.explain(listed);
                    self.explain(group.listed);
                    return Ok(());
                }
                Err(below) => failed = failed.or(below),
            }
            level.reopen();
        }
        Err(failed.unwrap_or_else(|| Failure::of(&level)))
    }

    /// Current partner of the source host's rack, if persistent load leaves capacity for a transfer.
    fn partner_now(&self) -> Option<DomainId> {
        let view = &*self.context.view;
        let fabric = view.fabric();
        let rack = self.turns?.partner(fabric, fabric.rack_of(self.estimates.from()), view.now())?;
        self.estimates.reaches(rack).then_some(rack)
    }

    /// Returns hosts for all copies in the best rack that has them. A rack with idle links may have busy disks. The
    /// search therefore examines hosts in the best few racks, as long as the links of another rack may still win.
    fn best_rack(
        &mut self,
        level: &mut Level,
        copies: usize,
        listed: &mut Vec<ExplanationEntry>,
    ) -> Result<Group, Option<Failure>> {
        let limit = self.context.explain.limit();
        let mut best: Option<(Ranked, Rate, Group)> = None;
        let (mut examined, mut failed, mut next) = (0, None, level.pop_best());
        while let Some(ranked) = next {
            if best.as_ref().is_some_and(|(best, ..)| *best >= ranked || examined == RACKS_EXAMINED) {
                break;
            }
            next = level.pop_best();
            let Reverse(candidate) = ranked.2;
            let Candidate::Domain(rack) = candidate else { continue };
            let Passage { path: links, own } = self.estimates.rack(rack);
            let refused =
                self.filter.refuses_domain(rack, copies).or_else(|| match self.examine_rack(rack, copies) {
                    Ok(group) => {
                        examined += 1;
                        let (path, own) = (links.0.min(group.ranking_rate), own.min(group.ranking_rate));
                        let ranked = self.rank(candidate, path, own);
                        let current = (ranked, lower(links, group.rate), group);
                        let outranked = match &best {
                            Some((best, ..)) if *best >= ranked => Some(current),
                            _ => best.replace(current),
                        };
                        let outranked = outranked.filter(|_| limit > 0);
                        listed.extend(outranked.map(|(ranked, rate, _)| {
                            ExplanationEntry::new(ranked, rate, Verdict::Outranked)
                        }));
                        None
                    }
                    Err(failure) => {
                        failed = failed.or(Some(failure));
                        Some(Constraint::TooFew)
                    }
                });
            if let Some(refused) = refused.filter(|_| limit > 0) {
                listed.push(ExplanationEntry::new(ranked, links, Verdict::Refused(refused)));
            }
        }
        let Some((ranked, rate, group)) = best else { return Err(failed) };
        if limit > 0 {
            listed.push(ExplanationEntry::new(ranked, rate, Verdict::Chosen));
            listed.sort_by_key(|listed| Reverse(listed.ranked));
            self.list_rest(next, level, listed);
        }
        Ok(group)
    }

    /// Returns the best hosts of a rack for `copies` copies.
    fn examine_rack(&mut self, rack: DomainId, copies: usize) -> Result<Group, Failure> {
        let hosts = self.context.view.fabric().hosts(rack).map(HostId);
        let (mut level, mut listed) = (Level::default(), Vec::new());
        let missing = self.estimates.missing_counters(hosts.clone());
        self.rank_hosts(hosts, missing, &mut level);
        let group = self.best_hosts(&mut level, missing, copies, &mut listed);
        let group = group.map_err(|_| Failure::of(&level))?;
        Ok(Group { listed, ..group })
    }

    /// Returns the best hosts of a level, one for each copy.
    fn best_hosts(
        &mut self,
        level: &mut Level,
        missing: MissingCounters,
        copies: usize,
        listed: &mut Vec<ExplanationEntry>,
    ) -> Result<Group, Option<Failure>> {
        let limit = self.context.explain.limit();
        let mut hosts = Vec::with_capacity(copies);
        let (mut ranking_rate, mut rate) = (f64::INFINITY, (f64::INFINITY, None));
        while hosts.len() < copies {
            let Some(ranked) = level.pop_best() else { return Err(None) };
            let Reverse(candidate) = ranked.2;
            let Candidate::Host(host) = candidate else { continue };
            let Ok(room) = self.estimates.host(host, missing) else { continue };
            let own = lower(room.link, room.disk);
            let refused = self.filter.refuses(host);
            if refused.is_none() {
                hosts.push(host);
                ranking_rate = ranking_rate.min(room.link.0.min(self.headroom * room.disk.0));
                rate = lower(rate, own);
            }
            if limit > 0 {
                let verdict = refused.map_or(Verdict::Chosen, Verdict::Refused);
                listed.push(ExplanationEntry::new(ranked, own, verdict));
            }
        }
        self.list_rest(None, level, listed);
        Ok(Group { hosts, ranking_rate, rate, listed: Vec::new() })
    }

    /// Ranks a rack by its links. A rack without a known link load has no rank.
    fn rank_rack(&mut self, rack: DomainId, level: &mut Level) {
        let (view, candidate) = (&*self.context.view, Candidate::Domain(rack));
        if let Some(link) = self.estimates.link(candidate) {
            if view.measured(link).is_none() {
                return level.add_unseen(candidate, view.measured_until(link));
            }
            self.record_use(link);
        }
        let Passage { path, own } = self.estimates.rack(rack);
        level.add(self.rank(candidate, path.0, own));
    }

    /// Ranks hosts by the link into each and by the block's disk there.
    fn rank_hosts(
        &mut self,
        hosts: impl Iterator<Item = HostId>,
        missing: MissingCounters,
        level: &mut Level,
    ) {
        for host in hosts {
            let candidate = Candidate::Host(host);
            let Some(link) = self.estimates.link(candidate) else { continue };
            match self.estimates.host(host, missing) {
                Err(until) => level.add_unseen(candidate, until),
                Ok(room) => {
                    let left = room.link.0.min(self.headroom * room.disk.0);
                    let ranked = self.rank(candidate, left, left);
                    // A host known to be down counts as unobserved.
                    if room.seen && self.context.pool.is_up(host) {
                        self.record_use(link);
                        level.add(ranked);
                    } else {
                        level.add_without_load(ranked);
                    }
                }
            }
        }
    }

    /// Records that the decision uses the load of a link.
    fn record_use(&mut self, link: ResourceId) {
        let seen = self.context.view.window_end(link);
        self.oldest = [self.oldest, seen].into_iter().flatten().min();
    }

    /// Returns the rank of a candidate with `path` bit/s left along its path, of which its own part has `own` bit/s
    /// left: by these two rates, then by fill, then by uplink class.
    ///
    /// All candidates share the other part of the path, the links out of the source's host, rack and pod. If that part
    /// is the bottleneck, only the own part tells a hot rack from an idle one.
    fn rank(&self, candidate: Candidate, path: f64, own: f64) -> Ranked {
        let most = (self.headroom * RATE_STEPS) as i64;
        let in_steps = |rate: f64| most.min((rate / self.top_rate * RATE_STEPS) as i64);
        let mut steps = in_steps(path);
        if self.partner.is_some_and(|partner| candidate == Candidate::Domain(partner)) {
            steps += PARTNER_BONUS;
        }
        let (id, class) = match candidate {
            Candidate::Domain(rack) => {
                let class =
                    |guideline: Guideline| guideline.class(rack, self.context.pool, self.context.view);
                (u64::from(rack.0), self.guideline.map_or(UplinkClass::Medium, class))
            }
            Candidate::Host(host) => (u64::from(host.0), UplinkClass::Medium),
        };
        let emptiness = MOST_FILL_STEPS - self.fill_steps(candidate);
        let rates = steps * (most + 1) + in_steps(own);
        let score = (rates * (2 * MOST_FILL_STEPS + 1) + emptiness) * 3 + class as i64;
        (score, self.ties.rank(id), Reverse(candidate))
    }

    /// Returns the fill relative to the average, in steps.
    fn fill_steps(&self, candidate: Candidate) -> i64 {
        let pool = self.context.pool;
        let mean = self.mean_fill;
        let fill = match candidate {
            Candidate::Host(host) => pool.fill(host, self.request.size),
            Candidate::Domain(rack) => pool
                .storage(rack)
                .map_or(mean, |storage| pool.stored_in(rack).0 as f64 / (storage.0 as f64).max(1.0)),
        };
        let steps = (fill - mean) / (mean * FILL_STEP).max(f64::MIN_POSITIVE);
        steps.clamp(-MOST_FILL_STEPS as f64, MOST_FILL_STEPS as f64) as i64
    }

    /// Lists the outranked candidates of a level, `next` first, and then the candidates with unknown load, up to the
    /// limit of the explanation.
    fn list_rest(&self, mut next: Option<Ranked>, level: &mut Level, listed: &mut Vec<ExplanationEntry>) {
        let limit = self.context.explain.limit();
        while listed.len() < limit {
            let Some(ranked) = next.take().or_else(|| level.pop_best()) else { break };
            let rate = self.rate(ranked.2.0);
            listed.push(ExplanationEntry {
                ranked: Some(ranked),
                candidate: ranked.2.0,
                rate,
                verdict: Verdict::Outranked,
            });
        }
        let verdict = Verdict::Refused(Constraint::Unknown);
        let unseen = level.unseen().iter().take(limit.saturating_sub(listed.len()));
        listed.extend(unseen.map(|&candidate| ExplanationEntry {
            ranked: None,
            candidate,
            rate: None,
            verdict,
        }));
    }

    /// Returns the rate of the block at a rack by links alone, or at a host by its link and disk.
    fn rate(&self, candidate: Candidate) -> Option<Rate> {
        match candidate {
            Candidate::Domain(rack) => Some(self.estimates.rack(rack).path),
            Candidate::Host(host) => {
                let room = self.estimates.host(host, self.missing_counters(host)).ok()?;
                Some(lower(room.link, room.disk))
            }
        }
    }

    /// True if the load of a host or of its rack is unknown.
    fn is_unseen(&self, host: HostId) -> bool {
        let view = &*self.context.view;
        let link = self.estimates.link(Candidate::Domain(view.fabric().rack_of(host)));
        link.is_some_and(|link| view.measured(link).is_none())
            || self.estimates.host(host, self.missing_counters(host)).is_err()
    }

    /// Returns the missing counters in the rack of a host. On a mesh, a link needs a counter.
    fn missing_counters(&self, host: HostId) -> MissingCounters {
        let fabric = self.context.view.fabric();
        let missing = self.estimates.missing_counters(fabric.hosts(fabric.rack_of(host)).map(HostId));
        MissingCounters { links: missing.links && fabric.shape() == Shape::Tree, ..missing }
    }

    /// Adds the best candidates of a level, and the chosen ones, to the explanation.
    fn explain(&mut self, listed: Vec<ExplanationEntry>) {
        let limit = self.context.explain.limit();
        for (index, ExplanationEntry { candidate, rate, verdict, .. }) in listed.into_iter().enumerate() {
            if index < limit || verdict == Verdict::Chosen {
                let link = self.estimates.link(candidate);
                self.why.push(Considered {
                    candidate,
                    limit: rate.and_then(|(_, limit)| limit).map(Limit::Resource),
                    value: rate.map(|(rate, _)| Load(rate.min(1e18) as i64)),
                    sight: link.map(|link| sight(self.context.view, link)),
                    objectives: None,
                    verdict,
                });
            }
        }
    }
}
