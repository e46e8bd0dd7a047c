//! Storage of all paths: one arena of steps, in blocks of a power of two.
//!
//! A path is a run of adjacent steps, so a walk along it costs one or two cache lines. A freed block goes to the free
//! list of its size, for the next path of that length. With the few path lengths of a datacenter, the size of the arena
//! is the largest number of steps in use at any time.

/// One step of a stored path.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Step {
    /// The resource crossed.
    pub resource: u32,
    /// Position of the entry among the members of that resource.
    pub position: u32,
    /// Native units of work per payload byte.
    pub work: f64,
    /// While the resource is watched: level up to which the entry may rise without an update.
    pub allowance: f64,
}

/// Arena of steps.
#[derive(Clone, Default, Debug)]
pub(super) struct Paths {
    steps: Vec<Step>,
    free: [Vec<u32>; 32],
}

impl Paths {
    /// Allocates storage for a path of `length` steps and returns its first index. The content is undefined.
    pub fn allocate(&mut self, length: usize) -> u32 {
        if length == 0 {
            return 0;
        }
        let size = length.next_power_of_two();
        if let Some(first) = self.free[size.trailing_zeros() as usize].pop() {
            return first;
        }
        let first = self.steps.len() as u32;
        self.steps.resize(self.steps.len() + size, Step::default());
        first
    }

    /// Frees the storage of a path of `length` steps that began at `first`.
    pub fn release(&mut self, first: u32, length: usize) {
        if length > 0 {
            self.free[length.next_power_of_two().trailing_zeros() as usize].push(first);
        }
    }
}

impl std::ops::Deref for Paths {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.steps
    }
}

impl std::ops::DerefMut for Paths {
    fn deref_mut(&mut self) -> &mut [Step] {
        &mut self.steps
    }
}
