//! A coordinator that goes along with that of another service: what was kept there counts here, and what is shown here is what
//! is kept there. It decides nothing.

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::CommitError;
use leeward_records::{Change, Held, Record, Wish};

use super::clients::Fate;
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Takes up what another service kept. What is known already changes nothing; another cluster is no matter of a coordinator.
    ///
    /// # Errors
    /// What the ledger cannot take.
    pub fn follow(&mut self, now: Nanos, change: Change) -> Result<(), CommitError> {
        self.wake(now);
        match change {
            Change::Decided(record, held) => {
                if self.records.get(record.id).is_none() {
                    if let Some(caller) = &record.caller {
                        self.clients.note(caller, Fate::Decided(record.id));
                    }
                    self.take_up((*record).clone(), held)?;
                }
            }
            Change::Moved(record, held) => self.put_elsewhere((*record).clone(), held)?,
            Change::Migration(migration) => self.migrations.note(migration),
            Change::Job(name, availability) => self.bound_job(&name, availability),
            Change::JobOver(name) => self.bound_job(&name, Default::default()),
            // What telemetry shows of a decision that is not kept any more, each coordinator sees by itself.
            Change::Ended { released: None, .. } | Change::Cluster(_) => {}
            Change::Ended { id, released } => {
                if self.end(id).is_none() {
                    // One that is not known at all changes nothing.
                    let _ = self.end_evicted(id);
                }
                self.records.change(id, |record| record.released = released);
            }
        }
        // They are kept already.
        self.changes.clear();
        Ok(())
    }

    /// What a decision holds is elsewhere, or another thing.
    fn put_elsewhere(&mut self, mut moved: Record, held: Vec<Held>) -> Result<(), CommitError> {
        let id = moved.id;
        let Some(known) = self.records.get(id).cloned() else { return self.take_up(moved, held) };
        if known.released.is_some() || moved.released.is_some() {
            // It is over, here too or with the next change: it holds nothing any more, and is shown as it was at its end.
            self.records.change(id, |record| record.shown = moved.shown);
            return Ok(());
        }
        let fabric = self.engine.ledger().fabric().clone();
        let hosts: Option<Vec<HostId>> = moved.shown.hosts.iter().map(|name| fabric.host(name)).collect();
        let Some(hosts) = hosts else { return Ok(()) };
        let left = match known.shown.wish {
            Wish::Tasks(_) => Input::Ended(id),
            _ => Input::Release(&known.entries),
        };
        self.tell(left);
        self.let_go(&known.shown.wish);
        let held = held.into_iter().map(|held| held.entry(&fabric)).collect();
        self.put_back(&mut moved, &hosts, held)?;
        self.records.change(id, |record| (record.shown, record.entries) = (moved.shown, moved.entries));
        Ok(())
    }
}
