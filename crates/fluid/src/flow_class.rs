//! Heaps of finish tags, one for all flows of a class except the flow that finishes first.

/// A waiting flow: its finish tag, its slot, its bytes.
type Waiting = (f64, u32, f64);

/// Heaps of flows, the least tag on top.
#[derive(Clone, Default, Debug)]
pub(super) struct FlowClasses {
    classes: Vec<FlowClass>,
    free: Vec<u32>,
}

#[derive(Clone, Default, Debug)]
struct FlowClass {
    heap: Vec<Waiting>,
    /// Sum of bytes minus tags. It gives the total service without a visit to each flow. The sum is updated by
    /// differences, and recomputed whenever the heap has been empty.
    lead: f64,
}

impl FlowClasses {
    /// Allocates an empty heap.
    pub fn claim(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.classes.push(FlowClass::default());
            self.classes.len() as u32 - 1
        })
    }

    /// Empties and frees a heap.
    pub fn release(&mut self, class: u32) {
        let FlowClass { heap, lead } = &mut self.classes[class as usize];
        heap.clear();
        *lead = 0.0;
        self.free.push(class);
    }

    /// Returns the number of flows in a heap, and the sum of their bytes less their tags.
    pub fn lead(&self, class: u32) -> (usize, f64) {
        let FlowClass { heap, lead } = &self.classes[class as usize];
        (heap.len(), *lead)
    }

    pub fn push(&mut self, class: u32, tag: f64, flow: u32, bytes: f64) {
        let FlowClass { heap, lead } = &mut self.classes[class as usize];
        *lead = if heap.is_empty() { bytes - tag } else { *lead + (bytes - tag) };
        heap.push((tag, flow, bytes));
        let last = heap.len() - 1;
        rise(heap, last);
    }

    /// Removes the flow with the least tag.
    pub fn pop(&mut self, class: u32) -> Option<(f64, u32)> {
        let FlowClass { heap, lead } = &mut self.classes[class as usize];
        if heap.is_empty() {
            return None;
        }
        let (tag, flow, bytes) = heap.swap_remove(0);
        *lead -= bytes - tag;
        sink(heap, 0);
        Some((tag, flow))
    }

    /// Removes a flow from anywhere in the heap.
    pub fn remove(&mut self, class: u32, flow: u32) {
        let FlowClass { heap, lead } = &mut self.classes[class as usize];
        if let Some(index) = heap.iter().position(|&(_, other, _)| other == flow) {
            let (tag, _, bytes) = heap.swap_remove(index);
            *lead -= bytes - tag;
            if index < heap.len() {
                rise(heap, index);
                sink(heap, index);
            }
        }
    }
}

fn rise(heap: &mut [Waiting], mut index: usize) {
    while index > 0 && heap[index].0 < heap[(index - 1) / 2].0 {
        heap.swap(index, (index - 1) / 2);
        index = (index - 1) / 2;
    }
}

fn sink(heap: &mut [Waiting], mut index: usize) {
    loop {
        let mut child = 2 * index + 1;
        if child + 1 < heap.len() && heap[child + 1].0 < heap[child].0 {
            child += 1;
        }
        if child >= heap.len() || heap[index].0 <= heap[child].0 {
            return;
        }
        heap.swap(index, child);
        index = child;
    }
}
