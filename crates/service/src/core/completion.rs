//! Late replies of the coordinator: to placements that wait for a batch or a job, and to queries that run as jobs.

use super::error::{CallError, PlaceError, ScoreError, WhatIfError};
use super::reply::{DecisionLookup, Placed, Scores, WhatIfResult};

/// Result of a call: its reply, or its error.
pub type Answer<T, E> = Result<T, CallError<E>>;

/// Kind of reply addresses: channels in the service, numbers in tests. The coordinator does not interpret them.
pub trait Addresses {
    /// Address for a reply of type `T`.
    type To<T>;

    /// Returns false if the client has disconnected.
    fn is_open<T>(to: &Self::To<T>) -> bool;
}

/// Address for the reply to a placement.
pub type PlaceTo<A> = <A as Addresses>::To<Answer<Placed, PlaceError>>;
/// Address for the reply to a what-if query.
pub type WhatIfTo<A> = <A as Addresses>::To<Answer<WhatIfResult, WhatIfError>>;
/// Address for the reply to a score query.
pub type ScoreTo<A> = <A as Addresses>::To<Answer<Scores, ScoreError>>;

/// Late reply and its address.
pub enum Completion<A: Addresses> {
    /// Reply to a placement. The decision of a repeated request may be evicted.
    Place(PlaceTo<A>, Answer<DecisionLookup<Placed>, PlaceError>),
    /// Reply to a what-if query.
    WhatIf(WhatIfTo<A>, Answer<WhatIfResult, WhatIfError>),
    /// Reply to a score query.
    Score(ScoreTo<A>, Answer<Scores, ScoreError>),
}

#[cfg(test)]
impl<A: Addresses> PartialEq for Completion<A>
where
    PlaceTo<A>: PartialEq,
    WhatIfTo<A>: PartialEq,
    ScoreTo<A>: PartialEq,
{
    fn eq(&self, other: &Completion<A>) -> bool {
        match (self, other) {
            (Completion::Place(a, one), Completion::Place(b, two)) => a == b && one == two,
            (Completion::WhatIf(a, one), Completion::WhatIf(b, two)) => a == b && one == two,
            (Completion::Score(a, one), Completion::Score(b, two)) => a == b && one == two,
            _ => false,
        }
    }
}

#[cfg(test)]
impl<A: Addresses> std::fmt::Debug for Completion<A>
where
    PlaceTo<A>: std::fmt::Debug,
    WhatIfTo<A>: std::fmt::Debug,
    ScoreTo<A>: std::fmt::Debug,
{
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Completion::Place(to, answer) => write!(formatter, "{to:?}: {answer:?}"),
            Completion::WhatIf(to, answer) => write!(formatter, "{to:?}: {answer:?}"),
            Completion::Score(to, answer) => write!(formatter, "{to:?}: {answer:?}"),
        }
    }
}
