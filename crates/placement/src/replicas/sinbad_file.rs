//! Policy `sinbad-file`: OPT' of Sinbad section 6.3. Blocks wait for a decision interval. The policy then serves the
//! files with the fewest remaining blocks first, so that nearly complete files end early. `sinbad` places each block;
//! with an interval of zero nothing waits, and both policies are the same.
//!
//! A job ends with its last writer. With `makespan`, the policy serves whole jobs in the order of their longest writers,
//! and in a job the longest writer first, which then gets the best link. The paper names this as a possible extension
//! (section 8), without an algorithm.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use leeward_fabric::Nanos;
use leeward_registry::{Registration, schema, setting_error, settings};

use super::sinbad::Sinbad;
use super::sinbad_settings::SinbadSettings;
use super::{Chain, JobLeft, ReplicaRequest};
use crate::{Context, Decision, Policy, Refusal};

/// Default wait of blocks: the time between reports.
const INTERVAL: Nanos = Nanos::SECOND;

/// `sinbad` in the order of remaining blocks.
#[derive(Clone, Debug)]
pub struct SinbadFile {
    sinbad: Sinbad,
    makespan: bool,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "sinbad-file",
    aliases: &[],
    summary: "as sinbad, but blocks wait, and files with the fewest remaining blocks are served first",
    source: "Sinbad (SIGCOMM 2013), section 6.3: OPT'",
    schema: schema::<SinbadSettings>,
    make: |text| {
        let read: SinbadSettings = settings("sinbad-file", text)?;
        if read.makespan && read.interval == Some(Nanos(0)) {
            let message = "nothing waits with `interval: 0s`, so nothing is ordered; leave one of them out";
            return Err(setting_error("sinbad-file", "makespan", message));
        }
        Ok(Box::new(SinbadFile::new(read)))
    },
};

impl SinbadFile {
    /// Creates the policy from settings.
    pub fn new(settings: SinbadSettings) -> SinbadFile {
        let (interval, makespan) = (settings.interval.or(Some(INTERVAL)), settings.makespan);
        SinbadFile { sinbad: Sinbad::named("sinbad-file", SinbadSettings { interval, ..settings }), makespan }
    }

    /// Most blocks that a writer of each job still has to write; empty without `makespan`. Requests of one job may differ,
    /// because its longest writer went on between them.
    fn longest_writers(&self, batch: &[ReplicaRequest]) -> BTreeMap<u64, u64> {
        let mut longest = BTreeMap::new();
        for request in batch.iter().filter(|_| self.makespan) {
            if let Some(JobLeft { job, blocks }) = request.job {
                let most: &mut u64 = longest.entry(job).or_default();
                *most = blocks.max(request.blocks_left).max(*most);
            }
        }
        longest
    }
}

impl Policy<ReplicaRequest> for SinbadFile {
    fn name(&self) -> &'static str {
        self.sinbad.name()
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        self.sinbad.place_one(request, context)
    }

    fn place(
        &self,
        batch: &[ReplicaRequest],
        context: &mut Context<'_, '_>,
    ) -> Vec<Result<Decision<Chain>, Refusal>> {
        let longest = self.longest_writers(batch);
        // The rank of a waiting block; smaller ones are served first. Jobs of equal length stay apart.
        let rank = |request: &ReplicaRequest| {
            let left = request.blocks_left;
            let job = request.job.and_then(|JobLeft { job, .. }| Some((*longest.get(&job)?, Some(job))));
            let (most, job) = job.unwrap_or((left, None));
            (most, job, Reverse(left), request.id)
        };
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|&index| rank(&batch[index]));
        let served: Vec<ReplicaRequest> = order.iter().map(|&index| batch[index].clone()).collect();
        let mut answers: Vec<_> = order.into_iter().zip(self.sinbad.place(&served, context)).collect();
        answers.sort_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn batching_delay(&self, request: &ReplicaRequest) -> Nanos {
        self.sinbad.batching_delay(request)
    }
}
