//! A desk that goes on where another one stopped.

use std::sync::Arc;

use leeward_engine::Input;
use leeward_fabric::HostId;
use leeward_ledger::{CommitError, Entry};

use super::clients::Fate;
use super::record::{Record, ReplicasWish, Wish};
use super::{Desk, Replies};
use crate::store::{Change, Held, State};

impl<R> Desk<R> {
    /// Takes up what there is: decisions are kept again, and what they hold counts again until telemetry shows it. A
    /// decision on hosts that the cluster has no more is over, and so is a promise that it could not keep. To be called before anything else.
    ///
    /// # Errors
    /// What the ledger cannot take.
    pub fn resume(&mut self, state: State) -> Result<(), CommitError> {
        self.next = self.next.max(state.next);
        self.version = state.cluster.map_or(0, |cluster| cluster.number);
        for (caller, id) in &state.callers {
            self.clients.note(caller, Fate::Decided(*id));
        }
        let mut nobody = Replies::new();
        for (name, availability) in state.jobs {
            let job = self.job_named(&name);
            self.tell(Input::Job(job, availability), &mut nobody);
        }
        for (record, held) in state.decisions {
            self.take_up(record, held)?;
        }
        state.migrations.into_iter().for_each(|migration| self.migrations.note(migration));
        Ok(())
    }

    /// A decision is kept again, and what it holds counts again.
    pub(super) fn take_up(&mut self, record: Record, held: Vec<Held>) -> Result<(), CommitError> {
        self.next = self.next.max(record.id + 1);
        self.now = self.now.max(record.at);
        let fabric = self.engine.ledger().fabric().clone();
        let hosts: Option<Vec<HostId>> = record.shown.hosts.iter().map(|name| fabric.host(name)).collect();
        let mut record = Record { entries: Vec::new(), ..record };
        let hosts = hosts.filter(|_| self.can_stand(&record.shown));
        match hosts {
            Some(hosts) if record.released.is_none() => {
                let held = held.into_iter().map(|held| held.entry(&fabric)).collect();
                self.put_back(&mut record, &hosts, held)?;
            }
            None if record.released.is_none() => {
                record.released = Some(self.now);
                self.changes.push(Change::Ended { id: record.id, released: record.released });
            }
            _ => {}
        }
        let over = self.keep(Arc::new(record));
        self.leave(over, &mut Replies::new());
        Ok(())
    }

    pub(super) fn put_back(
        &mut self,
        record: &mut Record,
        hosts: &[HostId],
        held: Vec<Entry>,
    ) -> Result<(), CommitError> {
        let id = record.id;
        record.entries = match &record.shown.wish {
            &Wish::Replicas(ReplicasWish { size, .. }) => {
                let fabric = self.engine.ledger().fabric().clone();
                for &host in hosts.iter().filter(|&&host| fabric.storage(host).is_some()) {
                    self.hosts.placed(host, record.at, size);
                }
                self.engine.resume_chain(record.at, hosts, size, held)?
            }
            wish @ Wish::Tasks(tasks) => {
                let job = self.job_of(wish, id);
                let request = tasks.request(self.engine.ledger().fabric(), id, job);
                self.engine.resume_app(record.at, &request, hosts, held)?
            }
            Wish::Workload(_) | Wish::Volumes(_) => self.engine.resume_promise(record.at, held)?,
        };
        Ok(())
    }
}
