//! What the policies of a scenario place: one kind of thing, whatever arrives beside it.

use leeward_placement::{PolicyError, replicas, tasks};

use super::PolicySpec;
use crate::stage::workload::Source;

/// What the policies of a scenario place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Copies of blocks, beside background.
    Replicas,
    /// Tasks of a cell, and nothing beside them.
    Cell,
    /// Apps, beside background.
    Apps,
}

impl Kind {
    /// What these sources make. Otherwise the position of one that does not go with the others, and why.
    pub(super) fn of<'a>(sources: impl Iterator<Item = &'a Source> + Clone) -> Result<Kind, (usize, String)> {
        let all = || sources.clone();
        let (kind, wrong) = if all().any(Source::makes_tasks) {
            (Kind::Cell, all().position(|other| !other.makes_tasks()))
        } else if all().any(Source::makes_apps) {
            (Kind::Apps, all().position(|other| !other.makes_apps() && !other.is_background()))
        } else {
            (Kind::Replicas, None)
        };
        let Some(at) = wrong else { return Ok(kind) };
        let other = all().nth(at).map_or("", Source::kind);
        Err((
            at,
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

    /// The policies of a scenario that names none.
    pub(super) fn default_policies(self) -> [&'static str; 2] {
        match self {
            Kind::Replicas => ["uniform", "sinbad"],
            Kind::Cell => ["borg", "utp"],
            Kind::Apps => ["random", "choreo"],
        }
    }

    /// Whether there is such a policy with such settings.
    ///
    /// # Errors
    /// There is no policy of that name, or it has no such settings.
    pub fn check(self, policy: &PolicySpec) -> Result<(), PolicyError> {
        let PolicySpec { name, settings, .. } = policy;
        match self {
            Kind::Replicas => replicas::make(name, settings).map(|_| ()),
            Kind::Cell => crate::cell::make(policy).map(|_| ()),
            Kind::Apps => tasks::make(name, settings).map(|_| ()),
        }
    }

    /// The word for it: `replicas`, `cell` or `apps`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Replicas => "replicas",
            Kind::Cell => "cell",
            Kind::Apps => "apps",
        }
    }

    /// The kind of that word.
    pub fn of_word(word: &str) -> Option<Kind> {
        [Kind::Replicas, Kind::Cell, Kind::Apps].into_iter().find(|kind| kind.word() == word)
    }
}
