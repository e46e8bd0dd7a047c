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
    pub fn worn(&self) -> bool {
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
    pub fn ties(&self, of: &Resource) -> &[Tie] {
        &self.ties[of.range(of.crossing)]
    }

    /// Holds of all members, at the same positions.
    pub fn holds(&self, of: &Resource) -> &[Hold] {
        &self.holds[of.range(of.crossing)]
    }

    /// Ties of the members limited here.
    pub fn limited(&self, of: &Resource) -> &[Tie] {
        &self.ties[of.range(of.limited)]
    }

    pub fn tie(&self, of: &Resource, position: u32) -> &Tie {
        &self.ties[of.at(position)]
    }

    pub fn hold(&self, of: &Resource, position: u32) -> &Hold {
        &self.holds[of.at(position)]
    }

    pub fn tie_mut(&mut self, of: &Resource, position: u32) -> &mut Tie {
        &mut self.ties[of.at(position)]
    }

    pub fn hold_mut(&mut self, of: &Resource, position: u32) -> &mut Hold {
        &mut self.holds[of.at(position)]
    }

    /// Appends a member that is limited elsewhere, and returns its position.
    pub fn push(&mut self, of: &mut Resource, tie: Tie, hold: Hold) -> u32 {
        if of.crossing == 0 && of.room == 0 {
            of.room = 1;
            of.first = self.allocate(1);
        } else if of.crossing == 1 << of.room {
            let (old, room) = (of.range(of.crossing), of.room);
            let first = self.allocate(room + 1);
            self.ties.copy_within(old.clone(), first as usize);
            self.holds.copy_within(old, first as usize);
            self.free[room as usize].push(of.first);
            (of.first, of.room) = (first, room + 1);
        }
        let position = of.crossing;
        of.crossing += 1;
        self.ties[of.at(position)] = tie;
        self.holds[of.at(position)] = hold;
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
    pub fn remove(&mut self, of: &mut Resource, position: u32, paths: &mut Paths) {
        of.crossing -= 1;
        if position != of.crossing {
            self.ties[of.at(position)] = self.ties[of.at(of.crossing)];
            self.holds[of.at(position)] = self.holds[of.at(of.crossing)];
            paths[self.holds[of.at(position)].step as usize].position = position;
        }
    }

    /// Moves a member to the zones of those limited here.
    pub fn hold_back(&mut self, of: &mut Resource, position: u32, nowhere: u32, paths: &mut Paths) {
        self.exchange(of, position, of.limited, paths);
        of.limited += 1;
        self.sort(of, of.limited - 1, nowhere, paths);
    }

    /// Moves a member limited here to the zone of those limited elsewhere, and returns its new position.
    pub fn let_go(&mut self, of: &mut Resource, mut position: u32, paths: &mut Paths) -> u32 {
        if position < of.tied {
            of.tied -= 1;
            self.exchange(of, position, of.tied, paths);
            position = of.tied;
        }
        of.limited -= 1;
        if of.limited == 0 {
            // A rounding error left in the sum would count as a member.
            of.gain = 0.0;
        }
        self.exchange(of, position, of.limited, paths);
        of.limited
    }

    /// Moves a member limited here to the zone of tied or of untied members.
    pub fn sort(&mut self, of: &mut Resource, position: u32, nowhere: u32, paths: &mut Paths) {
        let tied = self.ties[of.at(position)].peer != nowhere;
        if tied && position >= of.tied {
            self.exchange(of, position, of.tied, paths);
            of.tied += 1;
        } else if !tied && position < of.tied {
            of.tied -= 1;
            self.exchange(of, position, of.tied, paths);
        }
    }

    fn exchange(&mut self, of: &Resource, one: u32, other: u32, paths: &mut Paths) {
        if one != other {
            self.ties.swap(of.at(one), of.at(other));
            self.holds.swap(of.at(one), of.at(other));
            paths[self.holds[of.at(one)].step as usize].position = one;
            paths[self.holds[of.at(other)].step as usize].position = other;
        }
    }
}
