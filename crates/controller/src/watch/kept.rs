//! A store that tells of what it kept: when it is, and not before.

use std::sync::Arc;

use super::{Events, Happening, Metrics};
use crate::desk::Record;
use crate::store::{Change, State, Store, StoreError};

/// A store, and who is told of what it kept.
pub struct Watched {
    /// Where changes are kept.
    pub store: Box<dyn Store>,
    /// Counts transactions.
    pub metrics: Arc<Metrics>,
    /// Hears of decisions and clusters.
    pub events: Arc<Events>,
    /// Whether the last thing that was asked of the store failed.
    pub failed: bool,
}

impl Store for Watched {
    fn load(&mut self, decisions: usize, callers: usize) -> Result<State, StoreError> {
        let loaded = self.store.load(decisions, callers);
        match &loaded {
            Ok(_) if std::mem::take(&mut self.failed) => tracing::info!("the store is read and goes on"),
            Ok(_) => {}
            Err(error) => {
                tracing::error!(%error, "the store cannot be read");
                self.failed = true;
            }
        }
        loaded
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "how long a transaction takes, and nothing that is decided"
    )]
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let began = std::time::Instant::now();
        let applied = self.store.apply(changes);
        self.metrics.transaction(applied.is_ok(), changes.len(), began.elapsed());
        if let Err(error) = &applied {
            tracing::error!(%error, changes = changes.len(), "the store kept nothing");
            self.failed = true;
        }
        applied?;
        for change in changes {
            match change {
                Change::Decided(record, _) => self.events.tell(Happening::Decision(record.clone())),
                Change::Cluster(version) => {
                    tracing::info!(version = version.number, origin = ?version.origin, "the cluster is another one");
                    self.events.tell(Happening::Cluster(version.number));
                }
                Change::Ended { .. } | Change::Moved(..) | Change::Migration(_) | Change::Job(..) => {}
            }
        }
        Ok(())
    }

    fn decision(&mut self, id: u64) -> Result<Option<Record>, StoreError> {
        self.store.decision(id)
    }
}
