//! Modes: the decider of requests of each kind.

use axum::extract::{Query, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_fabric::Nanos;
use leeward_records::schema::Time;
use leeward_records::{Mode, Modes};
use leeward_service::{GetModes, ModeChange, ModesView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::dry_run::DryRunQuery;
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_access::Principal;
use leeward_problems::Problem;

/// Largest number of characters of a reason.
const LONGEST_REASON: usize = 200;

/// Modes of the service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModesInForce")]
pub struct ModesBody {
    /// Modes in force.
    in_force: Modes,
    /// Modes that were set last. They differ from those in force only while the off file exists.
    set: Modes,
    /// Modes of the settings file when the modes were set.
    settings: Modes,
    /// Time of the last change.
    #[schemars(with = "Time")]
    changed: String,
    /// Source of the last change: `settings` for the settings file, or the name of the client.
    by: String,
    /// Reason of the last change, as the client gave it.
    reason: Option<String>,
    /// Path of the file whose existence turns every mode off; null if the settings name none.
    off_file: Option<String>,
    /// True while that file exists.
    off_file_exists: bool,
}

impl ModesBody {
    fn of(app: &AppState, modes: ModesView) -> ModesBody {
        let (in_force, set) = (modes.in_force(), modes.set);
        ModesBody {
            in_force,
            set: set.modes,
            settings: set.file,
            changed: app.clock.text(Nanos(set.at)),
            by: set.by,
            reason: set.reason,
            off_file: app.switch.file(),
            off_file_exists: app.switch.is_on(),
        }
    }
}

/// Change of modes. Kinds without a mode keep theirs.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChangeBody {
    /// Mode of all kinds that have none of their own here. A canary of all kinds draws moves by rack.
    all: Option<Mode>,
    /// Mode of replicas.
    replicas: Option<Mode>,
    /// Mode of tasks.
    tasks: Option<Mode>,
    /// Mode of moves.
    moves: Option<Mode>,
    /// Mode of workloads whose volumes have a host.
    workload: Option<Mode>,
    /// Mode of volumes that need a place.
    volumes: Option<Mode>,
    /// Reason of the change. `GET /v1/modes` shows it.
    #[schemars(length(max = LONGEST_REASON))]
    reason: Option<String>,
}

impl ModeChangeBody {
    /// Returns the operation of a client.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub fn operation(&self, by: String) -> Result<ModeChange, Problem> {
        let too_long = |reason: &String| reason.chars().count() > LONGEST_REASON;
        if self.reason.as_ref().is_some_and(too_long) {
            return Err(Problem::field("reason", format!("expected at most {LONGEST_REASON} characters")));
        }
        let ModeChangeBody { all, replicas, tasks, moves, workload, volumes, .. } = *self;
        let all_moves = all.map(Mode::by_rack);
        let modes = [replicas.or(all), tasks.or(all), moves.or(all_moves), workload.or(all), volumes.or(all)];
        if modes.iter().all(Option::is_none) {
            let kinds = Modes::KINDS.join(", ");
            return Err(Problem::field(
                "all",
                format!("no mode is given: expected `all`, or one of {kinds}"),
            ));
        }
        let default = Mode::default();
        let [replicas, tasks, moves, workload, volumes] = modes.map(|mode| mode.unwrap_or(default));
        let checked = Modes { replicas, tasks, moves, workload, volumes }.check();
        checked.map_err(|(kind, reason)| Problem::field(kind, reason))?;
        Ok(ModeChange { modes, by, reason: self.reason.clone() })
    }
}

pub async fn get(State(app): SharedState) -> ApiResult {
    let modes = app.call(|_| Ok(GetModes)).await?;
    Ok(Json(ModesBody::of(&app, modes)).into_response())
}

pub async fn patch(
    State(app): SharedState,
    Extension(principal): Extension<Principal>,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(body): Body<ModeChangeBody>,
) -> ApiResult {
    let by = principal.client.to_string();
    let change = body.operation(by.clone())?;
    let modes = if query.dry_run {
        app.call(|_| Ok(GetModes)).await?.after(&change, app.clock.now())
    } else {
        app.call(|_| body.operation(by.clone())).await?
    };
    Ok(Json(ModesBody::of(&app, modes)).into_response())
}
