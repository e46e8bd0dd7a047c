//! Loads of links, and connections of others on them, as Python gives them: the path of a file, or a table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow_array::RecordBatch;
use leeward_fabric::input::{Files, InputError};
use leeward_fabric::{Fabric, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::{
    Clock, MeasuredLoads, Sample, parse_connections, parse_load, read_cross_traffic, read_loads,
};
use pyo3::prelude::*;

use crate::arrow_table::{batches, is_table};
use crate::columns::{Column, Ids};

/// Rows about links.
pub enum LinkRows {
    File(PathBuf),
    Table(Vec<RecordBatch>),
}

impl LinkRows {
    /// Takes an argument of Python.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<LinkRows> {
        if is_table(value)? {
            Ok(LinkRows::Table(batches(value)?))
        } else {
            Ok(LinkRows::File(value.extract()?))
        }
    }

    /// Takes an optional argument of Python.
    pub fn of_option(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LinkRows>> {
        value.map(LinkRows::of).transpose()
    }

    /// Samples of a telemetry file, or of a table of the argument `telemetry`; see [`read_loads`].
    pub fn samples(
        &self,
        fabric: &Fabric,
        interval: Nanos,
        clock: Option<Clock>,
    ) -> Result<(Vec<Sample>, Nanos), InputError> {
        match self {
            LinkRows::File(path) => {
                read_loads(Files::default().open(&path.to_string_lossy())?, fabric, interval, clock)
            }
            LinkRows::Table(batches) => {
                let mut loads = MeasuredLoads::default();
                each_load("telemetry", batches, fabric, |link, load, at| loads.add(link, load, at))?;
                loads.samples("telemetry", fabric, interval, clock)
            }
        }
    }

    /// Numbers of connections of others on links; see [`read_cross_traffic`].
    pub fn connections(&self, fabric: &Fabric) -> Result<Vec<(ResourceId, f64)>, InputError> {
        match self {
            LinkRows::File(path) => {
                read_cross_traffic(Files::default().open(&path.to_string_lossy())?, fabric)
            }
            LinkRows::Table(batches) => connections(batches, fabric),
        }
    }
}

/// Calls `add` for each row of a table with the columns `link`, `load_bps`, and optionally `t_s` (seconds since 1970). Rows
/// without a load are skipped: the load is unknown.
pub fn each_load(
    argument: &'static str,
    batches: &[RecordBatch],
    fabric: &Fabric,
    mut add: impl FnMut(ResourceId, Load, Option<f64>),
) -> Result<(), InputError> {
    let mut first_row = 0;
    for batch in batches {
        let column = |name| Column::of(argument, batch, name, first_row);
        let links = link_ids(&required(argument, "link", column("link"))?, fabric)?;
        let loads = required(argument, "load_bps", column("load_bps"))?;
        let bps = loads.numbers_or(0.0, |bps| parse_load(bps).is_ok(), "bits per second, not negative")?;
        let times = column("t_s").map(|times| times.numbers(f64::is_finite, "seconds since 1970"));
        let times = times.transpose()?;
        for row in (0..batch.num_rows()).filter(|&row| !loads.is_null(row)) {
            let at = times.as_ref().map(|times| times[row]);
            add(ResourceId(links.get(row)), Load(bps[row].round() as i64), at);
        }
        first_row += batch.num_rows();
    }
    Ok(())
}

/// Connections of a table with the columns `link` and `connections`.
fn connections(batches: &[RecordBatch], fabric: &Fabric) -> Result<Vec<(ResourceId, f64)>, InputError> {
    let argument = "cross_traffic";
    let (mut connections, mut first_row) = (BTreeMap::new(), 0);
    for batch in batches {
        let column = |name| Column::of(argument, batch, name, first_row);
        let links = required(argument, "link", column("link"))?;
        let ids = link_ids(&links, fabric)?;
        let counts = required(argument, "connections", column("connections"))?;
        let counts = counts.numbers(|count| parse_connections(count).is_ok(), "a number from 0 to 1e6")?;
        for (row, &count) in counts.iter().enumerate() {
            let link = ResourceId(ids.get(row));
            if connections.insert(link, count).is_some() {
                let name = fabric.resource_name(link);
                return Err(links.refuse(row, format!("`{name}`: this link has a row above")));
            }
        }
        first_row += batch.num_rows();
    }
    Ok(connections.into_iter().collect())
}

/// Links by number or name.
fn link_ids(column: &Column<'_>, fabric: &Fabric) -> Result<Ids, InputError> {
    let is_link = |link: &ResourceId| fabric.kind(*link) != ResourceKind::Device;
    column.ids("link", fabric.link_count(), |name| fabric.resource(name).filter(is_link).map(|link| link.0))
}

fn required<'a>(argument: &str, name: &str, column: Option<Column<'a>>) -> Result<Column<'a>, InputError> {
    column.ok_or_else(|| InputError::new(argument, "the table has no such column").in_field(name))
}
