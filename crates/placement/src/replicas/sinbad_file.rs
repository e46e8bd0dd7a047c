//! Policy `sinbad-file`: OPT' of Sinbad section 6.3. Blocks wait for a decision interval. The policy then serves the
//! files with the fewest remaining blocks first, so that nearly complete files end early. `sinbad` places each block;
//! with an interval of zero nothing waits, and both policies are the same.

use leeward_fabric::Nanos;
use leeward_registry::{Registration, schema, settings};

use super::sinbad::Sinbad;
use super::sinbad_settings::SinbadSettings;
use super::{Chain, ReplicaRequest};
use crate::{Context, Decision, Policy, Refusal};

/// Default wait of blocks: the time between reports.
const INTERVAL: Nanos = Nanos::SECOND;

/// `sinbad` in the order of remaining blocks.
#[derive(Clone, Debug)]
pub struct SinbadFile {
    sinbad: Sinbad,
}

pub(super) const REGISTRATION: Registration<dyn Policy<ReplicaRequest>> = Registration {
    name: "sinbad-file",
    aliases: &[],
    summary: "as sinbad, but blocks wait, and files with the fewest remaining blocks are served first",
    source: "Sinbad (SIGCOMM 2013), section 6.3: OPT'",
    schema: schema::<SinbadSettings>,
    make: |text| Ok(Box::new(SinbadFile::new(settings("sinbad-file", text)?))),
};

impl SinbadFile {
    /// Creates the policy from settings.
    pub fn new(settings: SinbadSettings) -> SinbadFile {
        let interval = settings.interval.or(Some(INTERVAL));
        SinbadFile { sinbad: Sinbad::named("sinbad-file", SinbadSettings { interval, ..settings }) }
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
        let mut order: Vec<usize> = (0..batch.len()).collect();
        order.sort_by_key(|&index| (batch[index].blocks_left, batch[index].id));
        let served: Vec<ReplicaRequest> = order.iter().map(|&index| batch[index].clone()).collect();
        let mut answers: Vec<_> = order.into_iter().zip(self.sinbad.place(&served, context)).collect();
        answers.sort_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn batching_delay(&self, request: &ReplicaRequest) -> Nanos {
        self.sinbad.batching_delay(request)
    }
}
