//! Hosts from which tasks choose their own when they start: the flexible sources of Sinbad section 8.

use std::sync::Arc;

use leeward_fabric::HostId;
use leeward_registry::random::{Kind, stream};
use rand::seq::index::sample;

const CHOICES: Kind = Kind::named("writer.choices");

/// Hosts from which a task chooses. They are drawn when they are needed: lists for all tasks would need much memory.
#[derive(Clone, Debug, PartialEq)]
pub struct HostChoices {
    source: Arc<ChoosingSource>,
    /// Position of the task's file in its source.
    position: u64,
}

/// A source whose tasks choose their hosts.
#[derive(Debug, PartialEq)]
struct ChoosingSource {
    /// Number of hosts from which each task chooses.
    count: usize,
    /// Hosts of tasks, in order of number.
    hosts: Vec<HostId>,
    seed: u64,
}

impl HostChoices {
    /// The choices of a source's tasks, in order: each task chooses among `count` of `hosts`, which are in order of number.
    /// The draws of a task depend on the seed and the position of its file alone.
    pub fn of_source(count: u16, hosts: Vec<HostId>, seed: u64) -> impl Iterator<Item = HostChoices> {
        let source = Arc::new(ChoosingSource { count: usize::from(count), hosts, seed });
        (0..).map(move |position| HostChoices { source: source.clone(), position })
    }

    /// Draws the hosts, in order of number: `named`, the host of the workload, and others. All are different. There are fewer
    /// than the setting says only if there are no more hosts.
    pub fn draw(&self, named: HostId) -> Vec<HostId> {
        let ChoosingSource { count, hosts, seed } = &*self.source;
        let mut random = stream(*seed, CHOICES, self.position);
        // The others are drawn as if the list did not have `named`.
        let at = hosts.binary_search(&named).ok();
        let others = hosts.len() - usize::from(at.is_some());
        let drawn = sample(&mut random, others, others.min(count.saturating_sub(1)));
        let host = |index: usize| hosts[index + usize::from(at.is_some_and(|at| index >= at))];
        let mut choices: Vec<HostId> = drawn.into_iter().map(host).chain([named]).collect();
        choices.sort_unstable();
        choices
    }
}
