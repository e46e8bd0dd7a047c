//! Datagrams of sFlow, NetFlow 5 and 9, and IPFIX.

use std::net::{IpAddr, Ipv4Addr};

use super::ethernet;

fn words(bytes: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
}

fn opaque(bytes: &mut Vec<u8>, body: &[u8]) {
    words(bytes, &[body.len() as u32]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// An sFlow datagram of an agent with samples, each with its format.
pub fn sflow(agent: Ipv4Addr, samples: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    words(&mut bytes, &[5, 1, agent.to_bits(), 0, 1, 1000, samples.len() as u32]);
    for (format, sample) in samples {
        words(&mut bytes, &[*format]);
        opaque(&mut bytes, sample);
    }
    bytes
}

/// A flow sample of these records, each with its format.
pub fn flow_sample(expanded: bool, rate: u32, records: &[(u32, Vec<u8>)]) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    if expanded {
        words(&mut bytes, &[9, 0, 3, rate, 1000, 0, 0, 3, 0, 4, records.len() as u32]);
    } else {
        words(&mut bytes, &[9, 3, rate, 1000, 0, 3, 4, records.len() as u32]);
    }
    for (format, record) in records {
        words(&mut bytes, &[*format]);
        opaque(&mut bytes, record);
    }
    (if expanded { 3 } else { 1 }, bytes)
}

/// A flow sample that was taken at an interface; `interfaces` are the words of input and output of a compact sample.
pub fn sample_at(
    expanded: bool,
    rate: u32,
    source: u32,
    interfaces: (u32, u32),
    records: &[(u32, Vec<u8>)],
) -> (u32, Vec<u8>) {
    let (kind, mut bytes) = flow_sample(expanded, rate, records);
    let (input, output) = interfaces;
    let mut put = |at: usize, word: u32| bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_be_bytes());
    if expanded {
        let number = |word: u32| word & 0x3fff_ffff;
        let words =
            [(2, source), (6, input >> 30), (7, number(input)), (8, output >> 30), (9, number(output))];
        words.iter().for_each(|&(at, word)| put(at, word));
    } else {
        [(1, source), (5, input), (6, output)].iter().for_each(|&(at, word)| put(at, word));
    }
    (kind, bytes)
}

/// The record of a sampled Ethernet frame with the first 128 bytes of the frame.
pub fn sampled_frame(frame: &[u8]) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    // The length includes the check sequence, which was stripped.
    words(&mut bytes, &[1, frame.len() as u32 + 4, 4]);
    opaque(&mut bytes, &frame[..frame.len().min(128)]);
    (1, bytes)
}

/// The record of a sampled packet without its link layer.
pub fn sampled_ip(source: IpAddr, destination: IpAddr, ports: (u16, u16), length: u32) -> (u32, Vec<u8>) {
    let mut bytes = Vec::new();
    words(&mut bytes, &[length, 17]);
    let format = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
            3
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
            4
        }
        _ => panic!("one kind of address"),
    };
    words(&mut bytes, &[ports.0.into(), ports.1.into(), 0, 0]);
    (format, bytes)
}

/// A sample of an interface's counters.
pub fn counter_sample(interface: u32, speed: u64, octets: (u64, u64)) -> (u32, Vec<u8>) {
    let mut record = Vec::new();
    words(&mut record, &[interface, 6, (speed >> 32) as u32, speed as u32, 1, 3]);
    record.extend(octets.0.to_be_bytes());
    words(&mut record, &[1, 2, 3, 4, 5, 6]);
    record.extend(octets.1.to_be_bytes());
    words(&mut record, &[1, 2, 3, 4, 5, 6]);
    let mut bytes = Vec::new();
    words(&mut bytes, &[1, 3, 1, 1]);
    opaque(&mut bytes, &record);
    (2, bytes)
}

/// A flow in an export; times in milliseconds since 1970.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ExportedFlow {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub ports: (u16, u16),
    pub octets: u32,
    pub packets: u32,
    pub start_ms: u64,
    pub end_ms: u64,
}

/// Start of the exporters of tests, and time of sending.
pub const BOOT_MS: u64 = 1_700_000_000_000;
pub const SENT_MS: u64 = 1_700_003_600_000;

/// A NetFlow 5 datagram. `sampling` is a field of its header: two bits for the mode, fourteen bits for the rate.
pub fn v5(flows: &[ExportedFlow], sampling: u16) -> Vec<u8> {
    let mut bytes = vec![0, 5];
    bytes.extend((flows.len() as u16).to_be_bytes());
    words(
        &mut bytes,
        &[(SENT_MS - BOOT_MS) as u32, (SENT_MS / 1000) as u32, (SENT_MS % 1000 * 1_000_000) as u32, 0],
    );
    bytes.extend([0, 0]);
    bytes.extend(sampling.to_be_bytes());
    for flow in flows {
        bytes.extend(flow.source.octets());
        bytes.extend(flow.destination.octets());
        bytes.extend([0; 8]);
        let up = |time: u64| (time - BOOT_MS) as u32;
        words(&mut bytes, &[flow.packets, flow.octets, up(flow.start_ms), up(flow.end_ms)]);
        bytes.extend(flow.ports.0.to_be_bytes());
        bytes.extend(flow.ports.1.to_be_bytes());
        bytes.extend([0, 0x10, 17, 0, 0, 0, 0, 0, 24, 24, 0, 0]);
    }
    bytes
}

/// A set: its number, length, body padded to whole words.
pub fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let mut bytes = Vec::new();
    bytes.extend(id.to_be_bytes());
    bytes.extend((padded as u16 + 4).to_be_bytes());
    bytes.extend(body);
    bytes.resize(4 + padded, 0);
    bytes
}

pub fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(id.to_be_bytes());
    bytes.extend((fields.len() as u16).to_be_bytes());
    for (field, length) in fields {
        bytes.extend(field.to_be_bytes());
        bytes.extend(length.to_be_bytes());
    }
    bytes
}

/// Addresses, ports, protocol, octets, packets, start and end by uptime.
const V9_FIELDS: [(u16, u16); 9] =
    [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 4), (22, 4), (21, 4)];
/// The same with eight bytes of octets and times in milliseconds since 1970.
const IPFIX_FIELDS: [(u16, u16); 9] =
    [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 8), (2, 4), (152, 8), (153, 8)];

pub fn v9_template(id: u16) -> Vec<u8> {
    set(0, &template(id, &V9_FIELDS))
}

pub fn v9_data(id: u16, flows: &[ExportedFlow]) -> Vec<u8> {
    let mut body = Vec::new();
    for flow in flows {
        body.extend(flow.source.octets());
        body.extend(flow.destination.octets());
        body.extend(flow.ports.0.to_be_bytes());
        body.extend(flow.ports.1.to_be_bytes());
        body.push(17);
        let up = |time: u64| (time - BOOT_MS) as u32;
        words(&mut body, &[flow.octets, flow.packets, up(flow.start_ms), up(flow.end_ms)]);
    }
    set(id, &body)
}

/// An options template of the whole system with the sampling interval and its mode, followed by the options themselves.
pub fn v9_sampling(id: u16, rate: u32) -> Vec<u8> {
    let mut options = Vec::new();
    options.extend(id.to_be_bytes());
    options.extend([0, 4, 0, 8, 0, 1, 0, 4, 0, 34, 0, 4, 0, 35, 0, 1]);
    let mut body = vec![0; 4];
    words(&mut body, &[rate]);
    body.push(2);
    [set(1, &options), set(id, &body)].concat()
}

/// A NetFlow 9 datagram of a domain; `records` is the number of templates and records in its sets.
pub fn v9(domain: u32, records: u16, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0, 9];
    bytes.extend(records.to_be_bytes());
    words(&mut bytes, &[(SENT_MS - BOOT_MS) as u32, (SENT_MS / 1000) as u32, 0, domain]);
    bytes.extend(sets.concat());
    bytes
}

pub fn ipfix_template(id: u16) -> Vec<u8> {
    set(2, &template(id, &IPFIX_FIELDS))
}

pub fn ipfix_data(id: u16, flows: &[ExportedFlow]) -> Vec<u8> {
    let mut body = Vec::new();
    for flow in flows {
        body.extend(flow.source.octets());
        body.extend(flow.destination.octets());
        body.extend(flow.ports.0.to_be_bytes());
        body.extend(flow.ports.1.to_be_bytes());
        body.push(17);
        body.extend(u64::from(flow.octets).to_be_bytes());
        body.extend(flow.packets.to_be_bytes());
        body.extend(flow.start_ms.to_be_bytes());
        body.extend(flow.end_ms.to_be_bytes());
    }
    set(id, &body)
}

/// Options of a selector that takes one packet and then skips `rate - 1`.
pub fn ipfix_sampling(id: u16, rate: u32) -> Vec<u8> {
    let mut options = Vec::new();
    options.extend(id.to_be_bytes());
    options.extend([0, 3, 0, 1]);
    // The fields are selectorId as the scope, samplingPacketInterval, and samplingPacketSpace.
    options.extend([1, 46, 0, 8, 1, 49, 0, 4, 1, 50, 0, 4]);
    let mut body = 1_u64.to_be_bytes().to_vec();
    words(&mut body, &[1, rate - 1]);
    [set(3, &options), set(id, &body)].concat()
}

pub fn ipfix(domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let sets = sets.concat();
    let mut bytes = vec![0, 10];
    bytes.extend((sets.len() as u16 + 16).to_be_bytes());
    words(&mut bytes, &[(SENT_MS / 1000) as u32, 0, domain]);
    bytes.extend(sets);
    bytes
}

/// A datagram in an Ethernet frame from an exporter to a collector.
pub fn sent(from: IpAddr, from_port: u16, to_port: u16, datagram: &[u8]) -> Vec<u8> {
    let collector: IpAddr = if from.is_ipv4() { super::v4(250) } else { super::v6(250) };
    let udp = super::datagram((from_port, to_port), datagram);
    ethernet(collector, &super::ip(from, collector, 17, &udp))
}
