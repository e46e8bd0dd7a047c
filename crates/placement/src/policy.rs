//! What a policy is, and how one is made by name.

use leeward_fabric::input::{InputError, excerpt, read_yaml};
use leeward_fabric::{Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::View;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Constraint, Decision, Pool, Refusal};

/// A kind of question that policies answer.
pub trait Request {
    /// What an answer chooses.
    type Choice;
    /// The word for this kind, as in `leeward place KIND`.
    const KIND: &'static str;
}

/// A way of deciding. Holds settings and no state.
pub trait Policy<Q: Request>: Send + Sync {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Answers a batch: one answer a request, in the order of requests, whatever order they are served in.
    fn place(&self, batch: &[Q], context: &mut Context<'_, '_>) -> Vec<Result<Decision<Q::Choice>, Refusal>>;

    /// How long a request waits, so that it can be decided together with others; zero is at once.
    fn waits(&self, _request: &Q) -> Nanos {
        Nanos(0)
    }

    /// How often it looks at a host or a link to decide a request, about; some ten nanoseconds each. Zero where
    /// that is so little that nobody need ask. Who has others wait for a decision asks before.
    fn looks(&self, _request: &Q, _fabric: &Fabric) -> u64 {
        0
    }

    /// How good each of some hosts would be, by what ranks hosts here, for a request's work that also talks to `peers`;
    /// `None` if nothing here ranks single hosts. Nothing is decided, and what a policy balances over several requests
    /// plays no part.
    fn rate(
        &self,
        _request: &Q,
        _peers: &[Peer],
        _hosts: &[HostId],
        _context: &Context<'_, '_>,
    ) -> Option<Vec<Rating>> {
        None
    }
}

/// Something that runs, and what work that is to be placed sends it and receives from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Where it is.
    pub host: HostId,
    /// What it is sent, in bit/s.
    pub egress_bps: u64,
    /// What it sends, in bit/s.
    pub ingress_bps: u64,
}

/// How good a host would be for something.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rating {
    /// Which.
    pub host: HostId,
    /// How loaded it or its links would be, as a share of the fullest of them: less is better, and more than 1 is too
    /// much. Infinite where nothing may be carried.
    pub loaded: f64,
    /// The link that limits it, where links were looked at.
    pub limit: Option<ResourceId>,
    /// What that link would have left, in bit/s; negative where it has too little.
    pub left: Option<Load>,
    /// Why it cannot take it.
    pub refused: Option<Constraint>,
}

/// What a policy decides on.
pub struct Context<'a, 'l> {
    /// What the network carries; the policy's what-ifs go here.
    pub view: &'a mut View<'l>,
    /// Which hosts may take work.
    pub pool: &'a Pool,
    /// Seed of ties and random choices.
    pub seed: u64,
    /// How much of the reasons to keep.
    pub explain: Explain,
}

/// How much of a decision's reasons to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Explain {
    /// None: for hot loops.
    #[default]
    Off,
    /// The best few at each level.
    Top(u16),
    /// Every candidate.
    All,
}

impl Explain {
    /// How many candidates of a level to keep.
    pub(crate) fn limit(self) -> usize {
        match self {
            Explain::Off => 0,
            Explain::Top(limit) => usize::from(limit),
            Explain::All => usize::MAX,
        }
    }
}

/// A policy made from settings, or what is wrong with them.
pub type Made<Q> = Result<Box<dyn Policy<Q>>, InputError>;

/// A policy as the registry lists it. The schema of its settings feeds the command line, the API and the docs.
pub struct Registration<Q: Request> {
    /// What users call it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Where it is from.
    pub source: &'static str,
    /// JSON schema of its settings.
    pub schema: fn() -> serde_json::Value,
    /// Makes it from settings: a YAML or JSON mapping, empty for the defaults.
    pub make: fn(&str) -> Made<Q>,
}

/// A policy that cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// There is none of that name.
    #[error("unknown policy `{name}` for {kind}; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The kind of request.
        kind: &'static str,
        /// The names there are.
        known: String,
    },
    /// Its settings are not right.
    #[error(transparent)]
    Settings(#[from] InputError),
}

/// Finds a policy by name and makes it.
pub(crate) fn make<Q: Request>(
    registry: &'static [Registration<Q>],
    name: &str,
    settings: &str,
) -> Result<Box<dyn Policy<Q>>, PolicyError> {
    match registry.iter().find(|registration| registration.name == name) {
        Some(registration) => Ok((registration.make)(settings)?),
        None => {
            let known = registry.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
            Err(PolicyError::Unknown { name: excerpt(name), kind: Q::KIND, known })
        }
    }
}

/// Settings of a policy that has none.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoSettings {}

/// Reads a policy's settings.
pub(crate) fn settings<T: DeserializeOwned + Default>(policy: &str, text: &str) -> Result<T, InputError> {
    if text.trim().is_empty() { Ok(T::default()) } else { read_yaml(&format!("settings of {policy}"), text) }
}

/// What is wrong with one setting of a policy.
pub(crate) fn setting_error(policy: &str, field: &str, message: &str) -> InputError {
    InputError::new(format!("settings of {policy}"), message).in_field(field)
}
