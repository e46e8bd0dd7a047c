//! `leeward.cells`: runs scenarios of cells, and returns their records as Arrow tables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, BooleanArray};
use leeward_cells::{Arm, Counts, RunError, RunRecord, Sample, Scenario, Sides, Summary};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::arrow_table::table;
use crate::errors::PyInputError;
use crate::records::{ArrowTable, counts, maybe_times, texts, times};

/// A scenario of cells, read and validated.
#[pyclass(frozen, module = "leeward")]
pub struct CellsScenario {
    inner: Scenario,
}

/// Records of the runs of a scenario.
#[pyclass(frozen, module = "leeward")]
pub struct CellsRuns {
    runs: Vec<RunRecord>,
}

#[pymethods]
impl CellsScenario {
    /// Reads and checks a scenario file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: &str) -> Result<CellsScenario, PyInputError> {
        let inner = py.detach(|| Scenario::from_file(path))?;
        Ok(CellsScenario { inner })
    }

    /// Reads a scenario from text; the file of its cluster is looked up from the folder `base`.
    #[staticmethod]
    #[pyo3(signature = (text, base, name = "<text>"))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        base: PathBuf,
        name: &str,
    ) -> Result<CellsScenario, PyInputError> {
        let inner = py.detach(|| Scenario::from_text(name, text, &base))?;
        Ok(CellsScenario { inner })
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Number of cells.
    #[getter]
    fn cells(&self) -> u32 {
        self.inner.geometry().cells
    }

    /// Number of hosts of all cells.
    #[getter]
    fn hosts(&self) -> u32 {
        self.inner.geometry().all_hosts()
    }

    /// Number of runs: one ledger, and cells.
    #[getter]
    fn runs(&self) -> usize {
        self.inner.arms().len()
    }

    /// Length of a run, in seconds.
    #[getter]
    fn horizon_s(&self) -> f64 {
        self.inner.horizon().as_secs_f64()
    }

    /// Makes all runs; calls `progress` with the completed share.
    #[pyo3(signature = (progress = None))]
    fn run(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<CellsRuns> {
        let interrupted: Mutex<Option<PyErr>> = Mutex::new(None);
        let on_progress = |share: f64| {
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            result.map_err(|error| *interrupted.lock().expect("no thread panics here") = Some(error)).is_ok()
        };
        let result = py.detach(|| self.inner.run(&on_progress));
        if let Some(error) = interrupted.into_inner().expect("no thread panics here") {
            return Err(error);
        }
        let runs = result.map_err(|error| match error {
            RunError::Invalid(error) => PyErr::from(PyInputError(error)),
            RunError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        })?;
        Ok(CellsRuns { runs })
    }
}

#[pymethods]
impl CellsRuns {
    /// A row for each run: who decided, what the deciders knew, and the quality of placement.
    fn runs(&self) -> PyResult<ArrowTable> {
        let rows: Vec<Summary> = self.runs.iter().map(Summary::of).collect();
        let number = |field: fn(&Summary) -> f64| times(rows.iter().map(field));
        let count = |field: fn(&Counts) -> u64| counts(rows.iter().map(|row| field(&row.counts)));
        let interval = |row: &Summary| match row.arm {
            Arm::OneLedger => None,
            Arm::Cells { interval, .. } => Some(interval.as_secs_f64()),
        };
        let loss = |row: &Summary| match row.arm {
            Arm::OneLedger => None,
            Arm::Cells { loss, .. } => Some(loss),
        };
        let absent = rows.iter().map(|row| Some(matches!(row.arm, Arm::Cells { absent: true, .. })));
        table([
            ("decided_by", texts(rows.iter().map(|row| row.arm.name()))),
            ("interval_s", maybe_times(rows.iter().map(interval))),
            ("loss", maybe_times(rows.iter().map(loss))),
            ("absent", Arc::new(BooleanArray::from_iter(absent)) as ArrayRef),
            ("core_fullest", number(|row| row.core.fullest)),
            ("core_most", number(|row| row.core_most)),
            ("core_p98", number(|row| row.core.p98)),
            ("core_hot", number(|row| row.core.hot)),
            ("core_excess", number(|row| row.core.excess)),
            ("rack_fullest", number(|row| row.racks.fullest)),
            ("rack_p98", number(|row| row.racks.p98)),
            ("rack_hot", number(|row| row.racks.hot)),
            ("rack_excess", number(|row| row.racks.excess)),
            ("hot", number(|row| row.hot)),
            ("rejected", number(|row| row.rejected)),
            ("crossed", number(|row| row.crossed)),
            ("wait_mean_s", number(|row| row.wait_mean)),
            ("wait_p99_s", number(|row| row.wait_p99)),
            ("placed_count", count(|counts| counts.placed)),
            ("crossed_count", count(|counts| counts.crossed)),
            ("refused_count", count(|counts| counts.refused)),
            ("unplaced_count", count(|counts| counts.unplaced)),
            ("without_controller_count", count(|counts| counts.without_controller)),
            ("stayed_count", count(|counts| counts.stayed)),
            ("messages", count(|counts| counts.messages)),
            ("lost", count(|counts| counts.lost)),
            ("repeated", count(|counts| counts.repeated)),
            ("cancelled", count(|counts| counts.cancelled)),
            ("expired", count(|counts| counts.expired)),
        ])
    }

    /// A row for each run and telemetry window: the links of the core and of racks.
    fn windows(&self) -> PyResult<ArrowTable> {
        let rows = || {
            let numbered = (0_u64..).zip(&self.runs);
            numbered.flat_map(|(number, run)| run.samples.iter().map(move |sample| (number, sample)))
        };
        let side = |sides: fn(&Sample) -> &Sides, field: fn(&Sides) -> f64| {
            times(rows().map(move |(_, sample)| field(sides(sample))))
        };
        let bps = |field: fn(&Sample) -> i64| times(rows().map(move |(_, sample)| field(sample) as f64));
        table([
            ("run", counts(rows().map(|(number, _)| number))),
            ("end_s", times(rows().map(|(_, sample)| sample.at.as_secs_f64()))),
            ("core_fullest", side(|sample| &sample.core, |sides| sides.fullest)),
            ("core_p98", side(|sample| &sample.core, |sides| sides.p98)),
            ("core_hot", side(|sample| &sample.core, |sides| sides.hot)),
            ("core_excess", side(|sample| &sample.core, |sides| sides.excess)),
            ("rack_fullest", side(|sample| &sample.racks, |sides| sides.fullest)),
            ("rack_p98", side(|sample| &sample.racks, |sides| sides.p98)),
            ("rack_hot", side(|sample| &sample.racks, |sides| sides.hot)),
            ("rack_excess", side(|sample| &sample.racks, |sides| sides.excess)),
            ("placed_up_bps", bps(|sample| sample.placed_up_bps)),
            ("placed_down_bps", bps(|sample| sample.placed_down_bps)),
            ("writes", counts(rows().map(|(_, sample)| sample.writes))),
        ])
    }
}
