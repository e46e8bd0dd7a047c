//! Rules of enforcers that workload and device files state: handling of requests over a limit, and caps of devices.

use leeward_shaping::{Caps, OverLimit};
use leeward_slo::System;
use leeward_slo::bound::BoundSettings;
use leeward_slo::file::Workloads;
use leeward_traces::Stage;

use super::setup::Setup;

/// Rules of the enforcers of a system. The default has none: all requests over a limit are handled alike, and devices
/// cap the number of requests alone.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EnforcerRules {
    /// Handling of requests over a limit, by workload and at each of [`Stage::ALL`]; may be empty.
    pub over: Vec<[OverLimit; 3]>,
    /// Caps by queue; `None` for a queue without a device file. May be empty.
    pub caps: Vec<Option<Caps>>,
}

impl EnforcerRules {
    /// Rules of the workloads of a file and of their device files. Bounds with these settings assume as many requests
    /// at once as the caps allow.
    pub fn of_file(workloads: &Workloads, system: &System, bounds: BoundSettings) -> EnforcerRules {
        let at_once = bounds.at_once_by_queue(system);
        let mut caps = vec![None; system.queues.len()];
        for (entry, promise) in workloads.entries.iter().zip(&system.promises) {
            let device = entry.traced.as_ref().and_then(|traced| traced.device.as_ref());
            let Some((_, device)) = device else { continue };
            let demands = promise.workload.demands.iter().zip(&promise.route);
            for (_, route) in demands.filter(|(demand, _)| demand.stage == Stage::Storage) {
                for &queue in route {
                    caps[queue] = Some(Caps::of_profile(&device.outstanding, at_once[queue]));
                }
            }
        }
        let over = workloads.entries.iter().map(|entry| entry.over).collect();
        EnforcerRules { over, caps }
    }

    /// Handling of requests over a limit, if it is the same everywhere.
    pub fn uniform_over(&self) -> Option<OverLimit> {
        let mut all = self.over.iter().flatten();
        let first = *all.next()?;
        all.all(|over| *over == first).then_some(first)
    }

    pub(super) fn apply(&self, setup: &mut Setup) {
        for (workload, over) in setup.workloads.iter_mut().zip(&self.over) {
            workload.stages.iter_mut().zip(over).for_each(|(stage, over)| stage.over = *over);
        }
        for (server, caps) in setup.servers.iter_mut().zip(&self.caps) {
            if let Some(caps) = caps {
                server.set_caps(caps);
            }
        }
    }
}
