//! Telemetry: a report is taken in whole, as far as it is news, or refused whole. What it says of work that has ended is no
//! news: who reports cannot know of every end in time.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_ledger::Sample;

use super::disks::Called;
use super::message::{Part, Refused, Reply, Report, Skipped, UNKNOWN, Wrong};
use super::readings::Reading;
use super::{Desk, Replies};

impl<R> Desk<R> {
    pub(super) fn report(&mut self, mut report: Report, out: &mut Replies<R>) -> Result<Reply, Refused> {
        self.check(&report).map_err(|(part, wrong)| Refused::Report(part, wrong))?;
        let (window, mut skipped) = (report.window, Skipped::default());
        for said in &report.hosts {
            let (news, stale) = self.hosts.news(said, window.1);
            skipped.stale += stale;
            let up = news.up.map(|up| Input::Health(news.host, up));
            let draining = news.draining.map(|draining| Input::Drain(news.host, draining));
            let stored = news.stored.map(|stored| Input::Stored(news.host, stored));
            for input in [up, draining, stored].into_iter().flatten() {
                self.tell(input, out);
            }
        }
        if !report.tasks.is_empty() {
            let ended = report.tasks.iter().filter(|(task, _)| self.engine.host_of(*task).is_none());
            skipped.unknown += ended.count() as u64;
            self.tell(Input::Rates(&report.tasks), out);
        }
        for (name, latency) in &report.workloads {
            match self.promises.saw(name, window.1, *latency) {
                Some(true) => {}
                Some(false) => skipped.stale += 1,
                None => skipped.unknown += 1,
            }
        }
        self.pass_over_disks(&mut report);
        self.read(&report, out);
        let mut taken_in = |loads: &[(ResourceId, Load)]| {
            if loads.is_empty() {
                return 0;
            }
            let sample = |&(resource, load)| Sample { resource, window, load, guaranteed: None };
            let samples: Vec<Sample> = loads.iter().map(sample).collect();
            let discarded = self.tell(Input::Report(&samples), out);
            skipped.stale += discarded.stale;
            skipped.down += discarded.down;
            samples.len() as u64 - discarded.total()
        };
        let (links, devices) = (taken_in(&report.loads), taken_in(&report.devices));
        self.samples += links + devices;
        let (epoch, unknown_devices) = (self.engine.ledger().epoch(), report.unknown_devices);
        Ok(Reply::Reported { links, devices, skipped, unknown_devices, epoch })
    }

    /// Takes disks out of a report that are not the device of their host: the cluster does not have them.
    fn pass_over_disks(&mut self, report: &mut Report) {
        let mut others = BTreeSet::new();
        for (device, called) in std::mem::take(&mut report.disks) {
            let is_device = self.disks.is(device, &called);
            if let (false, Called::Only(name)) = (is_device, called) {
                others.insert(device);
                if report.unknown_devices.len() < UNKNOWN {
                    report.unknown_devices.push(name);
                }
            }
        }
        if !others.is_empty() {
            report.devices.retain(|(device, _)| !others.contains(device));
            report.readings.retain(|(device, _)| !others.contains(device));
        }
    }

    /// Takes in what a report says beside loads. A link of which nothing is said any more is as fast as the cluster says.
    fn read(&mut self, report: &Report, out: &mut Replies<R>) {
        let until = report.window.1;
        let said: BTreeMap<ResourceId, Reading> = report.readings.iter().copied().collect();
        let all = report.loads.iter().chain(&report.devices).map(|&(resource, _)| resource);
        let news =
            |resource: &ResourceId| said.contains_key(resource) || self.readings.of(*resource).is_some();
        let all: Vec<ResourceId> = all.filter(news).collect();
        for resource in all {
            let reading = said.get(&resource).copied().unwrap_or_default();
            self.take_reading(resource, until, reading, out);
        }
    }

    /// Takes in what is said of a resource, and believes of its capacity what follows.
    pub(super) fn take_reading(
        &mut self,
        resource: ResourceId,
        until: Nanos,
        reading: Reading,
        out: &mut Replies<R>,
    ) {
        let ledger = self.engine.ledger();
        let interval = ledger.settings().interval;
        let capacity = ledger.view(self.now, &mut self.scratch).capacity(resource);
        if let Some(believed) = self.readings.take(resource, until, reading, capacity, interval) {
            self.tell(Input::Believe(resource, believed), out);
        }
    }

    /// Refuses a report in which anything is wrong: who wrote it did not mean what it says.
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
        for (at, &(link, load)) in report.loads.iter().enumerate() {
            if load.0 < 0 {
                return Err((Part::Load(at), Wrong::Negative));
            }
            if !links.insert(link) {
                return Err((Part::Load(at), Wrong::Twice));
            }
        }
        Ok(())
    }
}
