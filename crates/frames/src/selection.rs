//! Tables, columns and resolution that a reader of snapshots chose.

use leeward_fabric::input::excerpt;

use crate::tables::{COUNT, Column, TABLES, Table};

/// Columns of links without a choice.
const DEFAULT: &str = "link,capacity_bps,measured_bps,until,residual_bps,expected_capacity_bps";
/// Length of a step without a choice: 1 % of the capacity.
const RESOLUTION: f64 = 0.01;
/// Shortest and longest step.
pub const RESOLUTIONS: [f64; 2] = [0.000_1, 0.5];

/// Tables with their columns, in the order of the reference, and the length of a step.
#[derive(Clone)]
pub struct Selection {
    /// Chosen tables.
    pub(crate) tables: Vec<(&'static Table, Vec<&'static Column>)>,
    /// Length of a step, as a share of the capacity.
    pub(crate) resolution: f64,
}

/// A parameter of a selection is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{parameter}: {detail}")]
pub struct InvalidSelection {
    /// Name of the parameter: a table, or `resolution`.
    pub parameter: &'static str,
    /// Value, and the expected form.
    pub detail: String,
}

impl InvalidSelection {
    fn new(parameter: &'static str, detail: String) -> InvalidSelection {
        InvalidSelection { parameter, detail }
    }
}

impl PartialEq for Selection {
    fn eq(&self, other: &Selection) -> bool {
        let names = |selection: &Selection| -> Vec<Vec<&str>> {
            let columns = |columns: &[&Column]| columns.iter().map(|column| column.name).collect();
            let tables = selection.tables.iter();
            tables.map(|(table, all)| [vec![table.name], columns(all)].concat()).collect()
        };
        self.resolution == other.resolution && names(self) == names(other)
    }
}

impl Selection {
    /// Selection of these columns, in the order of [`TABLES`]. Without any, the default columns of the links.
    ///
    /// # Errors
    /// [`InvalidSelection`] with the parameter.
    pub fn new(
        columns: [Option<&str>; COUNT],
        resolution: Option<f64>,
    ) -> Result<Selection, InvalidSelection> {
        let resolution = resolution.unwrap_or(RESOLUTION);
        let [shortest, longest] = RESOLUTIONS;
        if !(shortest..=longest).contains(&resolution) {
            let detail =
                format!("{resolution}: expected a share of the capacity from {shortest} to {longest}");
            return Err(InvalidSelection::new("resolution", detail));
        }
        let columns = if columns == [None; COUNT] { [Some(DEFAULT), None, None, None] } else { columns };
        let chosen = TABLES.iter().zip(columns);
        let chosen = chosen.filter_map(|(table, names)| Some((table, names?)));
        let tables = chosen.map(|(table, names)| Ok((table, columns_of(table, names)?)));
        Ok(Selection { tables: tables.collect::<Result<_, InvalidSelection>>()?, resolution })
    }
}

/// Pattern of the columns of a table, for the description of the API.
pub fn pattern(table: &str) -> String {
    let columns = TABLES.iter().filter(|one| one.name == table).flat_map(|table| table.columns);
    let names = columns.map(|column| column.name).collect::<Vec<_>>().join("|");
    format!("^({names})(,({names}))*$")
}

fn columns_of(table: &'static Table, names: &str) -> Result<Vec<&'static Column>, InvalidSelection> {
    let mut columns: Vec<&Column> = Vec::new();
    for name in names.split(',') {
        let column = table.columns.iter().find(|column| column.name == name);
        let column = column.ok_or_else(|| {
            let known: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            let detail = format!("`{}`: expected columns of {}", excerpt(name), known.join(", "));
            InvalidSelection::new(table.name, detail)
        })?;
        if columns.iter().any(|known| known.name == name) {
            return Err(InvalidSelection::new(table.name, format!("`{name}`: named twice")));
        }
        columns.push(column);
    }
    Ok(columns)
}
