//! Interface to the service that takes the samples. Polling uses nothing else of the service.

use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::{Fabric, Load, Nanos, ResourceId};

use crate::meter::{Ports, Steps};

/// Loads of links over one window.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// Begin and end of the window.
    pub window: (Nanos, Nanos),
    /// Mean load of each link.
    pub loads: Vec<(ResourceId, Load)>,
    /// Capacity of each link whose ports report a speed.
    pub speeds: Vec<(ResourceId, Load)>,
}

/// Cluster that defines the link ids of samples.
#[derive(Clone)]
pub struct CurrentCluster {
    /// Hosts and links.
    pub fabric: Arc<Fabric>,
    /// The cluster file, as JSON.
    pub text: Arc<str>,
}

/// The consumer has stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Consumer of samples.
pub trait Consumer: Send {
    /// Returns the current cluster, or `None` while it changes.
    fn cluster(&self) -> Option<CurrentCluster>;

    /// Returns true if another service is the leader and polls.
    fn follows(&mut self) -> bool;

    /// Waits until another service may have become the leader since the last call of [`Consumer::follows`].
    ///
    /// # Errors
    /// [`Stopped`].
    fn leader_changed(&mut self) -> impl Future<Output = Result<(), Stopped>> + Send;

    /// Takes samples of the links of `fabric`.
    ///
    /// # Errors
    /// [`Stopped`].
    fn take(
        &mut self,
        samples: Samples,
        fabric: Arc<Fabric>,
    ) -> impl Future<Output = Result<(), Stopped>> + Send;

    /// Counts a round of queries.
    fn count_round(&mut self, succeeded: bool, steps: Steps, took: Duration);

    /// Publishes the state of ports and the number of remarks.
    fn set_ports(&mut self, ports: &Ports, remarks: usize);
}
