//! Life of an app: it is requested, waits while it fits nowhere, sends, and ends with its last transfer.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::{Input, Ruling};
use leeward_fabric::{Endpoint, HostId, Nanos};
use leeward_fluid::{Finished, FlowId};
use leeward_ledger::{Owner, OwnerKind, Scratch};
use leeward_placement::tasks::{AppRequest, Assignment, Estimate, completion};
use leeward_placement::{Decision, JobId, Refusal};

use super::{Driver, FlowPurpose};
use crate::driver::error::RunError;

/// An app with hosts.
pub(super) struct Running {
    /// The request, with the app's number as its id and job.
    pub request: AppRequest,
    pub hosts: Assignment,
    /// Bytes that each transfer had not sent when it was last started.
    pub left: Vec<f64>,
    pub stage: Stage,
}

/// Activity of an app with hosts.
pub(super) enum Stage {
    /// Sending, with the flow of each unfinished transfer.
    Sending(BTreeMap<u32, FlowId>),
    /// Moving, with the flow of each task's memory that has not arrived.
    Moving(BTreeMap<u32, FlowId>),
    /// Paused until this time.
    Paused(Nanos),
}

impl Driver<'_> {
    /// Requests hosts for an app. The app begins if it gets hosts; otherwise it waits.
    pub(super) fn request_hosts(&mut self, now: f64, app: u32) -> Result<(), RunError> {
        let id = u64::from(app);
        let arrival = self.workload.apps[app as usize].request.as_ref();
        let request = AppRequest { id, job: JobId(id), ..arrival.clone() };
        loop {
            let answer = self
                .call(now, |engine, at, out| engine.place_app(at, request.clone(), Ruling::default(), out));
            match answer {
                Err(refusal) => {
                    self.record.apps[app as usize].refused += 1;
                    // Ends of other apps free capacity; reports provide missing data.
                    let full = matches!(refusal, Refusal::NoHost { .. } | Refusal::NotTogether { .. });
                    self.waiting.insert(app, !full);
                    return Ok(());
                }
                Ok(placed) if !self.detect_failures(now, &placed.decision.choice) => {
                    self.waiting.remove(&app);
                    let Decision { choice, basis, .. } = placed.decision;
                    return self.begin(now, app, request, choice, basis.estimate.unwrap_or_default());
                }
                // The app's connections to the failed hosts fail at once.
                Ok(_) => self.notify(now, Input::Ended(id)),
            }
        }
    }

    /// Returns true if some of these hosts are down, and informs the engine.
    pub(super) fn detect_failures(&mut self, now: f64, hosts: &[HostId]) -> bool {
        let down: BTreeSet<HostId> =
            hosts.iter().copied().filter(|&host| !self.world.outages.is_up(host)).collect();
        for &host in &down {
            self.detected_failures.insert(host);
            self.notify(now, Input::Health(host, false));
        }
        !down.is_empty()
    }

    /// Requests hosts again for waiting apps, in order of arrival, if something relevant has changed.
    pub(super) fn retry_waiting(&mut self, now: f64) -> Result<(), RunError> {
        let reported = std::mem::take(&mut self.reported);
        let mut has_new_data = reported && self.waiting.values().any(|&blind| blind);
        while std::mem::take(&mut self.freed) || std::mem::take(&mut has_new_data) {
            let waiting: Vec<u32> = self.waiting.keys().copied().collect();
            for app in waiting {
                self.request_hosts(now, app)?;
            }
        }
        Ok(())
    }

    fn begin(
        &mut self,
        now: f64,
        app: u32,
        request: AppRequest,
        hosts: Assignment,
        estimate: Estimate,
    ) -> Result<(), RunError> {
        let mut scratch = Scratch::default();
        let mut view = self.engine.ledger().view(Nanos::from_secs_f64(now), &mut scratch);
        view.without(&Owner { kind: OwnerKind::App, id: request.id });
        let forecast = completion(&view, &request.transfers, &hosts, estimate).seconds;
        let record = &mut self.record.apps[app as usize];
        record.placed.get_or_insert(now);
        record.forecast = forecast.is_finite().then_some(forecast);
        let left = request.transfers.iter().map(|transfer| transfer.bytes.0 as f64).collect();
        let stage = Stage::Sending(BTreeMap::new());
        self.running.insert(app, Running { request, hosts, left, stage });
        self.send(now, app)
    }

    /// Starts the unfinished transfers of the earliest phase with any, between the current hosts of tasks. Ends the app if
    /// there are none.
    pub(super) fn send(&mut self, now: f64, app: u32) -> Result<(), RunError> {
        let running = self.running.get_mut(&app).expect("only running apps send");
        self.record.apps[app as usize].hosts.clone_from(&running.hosts);
        let (mut remote, mut current) = (Vec::new(), None);
        for (index, (transfer, left)) in (0..).zip(running.request.transfers.iter().zip(&mut running.left)) {
            let (from, to) = (running.hosts[transfer.from as usize], running.hosts[transfer.to as usize]);
            if current.is_some_and(|phase| phase < transfer.phase) {
                break;
            } else if from == to {
                *left = 0.0;
            } else if *left > 0.0 {
                current = Some(transfer.phase);
                remote.push((index, from, to, *left));
            }
        }
        let mut flows = BTreeMap::new();
        for (transfer, from, to, bytes) in remote {
            let flow = self.start_app_flow(now, app, transfer, (from, to), bytes)?;
            flows.insert(transfer, flow);
        }
        if flows.is_empty() {
            self.end(now, app);
        } else {
            self.running.get_mut(&app).expect("a running app").stage = Stage::Sending(flows);
        }
        Ok(())
    }

    /// Handles the end of a flow.
    pub(super) fn finish_flow(&mut self, done: Finished) -> Result<(), RunError> {
        self.count(done.flow, 0.0);
        let Some(FlowPurpose { app, part, .. }) = self.purposes.remove(&done.flow) else {
            self.world.finish_background(done, &mut self.record);
            return Ok(());
        };
        let running = self.running.get_mut(&app).expect("every flow belongs to a running app");
        let record = &mut self.record.apps[app as usize];
        match &mut running.stage {
            Stage::Sending(flows) => {
                flows.remove(&part);
                record.network_bytes += std::mem::take(&mut running.left[part as usize]);
                if flows.is_empty() {
                    return self.send(done.at, app);
                }
            }
            Stage::Moving(flows) => {
                flows.remove(&part);
                record.memory_bytes += running.request.tasks[part as usize].memory.0 as f64;
                if flows.is_empty() {
                    self.pause(done.at, app);
                }
            }
            Stage::Paused(_) => unreachable!("a paused app has no flows"),
        }
        Ok(())
    }

    /// Starts a flow for an app.
    pub(super) fn start_app_flow(
        &mut self,
        now: f64,
        app: u32,
        part: u32,
        ends: (HostId, HostId),
        bytes: f64,
    ) -> Result<FlowId, RunError> {
        let flow = self.world.start_flow(now, Endpoint::Host(ends.0), Endpoint::Host(ends.1), bytes)?;
        self.purposes.insert(flow, FlowPurpose { app, part, ends, bytes, counted: 0.0 });
        Ok(flow)
    }

    /// Cancels all flows of an app; `left` then has the unsent bytes of its transfers.
    pub(super) fn stop(&mut self, now: f64, app: u32) -> Result<(), RunError> {
        let running = self.running.get_mut(&app).expect("only running apps stop");
        let (flows, sends) = match std::mem::replace(&mut running.stage, Stage::Paused(Nanos(0))) {
            Stage::Sending(flows) => (flows, true),
            Stage::Moving(flows) => (flows, false),
            Stage::Paused(_) => return Ok(()),
        };
        for (part, flow) in flows {
            let left = self.world.network.cancel(now, flow)?;
            self.count(flow, left);
            self.purposes.remove(&flow);
            let running = self.running.get_mut(&app).expect("a running app");
            let record = &mut self.record.apps[app as usize];
            if sends {
                let before = std::mem::replace(&mut running.left[part as usize], left);
                record.network_bytes += before - left;
            } else {
                record.memory_bytes += running.request.tasks[part as usize].memory.0 as f64 - left;
            }
        }
        Ok(())
    }

    /// Restarts an app after one of its hosts failed, because the state of its tasks is lost.
    pub(super) fn restart(&mut self, now: f64, app: u32) -> Result<(), RunError> {
        self.stop(now, app)?;
        self.running.remove(&app);
        self.notify(now, Input::Ended(u64::from(app)));
        self.record.apps[app as usize].restarts += 1;
        self.waiting.insert(app, false);
        self.freed = true;
        Ok(())
    }

    fn end(&mut self, now: f64, app: u32) {
        self.running.remove(&app);
        self.record.apps[app as usize].finished = Some(now);
        self.notify(now, Input::Ended(u64::from(app)));
        self.freed = true;
    }
}
