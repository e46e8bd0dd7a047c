//! What is recorded of apps, and of their migrations.

use leeward_fabric::HostId;

/// An app that arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct App {
    /// What the scenario calls it.
    pub name: String,
    /// When it arrived.
    pub arrived: f64,
    /// When it first had hosts.
    pub placed: Option<f64>,
    /// When its last transfer was over.
    pub finished: Option<f64>,
    /// How many tasks it has.
    pub tasks: u32,
    /// The host of each, or the last one; empty if it was never placed.
    pub hosts: Vec<HostId>,
    /// What its tasks send each other, in bytes.
    pub bytes: u64,
    /// What of that crossed the network, in bytes; more than all of it where an app began anew.
    pub network_bytes: f64,
    /// Memory of tasks that crossed the network because they moved, in bytes.
    pub memory_bytes: f64,
    /// When its transfers should be over after it had its hosts, by the model and on what was known then, in seconds;
    /// `None` if it was never placed, or never on a link that was believed to carry nothing.
    pub forecast: Option<f64>,
    /// How often it moved.
    pub migrations: u32,
    /// Tasks that changed hosts, in all migrations together.
    pub tasks_moved: u32,
    /// How often no hosts were found.
    pub refused: u32,
    /// How often it began anew because a host failed.
    pub restarts: u32,
}

/// An app went elsewhere while it ran. Predictions are those of the moment, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migration {
    /// When.
    pub at: f64,
    /// Which, by position in [`super::Record::apps`].
    pub app: u32,
    /// Tasks that changed hosts.
    pub tasks: u32,
    /// How long the rest would have taken where it was; `None` if for ever.
    pub stays: Option<f64>,
    /// How long the rest should take where it went.
    pub moves: f64,
    /// How long going there should take.
    pub cost: f64,
    /// When it sent again.
    pub resumed: Option<f64>,
}

impl App {
    /// From its arrival to its last transfer, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.arrived)
    }

    /// From its first hosts to its last transfer, in seconds: the paper's run time.
    pub fn running(&self) -> Option<f64> {
        self.finished.zip(self.placed).map(|(finished, placed)| finished - placed)
    }

    /// From its arrival to its first hosts, in seconds.
    pub fn waited(&self) -> Option<f64> {
        self.placed.map(|placed| placed - self.arrived)
    }

    /// On how many hosts it is.
    pub fn host_count(&self) -> usize {
        let mut hosts = self.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.len()
    }
}
