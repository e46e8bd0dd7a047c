//! Placement of one block under `leeward`: ranks racks by their links, then the hosts of the best few racks.

use std::cmp::Reverse;

use leeward_fabric::{DomainId, HostId, Load, Nanos, ResourceId, Shape};

use super::circuit::Turns;
use super::fault_domains::spreads;
use super::first_replica::{chosen, nobody};
use super::level::{Failure, Level, Ranked};
use super::path_estimates::{Blind, PathEstimates, Rate, lower};
use super::uplink::{Guideline, UplinkClass, tour};
use super::{Layout, ReplicaRequest};
use crate::constraints::{Constraint, Filter};
use crate::decision::sight;
use crate::ties::Ties;
use crate::{Candidate, Considered, Context, Limit, Refusal, Verdict};

/// Steps of rate up to the rate of a disk.
const STEPS: f64 = 8.0;
/// Fills that differ by less than this share of the average are equal.
const EVEN: f64 = 0.05;
/// Steps from the average beyond which fills count as equal.
const MOST_STEPS: i64 = 1000;
/// Number of racks whose hosts are examined for each group of copies.
const LOOKED_INTO: usize = 5;
/// Bonus in steps, more than any rate has, that ranks a rack before all others.
const ABOVE_ALL: i64 = 1 << 20;

/// Search for the places of one block.
pub(super) struct Search<'s, 'c, 'a, 'l> {
    pub request: &'s ReplicaRequest,
    pub context: &'c Context<'a, 'l>,
    pub filter: Filter<'s>,
    pub ties: Ties,
    pub guideline: Option<Guideline>,
    pub survey: PathEstimates<'c, 'l>,
    /// On a network of circuits: the schedule of partner racks, and the partner rack of the current group.
    pub turns: Option<Turns>,
    pub partner: Option<DomainId>,
    /// Average fill of the hosts.
    pub mean_fill: f64,
    /// Number of racks to examine, or of hosts on a mesh.
    pub sample: usize,
    /// Rate of the fastest disk in bit/s, and the largest useful ratio of link rate to disk rate.
    pub disk: f64,
    pub headroom: f64,
    pub why: Vec<Considered>,
    pub oldest: Option<Nanos>,
}

/// Hosts for a group of copies.
struct Group {
    hosts: Vec<HostId>,
    /// Rank value of the worst host, in bit/s.
    worth: f64,
    /// Rate of the block at the worst host.
    rate: Rate,
    listed: Vec<Listed>,
}

/// A candidate in the explanation.
struct Listed {
    /// Rank; `None` if the load is unknown.
    ranked: Option<Ranked>,
    candidate: Candidate,
    rate: Option<Rate>,
    verdict: Verdict,
}

impl Listed {
    fn new(ranked: Ranked, rate: Rate, verdict: Verdict) -> Listed {
        Listed { ranked: Some(ranked), candidate: ranked.2.0, rate: Some(rate), verdict }
    }
}

impl Search<'_, '_, '_, '_> {
    /// Places the copies besides the first.
    ///
    /// # Errors
    /// [`Refusal`] if telemetry is missing, or no host is eligible.
    pub fn place(&mut self, remote_racks: u8) -> Result<(), Refusal> {
        let shape = self.context.view.fabric().shape();
        let first = chosen(&self.filter.used, self.context);
        let mut failure = None;
        for spread in spreads(self.request, remote_racks, shape)? {
            self.filter.used.truncate(1);
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
            _ => nobody(&self.filter, |host| self.is_unseen(host)),
        })
    }

    /// Places copies in the best rack that takes them all, of a sample or else of the remaining racks. On a
    /// mesh, places them on the best host.
    fn place_group(&mut self, copies: usize) -> Result<(), Failure> {
        let view = &*self.context.view;
        let fabric = view.fabric();
        if let (Layout::Chain, Some(&last)) = (self.request.layout, self.filter.used.last()) {
            self.survey.set_from(last);
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
            let found = if tree {
                let others = part.map(DomainId).filter(|&rack| Some(rack) != partner);
                ahead.into_iter().chain(others).for_each(|rack| self.rank_rack(rack, &mut level));
                self.best_rack(&mut level, copies, &mut listed)
            } else {
                let hosts = part.map(HostId);
                // On a mesh, hosts without counters give no information. In a tree, the link of the chosen rack gives
                // information.
                let blind = Blind { links: false, ..self.survey.blind(hosts.clone()) };
                self.rank_hosts(hosts, blind, &mut level);
                self.best_hosts(&mut level, blind, copies, &mut listed)
            };
            match found {
                Ok(group) => {
                    self.filter.used.extend(group.hosts);
                    self.explain(listed);
                    self.explain(group.listed);
                    return Ok(());
                }
                Err(below) => failed = failed.or(below),
            }
            level.go_on();
        }
        Err(failed.unwrap_or_else(|| Failure::of(&level)))
    }

    /// Rack that circuits favour for a block from the survey's source.
    fn partner_now(&self) -> Option<DomainId> {
        let view = &*self.context.view;
        let fabric = view.fabric();
        let rack = self.turns?.partner(fabric, fabric.rack_of(self.survey.from()), view.now())?;
        self.survey.reaches(rack).then_some(rack)
    }

    /// The best rack with hosts for all copies. A rack with idle links may have busy disks. The search therefore
    /// examines hosts in the best few racks, as long as the links of another rack may still win.
    fn best_rack(
        &mut self,
        level: &mut Level,
        copies: usize,
        listed: &mut Vec<Listed>,
    ) -> Result<Group, Option<Failure>> {
        let limit = self.context.explain.limit();
        let mut best: Option<(Ranked, Rate, Group)> = None;
        let (mut looked, mut failed, mut next) = (0, None, level.best());
        while let Some(ranked) = next {
            if best.as_ref().is_some_and(|(best, ..)| *best >= ranked || looked == LOOKED_INTO) {
                break;
            }
            next = level.best();
            let Reverse(candidate) = ranked.2;
            let Candidate::Domain(rack) = candidate else { continue };
            let links = self.survey.rack(rack);
            let refused =
                self.filter.refuses_domain(rack, copies).or_else(|| match self.look_into(rack, copies) {
                    Ok(group) => {
                        looked += 1;
                        let ranked = self.ranked(candidate, links.0.min(group.worth));
                        let found = (ranked, lower(links, group.rate), group);
                        let lost = match &best {
                            Some((best, ..)) if *best >= ranked => Some(found),
                            _ => best.replace(found),
                        };
                        let lost = lost.filter(|_| limit > 0);
                        listed.extend(
                            lost.map(|(ranked, rate, _)| Listed::new(ranked, rate, Verdict::Outranked)),
                        );
                        None
                    }
                    Err(failure) => {
                        failed = failed.or(Some(failure));
                        Some(Constraint::TooFew)
                    }
                });
            if let Some(refused) = refused.filter(|_| limit > 0) {
                listed.push(Listed::new(ranked, links, Verdict::Refused(refused)));
            }
        }
        let Some((ranked, rate, group)) = best else { return Err(failed) };
        if limit > 0 {
            listed.push(Listed::new(ranked, rate, Verdict::Chosen));
            listed.sort_by_key(|listed| Reverse(listed.ranked));
            self.list_rest(next, level, listed);
        }
        Ok(group)
    }

    /// The best hosts of a rack for `copies` copies.
    fn look_into(&mut self, rack: DomainId, copies: usize) -> Result<Group, Failure> {
        let hosts = self.context.view.fabric().hosts(rack).map(HostId);
        let (mut level, mut listed) = (Level::default(), Vec::new());
        let blind = self.survey.blind(hosts.clone());
        self.rank_hosts(hosts, blind, &mut level);
        let found = self.best_hosts(&mut level, blind, copies, &mut listed);
        let group = found.map_err(|_| Failure::of(&level))?;
        Ok(Group { listed, ..group })
    }

    /// The best hosts of a level, one copy each.
    fn best_hosts(
        &mut self,
        level: &mut Level,
        blind: Blind,
        copies: usize,
        listed: &mut Vec<Listed>,
    ) -> Result<Group, Option<Failure>> {
        let limit = self.context.explain.limit();
        let mut hosts = Vec::with_capacity(copies);
        let (mut worth, mut rate) = (f64::INFINITY, (f64::INFINITY, None));
        while hosts.len() < copies {
            let Some(ranked) = level.best() else { return Err(None) };
            let Reverse(candidate) = ranked.2;
            let Candidate::Host(host) = candidate else { continue };
            let Ok(room) = self.survey.host(host, blind) else { continue };
            let own = lower(room.link, room.disk);
            let refused = self.filter.refuses(host);
            if refused.is_none() {
                hosts.push(host);
                worth = worth.min(room.link.0.min(self.headroom * room.disk.0));
                rate = lower(rate, own);
            }
            if limit > 0 {
                let verdict = refused.map_or(Verdict::Chosen, Verdict::Refused);
                listed.push(Listed::new(ranked, own, verdict));
            }
        }
        self.list_rest(None, level, listed);
        Ok(Group { hosts, worth, rate, listed: Vec::new() })
    }

    /// Ranks a rack by its links. A rack without a known link load has no rank.
    fn rank_rack(&mut self, rack: DomainId, level: &mut Level) {
        let (view, candidate) = (&*self.context.view, Candidate::Domain(rack));
        if let Some(link) = self.survey.link(candidate) {
            if view.measured(link).is_none() {
                return level.add_unseen(candidate, view.measured_until(link));
            }
            self.rests_on(link);
        }
        level.add(self.ranked(candidate, self.survey.rack(rack).0));
    }

    /// Ranks hosts by the link into each and by the block's disk there.
    fn rank_hosts(&mut self, hosts: impl Iterator<Item = HostId>, blind: Blind, level: &mut Level) {
        for host in hosts {
            let candidate = Candidate::Host(host);
            let Some(link) = self.survey.link(candidate) else { continue };
            match self.survey.host(host, blind) {
                Err(until) => level.add_unseen(candidate, until),
                Ok(room) => {
                    let ranked = self.ranked(candidate, room.link.0.min(self.headroom * room.disk.0));
                    // A host known to be down counts as unobserved.
                    if room.seen && self.context.pool.is_up(host) {
                        self.rests_on(link);
                        level.add(ranked);
                    } else {
                        level.add_blind(ranked);
                    }
                }
            }
        }
    }

    /// Records that the decision uses the load of a link.
    fn rests_on(&mut self, link: ResourceId) {
        let seen = self.context.view.measured_until(link);
        self.oldest = Some(self.oldest.map_or(seen, |oldest| oldest.min(seen)));
    }

    /// Rank of a candidate with `left` bit/s left.
    fn ranked(&self, candidate: Candidate, left: f64) -> Ranked {
        let mut steps = (left.min(self.headroom * self.disk) / self.disk * STEPS) as i64;
        if self.partner.is_some_and(|partner| candidate == Candidate::Domain(partner)) {
            steps += ABOVE_ALL;
        }
        let (thing, class) = match candidate {
            Candidate::Domain(rack) => {
                let class =
                    |guideline: Guideline| guideline.class(rack, self.context.pool, self.context.view);
                (u64::from(rack.0), self.guideline.map_or(UplinkClass::Medium, class))
            }
            Candidate::Host(host) => (u64::from(host.0), UplinkClass::Medium),
        };
        let fuller = MOST_STEPS - self.fuller(candidate);
        let score = (steps * (2 * MOST_STEPS + 1) + fuller) * 3 + class as i64;
        (score, self.ties.rank(thing), Reverse(candidate))
    }

    /// Fill above the average, in steps.
    fn fuller(&self, candidate: Candidate) -> i64 {
        let pool = self.context.pool;
        let mean = self.mean_fill;
        let fill = match candidate {
            Candidate::Host(host) => pool.fill(host, self.request.size),
            Candidate::Domain(rack) => pool
                .storage(rack)
                .map_or(mean, |storage| pool.stored_in(rack).0 as f64 / (storage.0 as f64).max(1.0)),
        };
        let steps = (fill - mean) / (mean * EVEN).max(f64::MIN_POSITIVE);
        steps.clamp(-MOST_STEPS as f64, MOST_STEPS as f64) as i64
    }

    /// Lists the outranked candidates of a level, `next` first, then the unknown ones, up to the
    /// explanation's limit.
    fn list_rest(&self, mut next: Option<Ranked>, level: &mut Level, listed: &mut Vec<Listed>) {
        let limit = self.context.explain.limit();
        while listed.len() < limit {
            let Some(ranked) = next.take().or_else(|| level.best()) else { break };
            let rate = self.rate(ranked.2.0);
            listed.push(Listed {
                ranked: Some(ranked),
                candidate: ranked.2.0,
                rate,
                verdict: Verdict::Outranked,
            });
        }
        let verdict = Verdict::Refused(Constraint::Unknown);
        let unseen = level.unseen().iter().take(limit.saturating_sub(listed.len()));
        listed.extend(unseen.map(|&candidate| Listed { ranked: None, candidate, rate: None, verdict }));
    }

    /// Rate for a block at a candidate that was not examined further.
    fn rate(&self, candidate: Candidate) -> Option<Rate> {
        match candidate {
            Candidate::Domain(rack) => Some(self.survey.rack(rack)),
            Candidate::Host(host) => {
                let room = self.survey.host(host, self.blind_beside(host)).ok()?;
                Some(lower(room.link, room.disk))
            }
        }
    }

    /// True if the load of a host or of its rack is unknown.
    fn is_unseen(&self, host: HostId) -> bool {
        let view = &*self.context.view;
        let into = self.survey.link(Candidate::Domain(view.fabric().rack_of(host)));
        into.is_some_and(|link| view.measured(link).is_none())
            || self.survey.host(host, self.blind_beside(host)).is_err()
    }

    /// Missing counters in the rack of a host. On a mesh, links always need counters.
    fn blind_beside(&self, host: HostId) -> Blind {
        let fabric = self.context.view.fabric();
        let blind = self.survey.blind(fabric.hosts(fabric.rack_of(host)).map(HostId));
        Blind { links: blind.links && fabric.shape() == Shape::Tree, ..blind }
    }

    /// Keeps the best candidates of a level, and the chosen ones.
    fn explain(&mut self, listed: Vec<Listed>) {
        let limit = self.context.explain.limit();
        for (at, Listed { candidate, rate, verdict, .. }) in listed.into_iter().enumerate() {
            if at < limit || verdict == Verdict::Chosen {
                let link = self.survey.link(candidate);
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
