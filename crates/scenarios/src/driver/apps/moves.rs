//! Re-evaluation of the placement of running apps, and their migrations.

use std::collections::BTreeMap;

use leeward_engine::Reevaluation;
use leeward_fabric::{Bytes, Nanos};
use leeward_placement::tasks::{AppRequest, Transfer, Worth};

use super::running::Stage;
use super::{Driver, Pending};
use crate::driver::error::RunError;
use crate::record::Migration;

impl Driver<'_> {
    /// Re-evaluates the placement of all sending apps, in order of arrival.
    pub(super) fn reevaluate_apps(&mut self, now: f64) -> Result<(), RunError> {
        let Some(migration) = &self.scenario.migration else { return Ok(()) };
        let worth = Worth { pause: migration.pause, state: None, margin: migration.margin.get() };
        let apps: Vec<u32> = self.running.keys().copied().collect();
        for app in apps {
            let Some(remaining) = self.remaining_request(now, app) else { continue };
            // An app without a new placement stays on its hosts.
            if let Ok(reevaluation) =
                self.call(now, |engine, at, out| engine.reevaluate(at, &remaining, worth, out))
            {
                self.migrate(now, app, reevaluation)?;
            }
        }
        Ok(())
    }

    /// Returns the request of an app with its remaining bytes; `None` unless the app sends.
    fn remaining_request(&self, now: f64, app: u32) -> Option<AppRequest> {
        let running = self.running.get(&app)?;
        let Stage::Sending(flows) = &running.stage else { return None };
        let left = |(index, (transfer, left)): (u32, (&Transfer, &f64))| {
            // Transfers of later phases have no flow yet.
            let left =
                flows.get(&index).map_or(Some(*left), |&flow| self.world.network.remaining(flow, now))?;
            let bytes = Bytes((left.ceil() as u64).max(1));
            (left > 0.0 || flows.contains_key(&index)).then_some(Transfer { bytes, ..*transfer })
        };
        let all = (0..).zip(running.request.transfers.iter().zip(&running.left));
        let transfers = all.filter_map(left).collect();
        Some(AppRequest { transfers, ..running.request.clone() })
    }

    /// Migrates an app if the engine advises it: stops its transfers, and starts copying the memory of the moved tasks.
    fn migrate(&mut self, now: f64, app: u32, reevaluation: Reevaluation) -> Result<(), RunError> {
        let Reevaluation { placed: Some(placed), stays, moves, cost } = reevaluation else { return Ok(()) };
        let next = placed.decision.choice;
        self.freed = true;
        if self.detect_failures(now, &next) {
            return self.restart(now, app);
        }
        self.stop(now, app)?;
        let running = self.running.get_mut(&app).expect("the app was just stopped");
        let before = std::mem::replace(&mut running.hosts, next.clone());
        let pairs = before.into_iter().zip(next).zip(&running.request.tasks);
        let moving: Vec<_> = (0..).zip(pairs).filter(|(_, ((from, to), _))| from != to).collect();
        let stays = stays.is_finite().then_some(stays);
        let tasks = moving.len() as u32;
        self.record.migrations.push(Migration { at: now, app, tasks, stays, moves, cost, resumed: None });
        let record = &mut self.record.apps[app as usize];
        record.migrations += 1;
        record.tasks_moved += tasks;
        let copies: Vec<_> = (moving.into_iter())
            .map(|(task, ((from, to), needs))| (task, from, to, needs.memory.0 as f64))
            .filter(|&(.., bytes)| bytes > 0.0)
            .collect();
        let mut flows = BTreeMap::new();
        for (task, from, to, bytes) in copies {
            let flow = self.start_app_flow(now, app, task, (from, to), bytes)?;
            flows.insert(task, flow);
        }
        if flows.is_empty() {
            self.pause(now, app);
        } else {
            self.running.get_mut(&app).expect("a running app").stage = Stage::Moving(flows);
        }
        Ok(())
    }

    /// Pauses an app, after the memory of its moved tasks has arrived.
    pub(super) fn pause(&mut self, now: f64, app: u32) {
        let pause = self.scenario.migration.as_ref().map_or(Nanos(0), |migration| migration.pause);
        let until = Nanos::from_secs_f64(now).plus(pause);
        self.running.get_mut(&app).expect("only running apps pause").stage = Stage::Paused(until);
        self.world.schedule(until, Pending::Resume(app));
    }

    /// Ends the pause due at `at`, unless the app has restarted since.
    pub(super) fn resume(&mut self, now: f64, app: u32, at: Nanos) -> Result<(), RunError> {
        let is_due = |stage: &Stage| matches!(stage, Stage::Paused(until) if *until == at);
        if !self.running.get(&app).is_some_and(|running| is_due(&running.stage)) {
            return Ok(());
        }
        let latest = self.record.migrations.iter_mut().rev().find(|migration| migration.app == app);
        latest.expect("only moved apps pause").resumed = Some(now);
        self.send(now, app)
    }
}
