//! An entry: flows of one class over one path.
//!
//! The *live* steps of a path, those over saturated resources, come first, so that a cascade skips the rest.

/// `flows` identical flows over one path.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Entry {
    /// Index of the first step.
    pub first: u32,
    /// Number of steps.
    pub length: u32,
    /// Number of live steps.
    pub live: u32,
    /// Number of flows of the entry; 0 marks a free slot.
    pub flows: u32,
    /// Resource that limits it, or `nowhere`.
    pub limit: u32,
    /// True if it is in the list of moved entries.
    pub moved: bool,
    /// Rate of one flow per unit of level.
    pub weight: f64,
    /// Rate cap of one flow, bytes per second.
    pub cap: f64,
    /// Level at which the cap or the narrowest resource binds.
    pub ceiling: f64,
}

impl Entry {
    pub fn steps(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.length) as usize
    }

    /// Steps over saturated resources.
    pub fn live_steps(&self) -> std::ops::Range<usize> {
        self.first as usize..(self.first + self.live) as usize
    }

    /// Steps over watched resources.
    pub fn watched_steps(&self) -> std::ops::Range<usize> {
        (self.first + self.live) as usize..(self.first + self.length) as usize
    }

    /// Rate of all flows together in bytes per second, per unit of level.
    pub fn each(&self) -> f64 {
        f64::from(self.flows) * self.weight
    }
}
