//! Search of decisions: the searchable fields as rows, and the conditions as SQL that both databases execute.

use std::borrow::Cow;
use std::fmt::Write as _;

use leeward_fabric::Nanos;
use leeward_records::{DecisionDetails, DecisionId, DecisionRecord};

use super::row::{Cell, caller_columns, signed};

/// Conditions on decisions. All given conditions must hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Search {
    /// Kind of the request.
    pub kind: Option<&'static str>,
    /// Earliest time of the decision.
    pub since: Option<Nanos>,
    /// Time before which the decision was made.
    pub until: Option<Nanos>,
    /// Client of the request.
    pub client: Option<String>,
    /// Idempotency key of the request.
    pub key: Option<String>,
    /// Name of the placed thing in the client's words.
    pub reference: Option<String>,
    /// Job of the tasks, or name of the app without a job.
    pub job: Option<String>,
    /// Host of the decision.
    pub host: Option<String>,
    /// Rack of one of the hosts.
    pub rack: Option<String>,
    /// Policy, with or without its settings.
    pub policy: Option<String>,
    /// True for decisions that Leeward's policy left to the default policy, false for all others.
    pub fallback: Option<bool>,
    /// Only ids below this one.
    pub before: Option<DecisionId>,
}

impl Search {
    /// True without a condition.
    pub fn is_empty(&self) -> bool {
        *self == Search { kind: self.kind, before: self.before, ..Search::default() }
    }

    /// A query for the ids of the newest decisions that meet the conditions, and its parameters. Its last parameter, the
    /// largest number of ids, is still to be added.
    pub(super) fn ids(&self) -> (String, Vec<Cell<'_>>) {
        let (condition, cells) = self.condition();
        let limit = cells.len() + 1;
        let sql = format!(
            "SELECT decision FROM decision_search WHERE {condition} ORDER BY decision DESC LIMIT ${limit}"
        );
        (sql, cells)
    }

    /// The condition of a `WHERE` clause, and its parameters.
    fn condition(&self) -> (String, Vec<Cell<'_>>) {
        let mut condition = Condition { sql: "1 = 1".to_owned(), cells: Vec::new() };
        let time = |at: Nanos| Cell::Number(Some(signed(at.0)));
        condition.add("decision <", self.before.map(|id| Cell::Number(Some(signed(id.0)))));
        condition.add("at >=", self.since.map(time));
        // The first of these decisions bounds the search.
        let first = "decision >= (SELECT min(decision) FROM decision_search WHERE at >= %s)";
        condition.add_template(first, self.since.map(time));
        condition.add("at <", self.until.map(time));
        condition.add("kind =", self.kind.map(Cell::text));
        condition.add("client =", self.client.as_deref().map(Cell::text));
        condition.add("request_key =", self.key.as_deref().map(Cell::text));
        condition.add("ref =", self.reference.as_deref().map(Cell::text));
        condition.add("job =", self.job.as_deref().map(Cell::text));
        condition.add("fallback =", self.fallback.map(|fallback| Cell::Number(Some(fallback.into()))));
        let policy = "substr(policy || ':', 1, length(CAST(%s AS TEXT)) + 1) = CAST(%s AS TEXT) || ':'";
        condition.add_template(policy, self.policy.as_deref().map(Cell::text));
        // The replacement differs if the place occurs. Unlike `LIKE`, it tells large from small letters.
        let place = "replace(places, CAST(%s AS TEXT), '') <> places";
        let host = self.host.as_ref().map(|host| Cell::Text(Some(host_place(host).into())));
        condition.add_template(place, host);
        let rack = self.rack.as_ref().map(|rack| Cell::Text(Some(rack_place(rack).into())));
        condition.add_template(place, rack);
        (condition.sql, condition.cells)
    }
}

/// A condition while it is built.
struct Condition<'a> {
    sql: String,
    cells: Vec<Cell<'a>>,
}

impl<'a> Condition<'a> {
    /// Adds a comparison with a parameter, if there is one.
    fn add(&mut self, comparison: &str, cell: Option<Cell<'a>>) {
        self.add_template(&format!("{comparison} %s"), cell);
    }

    /// Adds a condition in which `%s` stands for the parameter.
    fn add_template(&mut self, template: &str, cell: Option<Cell<'a>>) {
        let Some(cell) = cell else { return };
        self.cells.push(cell);
        let parameter = format!("${}", self.cells.len());
        // Writing to a text cannot fail.
        let _ = write!(self.sql, " AND {}", template.replace("%s", &parameter));
    }
}

/// Row of `decision_search`.
pub(super) fn searchable(record: &DecisionRecord) -> [Cell<'_>; 11] {
    let (client, _, key) = caller_columns(record);
    let details = &record.details;
    let [gain, places] = changing(record);
    [
        Cell::number(record.id.0),
        Cell::number(record.at.0),
        Cell::Plain(details.spec.kind().into()),
        Cell::text(&details.policy),
        client,
        key,
        Cell::Text(details.reference.as_deref().map(Cow::from)),
        Cell::Text(details.job().map(|job| cut(job).into())),
        Cell::Number(Some(details.is_fallback().into())),
        gain,
        places,
    ]
}

/// Searchable columns that change after a decision: its gain and its places.
pub(super) fn changing(record: &DecisionRecord) -> [Cell<'static>; 2] {
    let gain = record.details.gain().map(|gain| gain.rank());
    [Cell::Number(gain), Cell::Text(Some(places(&record.details).into()))]
}

/// Sorts decisions by the size of the difference between both choices, the largest first.
pub(super) fn sort_by_gain(found: &mut [DecisionRecord]) {
    found.sort_by_key(|record| {
        let gain = record.details.gain().map_or(0, |gain| gain.rank());
        std::cmp::Reverse((gain.unsigned_abs(), record.id))
    });
}

/// The first characters of a name. An index of a database takes no long ones, and nobody can search for them.
fn cut(name: &str) -> &str {
    const LONGEST: usize = 512;
    name.char_indices().nth(LONGEST).map_or(name, |(end, _)| &name[..end])
}

fn host_place(name: &str) -> String {
    format!("\nh{name}\n")
}

fn rack_place(name: &str) -> String {
    format!("\nr{name}\n")
}

/// Hosts and racks of a decision as one text that can be searched. Names have no line breaks.
fn places(details: &DecisionDetails) -> String {
    let mut places = String::new();
    let mut hosts: Vec<&String> = details.hosts.iter().collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts.into_iter().for_each(|host| places.push_str(&host_place(host)));
    details.racks.iter().for_each(|rack| places.push_str(&rack_place(rack)));
    places
}
