//! Load on links if other choices had been made: if all compared decisions and moves had been Leeward's, or all the
//! default policy's. The difference between the traffic of both choices of a decision is added to what the links carry.
//! A transfer is assumed to last as long as its slowest link allowed when it was decided, and a task as long as its
//! decision.

use std::collections::BTreeMap;

use leeward_engine::Comparison;
use leeward_fabric::{Fabric, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::{Demand, Entry};
use leeward_placement::replicas;
use leeward_placement::tasks::{self, AppRequest};
use leeward_placement::{JobId, PathLoad};
use leeward_records::{Counts, DecisionDetails, DecisionId, Migration, MigrationState, PlacementSpec};

use super::{Addresses, Coordinator};

/// Largest number of decisions whose other choice is followed.
const MAX_FOLLOWED: usize = 20_000;
/// Largest number of links that the traffic of all followed decisions crosses, summed over their transfers and both
/// choices. A step adds each of them once, which takes a few milliseconds.
const MAX_LINKS: usize = 500_000;
/// Longest time of a transfer.
const LONGEST: Nanos = Nanos(3_600 * Nanos::SECOND.0);

/// Traffic on some links, from a time up to an end.
#[derive(Clone, PartialEq, Debug)]
struct Traffic {
    /// Links with their rates in bit/s.
    links: Vec<(ResourceId, f64)>,
    from: Nanos,
    /// End; `None` until the end of the decision.
    until: Option<Nanos>,
}

impl Traffic {
    /// Bits on each link between two times.
    fn bits(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (ResourceId, f64)> {
        let until = self.until.map_or(to, |until| until.min(to));
        let seconds = until.since(from.max(self.from)).as_secs_f64();
        self.links.iter().map(move |&(link, rate)| (link, rate * seconds))
    }
}

/// Both choices of a decision or move.
#[derive(Clone, PartialEq, Debug)]
struct Choices {
    by_default: bool,
    decided: Vec<Traffic>,
    other: Vec<Traffic>,
}

/// Traffic of the choices that were not made.
#[derive(Debug, Default)]
pub(super) struct OtherChoices {
    /// Choices of decisions, and of moves by the index of the task.
    followed: BTreeMap<(DecisionId, Option<u32>), Choices>,
    /// Number of links that their traffic crosses.
    links: usize,
    counts: ComparedCounts,
}

/// Numbers of decisions with and without another choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ComparedCounts {
    /// Decisions and moves whose other choice is followed.
    pub compared: u64,
    /// Decisions about replicas and tasks whose other choice is not.
    pub uncompared: u64,
}

/// Sums of a coordinator over a step of the history.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepCounts {
    /// Numbers of decisions and moves.
    pub counts: Counts,
    /// Bits that each link would have carried besides, in order of ids up to the last with a difference, if all compared decisions had been Leeward's. Negative if fewer.
    pub with_leeward: Vec<f64>,
    /// The same, if all had been the default policy's.
    pub without_leeward: Vec<f64>,
    /// Numbers of decisions with and without another choice.
    pub compared: ComparedCounts,
}

impl Choices {
    /// Ends the traffic that has not ended before.
    fn end(&mut self, now: Nanos) {
        for traffic in self.decided.iter_mut().chain(&mut self.other) {
            traffic.until = Some(traffic.until.map_or(now, |until| until.min(now)));
        }
    }

    /// Number of links that the traffic crosses.
    fn links(&self) -> usize {
        self.decided.iter().chain(&self.other).map(|traffic| traffic.links.len()).sum()
    }
}

/// The choices of a comparison: hosts with the load on their links. `None` without a comparison, or if the other policy
/// refused the request.
pub(super) fn choices<'a>(
    decided: &'a [HostId],
    comparison: Option<&'a Comparison<Vec<HostId>>>,
) -> Option<[(&'a [HostId], &'a PathLoad); 2]> {
    let comparison = comparison?;
    let (other, load) = comparison.other.as_ref().ok()?;
    Some([(decided, &comparison.committed), (other, load)])
}

impl OtherChoices {
    fn follow(&mut self, key: (DecisionId, Option<u32>), choices: Option<Choices>) {
        let fits = |choices: &Choices| self.links + choices.links() <= MAX_LINKS;
        match choices.filter(fits) {
            Some(choices) if self.followed.len() < MAX_FOLLOWED => {
                self.links += choices.links();
                match self.followed.insert(key, choices) {
                    None => self.counts.compared += 1,
                    Some(before) => self.links -= before.links(),
                }
            }
            _ => self.counts.uncompared += 1,
        }
    }

    /// Ends the traffic of a decision, and of the moves of its tasks.
    fn end(&mut self, id: DecisionId, now: Nanos) {
        for (_, choices) in self.followed.range_mut((id, None)..=(id, Some(u32::MAX))) {
            choices.end(now);
        }
    }

    /// Ends the traffic of a decision, and not that of the moves of its tasks.
    fn end_decision(&mut self, id: DecisionId, now: Nanos) {
        if let Some(choices) = self.followed.get_mut(&(id, None)) {
            choices.end(now);
        }
    }

    /// Differences between two times, in bits. Forgets the traffic that ended before `to`.
    fn step(&mut self, from: Nanos, to: Nanos, counts: Counts) -> StepCounts {
        let mut step =
            StepCounts { counts, compared: std::mem::take(&mut self.counts), ..Default::default() };
        self.followed.retain(|_, choices| {
            let sums = if choices.by_default { &mut step.with_leeward } else { &mut step.without_leeward };
            for (traffic, sign) in [(&mut choices.decided, -1.0), (&mut choices.other, 1.0)] {
                for (link, bits) in traffic.iter().flat_map(|traffic| traffic.bits(from, to)) {
                    if sums.len() <= link.index() {
                        sums.resize(link.index() + 1, 0.0);
                    }
                    sums[link.index()] += sign * bits;
                }
                traffic.retain(|traffic| traffic.until.is_none_or(|until| until > to));
            }
            !(choices.decided.is_empty() && choices.other.is_empty())
        });
        self.links = self.followed.values().map(Choices::links).sum();
        step
    }
}

/// Traffic of entries whose slowest flow has this rate; `None` if a transfer has no known rate.
fn traffic_of(fabric: &Fabric, entries: &[Entry], rate: Option<Load>, now: Nanos) -> Option<Vec<Traffic>> {
    let mut traffic = Vec::with_capacity(entries.len());
    for entry in entries {
        let (rate, until) = match &entry.demand {
            Demand::Elastic { bytes, flows, .. } => {
                let rate = rate.filter(|rate| rate.0 > 0)?.0 as f64 * f64::from(*flows);
                let seconds = (bytes.0 as f64 * 8.0 / rate).min(LONGEST.as_secs_f64());
                (rate, Some(now.plus(Nanos((seconds * Nanos::SECOND.0 as f64) as u64))))
            }
            Demand::Stream { mean_bps, .. } | Demand::Envelope { mean_bps, .. } => (*mean_bps as f64, None),
        };
        let links = entry.hops.iter().filter(|hop| fabric.kind(hop.resource) != ResourceKind::Device);
        let links: Vec<_> =
            links.map(|hop| (hop.resource, rate * hop.work / leeward_fabric::BITS_PER_BYTE)).collect();
        if !links.is_empty() {
            traffic.push(Traffic { links, from: now, until });
        }
    }
    Some(traffic)
}

/// Traffic of a request at each of two choices of hosts. `None` for a guarantee, or if the traffic has no known rate.
fn both_traffics(
    fabric: &Fabric,
    id: DecisionId,
    spec: &PlacementSpec,
    choices: [(&[HostId], &PathLoad); 2],
    now: Nanos,
) -> Option<[Vec<Traffic>; 2]> {
    let [decided, other] = match spec {
        PlacementSpec::Replicas(spec) => {
            let request = spec.request(fabric, id.0).ok()?;
            choices.map(|(hosts, load)| (replicas::traffic(fabric, &request, hosts, now), load.rate))
        }
        PlacementSpec::Tasks(spec) => {
            let request = spec.request(fabric, id, JobId::NONE);
            choices.map(|(hosts, load)| (tasks::traffic(fabric, &request, hosts, now), load.rate))
        }
        PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => return None,
    };
    let traffic = |(entries, rate): (Vec<Entry>, _)| traffic_of(fabric, &entries, rate, now);
    Some([traffic(decided)?, traffic(other)?])
}

impl<A: Addresses> Coordinator<A> {
    /// Counts a decision, with its comparison if that is known.
    pub(super) fn count_decision(&mut self, details: &DecisionDetails) {
        self.counts.of(&details.spec).count(details);
    }

    /// Counts the comparison of a decision that was counted before.
    pub(super) fn count_effect(&mut self, details: &DecisionDetails) {
        self.counts.of(&details.spec).count_effect(details);
    }

    /// Counts a refused request.
    pub(super) fn count_refusal(&mut self, spec: &PlacementSpec) {
        self.counts.of(spec).refused += 1;
    }

    /// Follows both choices of a decision about replicas or tasks: hosts with the load on their links. `None` if the
    /// other choice is unknown.
    pub(super) fn follow_choices(
        &mut self,
        id: DecisionId,
        spec: &PlacementSpec,
        by_default: bool,
        choices: Option<[(&[HostId], &PathLoad); 2]>,
    ) {
        if matches!(spec, PlacementSpec::Workload(_) | PlacementSpec::Volumes(_)) {
            return;
        }
        let (fabric, now) = (self.engine.ledger().fabric().clone(), self.now);
        let traffics = choices.and_then(|choices| both_traffics(&fabric, id, spec, choices, now));
        let choices = traffics.map(|[decided, other]| Choices { by_default, decided, other });
        self.other_choices.follow((id, None), choices);
    }

    /// Counts a decision whose other choice stays unknown, unless its record has a comparison.
    pub(super) fn follow_none_unless_compared(&mut self, id: DecisionId) {
        if self.records.get(id).is_some_and(|record| record.details.beside.is_none()) {
            self.follow_none();
        }
    }

    /// Counts a decision whose other choice stays unknown.
    pub(super) fn follow_none(&mut self) {
        self.other_choices.counts.uncompared += 1;
    }

    /// Counts a move that reached a state, and follows its task at both hosts.
    pub(super) fn count_move(&mut self, migration: &Migration) {
        self.counts.count_move(migration.state);
        let by_default = match migration.state {
            MigrationState::Done => false,
            MigrationState::Considered => true,
            MigrationState::Advised
            | MigrationState::Taken
            | MigrationState::Refused
            | MigrationState::Failed
            | MigrationState::Expired => return,
        };
        let key = (migration.decision, Some(migration.index));
        let decision = self.other_choices.followed.get(&(migration.decision, None));
        if by_default && decision.is_some_and(|choices| choices.by_default) {
            // Leeward would have placed the task elsewhere, so that it would not have to move.
            return;
        }
        // The task is no longer where its decision put it.
        self.other_choices.end_decision(migration.decision, self.now);
        let choices = self.choices_of_move(migration, by_default);
        match self.other_choices.followed.get_mut(&key).filter(|known| known.by_default == by_default) {
            // The task moved before: without Leeward, it would still be at its first host.
            Some(known) if !by_default => {
                known.decided = choices.map_or_else(Vec::new, |choices| choices.decided);
            }
            _ => self.other_choices.follow(key, choices),
        }
    }

    fn choices_of_move(&self, migration: &Migration, by_default: bool) -> Option<Choices> {
        let record = self.records.get(migration.decision)?;
        let PlacementSpec::Tasks(spec) = &record.details.spec else { return None };
        let fabric = self.engine.ledger().fabric();
        let mut request: AppRequest = spec.request(fabric, migration.decision, JobId::NONE);
        let task = *request.tasks.get(migration.index as usize)?;
        (request.tasks, request.transfers) = (vec![task], Vec::new());
        let at = |host: &str| {
            let entries = tasks::traffic(fabric, &request, &[fabric.host(host)?], self.now);
            traffic_of(fabric, &entries, None, self.now)
        };
        let (from, to) = (at(&migration.from)?, at(&migration.to)?);
        let (decided, other) = if by_default { (from, to) } else { (to, from) };
        Some(Choices { by_default, decided, other })
    }

    /// Ends the traffic of a decision's choices.
    pub(super) fn end_choices(&mut self, id: DecisionId) {
        self.other_choices.end(id, self.now);
    }

    /// Numbers of decisions and moves since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Sums since the last call, with the loads of the choices that were not made between two times.
    pub fn take_step(&mut self, from: Nanos, to: Nanos) -> StepCounts {
        let counts = self.take_counts();
        self.other_choices.step(from, to, counts)
    }
}
