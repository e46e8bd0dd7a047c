//! What the apps of a run amount to: the numbers of Choreo section 6, and of its section 2.4.

use serde::Serialize;

use super::Times;
use crate::stage::record::{App, Record};

/// A run of apps in a few numbers. Apps that arrived before the warm-up ended are left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AppSummary {
    /// Apps that arrived.
    pub count: u64,
    /// Those whose last transfer was over when the run ended.
    pub finished: u64,
    /// Those that never had hosts.
    pub unplaced: u64,
    /// Those that had to wait for hosts and got some.
    pub waited: u64,
    /// From arrival to hosts.
    pub wait_s: Times,
    /// From hosts to the last transfer (Choreo section 6.3: run times, of which it compares the sum).
    pub run_s: Times,
    /// From arrival to the last transfer.
    pub completion_s: Times,
    /// How far the model's prediction at placement was from the run time, as a share of the run time; of apps that ran
    /// through undisturbed, mean. `None` if there are none.
    pub forecast_error: Option<f64>,
    /// Hosts that an app is on, mean over those that were placed.
    pub hosts: f64,
    /// What crossed the network of all that tasks sent each other, as a share.
    pub network_share: f64,
    /// How often apps moved.
    pub migrations: u64,
    /// Tasks that changed hosts then.
    pub tasks_moved: u64,
    /// Memory carried over the network for that, in bytes.
    pub memory_bytes: f64,
    /// How often no hosts were found for an app.
    pub refused: u64,
    /// How often an app began anew because a host failed.
    pub restarts: u64,
}

impl AppSummary {
    /// Sums up a run of apps; `None` of any other.
    pub fn of(record: &Record, warmup: f64) -> Option<AppSummary> {
        if record.apps.is_empty() {
            return None;
        }
        let counted = || record.apps.iter().filter(|app| app.arrived >= warmup);
        let placed = || counted().filter(|app| app.placed.is_some());
        let count = |of: fn(&App) -> bool| counted().filter(|app| of(app)).count() as u64;
        let sum = |of: fn(&App) -> u32| counted().map(|app| u64::from(of(app))).sum::<u64>();
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let error = |app: &App| {
            let undisturbed = app.migrations == 0 && app.restarts == 0;
            let (ran, forecast) = app.running().zip(app.forecast).filter(|_| undisturbed)?;
            (ran > 0.0).then(|| (forecast - ran).abs() / ran)
        };
        let sent: f64 = placed().map(|app| app.bytes as f64).sum();
        let crossed: f64 = placed().map(|app| app.network_bytes).sum();
        Some(AppSummary {
            count: counted().count() as u64,
            finished: count(|app| app.finished.is_some()),
            unplaced: count(|app| app.placed.is_none()),
            waited: count(|app| app.waited().is_some_and(|waited| waited > 0.0)),
            wait_s: Times::of(counted().filter_map(App::waited)),
            run_s: Times::of(counted().filter_map(App::running)),
            completion_s: Times::of(counted().filter_map(App::duration)),
            forecast_error: mean(counted().filter_map(error).collect()),
            hosts: mean(placed().map(|app| app.host_count() as f64).collect()).unwrap_or(0.0),
            network_share: if sent > 0.0 { crossed / sent } else { 0.0 },
            migrations: sum(|app| app.migrations),
            tasks_moved: sum(|app| app.tasks_moved),
            memory_bytes: counted().map(|app| app.memory_bytes).sum(),
            refused: sum(|app| app.refused),
            restarts: sum(|app| app.restarts),
        })
    }
}
