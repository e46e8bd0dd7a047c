//! Summary of apps in a run: the numbers of Choreo section 6, and of its section 2.4.

use serde::Serialize;

use super::Times;
use crate::record::{App, Record};

/// Summary of a run of apps, without apps that arrived before the end of the warm-up.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AppSummary {
    /// Number of apps.
    pub count: u64,
    /// Number of apps whose last transfer ended within the run.
    pub finished: u64,
    /// Number of apps that never had hosts.
    pub unplaced: u64,
    /// Number of apps that waited for hosts before they got some.
    pub waited: u64,
    /// Time from arrival to hosts.
    pub wait_s: Times,
    /// Time from the placement to the end of the last transfer. Choreo section 6.3 compares sums of these run times.
    pub run_s: Times,
    /// Time from arrival to the last transfer.
    pub completion_s: Times,
    /// Mean difference between the model's prediction at placement and the run time, as a share of the run time, over
    /// undisturbed apps. `None` without such apps.
    pub forecast_error: Option<f64>,
    /// Mean number of hosts of an app, over placed apps.
    pub hosts: f64,
    /// Share of the bytes between tasks that crossed the network.
    pub network_share: f64,
    /// Number of migrations.
    pub migrations: u64,
    /// Number of tasks that changed hosts in migrations.
    pub tasks_moved: u64,
    /// Memory that migrations carried over the network, in bytes.
    pub memory_bytes: f64,
    /// Number of failed placements of apps.
    pub refused: u64,
    /// Number of restarts of apps because a host failed.
    pub restarts: u64,
}

impl AppSummary {
    /// Summarizes a run of apps; `None` for other runs.
    pub fn of(record: &Record, warmup: f64) -> Option<AppSummary> {
        if record.apps.is_empty() {
            return None;
        }
        let counted = || record.apps.iter().filter(|app| app.arrived >= warmup);
        let placed = || counted().filter(|app| app.placed.is_some());
        let count = |holds: fn(&App) -> bool| counted().filter(|app| holds(app)).count() as u64;
        let sum = |value: fn(&App) -> u32| counted().map(|app| u64::from(value(app))).sum::<u64>();
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let error = |app: &App| {
            let undisturbed = app.migrations == 0 && app.restarts == 0;
            let (run_time, forecast) = app.run_time().zip(app.forecast).filter(|_| undisturbed)?;
            (run_time > 0.0).then(|| (forecast - run_time).abs() / run_time)
        };
        let sent: f64 = placed().map(|app| app.bytes as f64).sum();
        let crossed: f64 = placed().map(|app| app.network_bytes).sum();
        Some(AppSummary {
            count: counted().count() as u64,
            finished: count(|app| app.finished.is_some()),
            unplaced: count(|app| app.placed.is_none()),
            waited: count(|app| app.wait_time().is_some_and(|wait| wait > 0.0)),
            wait_s: Times::of(counted().filter_map(App::wait_time)),
            run_s: Times::of(counted().filter_map(App::run_time)),
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
