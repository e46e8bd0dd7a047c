//! `leeward.packets`: runs scenarios of the packet simulator and returns their records as Arrow tables.

use std::sync::Mutex;

use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_packets::{Outcome, ScenarioError};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;

use crate::arrow_table::table;
use crate::circuits::PythonScheduler;
use crate::errors::{PyInputError, Raised};
use crate::probe_evaluation::train_estimate;
use crate::records::{ArrowTable, counts, ids, maybe_times, texts, times};
use crate::simulation::as_python;

/// A scenario of the packet simulator, read and validated.
#[pyclass(frozen, module = "leeward")]
pub struct PacketScenario {
    inner: leeward_packets::Scenario,
    /// Exception that the run's scheduler raised, if the scheduler is a Python function.
    raised: Raised,
}

/// Result of a run.
#[pyclass(frozen, module = "leeward")]
pub struct PacketRun {
    inner: Outcome,
    circuit_bps: f64,
}

#[pymethods]
impl PacketScenario {
    /// Reads and checks a scenario file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: &str) -> Result<PacketScenario, PyInputError> {
        let inner = py.detach(|| leeward_packets::Scenario::from_file(path))?;
        Ok(PacketScenario { inner, raised: Raised::default() })
    }

    /// `scheduler(rows, network)` computes the days of circuits and replaces the scheduler in the text.
    #[staticmethod]
    #[pyo3(signature = (text, name = "<text>", scheduler = None))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        name: &str,
        scheduler: Option<(String, Py<PyAny>)>,
    ) -> PyResult<PacketScenario> {
        use leeward_packets::Scenario;
        let raised = Raised::default();
        let scheduler = scheduler.map(|(name, call)| PythonScheduler { name, call, raised: raised.clone() });
        let scenario = py.detach(|| match scheduler {
            Some(scheduler) => Scenario::from_text_by(name, text, Box::new(scheduler)),
            None => Scenario::from_text(name, text),
        });
        if let Some(error) = raised.take() {
            return Err(error);
        }
        Ok(PacketScenario { inner: scenario.map_err(PyInputError)?, raised })
    }

    /// Number of racks.
    #[getter]
    fn racks(&self) -> usize {
        self.inner.settings().switch.racks
    }

    /// Number of hosts of each rack.
    #[getter]
    fn hosts_per_rack(&self) -> usize {
        self.inner.settings().hosts_per_rack
    }

    /// Maximum length of a run, in seconds.
    #[getter]
    fn horizon_s(&self) -> f64 {
        self.inner.horizon().as_secs_f64()
    }

    /// Observed pairs of racks, as (source, destination).
    #[getter]
    fn sampled(&self) -> Vec<(usize, usize)> {
        self.inner.settings().sampled.clone()
    }

    /// Runs the scenario; calls `progress` with the completed share of the horizon.
    #[pyo3(signature = (progress = None))]
    fn run(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<PacketRun> {
        let (result, error) =
            self.with_progress(py, progress, |scenario, on_progress| scenario.run(on_progress));
        if let Some(error) = error {
            return Err(error);
        }
        let inner = result.map_err(|error| match error {
            ScenarioError::Simulator(error) => PyInputError(InputError::new("scenario", error)).into(),
            ScenarioError::Copies(error) => PyInputError(error).into(),
            ScenarioError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        })?;
        Ok(self.finished(inner))
    }
}

impl PacketScenario {
    /// Runs a scenario without the interpreter's lock; calls `progress` with the completed share. Returns also the
    /// exception that `progress` or the scheduler raised.
    pub(crate) fn with_progress<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        run: impl FnOnce(&leeward_packets::Scenario, &dyn Fn(f64) -> bool) -> T + Send,
    ) -> (T, Option<PyErr>) {
        let interrupted: Mutex<Option<PyErr>> = Mutex::new(None);
        let on_progress = |share: f64| {
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            result.map_err(|error| *interrupted.lock().expect("no thread panics here") = Some(error)).is_ok()
        };
        let result = py.detach(|| run(&self.inner, &on_progress));
        let interrupted = interrupted.into_inner().expect("no thread panics here");
        let raised = self.raised.take();
        (result, interrupted.or(raised))
    }

    /// Result of a run of this scenario.
    pub(crate) fn finished(&self, inner: Outcome) -> PacketRun {
        let circuit_bps = self.inner.settings().switch.circuit_rate.0 as f64;
        PacketRun { inner, circuit_bps }
    }
}

#[pymethods]
impl PacketRun {
    /// End of the run, number of finished flows, and packets and bytes by outcome.
    fn totals(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let records = &self.inner.records;
        let [packet, circuit] = records.delivered;
        let finished = records.flows.iter().filter(|flow| flow.finished.is_some()).count();
        let totals = json!({
            "ended_s": self.inner.ended.as_secs_f64(),
            "flows": records.flows.len(),
            "finished": finished,
            "sent_packets": records.sent.packets,
            "sent_bytes": records.sent.bytes,
            "packet_packets": packet.packets,
            "packet_bytes": packet.bytes,
            "uplink_bytes": records.uplink_bytes,
            "circuit_packets": circuit.packets,
            "circuit_bytes": circuit.bytes,
            "local_packets": records.local.packets,
            "local_bytes": records.local.bytes,
            "dropped_packets": records.dropped.packets,
            "dropped_bytes": records.dropped.bytes,
            "held_bytes": self.inner.bytes_in_switch,
            "hops_packets": records.hops.map(|traffic| traffic.packets),
            "data_packets": records.data_packets,
        });
        as_python(py, &totals)
    }

    /// Flows, by number.
    fn flows(&self) -> PyResult<ArrowTable> {
        let flows = &self.inner.records.flows;
        let seconds = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
        table([
            ("flow", ids((0..flows.len()).map(|flow| u32::try_from(flow).ok()))),
            ("class", ids(flows.iter().map(|f| Some(f.flow.class)))),
            ("source_rack", ids(flows.iter().map(|f| Some(f.flow.source.rack)))),
            ("source_host", ids(flows.iter().map(|f| Some(f.flow.source.host)))),
            ("destination_rack", ids(flows.iter().map(|f| Some(f.flow.destination.rack)))),
            ("destination_host", ids(flows.iter().map(|f| Some(f.flow.destination.host)))),
            ("began_s", maybe_times(flows.iter().map(|f| seconds(f.began)))),
            ("finished_s", maybe_times(flows.iter().map(|f| seconds(f.finished)))),
            ("written_bytes", counts(flows.iter().map(|f| f.written))),
            ("delivered_bytes", counts(flows.iter().map(|f| f.delivered))),
            ("segments", counts(flows.iter().map(|f| f.segments))),
            ("again", counts(flows.iter().map(|f| f.retransmitted))),
            ("timeouts", counts(flows.iter().map(|f| f.timeouts))),
        ])
    }

    /// Copies of blocks outside the writers' hosts, by block and by position in its chain.
    fn copies(&self) -> PyResult<ArrowTable> {
        let blocks = &self.inner.records.blocks;
        let each =
            || blocks.iter().zip(0u32..).flat_map(|(b, number)| b.copies.iter().map(move |c| (number, b, c)));
        let seconds = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
        table([
            ("block", ids(each().map(|(number, ..)| Some(number)))),
            ("file", ids(each().map(|(_, b, _)| Some(b.file)))),
            ("bytes", counts(each().map(|(_, b, _)| b.bytes))),
            ("began_s", maybe_times(each().map(|(_, b, _)| seconds(b.began)))),
            ("finished_s", maybe_times(each().map(|(_, b, _)| seconds(b.finished)))),
            ("writer_rack", ids(each().map(|(_, b, _)| Some(b.writer.rack)))),
            ("writer_host", ids(each().map(|(_, b, _)| Some(b.writer.host)))),
            ("copy_rack", ids(each().map(|(.., c)| Some(c.rack)))),
            ("copy_host", ids(each().map(|(.., c)| Some(c.host)))),
        ])
    }

    /// Trains of packets, by number, and the estimate of the probe for each.
    fn trains(&self) -> PyResult<ArrowTable> {
        let trains = &self.inner.records.trains;
        let estimates: Vec<_> = trains.iter().map(train_estimate).collect();
        table([
            ("train", ids((0..trains.len()).map(|train| u32::try_from(train).ok()))),
            ("source_rack", ids(trains.iter().map(|t| Some(t.train.source.rack)))),
            ("source_host", ids(trains.iter().map(|t| Some(t.train.source.host)))),
            ("destination_rack", ids(trains.iter().map(|t| Some(t.train.destination.rack)))),
            ("destination_host", ids(trains.iter().map(|t| Some(t.train.destination.host)))),
            ("began_s", maybe_times(trains.iter().map(|t| t.began.map(Nanos::as_secs_f64)))),
            ("sent_packets", counts(trains.iter().map(|t| t.sent))),
            ("received_packets", counts(trains.iter().map(|t| t.arrivals.len() as u64))),
            ("rate_bps", maybe_times(estimates.iter().map(|e| e.map(|e| e.rate_bps)))),
        ])
    }

    /// Days of circuits, ordered by their end.
    fn days(&self) -> PyResult<ArrowTable> {
        let days = &self.inner.records.days;
        let share = |day: &leeward_packets::DayRecord| {
            day.bytes as f64 * 8e9 / (self.circuit_bps * day.ended.since(day.began).0.max(1) as f64)
        };
        table([
            ("source", ids(days.iter().map(|d| u32::try_from(d.source).ok()))),
            ("destination", ids(days.iter().map(|d| u32::try_from(d.destination).ok()))),
            ("began_s", times(days.iter().map(|d| d.began.as_secs_f64()))),
            ("ended_s", times(days.iter().map(|d| d.ended.as_secs_f64()))),
            ("bytes", counts(days.iter().map(|d| d.bytes))),
            ("utilization", times(days.iter().map(share))),
        ])
    }

    /// Queue lengths, and bytes that have arrived in order, at the sample times.
    fn samples(&self) -> PyResult<ArrowTable> {
        let samples = &self.inner.records.samples;
        table([
            ("time_s", times(samples.iter().map(|s| s.at.as_secs_f64()))),
            ("source", ids(samples.iter().map(|s| u32::try_from(s.source).ok()))),
            ("destination", ids(samples.iter().map(|s| u32::try_from(s.destination).ok()))),
            ("packets", ids(samples.iter().map(|s| Some(s.packets)))),
            ("bytes", counts(samples.iter().map(|s| s.bytes))),
            ("capacity", ids(samples.iter().map(|s| Some(s.capacity)))),
            ("delivered_bytes", counts(samples.iter().map(|s| s.delivered))),
        ])
    }

    /// Number of data packets, by time in the switch and by path.
    fn latencies(&self) -> PyResult<ArrowTable> {
        let records = &self.inner.records;
        let paths = [("packet", Via::Packet), ("circuit", Via::Circuit)];
        let bins: Vec<(&str, Nanos, u64)> = paths
            .iter()
            .flat_map(|&(name, via)| records.latency(via).bins().map(move |(at, count)| (name, at, count)))
            .collect();
        table([
            ("path", texts(bins.iter().map(|bin| bin.0))),
            ("latency_s", times(bins.iter().map(|bin| bin.1.as_secs_f64()))),
            ("packets", counts(bins.iter().map(|bin| bin.2))),
        ])
    }

    /// Time in the switch that a share of a path's packets does not exceed; None without packets.
    fn latency(&self, path: &str, share: f64) -> Result<Option<f64>, PyInputError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(PyInputError(InputError::new(
                "share",
                format!("{share}: expected a number from 0 to 1"),
            )));
        }
        let records = &self.inner.records;
        let found = match path {
            "packet" => records.latency(Via::Packet).quantile(share),
            "circuit" => records.latency(Via::Circuit).quantile(share),
            "all" => records.all_latencies().quantile(share),
            _ => {
                let message = format!("`{path}`: expected packet, circuit or all");
                return Err(PyInputError(InputError::new("path", message)));
            }
        };
        Ok(found.map(Nanos::as_secs_f64))
    }

    /// Share of a circuit's days during which the circuit sent data; None if it has no day.
    #[pyo3(signature = (source, destination, since_s = 0.0))]
    fn utilization(&self, source: usize, destination: usize, since_s: f64) -> Option<f64> {
        let since = Nanos::from_secs_f64(since_s);
        self.inner.records.circuit_utilization(source, destination, self.circuit_bps, since)
    }
}
