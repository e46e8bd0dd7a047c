//! Members of each resource, which are the entries that cross it, and the sums over them.
//!
//! The members of a resource are adjacent, in three zones. First come members limited here and tied to another
//! saturated resource, then other members limited here, then members limited elsewhere. A change of level affects only
//! the first zone. The data of a member for this zone is 16 bytes, stored apart from the rest.

use super::paths::Paths;

/// Data of an entry that its limiting resource needs at each change of level.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tie {
    /// Native units per second that the entry adds at `peer` per unit of level.
    pub peer_gain: f64,
    /// Other saturated resource of the path, or one of the two marks `nowhere` and `several`.
    pub peer: u32,
    /// The entry.
    pub entry: u32,
}

/// Other data of an entry that crosses a resource.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Hold {
    /// Level at which the entry reaches its ceiling: its rate cap or its narrowest resource, whichever is lower.
    pub ceiling: f64,
    /// Native units per second that the entry adds here per unit of level.
    pub gain: f64,
    /// For a member limited here: a lower bound on the entry's allowances at the watched resources of its path.
    pub allowance: f64,
    /// Step of the entry here, as an index into the paths.
    pub step: u32,
}

/// A link or device, with the sums over its members.
#[derive(Clone, Default, Debug)]
#[repr(align(64))]
pub(super) struct Resource {
    /// Level; infinite while the resource is not saturated but watched.
    pub level: f64,
    /// Saturated: the capacity that members limited elsewhere leave to the members limited here. Watched: the capacity
    /// that is not granted as allowances. Native units per second.
    pub left: f64,
    /// Saturated: sum of the gains of the members limited here.
    pub gain: f64,
    /// Saturated: upper bound on the levels of members limited elsewhere.
    pub below: f64,
    /// Saturated: level up to which no member limited here exceeds an allowance or its ceiling.
    pub wake: f64,
    /// Number of members limited here that are tied to another saturated resource.
    pub tied: u32,
    /// Number of members limited here.
    pub limited: u32,
    /// Number of all members.
    pub crossing: u32,
    /// Start of the block of members.
    first: u32,
    /// Upper bound on the number of changes of the sums since the last recomputation.
    pub updates: u32,
    /// Base-two logarithm of the size of the block.
    room: u8,
    /// True if it is in the queue.
    pub queued: bool,
    /// True if its level has been assigned in the current solution.
    pub touched: bool,
}

/// Members of all resources, in blocks whose sizes are powers of two.
#[derive(Clone, Default, Debug)]
pub(super) struct Members {
    pub ties: Vec<Tie>,
    holds: Vec<Hold>,
    free: [Vec<u32>; 32],
}

impl Resource {
    pub fn new(capacity: f64) -> Resource {
        Resource { level: f64::INFINITY, left: capacity, ..Resource::default() }
    }

    /// Creates a mark, which is never visited.
    pub fn mark(level: f64) -> Resource {
        Resource { queued: true, level, ..Resource::new(0.0) }
    }

    /// Returns true if rounding errors may have accumulated.
    pub fn needs_recount(&self) -> bool {
        self.updates > 2048
    }

    fn at(&self, position: u32) -> usize {
        (self.first + position) as usize
    }

    /// Range of the first zone among all ties.
    pub fn tied_range(&self) -> std::ops::Range<usize> {
        self.range(self.tied)
    }

    fn range(&self, to: u32) -> std::ops::Range<usize> {
        self.first as usize..(self.first + to) as usize
    }
}

impl Members {
    /// Ties of all members.
    pub fn ties(&self, resource: &Resource) -> &[Tie] {
        &self.ties[resource.range(resource.crossing)]
    }

    /// Holds of all members, at the same positions.
    pub fn holds(&self, resource: &Resource) -> &[Hold] {
        &self.holds[resource.range(resource.crossing)]
    }

    /// Ties of the members limited here.
    pub fn limited(&self, resource: &Resource) -> &[Tie] {
        &self.ties[resource.range(resource.limited)]
    }

    pub fn tie(&self, resource: &Resource, position: u32) -> &Tie {
        &self.ties[resource.at(position)]
    }

    pub fn hold(&self, resource: &Resource, position: u32) -> &Hold {
        &self.holds[resource.at(position)]
    }

    pub fn tie_mut(&mut self, resource: &Resource, position: u32) -> &mut Tie {
        &mut self.ties[resource.at(position)]
    }

    pub fn hold_mut(&mut self, resource: &Resource, position: u32) -> &mut Hold {
        &mut self.holds[resource.at(position)]
    }

    /// Appends a member that is limited elsewhere, and returns its position.
    pub fn push(&mut self, resource: &mut Resource, tie: Tie, hold: Hold) -> u32 {
        if resource.crossing == 0 && resource.room == 0 {
            resource.room = 1;
            resource.first = self.allocate(1);
        } else if resource.crossing == 1 << resource.room {
            let (old, room) = (resource.range(resource.crossing), resource.room);
            let first = self.allocate(room + 1);
            self.ties.copy_within(old.clone(), first as usize);
            self.holds.copy_within(old, first as usize);
            self.free[room as usize].push(resource.first);
            (resource.first, resource.room) = (first, room + 1);
        }
        let position = resource.crossing;
        resource.crossing += 1;
        self.ties[resource.at(position)] = tie;
        self.holds[resource.at(position)] = hold;
        position
    }

    fn allocate(&mut self, room: u8) -> u32 {
        self.free[room as usize].pop().unwrap_or_else(|| {
            let first = self.ties.len();
            self.ties.resize(first + (1 << room), Tie::default());
            self.holds.resize(first + (1 << room), Hold::default());
            first as u32
        })
    }

    /// Removes a member that is limited elsewhere.
    pub fn remove(&mut self, resource: &mut Resource, position: u32, paths: &mut Paths) {
        resource.crossing -= 1;
        if position != resource.crossing {
            self.ties[resource.at(position)] = self.ties[resource.at(resource.crossing)];
            self.holds[resource.at(position)] = self.holds[resource.at(resource.crossing)];
            paths[self.holds[resource.at(position)].step as usize].position = position;
        }
    }

    /// Moves a member to the zones of those limited here.
    pub fn move_to_limited(
        &mut self,
        resource: &mut Resource,
        position: u32,
        nowhere: u32,
        paths: &mut Paths,
    ) {
        self.exchange(resource, position, resource.limited, paths);
        resource.limited += 1;
        self.sort(resource, resource.limited - 1, nowhere, paths);
    }

    /// Moves a member limited here to the zone of those limited elsewhere, and returns its new position.
    pub fn move_to_others(&mut self, resource: &mut Resource, mut position: u32, paths: &mut Paths) -> u32 {
        if position < resource.tied {
            resource.tied -= 1;
            self.exchange(resource, position, resource.tied, paths);
            position = resource.tied;
        }
        resource.limited -= 1;
        if resource.limited == 0 {
            // A rounding error left in the sum would count as a member.
            resource.gain = 0.0;
        }
        self.exchange(resource, position, resource.limited, paths);
        resource.limited
    }

    /// Moves a member limited here to the zone of tied or of untied members.
    pub fn sort(&mut self, resource: &mut Resource, position: u32, nowhere: u32, paths: &mut Paths) {
        let tied = self.ties[resource.at(position)].peer != nowhere;
        if tied && position >= resource.tied {
            self.exchange(resource, position, resource.tied, paths);
            resource.tied += 1;
        } else if !tied && position < resource.tied {
            resource.tied -= 1;
            self.exchange(resource, position, resource.tied, paths);
        }
    }

    fn exchange(&mut self, resource: &Resource, one: u32, other: u32, paths: &mut Paths) {
        if one != other {
            self.ties.swap(resource.at(one), resource.at(other));
            self.holds.swap(resource.at(one), resource.at(other));
            paths[self.holds[resource.at(one)].step as usize].position = one;
            paths[self.holds[resource.at(other)].step as usize].position = other;
        }
    }
}
