//! Which racks could take a task that leaves a hot one.

use leeward_fabric::{Bytes, Cpus, DomainId, HostId, Load};

use crate::Context;
use crate::tasks::Task;

/// The racks of which no link is loaded more than what is allowed.
pub(super) struct Cool {
    /// The most that a link may be loaded with what comes.
    most: f64,
    /// In order.
    racks: Vec<DomainId>,
    /// The most processors and the most memory that a host of each rack has left at first.
    room: Vec<(Cpus, Bytes)>,
}

/// What the links of a rack would be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Cool,
    Hot,
    Unseen,
}

impl Cool {
    /// All racks as they are.
    pub fn new(context: &Context<'_, '_>, most: f64) -> Cool {
        let cool = |rack: &DomainId| with(context, *rack, [0; 2], most) == With::Cool;
        let (pool, fabric) = (context.pool, context.pool.fabric());
        let left = |host: HostId| {
            let (cpus, memory) = (pool.cpus_left(host), pool.memory_left(host));
            (cpus.unwrap_or(Cpus(u64::MAX)), memory.unwrap_or(Bytes(u64::MAX)))
        };
        let most_left = |rack: DomainId| {
            let hosts = fabric.hosts(rack).map(HostId).map(left);
            hosts.fold((Cpus(0), Bytes(0)), |most, left| (most.0.max(left.0), most.1.max(left.1)))
        };
        Cool {
            most,
            racks: fabric.all_racks().filter(cool).collect(),
            room: fabric.all_racks().map(most_left).collect(),
        }
    }

    /// A rack carries something else than before.
    pub fn changed(&mut self, context: &Context<'_, '_>, rack: DomainId) {
        let cool = with(context, rack, [0; 2], self.most) == With::Cool;
        match (self.racks.binary_search(&rack), cool) {
            (Ok(at), false) => drop(self.racks.remove(at)),
            (Err(at), true) => self.racks.insert(at, rack),
            _ => {}
        }
    }

    /// The racks other than `from` that would stay cool with a task, in order, less those that have no room for it in any
    /// case.
    pub fn with(&self, context: &Context<'_, '_>, task: &Task, from: DomainId) -> Vec<DomainId> {
        let adds = [task.egress_in_all().peak_bps, task.ingress_in_all().peak_bps];
        let has_room = |rack: DomainId| {
            let (cpus, memory) = self.room[rack.index()];
            cpus >= task.cpus && memory >= task.memory
        };
        let cool = |rack: DomainId| with(context, rack, adds, self.most) == With::Cool;
        let may = |rack: &DomainId| *rack != from && has_room(*rack) && cool(*rack);
        self.racks.iter().copied().filter(may).collect()
    }
}

/// Whether no rack other than `from` can be seen.
pub(super) fn all_unseen(context: &Context<'_, '_>, from: DomainId) -> bool {
    let mut others = context.pool.fabric().all_racks().filter(|&rack| rack != from);
    others.all(|rack| with(context, rack, [0; 2], f64::INFINITY) == With::Unseen)
}

/// What the links of a rack would be with so much more, out of it and into it: hot where one were loaded more than `most`.
fn with(context: &Context<'_, '_>, rack: DomainId, adds: [u64; 2], most: f64) -> With {
    let fabric = context.pool.fabric();
    let mut answer = With::Cool;
    for (link, bps) in [fabric.out_of_domain(rack), fabric.into_domain(rack)].into_iter().zip(adds) {
        let Some(link) = link else { continue };
        let load = Load(i64::try_from(bps).unwrap_or(i64::MAX));
        match context.view.utilization_with(link, load) {
            Some(utilization) if utilization <= most => {}
            Some(_) => answer = With::Hot,
            None => return With::Unseen,
        }
    }
    answer
}
