//! pcap and pcapng files.

/// A frame of a file.
#[derive(Clone, Debug)]
pub struct Captured {
    pub time_ns: u64,
    pub data: Vec<u8>,
    pub length: u32,
}

impl Captured {
    pub fn whole(time_ns: u64, data: Vec<u8>) -> Captured {
        let length = data.len() as u32;
        Captured { time_ns, data, length }
    }

    /// Keeps only the first bytes, as with a snap length.
    pub fn snapped(mut self, length: usize) -> Captured {
        self.data.truncate(length);
        self
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Order {
    pub big: bool,
}

impl Order {
    pub fn w16(self, value: u16) -> [u8; 2] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn w32(self, value: u32) -> [u8; 4] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn w64(self, value: u64) -> [u8; 8] {
        if self.big { value.to_be_bytes() } else { value.to_le_bytes() }
    }
}

/// A pcap file: magic, version 2.4, zone, accuracy, snap length, link type; then records.
pub fn pcap(order: Order, nanoseconds: bool, link_type: u32, frames: &[Captured]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.w32(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    file.extend(order.w16(2));
    file.extend(order.w16(4));
    [0, 0, 262_144, link_type].iter().for_each(|&word| file.extend(order.w32(word)));
    for frame in frames {
        let fraction = (frame.time_ns % 1_000_000_000) as u32;
        file.extend(order.w32((frame.time_ns / 1_000_000_000) as u32));
        file.extend(order.w32(if nanoseconds { fraction } else { fraction / 1000 }));
        file.extend(order.w32(frame.data.len() as u32));
        file.extend(order.w32(frame.length));
        file.extend(&frame.data);
    }
    file
}

/// A block: type, length, body padded to whole words, length.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.w32(padded as u32 + 12);
    let mut block = Vec::new();
    block.extend(order.w32(kind));
    block.extend(length);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(length);
    block
}

pub fn section(order: Order) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(order.w32(0x1a2b_3c4d));
    body.extend(order.w16(1));
    body.extend(order.w16(0));
    body.extend(order.w64(u64::MAX));
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface. `resolution` is the raw option of the file: the exponent of a power of ten, or of a power of two if
/// the first bit is set.
pub fn interface(order: Order, link_type: u16, resolution: Option<u8>, offset_s: Option<i64>) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(order.w16(link_type));
    body.extend(order.w16(0));
    body.extend(order.w32(0));
    if let Some(resolution) = resolution {
        body.extend(order.w16(9));
        body.extend(order.w16(1));
        body.extend([resolution, 0, 0, 0]);
    }
    if let Some(offset) = offset_s {
        body.extend(order.w16(14));
        body.extend(order.w16(8));
        body.extend(order.w64(offset as u64));
    }
    if resolution.is_some() || offset_s.is_some() {
        body.extend([0, 0, 0, 0]);
    }
    block(order, 1, &body)
}

/// An enhanced packet block; its time is in the interface's units.
pub fn enhanced(order: Order, interface: u32, time: u64, frame: &Captured, comment: bool) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(order.w32(interface));
    body.extend(order.w32((time >> 32) as u32));
    body.extend(order.w32(time as u32));
    body.extend(order.w32(frame.data.len() as u32));
    body.extend(order.w32(frame.length));
    body.extend(&frame.data);
    body.resize(body.len().next_multiple_of(4), 0);
    if comment {
        body.extend(order.w16(1));
        body.extend(order.w16(2));
        body.extend(*b"hi\0\0");
        body.extend([0, 0, 0, 0]);
    }
    block(order, 6, &body)
}
