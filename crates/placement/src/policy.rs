//! The policy trait, and the context of a decision.

use leeward_fabric::Nanos;
use leeward_ledger::View;

use crate::{Decision, Pool, Refusal};

/// A kind of request that policies decide.
pub trait Request {
    /// Type of the choice that answers a request.
    type Choice;
    /// Name of the kind, as in `leeward place KIND`.
    const KIND: &'static str;
}

/// A placement algorithm. A policy holds settings and no state.
pub trait Policy<Q: Request>: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Decides one request. A policy that does not override [`Policy::place`] leaves the view unchanged.
    ///
    /// # Errors
    /// Returns a [`Refusal`] with the reason if the request gets no placement.
    fn place_one(&self, request: &Q, context: &mut Context<'_, '_>) -> Result<Decision<Q::Choice>, Refusal>;

    /// Decides a batch. Returns one answer per request, in the order of requests. The policy may decide the requests in
    /// another order. By default, each request sees the load of the decisions before it. A policy that overrides this
    /// method may leave the load of all its decisions in the view.
    fn place(&self, batch: &[Q], context: &mut Context<'_, '_>) -> Vec<Result<Decision<Q::Choice>, Refusal>> {
        one_by_one(self, batch, context)
    }

    /// Time for which a request waits for other requests of its batch; 0 for an immediate decision.
    fn batching_delay(&self, _request: &Q) -> Nanos {
        Nanos(0)
    }
}

/// Decides a batch in the order of its requests, each with the load of the decisions before it in the view.
pub fn one_by_one<Q: Request, P: Policy<Q> + ?Sized>(
    policy: &P,
    batch: &[Q],
    context: &mut Context<'_, '_>,
) -> Vec<Result<Decision<Q::Choice>, Refusal>> {
    let mut answers = Vec::with_capacity(batch.len());
    for (index, request) in batch.iter().enumerate() {
        let answer = policy.place_one(request, context);
        if index + 1 < batch.len() {
            let entries = answer.iter().flat_map(|decision| &decision.change.add);
            entries.for_each(|entry| context.view.add(entry));
        }
        answers.push(answer);
    }
    answers
}

/// Input of a decision.
pub struct Context<'a, 'l> {
    /// Load of the network; the policy's trial changes go here.
    pub view: &'a mut View<'l>,
    /// Eligible hosts.
    pub pool: &'a Pool,
    /// Seed of tie-breaking and random choices.
    pub seed: u64,
    /// Size of the explanation.
    pub explain: Explain,
}

/// Size of a decision's explanation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Explain {
    /// No explanation, for hot loops.
    #[default]
    Off,
    /// The best few candidates at each level.
    Top(u16),
    /// Every candidate.
    All,
}

impl Explain {
    /// Maximum number of candidates to keep at each level.
    pub(crate) fn limit(self) -> usize {
        match self {
            Explain::Off => 0,
            Explain::Top(limit) => usize::from(limit),
            Explain::All => usize::MAX,
        }
    }
}
