//! Records of apps in a run, as Arrow tables; see [`crate::records`].

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{ListBuilder, StringBuilder};
use leeward_fabric::Fabric;
use leeward_scenarios::record::{App, Record};
use pyo3::prelude::*;

use crate::arrow_table::table;
use crate::records::{ArrowTable, counts, ids, maybe_times, texts, times};

pub fn apps(record: &Record, fabric: &Fabric) -> PyResult<ArrowTable> {
    let apps = &record.apps;
    let mut hosts = ListBuilder::new(StringBuilder::new());
    for app in apps {
        app.hosts.iter().for_each(|&host| hosts.values().append_value(fabric.host_name(host)));
        hosts.append(true);
    }
    let number = |field: fn(&App) -> u32| ids(apps.iter().map(|app| Some(field(app))));
    table([
        ("name", texts(apps.iter().map(|app| &app.name))),
        ("arrived_s", times(apps.iter().map(|app| app.arrived))),
        ("placed_s", maybe_times(apps.iter().map(|app| app.placed))),
        ("finished_s", maybe_times(apps.iter().map(|app| app.finished))),
        ("forecast_s", maybe_times(apps.iter().map(|app| app.forecast))),
        ("tasks", number(|app| app.tasks)),
        ("hosts", Arc::new(hosts.finish()) as ArrayRef),
        ("bytes", counts(apps.iter().map(|app| app.bytes))),
        ("network_bytes", counts(apps.iter().map(|app| app.network_bytes.round() as u64))),
        ("memory_bytes", counts(apps.iter().map(|app| app.memory_bytes.round() as u64))),
        ("migrations", number(|app| app.migrations)),
        ("tasks_moved", number(|app| app.tasks_moved)),
        ("refused", number(|app| app.refused)),
        ("restarts", number(|app| app.restarts)),
    ])
}

pub fn migrations(record: &Record) -> PyResult<ArrowTable> {
    let migrations = &record.migrations;
    table([
        ("time_s", times(migrations.iter().map(|migration| migration.at))),
        ("app", ids(migrations.iter().map(|migration| Some(migration.app)))),
        ("tasks", ids(migrations.iter().map(|migration| Some(migration.tasks)))),
        ("stay_s", maybe_times(migrations.iter().map(|migration| migration.stays))),
        ("move_s", times(migrations.iter().map(|migration| migration.moves))),
        ("cost_s", times(migrations.iter().map(|migration| migration.cost))),
        ("resumed_s", maybe_times(migrations.iter().map(|migration| migration.resumed))),
    ])
}
