//! Telemetry reports. The newer parts of a valid report are accepted; an invalid report is rejected as a whole. Data
//! about ended work is skipped, because reporters learn of ends late.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::{Nanos, ResourceId};
use leeward_ledger::Sample;

use super::disks::ReportedDiskName;
use super::error::{InvalidReport, Part, Wrong};
use super::readings::Reading;
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
        for said in &report.hosts {
            let (news, stale) = self.hosts.news(said, window.1);
            skipped.stale += stale;
            let up = news.up.map(|up| Input::Health(news.host, up));
            let draining = news.draining.map(|draining| Input::Drain(news.host, draining));
            let stored = news.stored.map(|stored| Input::Stored(news.host, stored));
            for input in [up, draining, stored].into_iter().flatten() {
                self.tell(input);
            }
        }
        if !report.tasks.is_empty() {
            let ended = report.tasks.iter().filter(|(task, _)| self.engine.host_of(*task).is_none());
            skipped.unknown += ended.count() as u64;
            self.tell(Input::Rates(&report.tasks));
        }
        for (name, latency) in &report.workloads {
            match self.promises.saw(name, window.1, *latency) {
                Some(true) => {}
                Some(false) => skipped.stale += 1,
                None => skipped.unknown += 1,
            }
        }
        self.pass_over_disks(&mut report);
        self.read(&report);
        let mut taken_in = |samples: &[Sample]| {
            if samples.is_empty() {
                return 0;
            }
            let discarded = self.engine.report(self.now, samples, &mut self.outputs);
            self.carry_out();
            skipped.stale += discarded.stale;
            skipped.down += discarded.down;
            samples.len() as u64 - discarded.total()
        };
        let (links, devices) = (taken_in(&report.loads), taken_in(&report.devices));
        self.samples += links + devices;
        let (epoch, unknown_devices) = (self.engine.ledger().epoch(), report.unknown_devices);
        Ok(ReportSummary { links, devices, skipped, unknown_devices, epoch })
    }

    /// Removes disks that are not the device of their host, because the cluster does not have them.
    fn pass_over_disks(&mut self, report: &mut Report) {
        let mut others = BTreeSet::new();
        for (device, called) in std::mem::take(&mut report.disks) {
            let is_device = self.disks.is(device, &called);
            if let (false, ReportedDiskName::Only(name)) = (is_device, called) {
                others.insert(device);
                if report.unknown_devices.len() < UNKNOWN {
                    report.unknown_devices.push(name);
                }
            }
        }
        if !others.is_empty() {
            report.devices.retain(|sample| !others.contains(&sample.resource));
            report.readings.retain(|(device, _)| !others.contains(device));
        }
    }

    /// Applies readings. A link without a reading gets the cluster's speed again.
    fn read(&mut self, report: &Report) {
        let until = report.window.1;
        let said: BTreeMap<ResourceId, Reading> = report.readings.iter().copied().collect();
        let all = report.loads.iter().chain(&report.devices).map(|sample| sample.resource);
        let news =
            |resource: &ResourceId| said.contains_key(resource) || self.readings.of(*resource).is_some();
        let all: Vec<ResourceId> = all.filter(news).collect();
        for resource in all {
            let reading = said.get(&resource).copied().unwrap_or_default();
            self.take_reading(resource, until, reading);
        }
    }

    /// Applies the reading of one resource, and the capacity that follows from it.
    pub(super) fn take_reading(&mut self, resource: ResourceId, until: Nanos, reading: Reading) {
        let ledger = self.engine.ledger();
        let interval = ledger.settings().interval;
        let capacity = ledger.view(self.now, &mut self.scratch).capacity(resource);
        if let Some(believed) = self.readings.take(resource, until, reading, capacity, interval) {
            self.tell(Input::SetCapacity(resource, believed));
        }
    }

    /// Rejects a report with any error, because its other parts may be wrong too.
    fn check(&self, report: &Report) -> Result<(), (Part, Wrong)> {
        let (from, until) = report.window;
        if from >= until {
            return Err((Part::Window, Wrong::Empty));
        }
        if until > self.now.plus(self.engine.ledger().settings().interval) {
            return Err((Part::Window, Wrong::Ahead));
        }
        let mut hosts = BTreeSet::new();
        for (at, said) in report.hosts.iter().enumerate() {
            if !hosts.insert(said.host) {
                return Err((Part::Host(at), Wrong::Twice));
            }
            if said.up.is_some() && !(report.loads.is_empty() && report.devices.is_empty()) {
                return Err((Part::Host(at), Wrong::Mixed));
            }
        }
        let mut workloads = BTreeSet::new();
        for (at, (name, _)) in report.workloads.iter().enumerate() {
            if !workloads.insert(name) {
                return Err((Part::Workload(at), Wrong::Twice));
            }
        }
        let mut links = BTreeSet::new();
        for (at, sample) in report.loads.iter().enumerate() {
            if sample.load.0 < 0 {
                return Err((Part::Load(at), Wrong::Negative));
            }
            if !links.insert(sample.resource) {
                return Err((Part::Load(at), Wrong::Twice));
            }
        }
        Ok(())
    }
}
