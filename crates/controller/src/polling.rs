//! Converts samples from a polled Prometheus to reports for the service and to metrics.

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::{Fabric, Load, ResourceId};
use leeward_ledger::Sample;
use leeward_prometheus::{Consumer, CurrentCluster, Ports, Samples, Steps, Stopped};
use leeward_service::{CallError, Handle, LeaderState, Reading, Report, Unavailable};
use tokio::sync::watch;

use leeward_observability::Metrics;

/// Consumer that passes samples to the service.
pub struct PolledReports {
    handle: Handle,
    leader_state: watch::Receiver<LeaderState>,
    metrics: Arc<Metrics>,
}

impl PolledReports {
    /// Reports to the service of `handle`.
    pub fn new(handle: Handle, metrics: Arc<Metrics>) -> PolledReports {
        PolledReports { leader_state: handle.leader_state(), handle, metrics }
    }
}

impl Consumer for PolledReports {
    fn cluster(&self) -> Option<CurrentCluster> {
        let (snapshot, cluster) = (self.handle.last_snapshot(), self.handle.cluster());
        let is_current = snapshot.version == cluster.number;
        is_current.then(|| CurrentCluster { fabric: snapshot.fabric.clone(), text: cluster.text.clone() })
    }

    fn follows(&mut self) -> bool {
        matches!(*self.leader_state.borrow_and_update(), LeaderState::Follower { .. })
    }

    async fn leader_changed(&mut self) -> Result<(), Stopped> {
        self.leader_state.changed().await.map_err(|_| Stopped)
    }

    async fn take(&mut self, samples: Samples, fabric: Arc<Fabric>) -> Result<(), Stopped> {
        let Samples { window, loads, speeds } = samples;
        let reading =
            |(link, speed): (ResourceId, Load)| (link, Reading { speed: Some(speed), ..Reading::default() });
        let readings = speeds.into_iter().map(reading).collect();
        let sample = |(resource, load)| Sample { resource, window, load, guaranteed: None };
        let loads = loads.into_iter().map(sample).collect();
        let report = Report { window, loads, readings, ..Report::default() };
        match self.handle.call(report, fabric).await {
            Ok(_) => self.metrics.report(),
            Err(CallError::Unavailable(Unavailable::Stopped)) => return Err(Stopped),
            // The next round resolves names against the new cluster.
            Err(error) => tracing::debug!(?error, "samples of Prometheus rejected"),
        }
        Ok(())
    }

    fn count_round(&mut self, succeeded: bool, steps: Steps, took: Duration) {
        self.metrics.polled(succeeded, steps, took);
    }

    fn set_ports(&mut self, ports: &Ports, remarks: usize) {
        self.metrics.ports(ports, remarks);
    }
}
