//! `sinbad`: each copy below the link with the most expected capacity (Chowdhury, Kandula, Stoica: "Leveraging endpoint
//! flexibility in data-intensive clusters", SIGCOMM 2013; pseudocodes 1 and 2).
//!
//! Small blocks go to the default policy. For the others, links are ranked level by level down the tree by min(Cap -
//! Rx, DiskWriteCap); what is chosen is charged with the block until the next report, so that blocks between two
//! reports do not all go to one place. With a decision interval q, blocks wait and are decided together.
//!
//! Where the paper is silent or contradicts itself: equal links are ranked by a seeded hash (many are equal, all that
//! the disk limits). Pseudocode 2 puts every remote copy in a rack of its own, the text keeps two of three in one rack;
//! `remote_racks` says which, 1 as in the text by default, 2 to the letter of the pseudocode.

use std::cmp::Reverse;

use leeward_fabric::{
    BITS_PER_BYTE, Bandwidth, Bytes, DomainId, Hop, HostId, Load, Nanos, ResourceId, Shape,
};
use leeward_ledger::Fade;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first::{Near, attempts, filter, first, no_candidate};
use super::level::Level;
use super::{Chain, ReplicaRequest, Uniform, UniformSettings, chain_hops, groups, settings, transfer};
use crate::constraints::{Constraint, Filter};
use crate::ties::{Draws, Ties};
use crate::{Basis, Candidate, Considered, Context, Decision, Policy, Refusal, Registration, Verdict};

/// Settings of `sinbad`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SinbadSettings {
    /// Blocks smaller than this go to the default policy (pseudocode 1, line 2). Default 256MiB: full blocks only.
    pub threshold: Bytes,
    /// q: how long blocks wait to be decided together. Default 0s, at once.
    pub interval: Nanos,
    /// Over how many racks the copies besides the first are spread. Default 1 as in the paper's text; 2 is the
    /// letter of pseudocode 2 for three copies.
    pub remote_racks: u8,
    /// Which links a chosen block is charged to until the next report.
    pub hysteresis: Hysteresis,
    /// DiskWriteCap: a copy cannot be written faster than this. Default: the fastest device of the cluster, and each
    /// host's own once hosts are ranked.
    pub disk_write_cap: Option<Bandwidth>,
    /// What to do when no candidate's load can be seen.
    pub without_telemetry: WithoutTelemetry,
}

/// Which links a chosen block is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hysteresis {
    /// The link chosen at each level (pseudocode 2, line 23).
    #[default]
    Selected,
    /// Every link of the transfer (the text of section 6.2).
    All,
}

/// What to do when no candidate's load can be seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WithoutTelemetry {
    /// Refuse, and say so.
    #[default]
    Refuse,
    /// Place as the default policy does.
    Default,
}

impl Default for SinbadSettings {
    fn default() -> Self {
        SinbadSettings {
            threshold: Bytes(256 << 20),
            interval: Nanos(0),
            remote_racks: 1,
            hysteresis: Hysteresis::Selected,
            disk_write_cap: None,
            without_telemetry: WithoutTelemetry::Refuse,
        }
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Sinbad {
    settings: SinbadSettings,
    default: Uniform,
}

pub(super) const REGISTRATION: Registration<ReplicaRequest> = Registration {
    name: "sinbad",
    summary: "each copy below the link with the most expected capacity, charged until the next report",
    source: "Sinbad (SIGCOMM 2013), pseudocodes 1 and 2",
    schema: || schemars::schema_for!(SinbadSettings).to_value(),
    make: |text| Ok(Box::new(Sinbad::new(settings("sinbad", text)?))),
};

/// One block on its way down the tree.
struct Search<'s, 'f, 'c, 'a, 'l> {
    settings: &'s SinbadSettings,
    request: &'s ReplicaRequest,
    ties: Ties,
    /// What the fastest device of the cluster writes, at most, in bit/s.
    domain_write_cap: i64,
    filter: Filter<'f>,
    context: &'c mut Context<'a, 'l>,
    /// The links chosen so far.
    selected: Vec<Hop>,
    oldest: Option<Nanos>,
    why: Vec<Considered>,
}

/// DiskWriteCap in bit/s, of what writes at `own` rate.
fn write_cap(settings: &SinbadSettings, own: Option<Bandwidth>) -> i64 {
    let caps = [settings.disk_write_cap, own].into_iter().flatten();
    caps.map(|cap| cap.as_load().0).min().unwrap_or(i64::MAX)
}

fn link_hop(resource: ResourceId) -> Hop {
    Hop { resource, work: BITS_PER_BYTE }
}

impl Sinbad {
    /// The policy with these settings.
    pub fn new(settings: SinbadSettings) -> Sinbad {
        let default = Uniform::new(UniformSettings { remote_racks: settings.remote_racks });
        Sinbad { settings, default }
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        if request.size < self.settings.threshold {
            return self.place_by_default(request, context);
        }
        let fabric = context.view.fabric();
        let mut filter = filter(context.pool, request);
        first(request, &mut filter, &mut Draws::new(context.seed, request.id))?;
        let settings = &self.settings;
        let (selected, why) = (Vec::with_capacity(4), Vec::new());
        let ties = Ties::new(context.seed, request.id);
        let domain_write_cap = write_cap(settings, context.pool.write_rate());
        let mut search = Search {
            settings,
            request,
            ties,
            domain_write_cap,
            filter,
            context,
            selected,
            oldest: None,
            why,
        };
        match search.select_all(groups(request, settings.remote_racks, fabric.shape())) {
            Ok(()) => {}
            Err(Refusal::NoTelemetry { .. }) if settings.without_telemetry == WithoutTelemetry::Default => {
                return self.place_by_default(request, context);
            }
            Err(refusal) => return Err(refusal),
        }
        let Search { filter, selected, oldest, why, .. } = search;
        let hops = match settings.hysteresis {
            Hysteresis::Selected => selected,
            Hysteresis::All => chain_hops(fabric, request, &filter.used),
        };
        let cap = settings.disk_write_cap.or(context.pool.write_rate());
        Ok(Decision {
            change: transfer(request, hops, cap, Fade::AtNextWindow, context.view.now()),
            basis: Basis { epoch: context.view.epoch(), oldest, policy: self.name() },
            why,
            choice: filter.used,
        })
    }

    /// Blocks that are the default policy's. Under `hysteresis: selected` no link was selected, so none is charged.
    fn place_by_default(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let copies = self.default.choose(request, context)?;
        let hops = match self.settings.hysteresis {
            Hysteresis::Selected => Vec::new(),
            Hysteresis::All => chain_hops(context.pool.fabric(), request, &copies),
        };
        Ok(Decision {
            change: transfer(request, hops, None, Fade::AtNextWindow, context.view.now()),
            basis: Basis { epoch: context.view.epoch(), oldest: None, policy: self.name() },
            why: Vec::new(),
            choice: copies,
        })
    }
}

impl Policy<ReplicaRequest> for Sinbad {
    fn name(&self) -> &'static str {
        "sinbad"
    }

    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let mut answers = Vec::with_capacity(batch.len());
        for (i, request) in batch.iter().enumerate() {
            let answer = self.place_one(request, context);
            // Within a request the links chosen are charged as they are chosen; here for the rest of the batch.
            if self.settings.hysteresis == Hysteresis::All && i + 1 < batch.len() {
                for entry in answer.iter().flat_map(|decision| &decision.change.add) {
                    context.view.add(entry);
                }
            }
            answers.push(answer);
        }
        answers
    }

    fn waits(&self, request: &ReplicaRequest) -> Nanos {
        if request.size < self.settings.threshold { Nanos(0) } else { self.settings.interval }
    }
}

impl Search<'_, '_, '_, '_, '_> {
    /// Places the copies besides the first, group by group.
    fn select_all(&mut self, groups: Vec<usize>) -> Result<(), Refusal> {
        let fabric = self.context.view.fabric();
        let fault_domain = |host: HostId| fabric.fault_domain(fabric.rack_of(host));
        let first = fault_domain(self.filter.used[0]);
        let mut refusal = None;
        for (groups, near) in attempts(self.request, groups) {
            self.filter.used.truncate(1);
            self.filter.closed.clear();
            self.filter.closed.extend((near != Near::First).then_some(first));
            self.selected.clear();
            self.why.clear();
            let mut failed = None;
            for copies in groups {
                let charged = self.selected.len();
                failed = self.select(None, copies).err();
                if failed.is_some() {
                    break;
                }
                self.charge(charged);
                let last = fault_domain(self.filter.used[self.filter.used.len() - 1]);
                self.filter.closed.extend((near == Near::No).then_some(last));
            }
            match failed {
                None => return Ok(()),
                Some(failed) => refusal = refusal.or(Some(failed)),
            }
        }
        Err(refusal.unwrap_or_else(|| no_candidate(&self.filter)))
    }

    /// Pseudocode 2: below `domain`, the best link that can take all `copies`, and on below it; at the hosts of a rack,
    /// the best of them, one copy each. Where it does not go on below a link, the next best is tried.
    fn select(&mut self, domain: Option<DomainId>, copies: usize) -> Result<(), Refusal> {
        let mut level = Level::default();
        self.rank(domain, &mut level);
        if level.never_seen() && domain.is_some() {
            // There are no counters this far down: what is above decided, and the hash does the rest.
            self.rank_unseen(domain, &mut level);
        }
        let (explained, limit) = (self.why.len(), self.context.explain.limit());
        let (mut left, mut failed) = (copies, None);
        while left > 0 {
            let Some((value, _, Reverse(candidate))) = level.best() else {
                return Err(failed.unwrap_or_else(|| self.nothing(&level)));
            };
            let refused = match candidate {
                Candidate::Host(host) => self.filter.refuses(host),
                Candidate::Domain(domain) => self.filter.refuses_domain(domain, left),
            };
            let verdict = refused.map_or(Verdict::Chosen, Verdict::Refused);
            if limit > 0 && (verdict == Verdict::Chosen || self.why.len() - explained < limit) {
                self.consider(candidate, value, verdict);
            }
            let before = (self.filter.used.len(), self.selected.len(), self.why.len());
            match candidate {
                _ if refused.is_some() => {}
                Candidate::Host(host) => {
                    self.filter.used.push(host);
                    self.selected.extend(self.link(candidate).map(link_hop));
                    left -= 1;
                }
                Candidate::Domain(domain) => {
                    self.selected.extend(self.link(candidate).map(link_hop));
                    match self.select(Some(domain), left) {
                        Ok(()) => {
                            let below = self.why.split_off(before.2);
                            self.outranked(&mut level, explained, limit);
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
        self.outranked(&mut level, explained, limit);
        Ok(())
    }

    /// Lists the links of the next level with what each is expected to have left. A mesh has none but those of hosts.
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
                let value = left.min(self.write_cap(candidate));
                let tie = self.ties.rank(u64::from(link.0));
                level.add((value, tie, Reverse(candidate)));
            }
            None => level.add_unseen(self.context.view.measured_until(link)),
        }
    }

    /// Lists the hosts of a rack that has no counters below its own, all alike but for their devices.
    fn rank_unseen(&mut self, domain: Option<DomainId>, level: &mut Level) {
        let fabric = self.context.view.fabric();
        for host in domain.map_or(0..0, |domain| fabric.hosts(domain)).map(HostId) {
            let candidate = Candidate::Host(host);
            let Some(link) = self.link(candidate) else { continue };
            let value = self.context.view.capacity(link).0.min(self.write_cap(candidate));
            level.add_blind((value, self.ties.rank(u64::from(link.0)), Reverse(candidate)));
        }
    }

    /// The link into a candidate. On a pipe mesh, the pair from the writer.
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

    /// DiskWriteCap in bit/s.
    fn write_cap(&self, candidate: Candidate) -> i64 {
        match candidate {
            Candidate::Domain(_) => self.domain_write_cap,
            Candidate::Host(host) => write_cap(self.settings, self.context.pool.write_rate_of(host)),
        }
    }

    /// Charges the links selected since `from` with the block, until the next report.
    fn charge(&mut self, from: usize) {
        let now = self.context.view.now();
        for hop in &self.selected[from..] {
            let seen = self.context.view.measured_until(hop.resource);
            self.oldest = Some(self.oldest.map_or(seen, |oldest| oldest.min(seen)));
        }
        if self.settings.hysteresis == Hysteresis::Selected {
            let change =
                transfer(self.request, self.selected[from..].to_vec(), None, Fade::AtNextWindow, now);
            change.add.iter().for_each(|entry| self.context.view.add(entry));
        }
    }

    fn consider(&mut self, candidate: Candidate, value: i64, verdict: Verdict) {
        let (limit, value) = (self.link(candidate), Some(Load(value)));
        self.why.push(Considered { candidate, limit, value, verdict });
    }

    /// Notes the best of those not chosen, up to `limit` candidates of the level in all.
    fn outranked(&mut self, level: &mut Level, explained: usize, limit: usize) {
        while self.why.len() - explained < limit {
            let Some((value, _, Reverse(candidate))) = level.best() else { break };
            self.consider(candidate, value, Verdict::Outranked);
        }
    }

    /// Why no candidate of a level was chosen: none was seen, or none of those seen may.
    fn nothing(&self, level: &Level) -> Refusal {
        match (level.unseen(), no_candidate(&self.filter)) {
            (Some((_, newest)), _) if level.seen() == 0 => {
                Refusal::NoTelemetry { newest: (newest > Nanos(0)).then_some(newest) }
            }
            (Some((count, _)), Refusal::NoCandidate { mut by_constraint }) => {
                by_constraint.push((Constraint::Unknown, count));
                Refusal::NoCandidate { by_constraint }
            }
            (_, refusal) => refusal,
        }
    }
}
