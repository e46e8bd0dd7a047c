//! Everything that can be asked of the service, in the order of the reference.

mod network;
mod placing;
mod service;

use super::table::{Operation, Parameter, Subject, header, of, path};
use super::{cluster, place};
use crate::described::Id;

const IF_MATCH: Parameter = header(
    "if-match",
    "The version that is to be changed; if it is of another one by then, nothing is done.",
    cluster::version,
);
const KEY: Parameter = header(
    "idempotency-key",
    "A key that nobody else uses: what is sent again with it is not done again.",
    place::key,
);
const ID: Parameter = path("id", "What it is called.", of::<Id>);

/// Everything there is, by what it is about.
pub const SUBJECTS: &[Subject] = &[placing::SUBJECT, network::SUBJECT, service::SUBJECT];

/// Everything there is.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    SUBJECTS.iter().flat_map(|subject| subject.operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    #[test]
    fn every_operation_is_in_the_reference_with_its_role() {
        let page = include_str!("../../../../../docs/reference/http-api.md");
        for one in all() {
            let role = one.role.map_or("none", Role::name);
            let row = format!("| `{} {}` | {role} |", one.method, one.path);
            assert!(page.contains(&row), "{row}");
        }
        let is_row = |line: &&str| {
            let method = line.strip_prefix("| `").and_then(|line| line.split_once(" /"));
            method.is_some_and(|(method, _)| method.bytes().all(|byte| byte.is_ascii_uppercase()))
        };
        let rows = page.lines().filter(is_row).count();
        assert_eq!(rows, all().count(), "the page has an operation that there is not");
    }
}
