//! Records of apps, and of their migrations.

use leeward_fabric::HostId;

/// An app that arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct App {
    /// Name in the scenario.
    pub name: String,
    /// Arrival time.
    pub arrived: f64,
    /// Time at which it first had hosts.
    pub placed: Option<f64>,
    /// End of its last transfer.
    pub finished: Option<f64>,
    /// Number of its tasks.
    pub tasks: u32,
    /// Current or last host of each task; empty if the app was never placed.
    pub hosts: Vec<HostId>,
    /// Bytes that its tasks send each other.
    pub bytes: u64,
    /// Bytes between its tasks that crossed the network. The value may exceed `bytes` if the app restarted.
    pub network_bytes: f64,
    /// Bytes of memory of moved tasks that crossed the network.
    pub memory_bytes: f64,
    /// Predicted time from its placement to the end of its transfers in seconds, by the model and the data available at
    /// placement. `None` if the app was never placed, or if the ledger assumed a link without capacity on its paths.
    pub forecast: Option<f64>,
    /// Number of migrations.
    pub migrations: u32,
    /// Number of tasks that changed hosts, over all migrations.
    pub tasks_moved: u32,
    /// Number of failed placements.
    pub refused: u32,
    /// Number of restarts because a host failed.
    pub restarts: u32,
}

/// Migration of a running app. Predictions are from the time of the migration, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migration {
    /// Time of the migration.
    pub at: f64,
    /// The app, by position in [`super::Record::apps`].
    pub app: u32,
    /// Number of tasks that changed hosts.
    pub tasks: u32,
    /// Predicted remaining time without the migration; `None` if infinite.
    pub stays: Option<f64>,
    /// Predicted remaining time on the new hosts.
    pub moves: f64,
    /// Predicted time of the migration.
    pub cost: f64,
    /// Time at which the app continued to send.
    pub resumed: Option<f64>,
}

impl App {
    /// Time from arrival to the last transfer, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.arrived)
    }

    /// Time from the first hosts to the last transfer, in seconds: the paper's run time.
    pub fn run_time(&self) -> Option<f64> {
        self.finished.zip(self.placed).map(|(finished, placed)| finished - placed)
    }

    /// Time from arrival to the first hosts, in seconds.
    pub fn wait_time(&self) -> Option<f64> {
        self.placed.map(|placed| placed - self.arrived)
    }

    /// Number of distinct hosts.
    pub fn host_count(&self) -> usize {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.len()
    }
}
