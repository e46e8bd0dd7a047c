//! Demand of a trace: curves and models of each stage, the unloaded latency, and the load over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_calculus::assumptions::{Activity, Stationarity, stationarity};
use leeward_calculus::fit::{FitSettings, fit_nanos};
use leeward_calculus::mmpp::Mmpp;
use leeward_calculus::{ArrivalCurve, RbCurve};
use leeward_fabric::input::{InputError, Text};
use leeward_traces::device::{Device, UnloadedError};
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::{NetworkWork, Request, Stage, Tail, Work};

/// A trace, with a cache of the results computed from it.
pub(super) struct Trace<'a> {
    name: &'a str,
    requests: Vec<Request>,
    settings: &'a Settings,
    /// Results by stage and device; network stages are the same for all devices.
    stages: BTreeMap<(Stage, Option<usize>), StageTrace>,
}

/// Settings for all traces of a file.
pub(super) struct Settings {
    /// Path of the file with these settings, for errors.
    pub path: String,
    pub network: NetworkWork,
    pub fit: FitSettings,
    /// Largest number of buckets of a curve.
    pub buckets: usize,
    /// True to sort requests by time.
    pub sort: bool,
}

/// Load of a trace over time, with the test for changes.
pub(super) struct Load {
    pub activity: Arc<Activity>,
    pub stationarity: Option<Stationarity>,
}

/// A trace at a stage.
#[derive(Clone)]
pub(super) struct StageTrace {
    pub curve: ArrivalCurve,
    pub largest: f64,
    pub model: Mmpp,
}

impl<'a> Trace<'a> {
    pub fn read(
        name: &'a str,
        volume: Option<&str>,
        settings: &'a Settings,
        open: &dyn Fn(&str) -> Result<Text, InputError>,
    ) -> Result<Trace<'a>, InputError> {
        let read = ReadSettings {
            volume: volume.map(str::to_owned),
            sort: settings.sort,
            ..ReadSettings::default()
        };
        let requests = Requests::open(open(name)?, &read)?.collect::<Result<Vec<_>, _>>()?;
        Ok(Trace { name, requests, settings, stages: BTreeMap::new() })
    }

    /// Result for a stage. The storage stage needs a device, with its number.
    pub fn at(&mut self, stage: Stage, device: Option<(usize, &Device)>) -> Result<StageTrace, InputError> {
        let device = device.filter(|_| stage == Stage::Storage);
        let key = (stage, device.map(|(number, _)| number));
        if let Some(known) = self.stages.get(&key) {
            return Ok(known.clone());
        }
        let invalid = |error: &dyn std::fmt::Display| InputError::new(self.name, error);
        let mut work = Work::new(self.settings.network, device.map(|(_, device)| device));
        let amounts: Result<Vec<f64>, _> = self
            .requests
            .iter()
            .map(|request| work.of(request).map(|work| work.at(stage).unwrap_or(0.0)))
            .collect();
        let amounts = amounts.map_err(|error| invalid(&error))?;
        let times = self.requests.iter().map(|request| request.at.0);
        let curve =
            RbCurve::from_nanos(times.zip(amounts.iter().copied())).map_err(|error| invalid(&error))?;
        if curve.total() == 0.0 {
            return Err(invalid(&format_args!(
                "its requests have no work at {stage}: leave this stage out of `stages`"
            )));
        }
        if curve.arrival_curve().rate() == 0.0 {
            return Err(invalid(&format_args!(
                "its work at {stage} arrives at one moment, so it has no rate: expected requests at two moments or more"
            )));
        }
        let times = self.requests.iter().map(|request| request.at.0);
        let fit = fit_nanos(times.zip(amounts.iter().copied()), &self.settings.fit)
            .map_err(|error| invalid(&format_args!("{stage}: {error}")))?;
        let alpha = curve.arrival_curve();
        let curve = alpha
            .prune_to(self.settings.buckets)
            .map_err(|error| InputError::new(&self.settings.path, error).in_field("buckets"))?;
        // Requests at the same moment may share a bucket, and no request exceeds the burst.
        let largest = amounts.iter().copied().fold(0.0, f64::max).min(curve.curve.burst());
        let stage_trace = StageTrace { curve: curve.curve, largest, model: fit.model };
        self.stages.insert(key, stage_trace.clone());
        Ok(stage_trace)
    }

    /// Requests and bytes over time.
    pub fn load(&self) -> Load {
        let mut activity = Activity::default();
        self.requests.iter().for_each(|request| activity.push(request.at.0, request.size as f64));
        let stationarity = stationarity(&activity);
        Load { activity: Arc::new(activity), stationarity }
    }

    /// Largest profiled latency without queueing, in seconds; `None` if the profile has none.
    pub fn tail(&self, device: &Device, percentile: f64) -> Result<Option<f64>, UnloadedError> {
        let mut tail = Tail::new(device, percentile);
        self.requests.iter().try_for_each(|request| tail.push(request))?;
        Ok(tail.seconds())
    }
}
