//! Search of decisions over all that the store holds.

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use leeward_fabric::Nanos;
use leeward_records::schema::{Id, Name, Reference, Time};
use leeward_records::{Clock, DecisionId};
use leeward_service::DecisionQuery;
use leeward_store::Search;
use schemars::JsonSchema;
use serde::Deserialize;

use super::decisions::Decision;
use super::pages::{LARGEST_PAGE, Page, PageQuery};
use super::shapes::Kind;
use super::state::{ApiResult, Params, SharedState};
use leeward_problems::{IntoProblem, Problem};

/// Conditions on decisions, and page of their list. All given conditions must hold.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// Only decisions of this kind.
    kind: Option<Kind>,
    /// Only decisions at or after this time.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Only decisions before this time.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
    /// Only decisions for this client.
    #[schemars(with = "Option<Name>")]
    client: Option<String>,
    /// Only the decision with this idempotency key.
    #[schemars(with = "Option<Name>")]
    key: Option<String>,
    /// Only decisions about the thing with this name in the client's words.
    #[serde(rename = "ref")]
    #[schemars(with = "Option<Reference>")]
    reference: Option<String>,
    /// Only decisions about tasks of this job, or of the app with this name.
    #[schemars(with = "Option<Name>")]
    job: Option<String>,
    /// Only decisions with this host.
    #[schemars(with = "Option<Name>")]
    host: Option<String>,
    /// Only decisions with a host in this rack.
    #[schemars(with = "Option<Name>")]
    rack: Option<String>,
    /// Only decisions of this policy; the name alone stands for all its settings.
    #[schemars(with = "Option<Reference>")]
    policy: Option<String>,
    /// Only decisions that Leeward's policy left to the default policy (true), or only others (false).
    fallback: Option<bool>,
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
}

/// Time of a query parameter.
pub(super) fn time(clock: &Clock, field: &'static str, text: Option<&str>) -> Result<Option<Nanos>, Problem> {
    text.map(|text| clock.parse(text)).transpose().map_err(|detail| Problem::field(field, detail))
}

impl SearchQuery {
    /// The conditions.
    fn search(&self, clock: &Clock, before: Option<DecisionId>) -> Result<Search, Problem> {
        let name = |field: &'static str, text: &Option<String>| match text {
            Some(text) if !Name::fits(text) => Err(Problem::name(field)),
            text => Ok(text.clone()),
        };
        let long = |field: &'static str, text: &Option<String>| match text {
            Some(text) if !Reference::fits(text) => Err(Problem::reference(field)),
            text => Ok(text.clone()),
        };
        Ok(Search {
            kind: self.kind.map(Kind::word),
            since: time(clock, "since", self.since.as_deref())?,
            until: time(clock, "until", self.until.as_deref())?,
            client: name("client", &self.client)?,
            key: name("key", &self.key)?,
            reference: long("ref", &self.reference)?,
            job: name("job", &self.job)?,
            host: name("host", &self.host)?,
            rack: name("rack", &self.rack)?,
            policy: long("policy", &self.policy)?,
            fallback: self.fallback,
            before,
        })
    }
}

/// Lists decisions. Without conditions, the latest ones come from memory.
pub async fn decisions(
    State(app): SharedState,
    Params(Query(query)): Params<Query<SearchQuery>>,
) -> ApiResult {
    let page = PageQuery { limit: query.limit, after: query.after.clone() };
    let (limit, before) = (page.limit()?, page.after()?.map(DecisionId));
    let search = query.search(&app.clock, before)?;
    if search.is_empty() {
        let query = DecisionQuery { kind: search.kind, before, limit: limit + 1, holding: false };
        let recent = app.call(|_| Ok(query.clone())).await?;
        // A shorter page may have more decisions in the store.
        if recent.len() > limit {
            let page =
                Page::cut(&recent, limit, |record| record.id.0, |record| Decision::of(record, &app.clock));
            return Ok(Json(page).into_response());
        }
    }
    let found = app.handle.read(move |store| store.search(&search, limit + 1)).await;
    let found = found.map_err(|error| error.problem(&app.clock))?;
    let page = Page::cut(&found, limit, |record| record.id.0, |record| Decision::of(record, &app.clock));
    Ok(Json(page).into_response())
}
