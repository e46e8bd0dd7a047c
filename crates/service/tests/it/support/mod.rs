//! Policies, reply addresses and calls that the tests of the service share.

use std::sync::Arc;

use leeward_engine::Policies;
use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_moves as moves;
use leeward_placement::{replicas, tasks};
use leeward_records::DecisionRecord;
use leeward_service::{
    Addresses, Answer, CallError, Completion, Coordinator, DecisionLookup, PlaceError, Placed, Placement,
    PolicyLabels,
};

/// Names of the policies of these tests.
pub fn labels() -> PolicyLabels {
    PolicyLabels {
        replicas: "sinbad".into(),
        tasks: "borg".into(),
        moves: Some("utp".into()),
        ..PolicyLabels::default()
    }
}

/// The policies of these tests.
pub fn policies(settings: &str) -> Policies {
    let replicas = replicas::REGISTRY.make("sinbad", settings).expect("a policy of the registry");
    let tasks = tasks::REGISTRY.make("borg", "").expect("a policy of the registry");
    let moves = moves::REGISTRY.make("utp", "").ok();
    Policies { replicas: Some(replicas), tasks: Some(tasks), moves, ..Policies::default() }
}

/// Numbers as reply addresses.
pub enum Numbers {}

impl Addresses for Numbers {
    type To<T> = u32;

    fn is_open<T>(_: &u32) -> bool {
        true
    }
}

/// Addresses for replies to placements that are numbers.
pub trait U32: Addresses<To<Answer<Placed, PlaceError>> = u32> {}

impl<A: Addresses<To<Answer<Placed, PlaceError>> = u32>> U32 for A {}

/// Result of a placement.
pub type PlaceResult = Result<DecisionLookup<Placed>, PlaceError>;

/// Replies to placements, by address.
pub type PlaceReplies = Vec<(u32, PlaceResult)>;

/// Takes the late replies, all of them to placements.
pub fn place_replies<A: U32>(coordinator: &mut Coordinator<A>) -> PlaceReplies {
    let reply = |completion| match completion {
        Completion::Place(to, Ok(lookup)) => (to, Ok(lookup)),
        Completion::Place(to, Err(CallError::Failed(error))) => (to, Err(error)),
        Completion::Place(_, Err(CallError::Unavailable(reason))) => panic!("{reason:?}"),
        Completion::WhatIf(..) | Completion::Score(..) => panic!("not a placement"),
    };
    coordinator.completions().map(reply).collect()
}

/// Places a request, and takes the late replies.
pub fn place<A: U32>(
    coordinator: &mut Coordinator<A>,
    now: Nanos,
    placement: Placement,
    to: u32,
) -> PlaceReplies {
    coordinator.place(now, placement, to);
    place_replies(coordinator)
}

/// Places a request that is decided at once.
pub fn place_now(coordinator: &mut Coordinator<Numbers>, now: Nanos, placement: Placement) -> PlaceResult {
    let mut replies = place(coordinator, now, placement, 0);
    assert_eq!(replies.len(), 1, "{replies:?}");
    replies.remove(0).1
}

/// The decision of a placement; true if it is repeated.
pub fn decision_of(result: PlaceResult) -> (Arc<DecisionRecord>, bool) {
    match result {
        Ok(DecisionLookup::InMemory(Placed { record, repeated })) => (record, repeated),
        other => panic!("not placed: {other:?}"),
    }
}

/// Samples of loads over a window.
pub fn samples(window: (Nanos, Nanos), loads: impl IntoIterator<Item = (ResourceId, Load)>) -> Vec<Sample> {
    let sample = |(resource, load)| Sample { resource, window, load, guaranteed: None };
    loads.into_iter().map(sample).collect()
}
