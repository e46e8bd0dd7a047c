//! Telemetry reports. The newer parts of a valid report are accepted; an invalid report is rejected as a whole. Data
//! about ended work is skipped, because reporters learn of ends late.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::{Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_readings::{Reading, ReportedDiskName};

use super::clamp::Clamped;
use super::error::{InvalidReport, InvalidReportReason, ReportPart};
use super::reply::{ReportSummary, Skipped, UNKNOWN};
use super::request::Report;
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Takes in telemetry: all newer parts, or nothing if any part is invalid.
    ///
    /// # Errors
    /// The first part that is invalid.
    pub fn report(&mut self, now: Nanos, mut report: Report) -> Result<ReportSummary, InvalidReport> {
        self.wake(now);
        self.check(&report).map_err(|(part, reason)| InvalidReport { part, reason })?;
        let (window, mut skipped) = (report.window, Skipped::default());
        let mut clamped = Clamped::default();
        for state in &report.hosts {
            let mut excess = Clamped::default();
            let state = self.clamp_stored(*state, &mut excess);
            let (newer, stale) = self.hosts.newer_parts(&state, window.1);
            skipped.stale += stale;
            if newer.stored.is_some() {
                clamped.add(excess);
            }
            let up = newer.up.map(|up| Input::Health(newer.host, up));
            let draining = newer.draining.map(|draining| Input::Drain(newer.host, draining));
            let stored = newer.stored.map(|stored| Input::Stored(newer.host, stored));
            let storage = newer.storage.map(|storage| Input::Storage(newer.host, storage));
            for input in [up, draining, storage, stored].into_iter().flatten() {
                self.apply(input);
            }
        }
        if !report.tasks.is_empty() {
            let ended = report.tasks.iter().filter(|(task, _)| self.engine.host_of(*task).is_none());
            skipped.unknown += ended.count() as u64;
            self.apply(Input::Rates(&report.tasks));
        }
        for (name, latency) in &report.workloads {
            match self.promises.record_latency(name, window.1, *latency) {
                Some(true) => {}
                Some(false) => skipped.stale += 1,
                None => skipped.unknown += 1,
            }
        }
        self.remove_unknown_disks(&mut report);
        self.clamp_loads(&mut report, &mut clamped);
        self.apply_readings(&report);
        let mut accept = |samples: &[Sample]| {
            if samples.is_empty() {
                return 0;
            }
            let discarded = self.engine.report(self.now, samples, &mut self.outputs);
            self.handle_outputs();
            skipped.stale += discarded.stale;
            skipped.down += discarded.down;
            samples.len() as u64 - discarded.total()
        };
        let (links, devices) = (accept(&report.loads), accept(&report.devices));
        self.samples += links + devices;
        let ledger = self.engine.ledger();
        Ok(ReportSummary {
            links,
            devices,
            skipped,
            clamped: clamped.count,
            clamped_names: clamped.names,
            unknown_devices: report.unknown_devices,
            interval_s: ledger.settings().interval.as_secs_f64(),
            epoch: ledger.epoch(),
        })
    }

    /// Removes disks that are not the device of their host, because the cluster does not have such disks.
    fn remove_unknown_disks(&mut self, report: &mut Report) {
        let mut unknown = BTreeSet::new();
        for (device, disk) in std::mem::take(&mut report.disks) {
            let is_device = self.disks.is_device(device, &disk);
            if let (false, ReportedDiskName::Only(name)) = (is_device, disk) {
                unknown.insert(device);
                if report.unknown_devices.len() < UNKNOWN {
                    report.unknown_devices.push(name);
                }
            }
        }
        if !unknown.is_empty() {
            report.devices.retain(|sample| !unknown.contains(&sample.resource));
            report.readings.retain(|(device, _)| !unknown.contains(device));
        }
    }

    /// Applies the readings of samples that are news. A link without a reading gets the cluster's speed again.
    fn apply_readings(&mut self, report: &Report) {
        let until = report.window.1;
        let readings: BTreeMap<ResourceId, Reading> = report.readings.iter().copied().collect();
        let has_reading =
            |resource: &ResourceId| readings.contains_key(resource) || self.readings.get(*resource).is_some();
        let ledger = self.engine.ledger();
        let samples = report.loads.iter().chain(&report.devices);
        let news = samples.filter(|sample| has_reading(&sample.resource) && ledger.is_news(sample, self.now));
        let resources: Vec<ResourceId> = news.map(|sample| sample.resource).collect();
        for resource in resources {
            let reading = readings.get(&resource).copied().unwrap_or_default();
            self.apply_reading(resource, until, reading);
        }
    }

    /// Applies the reading of one resource, and the capacity that follows from it.
    pub(super) fn apply_reading(&mut self, resource: ResourceId, until: Nanos, reading: Reading) {
        let ledger = self.engine.ledger();
        let interval = ledger.settings().interval;
        let capacity = ledger.view(self.now, &mut self.scratch).capacity(resource);
        let capacity = self.engine.capacity_before_loss(resource).unwrap_or(capacity);
        if let Some(capacity) = self.readings.record(resource, until, reading, capacity, interval) {
            self.apply(Input::SetCapacity(resource, capacity));
        }
    }

    /// Returns the first error of a report. Its other parts may be wrong too.
    fn check(&self, report: &Report) -> Result<(), (ReportPart, InvalidReportReason)> {
        let (from, until) = report.window;
        if from >= until {
            return Err((ReportPart::Window, InvalidReportReason::EmptyWindow));
        }
        if until > self.now.plus(self.engine.ledger().settings().interval) {
            return Err((ReportPart::Window, InvalidReportReason::FutureWindow));
        }
        let mut hosts = BTreeSet::new();
        for (at, state) in report.hosts.iter().enumerate() {
            if !hosts.insert(state.host) {
                return Err((ReportPart::Host(at), InvalidReportReason::Duplicate));
            }
            if state.up.is_some() && !(report.loads.is_empty() && report.devices.is_empty()) {
                return Err((ReportPart::Host(at), InvalidReportReason::HealthWithLoads));
            }
        }
        let mut workloads = BTreeSet::new();
        for (at, (name, _)) in report.workloads.iter().enumerate() {
            if !workloads.insert(name) {
                return Err((ReportPart::Workload(at), InvalidReportReason::Duplicate));
            }
        }
        let mut links = BTreeSet::new();
        for (at, sample) in report.loads.iter().enumerate() {
            if sample.load.0 < 0 {
                return Err((ReportPart::Load(at), InvalidReportReason::NegativeLoad));
            }
            if !links.insert(sample.resource) {
                return Err((ReportPart::Load(at), InvalidReportReason::Duplicate));
            }
        }
        Ok(())
    }
}
