//! A copy of the ledger for slow readers: packing, admission, remote clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{Nanos, ResourceId};

use crate::entry::Owner;
use crate::epoch::Epoch;
use crate::state::Commitments;
use crate::stored::Stored;
use crate::view::{Scratch, View};
use crate::{EntryId, Ledger};

/// The state of the ledger at one time. Decisions based on it commit with the versions they read. The snapshot contains
/// the sums at each resource. Of the entries, which may be a million, it contains only those of one owner.
#[derive(Clone, Debug)]
pub struct Snapshot {
    ledger: Ledger,
    at: Nanos,
}

impl Ledger {
    /// A copy of the ledger for slow readers, at the last time the ledger advanced to. Views of the copy can remove the
    /// load of `own`.
    pub fn snapshot(&self, now: Nanos, own: Option<&Owner>) -> Arc<Snapshot> {
        let mut entries: HashMap<EntryId, Box<Stored>> = HashMap::new();
        let mut owners: HashMap<Owner, Vec<EntryId>> = HashMap::new();
        if let Some((owner, ids)) = own.and_then(|own| self.owners.get_key_value(own)) {
            entries.extend(ids.iter().filter_map(|id| Some((*id, self.entries.get(id)?.clone()))));
            owners.insert(*owner, ids.clone());
        }
        let mut commitments: Vec<_> = self.commitments.iter().map(Commitments::without_items).collect();
        let owned = owners.values().flatten().filter_map(|id| entries.get(id));
        let crossed: BTreeSet<ResourceId> =
            owned.flat_map(|stored| stored.entry.hops.iter().map(|hop| hop.resource)).collect();
        for resource in crossed {
            let waiting = self.commitments[resource.index()].until_window.iter();
            commitments[resource.index()].until_window =
                waiting.filter(|item| entries.contains_key(&item.entry)).copied().collect();
        }
        let ledger = Ledger {
            fabric: self.fabric.clone(),
            settings: self.settings.clone(),
            unknown_after: self.unknown_after,
            full: self.full.clone(),
            gauges: self.gauges.clone(),
            commitments,
            below: self.below.clone(),
            touched: Vec::new(),
            entries,
            owners,
            next_entry: self.next_entry,
            // A copy does not change over time.
            agenda: BTreeSet::new(),
            clients: self.clients.clone(),
            epoch: self.epoch,
        };
        Arc::new(Snapshot { ledger, at: now })
    }

    /// The committed sums of every resource, as bytes. Two ledgers with the same commitments have the same bytes, in
    /// any order of entries.
    pub fn sums_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (gauge, c) in self.gauges.iter().zip(&self.commitments) {
            for pending in [&c.pending, &c.pending_guaranteed] {
                bytes.extend(pending.held.to_le_bytes());
                bytes.extend(pending.settling().to_le_bytes());
            }
            let counts = [gauge.pressure, c.flows, c.inelastic, c.reserved_mean, c.reserved_rate];
            bytes.extend(counts.map(i64::to_le_bytes).as_flattened());
        }
        bytes
    }
}

impl Snapshot {
    /// Epoch of the ledger at the time of the copy.
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch
    }

    /// Time of the copy.
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// The last counted request of each client. A client uses it to drop exactly the placements that the ledger already
    /// counts.
    pub fn clients(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ledger.clients.iter().map(|(&client, &sequence)| (client, sequence))
    }

    /// A view of the snapshot.
    pub fn view<'a>(&'a self, scratch: &'a mut Scratch) -> View<'a> {
        self.ledger.view(self.at, scratch)
    }
}
