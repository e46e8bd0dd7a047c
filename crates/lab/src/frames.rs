//! Memory of frames: slots of one size that are used again, so that no packet allocates.

/// Bytes of the header of `virtio_net` in front of each packet.
pub(crate) const HEADER: usize = 10;

/// Slots of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    size: usize,
    free: Vec<u32>,
}

impl Frames {
    /// Makes `count` slots for packets of `mtu` bytes. More are added if all are in use.
    pub(crate) fn new(mtu: usize, count: usize) -> Frames {
        let size = (HEADER + mtu).next_multiple_of(64);
        let mut frames = Frames { bytes: Vec::new(), size, free: Vec::new() };
        frames.grow(count.max(1));
        frames
    }

    fn grow(&mut self, more: usize) {
        let first = self.bytes.len() / self.size;
        self.bytes.resize((first + more) * self.size, 0);
        // The lowest slots are used first, because the processor's cache may still hold them.
        self.free.extend((first..first + more).rev().map(|slot| slot as u32));
    }

    /// Takes a free slot.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        self.grow(self.bytes.len() / self.size);
        self.free.pop().expect("slots were added")
    }

    /// Returns a slot.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// All bytes of a slot.
    #[inline]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * self.size;
        &mut self.bytes[start..start + self.size]
    }
}
