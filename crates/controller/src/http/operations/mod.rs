//! All operations of the API, in the order of the reference.

mod network;
mod placing;
mod service;

use leeward_records::schema::Id;

use super::dry_run::DryRunQuery;
use super::table::{Operation, Parameter, Subject, header, of, path, query};
use super::{cluster, place};

const IF_MATCH: Parameter = header(
    "if-match",
    "Version to change, from `etag`. A different current version fails the request with 412.",
    cluster::version,
);
const KEY: Parameter = header(
    "idempotency-key",
    "Unique key of the request. A repeated request with this key returns the first result.",
    place::key,
);
const DRY_RUN: Parameter = query::<DryRunQuery>();
const ID: Parameter = path("id", "Identifier.", of::<Id>);

/// All operations by subject.
pub const SUBJECTS: &[Subject] = &[placing::SUBJECT, network::SUBJECT, service::SUBJECT];

/// All operations.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    SUBJECTS.iter().flat_map(|subject| subject.operations)
}
