//! The flows of a class that wait behind its first: heaps of finish tags.

/// Heaps of (tag, flow slot), the least tag on top.
#[derive(Clone, Default, Debug)]
pub(super) struct Crowds {
    heaps: Vec<Vec<(f64, u32)>>,
    free: Vec<u32>,
}

impl Crowds {
    /// An empty heap.
    pub fn claim(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.heaps.push(Vec::new());
            self.heaps.len() as u32 - 1
        })
    }

    /// Gives a heap back, empty.
    pub fn release(&mut self, crowd: u32) {
        self.heaps[crowd as usize].clear();
        self.free.push(crowd);
    }

    /// The flows in a heap, in no particular order.
    pub fn flows(&self, crowd: u32) -> impl Iterator<Item = u32> {
        self.heaps[crowd as usize].iter().map(|&(_, flow)| flow)
    }

    pub fn push(&mut self, crowd: u32, tag: f64, flow: u32) {
        let heap = &mut self.heaps[crowd as usize];
        heap.push((tag, flow));
        let last = heap.len() - 1;
        rise(heap, last);
    }

    /// Takes out the flow with the least tag.
    pub fn pop(&mut self, crowd: u32) -> Option<(f64, u32)> {
        let heap = &mut self.heaps[crowd as usize];
        if heap.is_empty() {
            return None;
        }
        let top = heap.swap_remove(0);
        sink(heap, 0);
        Some(top)
    }

    /// Takes out a flow that is somewhere in the heap.
    pub fn remove(&mut self, crowd: u32, flow: u32) {
        let heap = &mut self.heaps[crowd as usize];
        if let Some(index) = heap.iter().position(|&(_, other)| other == flow) {
            heap.swap_remove(index);
            if index < heap.len() {
                rise(heap, index);
                sink(heap, index);
            }
        }
    }
}

fn rise(heap: &mut [(f64, u32)], mut index: usize) {
    while index > 0 && heap[index].0 < heap[(index - 1) / 2].0 {
        heap.swap(index, (index - 1) / 2);
        index = (index - 1) / 2;
    }
}

fn sink(heap: &mut [(f64, u32)], mut index: usize) {
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
