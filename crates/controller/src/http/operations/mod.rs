//! All operations of the API, in the order of the reference.

mod network;
mod placing;
mod service;

use leeward_records::schema::Id;

use super::table::{Operation, Parameter, Subject, header, of, path};
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
const ID: Parameter = path("id", "Identifier.", of::<Id>);

/// All operations by subject.
pub const SUBJECTS: &[Subject] = &[placing::SUBJECT, network::SUBJECT, service::SUBJECT];

/// All operations.
pub fn all() -> impl Iterator<Item = &'static Operation> {
    SUBJECTS.iter().flat_map(|subject| subject.operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;

    #[test]
    fn the_reference_lists_all_operations_in_order_with_their_roles() {
        let page = include_str!("../../../../../docs/reference/http-api.md");
        let is_row = |line: &&str| {
            let method = line.strip_prefix("| `").and_then(|line| line.split_once(" /"));
            method.is_some_and(|(method, _)| method.bytes().all(|byte| byte.is_ascii_uppercase()))
        };
        let rows =
            page.lines().filter(is_row).map(|row| row.splitn(4, '|').take(3).collect::<Vec<_>>().join("|"));
        let known = all()
            .map(|one| format!("| `{} {}` | {} ", one.method, one.path, one.role.map_or("none", Role::name)));
        assert_eq!(rows.collect::<Vec<_>>(), known.collect::<Vec<_>>());
        let subjects: Vec<String> = SUBJECTS.iter().map(|subject| format!("`{}`", subject.name)).collect();
        let [first @ .., last] = subjects.as_slice() else { panic!("there is no subject") };
        let tags = format!("Its tags are {} and {last}.", first.join(", "));
        assert!(page.contains(&tags), "{tags}");
    }
}
