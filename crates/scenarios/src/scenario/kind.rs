//! Kind of a scenario: the entities that its policies place or serve.

use leeward_engine::Policies;
use leeward_placement::{replicas, tasks};
use leeward_registry::RegistryError;
use leeward_workloads::Source;

use super::{PolicySpec, cell_policies};

/// Entities that the policies of a scenario place or serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Copies of blocks, with background.
    Replicas,
    /// Tasks of a cell, without background.
    Cell,
    /// Apps, with background.
    Apps,
    /// Coflows, with other background.
    Coflows,
}

impl Kind {
    /// Returns the kind of these sources. On conflict, returns the position of the first source of another kind, and
    /// the reason.
    pub(super) fn of<'a>(sources: impl Iterator<Item = &'a Source> + Clone) -> Result<Kind, (usize, String)> {
        let all = || sources.clone();
        let (kind, conflict) = if all().any(Source::makes_tasks) {
            (Kind::Cell, all().position(|other| !other.makes_tasks()))
        } else if all().any(Source::makes_apps) {
            (Kind::Apps, all().position(|other| !other.makes_apps() && !other.is_background()))
        } else if all().any(Source::makes_coflows) && all().all(Source::is_background) {
            (Kind::Coflows, None)
        } else {
            (Kind::Replicas, None)
        };
        let Some(index) = conflict else { return Ok(kind) };
        let other = all().nth(index).map_or("", Source::kind);
        Err((
            index,
            match kind {
                Kind::Apps => format!(
                    "`{other}` beside apps: a run has either apps to place, with background (coflow, flows, rates, matrix), or files to write"
                ),
                _ => format!(
                    "`{other}` beside tasks of a cell: a run has either tasks to place or files to write, with their background"
                ),
            },
        ))
    }

    /// Returns the default policies of a scenario.
    pub(super) fn default_policies(self) -> [&'static str; 2] {
        match self {
            Kind::Replicas => ["uniform", "sinbad"],
            Kind::Cell => ["borg", "utp"],
            Kind::Apps => ["random", "choreo"],
            Kind::Coflows => ["fair", "sebf"],
        }
    }

    /// Checks the name and the settings of a policy.
    ///
    /// # Errors
    /// Returns an error for an unknown policy or invalid settings.
    pub fn check(self, policy: &PolicySpec) -> Result<(), RegistryError> {
        match self {
            Kind::Coflows => leeward_coflows::REGISTRY.make(&policy.name, &policy.settings).map(|_| ()),
            _ => self.policies(policy).map(|_| ()),
        }
    }

    /// Creates the policies of a run, for an engine. Coflows need no engine.
    ///
    /// # Errors
    /// Returns an error for an unknown policy or invalid settings.
    pub fn policies(self, policy: &PolicySpec) -> Result<Policies, RegistryError> {
        let PolicySpec { name, settings, .. } = policy;
        let none = Policies::default();
        Ok(match self {
            Kind::Replicas => Policies { replicas: Some(replicas::REGISTRY.make(name, settings)?), ..none },
            Kind::Cell => {
                let (tasks, moves) = cell_policies::make(policy)?;
                Policies { tasks: Some(tasks), moves, ..none }
            }
            Kind::Apps => Policies { tasks: Some(tasks::REGISTRY.make(name, settings)?), ..none },
            Kind::Coflows => none,
        })
    }

    /// Name of the kind: `replicas`, `cell`, `apps` or `coflows`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Replicas => "replicas",
            Kind::Cell => "cell",
            Kind::Apps => "apps",
            Kind::Coflows => "coflows",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        [Kind::Replicas, Kind::Cell, Kind::Apps, Kind::Coflows].into_iter().find(|kind| kind.name() == name)
    }
}
