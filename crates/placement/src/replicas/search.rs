//! Pseudocode 2 of Sinbad: descends the tree from the core, at each level along the link with the most expected
//! capacity.

use std::cmp::Reverse;

use leeward_fabric::{BITS_PER_BYTE, Bandwidth, DomainId, Hop, HostId, Load, Nanos, ResourceId, Shape};
use leeward_ledger::Fade;

use super::fault_domains::spreads;
use super::first_replica::{explain_chosen, filter, new_copies, no_known_candidate, place_first};
use super::level::{Failure, Level, Ranked};
use super::sinbad_settings::{Hysteresis, SinbadSettings};
use super::{Chain, ReplicaRequest, transfer};
use crate::constraints::{Constraint, Filter};
use crate::decision::sight;
use crate::ties::{RequestDraws, Ties};
use crate::{Candidate, Considered, Context, Limit, Refusal, Verdict};

/// Step of the excess over DiskWriteCap under `best_fit`, in bit/s.
const FIT_STEP: u64 = 1_000_000;
/// Bits of the hash behind the excess.
const FIT_HASH_BITS: u32 = 24;
/// Largest excess, in steps; larger ones count as this one.
const FITS: u64 = u64::MAX >> FIT_HASH_BITS;

/// Search for the places of one block.
pub(super) struct Search<'s, 'c, 'a, 'l> {
    settings: &'s SinbadSettings,
    request: &'s ReplicaRequest,
    ties: Ties,
    /// Largest write rate of the cluster's fastest device, in bit/s.
    domain_write_cap: i64,
    filter: Filter<'s>,
    context: &'c mut Context<'a, 'l>,
    /// Links chosen so far.
    selected: Vec<Hop>,
    oldest: Option<Nanos>,
    why: Vec<Considered>,
}

/// DiskWriteCap in bit/s, for a device of rate `own`.
fn write_cap(settings: &SinbadSettings, own: Option<Bandwidth>) -> i64 {
    let caps = [settings.disk_write_cap, own].into_iter().flatten();
    caps.map(|cap| cap.as_load().0).min().unwrap_or(i64::MAX)
}

fn link_hop(resource: ResourceId) -> Hop {
    Hop { resource, work: BITS_PER_BYTE }
}

impl<'s, 'c, 'a, 'l> Search<'s, 'c, 'a, 'l> {
    /// Starts a search for the copies of `request` and places the first.
    ///
    /// # Errors
    /// [`Refusal`] for an unknown writer, or if no host is eligible.
    pub fn new(
        settings: &'s SinbadSettings,
        request: &'s ReplicaRequest,
        context: &'c mut Context<'a, 'l>,
    ) -> Result<Self, Refusal>
    where
        'a: 's,
    {
        let mut filter = filter(context.pool, request);
        place_first(request, &mut filter, &mut RequestDraws::new(context.seed, request.id))?;
        let ties = Ties::new(context.seed, request.id);
        let domain_write_cap = write_cap(settings, context.pool.write_rate());
        let (selected, why) = (Vec::with_capacity(4), Vec::new());
        Ok(Search { settings, request, ties, domain_write_cap, filter, context, selected, oldest: None, why })
    }

    /// The new copies, the links selected for them, the end of the oldest window used, and the candidates.
    pub fn into_parts(self) -> (Chain, Vec<Hop>, Option<Nanos>, Vec<Considered>) {
        (new_copies(self.request, self.filter.used), self.selected, self.oldest, self.why)
    }

    /// Places the copies besides the first, group by group.
    ///
    /// # Errors
    /// [`Refusal`] if telemetry is missing, or no host is eligible.
    pub fn select_all(&mut self) -> Result<(), Refusal> {
        let placed = self.filter.used.len();
        let first =
            explain_chosen(self.request, &new_copies(self.request, self.filter.used.clone()), self.context);
        let checkpoint = self.context.view.checkpoint();
        let mut failure = None;
        for spread in spreads(self.request, self.settings.remote_racks, &self.filter)? {
            self.filter.used.truncate(placed);
            self.selected.clear();
            self.why.clone_from(&first);
            self.oldest = None;
            let mut failed = None;
            for &copies in &spread.groups {
                spread.close(&mut self.filter);
                let from = self.selected.len();
                failed = self.select(None, copies).err();
                if failed.is_some() {
                    break;
                }
                self.charge(from);
            }
            if failed.is_some() || self.settings.hysteresis == Hysteresis::All {
                self.context.view.rollback(checkpoint);
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

    /// Pseudocode 2: takes the best link below `domain` that can hold all `copies`, and continues below it. At the
    /// hosts of a rack, takes the best hosts, one copy each. If no host below a link can take the copies, tries the
    /// next best link.
    fn select(&mut self, domain: Option<DomainId>, copies: usize) -> Result<(), Failure> {
        let mut level = Level::default();
        self.rank(domain, &mut level);
        if let Some(domain) = domain.filter(|_| level.never_seen()) {
            // No counters exist below this level: the level above decides, then the hash.
            self.rank_unseen(domain, &mut level);
        }
        let (explained, limit) = (self.why.len(), self.context.explain.limit());
        let (mut remaining, mut failed) = (copies, None);
        while remaining > 0 {
            let Some((value, _, Reverse(candidate))) = level.pop_best() else {
                return Err(failed.unwrap_or_else(|| Failure::of(&level)));
            };
            let refused = match candidate {
                Candidate::Host(host) => self.filter.refuses(host),
                Candidate::Domain(domain) => self.filter.refuses_domain(domain, remaining),
            };
            let verdict = refused.map_or(Verdict::Chosen, Verdict::Refused);
            if limit > 0 && (verdict == Verdict::Chosen || self.why.len() - explained < limit) {
                self.consider(candidate, Some(value), verdict);
            }
            let before = (self.filter.used.len(), self.selected.len(), self.why.len());
            match candidate {
                _ if refused.is_some() => {}
                Candidate::Host(host) => {
                    self.filter.used.push(host);
                    self.selected.extend(self.link(candidate).map(link_hop));
                    remaining -= 1;
                }
                Candidate::Domain(domain) => {
                    self.selected.extend(self.link(candidate).map(link_hop));
                    match self.select(Some(domain), remaining) {
                        Ok(()) => {
                            let below = self.why.split_off(before.2);
                            self.list_outranked(&mut level, explained, limit);
                            self.why.extend(below);
                            return Ok(());
                        }
                        Err(error) => {
                            self.filter.used.truncate(before.0);
                            self.selected.truncate(before.1);
                            self.why.truncate(before.2);
                            if let Some(last) = self.why.last_mut().filter(|_| limit > 0) {
                                last.verdict = Verdict::Refused(Constraint::TooFew);
                            }
                            failed = failed.or(Some(error));
                        }
                    }
                }
            }
        }
        self.list_outranked(&mut level, explained, limit);
        Ok(())
    }

    /// Ranks the links of the next level by expected remaining capacity. A mesh has only host links.
    fn rank(&mut self, domain: Option<DomainId>, level: &mut Level) {
        let fabric = self.context.view.fabric();
        let children = fabric.children(domain);
        if children.len() == 0 {
            for host in domain.map_or(0..0, |domain| fabric.hosts(domain)).map(HostId) {
                self.rank_candidate(Candidate::Host(host), level);
            }
        }
        for child in children {
            match fabric.into_domain(child) {
                Some(_) => self.rank_candidate(Candidate::Domain(child), level),
                None => self.rank(Some(child), level),
            }
        }
    }

    fn rank_candidate(&mut self, candidate: Candidate, level: &mut Level) {
        let Some(link) = self.link(candidate) else { return };
        match self.context.view.expected_capacity(link) {
            Some(Load(left)) => {
                let ranked = self.rank_link(link, candidate, left);
                match candidate {
                    // A host known to be down is not an observation.
                    Candidate::Host(host) if !self.context.pool.is_up(host) => level.add_without_load(ranked),
                    _ => level.add(ranked),
                }
            }
            None => level.add_unseen(candidate, self.context.view.measured_until(link)),
        }
    }

    /// Ranks the links of a domain without counters below its own, by their capacities alone.
    fn rank_unseen(&mut self, domain: DomainId, level: &mut Level) {
        let fabric = self.context.view.fabric();
        let children = fabric.children(Some(domain));
        let hosts = if children.len() == 0 { fabric.hosts(domain) } else { 0..0 };
        let hosts = hosts.map(|host| Candidate::Host(HostId(host)));
        for candidate in children.map(Candidate::Domain).chain(hosts) {
            let Some(link) = self.link(candidate) else { continue };
            if self.context.view.expected_capacity(link).is_some() {
                continue;
            }
            let capacity = self.context.view.capacity(link).0;
            level.add_without_load(self.rank_link(link, candidate, capacity));
        }
    }

    /// Rank of a candidate behind a link with `left` bit/s left: by min(Cap - Rx, DiskWriteCap), then by hash. Under
    /// `best_fit`, the least excess over DiskWriteCap comes before the hash.
    fn rank_link(&self, link: ResourceId, candidate: Candidate, left: i64) -> Ranked {
        let value = left.min(self.write_cap(candidate));
        let hash = self.ties.rank(u64::from(link.0));
        let order = match self.settings.best_fit {
            true => {
                let excess = (left - value) as u64 / FIT_STEP;
                ((FITS - excess.min(FITS)) << FIT_HASH_BITS) | (hash >> (u64::BITS - FIT_HASH_BITS))
            }
            false => hash,
        };
        (value, order, Reverse(candidate))
    }

    /// Link into a candidate. On a pipe mesh, the pair from the writer.
    fn link(&self, candidate: Candidate) -> Option<ResourceId> {
        let fabric = self.context.view.fabric();
        match candidate {
            Candidate::Domain(domain) => fabric.into_domain(domain),
            Candidate::Host(host) if fabric.shape() == Shape::Pipe => {
                fabric.pair(self.request.writer.unwrap_or(self.filter.used[0]), host)
            }
            Candidate::Host(host) => fabric.ingress(host),
        }
    }

    /// True if the load of a host or of its rack is unknown.
    fn is_unseen(&self, host: HostId) -> bool {
        let view = &*self.context.view;
        let around = [Candidate::Host(host), Candidate::Domain(view.fabric().rack_of(host))];
        around.into_iter().filter_map(|at| self.link(at)).any(|link| view.measured(link).is_none())
    }

    /// DiskWriteCap in bit/s.
    fn write_cap(&self, candidate: Candidate) -> i64 {
        match candidate {
            Candidate::Domain(_) => self.domain_write_cap,
            Candidate::Host(host) => write_cap(self.settings, self.context.pool.write_rate_of(host)),
        }
    }

    /// Charges the block to the links selected after `from`, until the next report.
    fn charge(&mut self, from: usize) {
        let now = self.context.view.now();
        // If hosts have no counters, only the windows of their racks count.
        let view = &*self.context.view;
        for hop in self.selected[from..].iter().filter(|hop| view.measured(hop.resource).is_some()) {
            self.oldest = [self.oldest, view.window_end(hop.resource)].into_iter().flatten().min();
        }
        let hops = self.selected[from..].to_vec();
        self.context.view.add(&transfer(self.request, hops, None, Fade::AtNextWindow, now));
    }

    fn consider(&mut self, candidate: Candidate, value: Option<i64>, verdict: Verdict) {
        let link = self.link(candidate);
        let limit = value.and_then(|value| match value == self.write_cap(candidate) {
            true => Some(Limit::DiskWriteCap),
            false => link.map(Limit::Resource),
        });
        let sight = link.map(|link| sight(self.context.view, link));
        self.why.push(Considered {
            candidate,
            limit,
            value: value.map(Load),
            sight,
            objectives: None,
            verdict,
        });
    }

    /// Lists the best outranked links, then those with unknown load, up to `limit` candidates of the level
    /// in total.
    fn list_outranked(&mut self, level: &mut Level, explained: usize, limit: usize) {
        while self.why.len() - explained < limit {
            let Some((value, _, Reverse(candidate))) = level.pop_best() else { break };
            self.consider(candidate, Some(value), Verdict::Outranked);
        }
        if level.never_seen() {
            return; // The links with unknown load took part.
        }
        let left = limit.saturating_sub(self.why.len() - explained);
        for &candidate in level.unseen().iter().take(left) {
            self.consider(candidate, None, Verdict::Refused(Constraint::Unknown));
        }
    }
}
