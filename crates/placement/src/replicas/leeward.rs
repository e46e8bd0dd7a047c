//! `leeward`: the whole chain of a block at once, by all that the ledger knows.
//!
//! Each rack is ranked by the rate that the block would get: the least of what is left on the links out of the
//! writer, on the links into the rack, on the link into its best host and on that host's disk. What is left comes from the
//! ledger, so it counts telemetry and every transfer that was placed and is not seen yet, on links and disks alike,
//! for as long as it lasts. More than `headroom` times what the disk can write is worth nothing, and rates are
//! compared in coarse steps, so that most racks are equal most of the time; among equals the emptier wins, then the
//! class of uplink (as in `ccp`), then a seeded hash. Hosts of the rack are ranked in the same way.
//!
//! What differs from the papers: Sinbad ranks links into racks only, forgets what it placed at the next report, and
//! looks at full blocks only; CCP looks at no load.

use std::cmp::Reverse;

use leeward_fabric::{DomainId, HostId, Load, Nanos};
use leeward_ledger::Fade;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::first::{chosen, filter, first, no_candidate};
use super::level::{Failure, Level};
use super::sinbad::WithoutTelemetry;
use super::spread::spreads;
use super::survey::Survey;
use super::uplink::{Guideline, UplinkClass};
use super::{Chain, ReplicaRequest, Uniform, UniformSettings, setting_error, settings, transfers};
use crate::constraints::Filter;
use crate::decision::sight;
use crate::ties::{Draws, Ties};
use crate::{
    Basis, Candidate, Considered, Context, Decision, Limit, Note, Policy, Refusal, Registration, Verdict,
};

/// Steps of rate up to the rate of a disk.
const STEPS: f64 = 8.0;
/// Fills that differ by less than this share of the mean are equal.
const EVEN: f64 = 0.05;
/// Fills count as equal beyond so many steps from the mean.
const MOST_STEPS: i64 = 1000;

/// Settings of `leeward`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeewardSettings {
    /// How many times the rate of a disk is worth having on the way to it, because the rest of the network may
    /// become busier while the block is written. Default 2.
    pub headroom: f64,
    /// How many racks are looked at for each block, where the cluster has more. Default 500.
    pub sample: u32,
    /// Over how many racks the copies besides the first are spread. Default 1.
    #[serde(deserialize_with = "super::remote_racks")]
    #[schemars(range(min = 1))]
    pub remote_racks: u8,
    /// What to do when no candidate's load can be seen.
    pub without_telemetry: WithoutTelemetry,
}

impl Default for LeewardSettings {
    fn default() -> Self {
        LeewardSettings {
            headroom: 2.0,
            sample: 500,
            remote_racks: 1,
            without_telemetry: WithoutTelemetry::Refuse,
        }
    }
}

/// The policy.
#[derive(Clone, Debug)]
pub struct Leeward {
    settings: LeewardSettings,
    default: Uniform,
}

pub(super) const REGISTRATION: Registration<ReplicaRequest> = Registration {
    name: "leeward",
    summary: "the best rate along the whole chain; among equals the emptier, then the larger uplink",
    source: "this project; unites Sinbad, CCP and what the ledger knows of placed work",
    schema: || schemars::schema_for!(LeewardSettings).to_value(),
    make: |text| {
        let read: LeewardSettings = settings("leeward", text)?;
        if !(1.0..=1000.0).contains(&read.headroom) {
            return Err(setting_error("leeward", "headroom", "expected a factor from 1 to 1000"));
        }
        if read.sample == 0 {
            return Err(setting_error("leeward", "sample", "0: expected at least one rack"));
        }
        Ok(Box::new(Leeward::new(read)))
    },
};

/// One block to be placed.
struct Search<'s, 'c, 'a, 'l> {
    request: &'s ReplicaRequest,
    context: &'c Context<'a, 'l>,
    filter: Filter<'s>,
    ties: Ties,
    guideline: Option<Guideline>,
    survey: Survey<'c, 'l>,
    /// How full the hosts are in the mean.
    mean_fill: f64,
    /// How many racks are looked at.
    sample: usize,
    /// The rate of the fastest disk, and what of it is worth having, in bit/s.
    disk: f64,
    worth: f64,
    why: Vec<Considered>,
    oldest: Option<Nanos>,
}

impl Leeward {
    /// The policy with these settings.
    pub fn new(settings: LeewardSettings) -> Leeward {
        let default = Uniform::new(UniformSettings { remote_racks: settings.remote_racks });
        Leeward { settings, default }
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        guideline: Option<Guideline>,
        context: &Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let fabric = context.pool.fabric();
        let mut filter = filter(context.pool, request);
        let writer = first(request, &mut filter, &mut Draws::new(context.seed, request.id))?;
        let host = request.writer.unwrap_or(writer);
        let nic = fabric.egress(host).map(|link| context.view.capacity(link).0 as f64);
        let disk = context.pool.write_rate().map(|rate| rate.as_load().0 as f64);
        let disk = disk.into_iter().chain(nic).fold(f64::INFINITY, f64::min).clamp(1.0, 1e18);
        let mut search = Search {
            request,
            context,
            filter,
            ties: Ties::new(context.seed, request.id),
            guideline,
            survey: Survey::new(context.view, host, request.id),
            mean_fill: context.pool.mean_fill(),
            sample: self.settings.sample as usize,
            disk,
            worth: self.settings.headroom * disk,
            why: Vec::new(),
            oldest: None,
        };
        let mut note = None;
        match search.place(self.settings.remote_racks) {
            Ok(()) => {}
            Err(Refusal::NoTelemetry { .. })
                if self.settings.without_telemetry == WithoutTelemetry::Default =>
            {
                note = Some(Note::NoTelemetry);
                search.filter.used = self.default.choose(request, context)?;
                search.why = chosen(&search.filter.used, context);
                search.oldest = None;
            }
            Err(refusal) => return Err(refusal),
        }
        let Search { filter, why, oldest, .. } = search;
        let (cap, now) = (context.pool.write_rate(), context.view.now());
        Ok(Decision {
            change: transfers(fabric, request, &filter.used, cap, Fade::WithEstimator, now),
            basis: Basis { epoch: context.view.epoch(), oldest, policy: self.name(), note },
            why,
            choice: filter.used,
        })
    }
}

impl Policy<ReplicaRequest> for Leeward {
    fn name(&self) -> &'static str {
        "leeward"
    }

    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let guideline = Guideline::of(None, context.pool, context.view);
        let mut answers = Vec::with_capacity(batch.len());
        for (at, request) in batch.iter().enumerate() {
            let answer = self.place_one(request, guideline, context);
            if at + 1 < batch.len() {
                let entries = answer.iter().flat_map(|decision| &decision.change.add);
                entries.for_each(|entry| context.view.add(entry));
            }
            answers.push(answer);
        }
        answers
    }
}

impl Search<'_, '_, '_, '_> {
    /// Places the copies besides the first.
    fn place(&mut self, remote_racks: u8) -> Result<(), Refusal> {
        let shape = self.context.view.fabric().shape();
        let first = chosen(&self.filter.used, self.context);
        let mut failure = None;
        for spread in spreads(self.request, remote_racks, shape)? {
            self.filter.used.truncate(1);
            self.why.clone_from(&first);
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
            _ => no_candidate(&self.filter),
        })
    }

    /// Places copies on the best hosts of the best rack that takes them all: of a sample, or if none of these does, of
    /// the rest.
    fn place_group(&mut self, copies: usize) -> Result<(), Failure> {
        let fabric = self.context.view.fabric();
        let racks = fabric.rack_count();
        let (first, stride) = self.tour(racks);
        let sample = self.sample.min(racks);
        let mut failure = Failure::Nobody;
        for part in [0..sample, sample..racks].into_iter().filter(|part| !part.is_empty()) {
            let mut level = Level::default();
            for step in part {
                let rack = DomainId(((first + step * stride) % racks) as u32);
                self.rank(Candidate::Domain(rack), &mut level);
            }
            if let Some(Candidate::Domain(rack)) = self.take(&mut level, copies) {
                return self.place_in(rack, copies);
            }
            failure = Failure::of(&level);
        }
        Err(failure)
    }

    /// Where to begin among so many racks and how far to go each time, so that all are met and neighbours seldom.
    fn tour(&self, racks: usize) -> (usize, usize) {
        let first = self.ties.rank(self.filter.used.len() as u64) % racks as u64;
        let golden = (racks as f64 * 0.618) as usize;
        let coprime = |stride: &usize| gcd(*stride, racks) == 1;
        (first as usize, (golden.max(1)..).find(coprime).unwrap_or(1))
    }

    /// Places copies on the best hosts of a rack.
    fn place_in(&mut self, rack: DomainId, copies: usize) -> Result<(), Failure> {
        let mut hosts = Level::default();
        for host in self.context.view.fabric().hosts(rack).map(HostId) {
            self.rank(Candidate::Host(host), &mut hosts);
        }
        for _ in 0..copies {
            let taken = self.take(&mut hosts, copies);
            let Some(Candidate::Host(host)) = taken else { return Err(Failure::Nobody) };
            self.filter.used.push(host);
        }
        Ok(())
    }

    /// Takes the best candidate that may have `copies`, and explains it and those it outranks.
    fn take(&mut self, level: &mut Level, copies: usize) -> Option<Candidate> {
        let limit = self.context.explain.limit();
        let (mut explained, mut taken) = (0, None);
        while let Some((_, _, Reverse(candidate))) = level.best() {
            let refused = match candidate {
                Candidate::Domain(rack) => self.filter.refuses_domain(rack, copies),
                Candidate::Host(host) => self.filter.refuses(host),
            };
            let verdict = refused.map_or(Verdict::Chosen, Verdict::Refused);
            if limit > 0 && (verdict == Verdict::Chosen || explained < limit) {
                self.consider(candidate, verdict);
                explained += 1;
            }
            if refused.is_none() {
                taken = Some(candidate);
                break;
            }
        }
        taken
    }

    fn consider(&mut self, candidate: Candidate, verdict: Verdict) {
        let (rate, limit) = self.survey.rate(candidate);
        let link = self.survey.link(candidate);
        self.why.push(Considered {
            candidate,
            limit: limit.map(Limit::Resource),
            value: Some(Load(rate.min(1e18) as i64)),
            sight: link.map(|link| sight(self.context.view, link)),
            verdict,
        });
    }

    /// Puts a candidate in its place. A rack whose links cannot be seen has none.
    fn rank(&mut self, candidate: Candidate, level: &mut Level) {
        if let (Candidate::Domain(_), Some(link)) = (candidate, self.survey.link(candidate)) {
            if self.context.view.measured(link).is_none() {
                return level.add_unseen(self.context.view.measured_until(link));
            }
            let seen = self.context.view.measured_until(link);
            self.oldest = Some(self.oldest.map_or(seen, |oldest| oldest.min(seen)));
        }
        let (rate, _) = self.survey.rate(candidate);
        let steps = (rate.min(self.worth) / self.disk * STEPS) as i64;
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
        level.add((score, self.ties.rank(thing), Reverse(candidate)));
    }

    /// How much fuller than the mean, in steps.
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
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
