//! Telemetry: a report is taken in whole, as far as it is news, or refused whole.

use std::collections::BTreeSet;

use leeward_engine::Input;
use leeward_ledger::Sample;

use super::message::{Part, Refused, Reply, Report, Skipped, Wrong};
use super::{Desk, Replies};

impl<R> Desk<R> {
    pub(super) fn report(&mut self, report: &Report, out: &mut Replies<R>) -> Result<Reply, Refused> {
        self.check(report).map_err(|(part, wrong)| Refused::Report(part, wrong))?;
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
            self.tell(Input::Rates(&report.tasks), out);
        }
        for (name, latency) in &report.workloads {
            skipped.stale += u64::from(!self.promises.saw(name, window.1, *latency));
        }
        let sample = |&(resource, load)| Sample { resource, window, load, guaranteed: None };
        let samples: Vec<Sample> = report.loads.iter().map(sample).collect();
        let discarded = self.tell(Input::Report(&samples), out);
        skipped.stale += discarded.stale;
        skipped.down += discarded.down;
        let links = samples.len() as u64 - discarded.all();
        self.samples += links;
        Ok(Reply::Reported { links, skipped, epoch: self.engine.ledger().epoch() })
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
            if said.up.is_some() && !report.loads.is_empty() {
                return Err((Part::Host(at), Wrong::Mixed));
            }
        }
        let mut workloads = BTreeSet::new();
        for (at, (name, _)) in report.workloads.iter().enumerate() {
            if !self.promises.is_in_force(name) {
                return Err((Part::Workload(at), Wrong::Unknown));
            }
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
