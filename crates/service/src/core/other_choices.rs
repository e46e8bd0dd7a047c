//! Load on links if other choices had been made: if all compared decisions and moves had been Leeward's, or all the
//! default policy's. The difference between the traffic of both choices of a decision is added to what the links carry.
//! A transfer is assumed to last as long as its slowest link allowed when it was decided, and a task as long as its
//! decision.

use std::collections::BTreeMap;

use leeward_fabric::{Fabric, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::{Demand, Entry};
use leeward_placement::replicas;
use leeward_placement::tasks::{self, AppRequest};
use leeward_placement::{JobId, PathLoad};
use leeward_records::{Counts, DecisionDetails, DecisionId, Migration, MigrationState, PlacementSpec};

use super::{Addresses, Coordinator};

/// Largest number of decisions whose other choice is followed.
const MAX_FOLLOWED: usize = 20_000;
/// Largest number of links that the traffic of a followed decision crosses, summed over its transfers and both choices.
const MAX_LINKS: usize = 20_000;
/// Time after which a transfer without a known rate counts as ended.
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

/// What a coordinator counted since the last step of the history.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StepCounts {
    /// Numbers of decisions and moves.
    pub counts: Counts,
    /// Bits that each link would have carried besides, if all compared decisions had been Leeward's. Negative if fewer.
    pub with_leeward: BTreeMap<ResourceId, f64>,
    /// The same, if all had been the default policy's.
    pub without_leeward: BTreeMap<ResourceId, f64>,
    /// Numbers of decisions with and without another choice.
    pub compared: ComparedCounts,
}

impl OtherChoices {
    fn follow(&mut self, key: (DecisionId, Option<u32>), choices: Option<Choices>) {
        let links = |traffic: &[Traffic]| traffic.iter().map(|traffic| traffic.links.len()).sum::<usize>();
        let fits = |choices: &Choices| links(&choices.decided) + links(&choices.other) <= MAX_LINKS;
        match choices.filter(fits) {
            Some(choices) if self.followed.len() < MAX_FOLLOWED => {
                self.counts.compared += 1;
                self.followed.insert(key, choices);
            }
            _ => self.counts.uncompared += 1,
        }
    }

    /// Ends the traffic of a decision, and of the moves of its tasks.
    fn end(&mut self, id: DecisionId, now: Nanos) {
        for (_, choices) in self.followed.range_mut((id, None)..=(id, Some(u32::MAX))) {
            for traffic in choices.decided.iter_mut().chain(&mut choices.other) {
                traffic.until = Some(traffic.until.map_or(now, |until| until.min(now)));
            }
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
                    *sums.entry(link).or_default() += sign * bits;
                }
                traffic.retain(|traffic| traffic.until.is_none_or(|until| until > to));
            }
            !(choices.decided.is_empty() && choices.other.is_empty())
        });
        step
    }
}

/// Traffic of entries whose slowest flow has this rate.
fn traffic_of(fabric: &Fabric, entries: &[Entry], rate: Option<Load>, now: Nanos) -> Vec<Traffic> {
    let traffic = entries.iter().map(|entry| {
        let (rate, until) = match &entry.demand {
            Demand::Elastic { bytes, flows, .. } => {
                let rate = rate.map_or(0.0, |rate| rate.0.max(0) as f64 * f64::from(*flows));
                let seconds = (bytes.0 as f64 * 8.0 / rate.max(1.0)).min(LONGEST.as_secs_f64());
                (rate, Some(now.plus(Nanos((seconds * Nanos::SECOND.0 as f64) as u64))))
            }
            Demand::Stream { mean_bps, .. } | Demand::Envelope { mean_bps, .. } => (*mean_bps as f64, None),
        };
        let links = entry.hops.iter().filter(|hop| fabric.kind(hop.resource) != ResourceKind::Device);
        let links =
            links.map(|hop| (hop.resource, rate * hop.work / leeward_fabric::BITS_PER_BYTE)).collect();
        Traffic { links, from: now, until }
    });
    traffic.filter(|traffic| !traffic.links.is_empty()).collect()
}

/// Traffic of a request at its hosts.
fn entries_of(
    fabric: &Fabric,
    id: DecisionId,
    spec: &PlacementSpec,
    hosts: &[HostId],
    now: Nanos,
) -> Option<Vec<Entry>> {
    match spec {
        PlacementSpec::Replicas(spec) => {
            Some(replicas::traffic(fabric, &spec.request(fabric, id.0).ok()?, hosts, now))
        }
        PlacementSpec::Tasks(spec) => {
            Some(tasks::traffic(fabric, &spec.request(fabric, id, JobId::NONE), hosts, now))
        }
        PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => None,
    }
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

    /// Counts a rejected request.
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
        let choices = choices.and_then(|choices| {
            let [decided, other] = choices.map(|(hosts, load)| {
                let entries = entries_of(&fabric, id, spec, hosts, now)?;
                Some(traffic_of(&fabric, &entries, load.rate, now))
            });
            Some(Choices { by_default, decided: decided?, other: other? })
        });
        self.other_choices.follow((id, None), choices);
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
            MigrationState::Advised | MigrationState::Refused | MigrationState::Expired => return,
        };
        let key = (migration.decision, Some(migration.index));
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
            Some(traffic_of(fabric, &entries, None, self.now))
        };
        let (from, to) = (at(&migration.from)?, at(&migration.to)?);
        let (decided, other) = if by_default { (from, to) } else { (to, from) };
        Some(Choices { by_default, decided, other })
    }

    /// Ends the traffic of a decision's choices.
    pub(super) fn end_choices(&mut self, id: DecisionId) {
        self.other_choices.end(id, self.now);
    }

    /// What was counted since the last call, with the loads of the choices that were not made between two times.
    pub fn take_step(&mut self, from: Nanos, to: Nanos) -> StepCounts {
        let counts = std::mem::take(&mut self.counts);
        self.other_choices.step(from, to, counts)
    }
}
