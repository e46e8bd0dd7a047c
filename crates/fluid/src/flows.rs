//! Active flows.

/// Identifier of a flow of a [`Network`](super::Network).
///
/// The slot is a small number that is reused after the flow ends. It can be an index into the caller's own table of
/// active flows. The generation distinguishes consecutive flows of one slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId {
    slot: u32,
    generation: u32,
}

impl FlowId {
    /// Position in a table of active flows.
    pub fn slot(self) -> u32 {
        self.slot
    }

    /// Slot and generation as one number.
    pub fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    /// Returns the identifier of a slot and a generation, for networks that share links by other rules.
    pub fn new(slot: u32, generation: u32) -> FlowId {
        FlowId { slot, generation }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Its entry in the allocation; `NONE` marks a free slot.
    pub entry: u32,
    pub generation: u32,
    /// Total service per flow of its entry when this flow finishes, in bytes.
    pub tag: f64,
    pub bytes: f64,
}

const NONE: u32 = u32::MAX;

/// Table of flows.
#[derive(Clone, Default, Debug)]
pub(super) struct Flows {
    slots: Vec<Flow>,
    free: Vec<u32>,
}

impl Flows {
    pub fn active(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn add(&mut self, entry: u32, tag: f64, bytes: f64) -> FlowId {
        let Some(slot) = self.free.pop() else {
            self.slots.push(Flow { entry, generation: 0, tag, bytes });
            return FlowId { slot: self.slots.len() as u32 - 1, generation: 0 };
        };
        let flow = &mut self.slots[slot as usize];
        *flow = Flow { entry, tag, bytes, ..*flow };
        FlowId { slot, generation: flow.generation }
    }

    pub fn remove(&mut self, slot: u32) {
        let flow = &mut self.slots[slot as usize];
        flow.entry = NONE;
        flow.generation = flow.generation.wrapping_add(1);
        self.free.push(slot);
    }

    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        self.slots.get(id.slot as usize).filter(|flow| flow.entry != NONE && flow.generation == id.generation)
    }

    /// Returns the flow in an occupied slot.
    pub fn at(&self, slot: u32) -> &Flow {
        &self.slots[slot as usize]
    }

    pub fn id(&self, slot: u32) -> FlowId {
        FlowId { slot, generation: self.slots[slot as usize].generation }
    }
}
