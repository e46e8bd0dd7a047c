//! `leeward.Trace`: the requests of a file, and statistics, r-b curves and models of them.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU64;
use std::path::PathBuf;

use leeward_calculus::RbCurve;
use leeward_calculus::assumptions::{Activity, stationarity};
use leeward_calculus::fit::{FitError, FitSettings, SizeModel, fit_nanos};
use leeward_fabric::input::{Files, InputError, Text, format_number};
use leeward_fabric::{Bytes, Nanos};
use leeward_traces::device::{Device, Service};
use leeward_traces::read::{Dialect, Event, ReadSettings, Requests, Rest, Tally};
use leeward_traces::statistics::Statistics;
use leeward_traces::{NetworkWork, Request, Stage, Tail, Work};
use pyo3::prelude::*;

use crate::errors::PyInputError;
use crate::simulation::as_python;
use crate::tables::parquet;
use crate::trace_records::{Curve, LeftOut, Model, StageStatistics, TraceStatistics, bucket, buckets, unit};

/// Number of requests between two checks for a user's interrupt.
const REQUESTS: u64 = 1 << 18;
/// First bytes of a Parquet file, and the columns to read from one.
const PARQUET: [u8; 4] = *b"PAR1";
const COLUMNS: [&str; 4] = ["seconds", "kind", "size", "offset"];

/// A trace in a file. Each query reads the file again, in constant memory except for a model.
#[pyclass(frozen, module = "leeward")]
pub struct Trace {
    file: String,
    files: Files,
    settings: ReadSettings,
    network: NetworkWork,
    device: Option<Device>,
}

#[pymethods]
impl Trace {
    #[new]
    #[pyo3(signature = (file, *, data = None, dialect = None, event = None, volume = None, largest = None, sort = false, device = None,
        seek_s = None, overhead = None, payload = None, other = None))]
    #[expect(clippy::too_many_arguments, reason = "settings by keyword")]
    fn new(
        file: String,
        data: Option<PathBuf>,
        dialect: Option<&str>,
        event: Option<&str>,
        volume: Option<String>,
        largest: Option<&str>,
        sort: bool,
        device: Option<&str>,
        seek_s: Option<f64>,
        overhead: Option<f64>,
        payload: Option<f64>,
        other: Option<f64>,
    ) -> Result<Trace, PyInputError> {
        let invalid = |name: &str, given: &str, expected: String| {
            let given = leeward_fabric::input::excerpt(given);
            PyInputError(InputError::new(name, format!("`{given}`: expected {expected}")))
        };
        let mut settings = ReadSettings { volume, sort, ..ReadSettings::default() };
        if let Some(name) = dialect {
            let known = Dialect::ALL.map(Dialect::name).join(", ");
            let unknown = || invalid("dialect", name, format!("one of {known}"));
            settings.dialect = Some(Dialect::from_name(name).ok_or_else(unknown)?);
        }
        if let Some(name) = event {
            settings.event = Event::from_name(name).ok_or_else(|| invalid("event", name, "Q or D".into()))?;
        }
        if let Some(text) = largest {
            settings.largest = text.parse::<Bytes>().map_err(|error| InputError::new("largest", error))?.0;
        }
        let mut device = device.map(Device::read).transpose()?;
        if let Some(seconds) = seek_s {
            let refuse = |message: String| PyInputError(InputError::new("seek_s", message));
            match device.as_mut().map(|device| &mut device.service) {
                Some(Service::Disk(disk)) => {
                    let constant = disk.with_constant_seek(seconds);
                    *disk = constant.map_err(|error| refuse(error.to_string()))?;
                }
                _ => return Err(refuse("expected a disk as the device".into())),
            }
        }
        let network = NetworkWork::with_defaults(overhead, payload, other)
            .map_err(|error| InputError::new("network", error))?;
        let files = Files { base: PathBuf::new(), data };
        Ok(Trace { file, files, settings, network, device })
    }

    /// The trace in numbers, as `leeward slo curve -o json` prints it.
    #[pyo3(signature = (window_s = 1.0, percentile = None))]
    fn statistics(&self, py: Python<'_>, window_s: f64, percentile: Option<f64>) -> PyResult<Py<PyAny>> {
        let window = NonZeroU64::new(Nanos::from_secs_f64(window_s).0);
        let window = window.filter(|_| window_s.is_finite()).ok_or_else(|| {
            PyInputError(InputError::new(
                "window_s",
                format!("{}: expected a time in seconds, at least 1e-9", format_number(window_s)),
            ))
        })?;
        let described = py.detach(|| -> PyResult<TraceStatistics> {
            let mut statistics = Statistics::new(window);
            let mut work = Work::new(self.network, self.device.as_ref());
            let mut tail = percentile.zip(self.device.as_ref()).map(|(at, device)| Tail::new(device, at));
            let (dialect, tally) = self.each(|request| {
                statistics.push(request, work.of(request).map_err(|error| self.invalid(error))?);
                let tail = tail.as_mut().map_or(Ok(()), |tail| tail.push(request));
                tail.map_err(|error| InputError::new("percentile", error))
            })?;
            let summary = statistics.summary();
            let stages = Stage::ALL.into_iter().zip(summary.work).filter_map(|(stage, work)| {
                let work = work?;
                Some(StageStatistics {
                    stage: stage.name(),
                    unit: unit(stage),
                    total: work.total,
                    rate: work.rate,
                    largest: work.largest,
                    peak_over_mean: work.peak_over_mean,
                })
            });
            Ok(TraceStatistics {
                file: self.file.clone(),
                dialect: dialect.name(),
                device: self.device.as_ref().and_then(|device| device.name.clone()),
                requests: summary.requests,
                lines: tally.lines,
                passed_over: tally.rest(Rest::NoPayload),
                left_out: LeftOut::of(&tally),
                lost_events: tally.lost,
                rounded: tally.rounded,
                moved: tally.moved,
                disorder_s: tally.disorder.as_secs_f64(),
                seconds: summary.seconds,
                requests_per_s: summary.rate,
                gap_c2: summary.gap_c2,
                window_s: Nanos(window.get()).as_secs_f64(),
                peak_over_mean: summary.peak_over_mean,
                read_share: summary.read_share,
                bytes: summary.bytes as f64,
                mean_size_bytes: summary.mean_size,
                largest_size_bytes: summary.largest_size,
                stages: stages.collect(),
                unloaded_s: tail.and_then(|tail| tail.seconds()),
                outstanding: self.device.as_ref().and_then(|device| device.outstanding.requests()),
            })
        })?;
        as_python(py, &described)
    }

    /// The r-b curve at a stage, as `leeward slo curve -o json` prints it.
    #[pyo3(signature = (stage, *, prune = None, error = None, margin = 0.0, multiple = 1.5, deadline_s = None))]
    #[expect(clippy::too_many_arguments, reason = "settings by keyword")]
    fn curve(
        &self,
        py: Python<'_>,
        stage: &str,
        prune: Option<usize>,
        error: Option<f64>,
        margin: f64,
        multiple: f64,
        deadline_s: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let stage = self.stage(stage)?;
        let refuse = |name, error| PyInputError(InputError::new(name, error));
        let curve = py.detach(|| self.rb_curve(stage))?;
        let invalid = |message: String| PyInputError(InputError::new("margin", message));
        if margin.is_nan() || margin < 0.0 {
            return Err(
                invalid(format!("{}: expected a share from 0, such as 0.1", format_number(margin))).into()
            );
        }
        let scaled = curve.scaled(1.0 + margin);
        let curve = scaled.map_err(|_| {
            invalid(format!("{}: the scaled work exceeds the range of numbers", format_number(margin)))
        })?;
        let alpha = curve.arrival_curve();
        let pruned = match (prune, error) {
            (None, None) => None,
            (Some(count), None) => Some(alpha.prune_to(count).map_err(|error| refuse("prune", error))?),
            (None, Some(share)) => Some(alpha.prune_within(share).map_err(|error| refuse("error", error))?),
            (Some(_), Some(_)) => {
                let message = "expected one of `prune` and `error`, not both";
                return Err(PyInputError(InputError::new("prune", message)).into());
            }
        };
        let (approximation, error) = match pruned {
            Some(pruned) => (pruned.curve, pruned.error),
            None => (alpha.clone(), 0.0),
        };
        let effective = deadline_s.map(|deadline| curve.effective_bandwidth(deadline)).transpose();
        // A trace whose requests all have the same time has no mean rate, so a multiple below the mean is an error of
        // the user.
        let at_mean = curve.mean_rate().map(|_| curve.at_mean(multiple)).transpose();
        let knee = curve.mean_rate().map(|_| bucket(curve.knee()));
        as_python(
            py,
            &Curve {
                stage: stage.name(),
                unit: unit(stage),
                mean_rate: curve.mean_rate(),
                largest: curve.largest(),
                total: curve.total(),
                vertices: alpha.buckets().len(),
                buckets: buckets(&approximation),
                error,
                multiple,
                at_mean: at_mean.map_err(|error| refuse("multiple", error))?.map(bucket),
                knee,
                deadline_s,
                effective_bandwidth: effective.map_err(|error| refuse("deadline_s", error))?,
            },
        )
    }

    /// A Markov-modulated arrival process fitted to a stage, as `leeward slo model -o json` prints it.
    #[pyo3(signature = (stage, *, interval_s = None, step_s = None, batch_s = None, states = None, deviations = None,
        sizes = None, published = false))]
    #[expect(clippy::too_many_arguments, reason = "settings by keyword")]
    fn model(
        &self,
        py: Python<'_>,
        stage: &str,
        interval_s: Option<f64>,
        step_s: Option<f64>,
        batch_s: Option<f64>,
        states: Option<usize>,
        deviations: Option<f64>,
        sizes: Option<&str>,
        published: bool,
    ) -> PyResult<Py<PyAny>> {
        let stage = self.stage(stage)?;
        if deviations.is_some() && !published {
            let message = "expected only with `published`";
            return Err(PyInputError(InputError::new("deviations", message)).into());
        }
        let base = if published { FitSettings::published() } else { FitSettings::default() };
        let settings = FitSettings {
            interval: interval_s.unwrap_or(base.interval),
            step: step_s.unwrap_or(base.step),
            batch: batch_s.unwrap_or(base.batch),
            states: states.unwrap_or(base.states),
            deviations: deviations.unwrap_or(base.deviations),
            sizes: match sizes {
                None => base.sizes,
                Some("empirical") => SizeModel::Empirical(32),
                Some("exponential") => SizeModel::Exponential,
                Some("hyperexponential") => SizeModel::Hyperexponential,
                Some(other) => {
                    let other = leeward_fabric::input::excerpt(other);
                    let message =
                        format!("`{other}`: expected one of empirical, exponential, hyperexponential");
                    return Err(PyInputError(InputError::new("sizes", message)).into());
                }
            },
            ..base
        };
        let model = py.detach(|| -> PyResult<Model> {
            let mut arrivals = Vec::new();
            self.work(stage, |at, work| arrivals.push((at.0, work)))?;
            let fit = fit_nanos(arrivals.iter().copied(), &settings).map_err(|error| match error {
                FitError::Setting { name, value, expected } => PyInputError(InputError::new(
                    name,
                    format!("{}: expected {expected}", format_number(value)),
                )),
                error => PyInputError(self.invalid(error)),
            })?;
            let mut activity = Activity::default();
            arrivals.iter().for_each(|&(at, work)| activity.push(at, work));
            let tested = stationarity(&activity);
            let curve = RbCurve::from_nanos(arrivals).map_err(|error| PyInputError(self.invalid(error)))?;
            let device = self.device.as_ref().filter(|_| stage == Stage::Storage);
            let outstanding = device.and_then(|device| device.outstanding.requests());
            Ok(Model::of(stage, &settings, &fit, tested, &curve, outstanding))
        })?;
        as_python(py, &model)
    }
}

/// Validates the text of a device file.
#[pyfunction]
pub fn check_device(name: &str, text: &str) -> Result<(), PyInputError> {
    Ok(Device::from_text(name, text).map(drop)?)
}

/// Parses a size in the form of files, such as `64KiB`, to bytes.
#[pyfunction]
pub fn byte_count(text: &str) -> Result<u64, PyInputError> {
    let size: Bytes = text.parse().map_err(|error| InputError::new("size", format!("{error}")))?;
    Ok(size.0)
}

impl Trace {
    /// Name of the file.
    #[cfg(feature = "service")]
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Reads the trace and passes on each request. Returns the dialect and an account of the lines.
    pub(crate) fn each(
        &self,
        mut take: impl FnMut(&Request) -> Result<(), InputError>,
    ) -> PyResult<(Dialect, Tally)> {
        let mut requests = Requests::open(self.text()?, &self.settings).map_err(PyInputError)?;
        let mut count = 0_u64;
        for request in requests.by_ref() {
            take(&request.map_err(PyInputError)?).map_err(PyInputError)?;
            count += 1;
            if count.is_multiple_of(REQUESTS) {
                Python::attach(|py| py.check_signals())?;
            }
        }
        Ok((requests.dialect(), requests.tally()))
    }

    /// Reads the trace and passes on each request's time and work at a stage.
    fn work(&self, stage: Stage, mut take: impl FnMut(Nanos, f64)) -> PyResult<()> {
        let mut work = Work::new(self.network, self.device.as_ref());
        self.each(|request| {
            let work = work.of(request).map_err(|error| self.invalid(error))?;
            // The work is always known at this stage.
            take(request.at, work.at(stage).unwrap_or(0.0));
            Ok(())
        })?;
        Ok(())
    }

    fn rb_curve(&self, stage: Stage) -> PyResult<RbCurve> {
        // The curve pulls arrivals one by one from the reader.
        let mut requests = Requests::open(self.text()?, &self.settings).map_err(PyInputError)?;
        let mut work = Work::new(self.network, self.device.as_ref());
        let (mut failed, mut count) = (None, 0_u64);
        let arrivals = std::iter::from_fn(|| {
            let request = requests.next()?;
            count += 1;
            let signals =
                if count.is_multiple_of(REQUESTS) { Python::attach(|py| py.check_signals()) } else { Ok(()) };
            let arrival = signals.and_then(|()| {
                let request = request.map_err(PyInputError)?;
                let work = work.of(&request).map_err(|error| PyInputError(self.invalid(error)))?;
                Ok((request.at.0, work.at(stage).unwrap_or(0.0)))
            });
            arrival.map_err(|error| failed = Some(error)).ok()
        });
        let curve = RbCurve::from_nanos(arrivals);
        match failed {
            Some(error) => Err(error),
            None => Ok(curve.map_err(|error| PyInputError(self.invalid(error)))?),
        }
    }

    fn text(&self) -> Result<Text, PyInputError> {
        Ok(open_text(&self.files, &self.file)?)
    }

    fn stage(&self, name: &str) -> Result<Stage, PyInputError> {
        let refuse = |message: String| PyInputError(InputError::new("stage", message));
        let stage = Stage::from_name(name).ok_or_else(|| {
            let known = Stage::ALL.map(Stage::name).join(", ");
            refuse(format!("`{}`: expected one of {known}", leeward_fabric::input::excerpt(name)))
        })?;
        if stage == Stage::Storage && self.device.is_none() {
            return Err(refuse("storage: expected a device, which defines the work of requests".into()));
        }
        Ok(stage)
    }

    fn invalid(&self, error: impl std::fmt::Display) -> InputError {
        InputError::new(&self.file, error)
    }
}

/// Opens a file, or the text that replaces it.
pub fn open_text(files: &Files, name: &str) -> Result<Text, InputError> {
    // Errors about a name or a file occur here.
    let text = files.open(name)?;
    let path = files.path(name)?;
    let mut start = [0; PARQUET.len()];
    let begun = File::open(&path).and_then(|mut file| file.read_exact(&mut start));
    if begun.is_err() || start != PARQUET {
        return Ok(text);
    }
    let rows = parquet(&path, &COLUMNS, false).map_err(|error| InputError::new(name, error))?;
    Ok(Text::from_rows(name, rows))
}
