//! Records of a run, as plain tables.

use leeward_circuits::routing::MOST_HOPS;
use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;

use super::workload::{Block, Flow, Place, Train};

/// A flow, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// Ends and class of the flow.
    pub flow: Flow,
    /// Time of the first write.
    pub began: Option<Nanos>,
    /// Arrival time of the last byte.
    pub finished: Option<Nanos>,
    /// Bytes written.
    pub written: u64,
    /// Bytes that arrived in order.
    pub delivered: u64,
    /// Segments sent.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl FlowRecord {
    /// Returns the record of a flow that has not begun.
    pub fn of(flow: &Flow) -> FlowRecord {
        FlowRecord {
            flow: *flow,
            began: None,
            finished: None,
            written: 0,
            delivered: 0,
            segments: 0,
            retransmitted: 0,
            timeouts: 0,
        }
    }
}

/// A block of a file, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// Number of the file.
    pub file: u32,
    /// Host that writes it.
    pub writer: Place,
    /// Size in bytes.
    pub bytes: u64,
    /// Time at which its first packet was written.
    pub began: Option<Nanos>,
    /// Time at which the writer received the last answer.
    pub finished: Option<Nanos>,
    /// Hosts of its copies except the writer, in the order of the chain; empty before it begins.
    pub copies: Vec<Place>,
}

impl BlockRecord {
    /// Returns the record of a block that has not begun.
    pub fn of(block: &Block) -> BlockRecord {
        let Block { file, writer, bytes, .. } = *block;
        BlockRecord { file, writer, bytes, began: None, finished: None, copies: Vec::new() }
    }
}

/// A train, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrainRecord {
    /// The train.
    pub train: Train,
    /// Time at which its first packet went to the NIC.
    pub began: Option<Nanos>,
    /// Number of packets that the NIC has taken.
    pub sent: u64,
    /// Packets that have arrived, in order of arrival.
    pub arrivals: Vec<Arrival>,
}

/// A packet of a train at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Number of the packet in its train, from 0.
    pub packet: u32,
    /// Arrival time.
    pub at: Nanos,
}

impl TrainRecord {
    /// Returns the record of a train that has not begun.
    pub(super) fn of(train: &Train) -> TrainRecord {
        TrainRecord { train: *train, began: None, sent: 0, arrivals: Vec::new() }
    }
}

/// Day of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayRecord {
    /// Source rack.
    pub source: usize,
    /// Destination rack.
    pub destination: usize,
    /// Time at which the circuit came up.
    pub began: Nanos,
    /// Time at which it went down.
    pub ended: Nanos,
    /// Bytes sent on it.
    pub bytes: u64,
}

/// Sample of a pair of racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Time of the sample.
    pub at: Nanos,
    /// Source rack.
    pub source: usize,
    /// Destination rack.
    pub destination: usize,
    /// Packets in the pair's queue.
    pub packets: u32,
    /// Bytes in the queue.
    pub bytes: u64,
    /// Capacity of the queue in packets.
    pub capacity: u32,
    /// Bytes of all flows of the pair that have arrived in order: the sum of the receivers' next expected
    /// sequence numbers.
    pub delivered: u64,
}

/// Packets and bytes of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Number of packets.
    pub packets: u64,
    /// Bytes, with headers.
    pub bytes: u64,
}

impl Traffic {
    /// Adds a packet.
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Records of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    /// All flows of the workload, by number.
    pub flows: Vec<FlowRecord>,
    /// All blocks of files, by number.
    pub blocks: Vec<BlockRecord>,
    /// All trains, by number.
    pub trains: Vec<TrainRecord>,
    /// All ended days of circuits, by their end.
    pub days: Vec<DayRecord>,
    /// Samples, by time.
    pub samples: Vec<Sample>,
    /// Time that packets with data spent in the switch, by path: [`Via::Packet`], [`Via::Circuit`].
    pub latency: [Histogram; 2],
    /// All traffic that hosts sent, data and acknowledgements.
    pub sent: Traffic,
    /// Traffic that the switch delivered to hosts, by path.
    pub delivered: [Traffic; 2],
    /// Delivered traffic by the number of links between racks: 1, 2 and so on; more than one if racks relay packets.
    pub hops: [Traffic; MOST_HOPS as usize],
    /// Traffic between hosts of the same rack, which bypasses the switch.
    pub local: Traffic,
    /// Bytes that racks sent up to the packet switch. Bytes that it sends back count each time.
    pub uplink_bytes: u64,
    /// Traffic that the switch dropped.
    pub dropped: Traffic,
    /// Packets with data that reached their host.
    pub data_packets: u64,
}

impl Records {
    /// Returns the utilization of a circuit: the bytes sent in its days as a share of the bytes that `rate` (in bits
    /// per second) allows in these days (Etalon, section 4). Only days from `source` to `destination` that began at
    /// `from` or later count; `None` without such a day.
    pub fn circuit_utilization(
        &self,
        source: usize,
        destination: usize,
        rate: f64,
        from: Nanos,
    ) -> Option<f64> {
        let days = self
            .days
            .iter()
            .filter(|day| (day.source, day.destination) == (source, destination) && day.began >= from);
        let (bytes, time) =
            days.fold((0, 0), |(bytes, time), day| (bytes + day.bytes, time + day.ended.since(day.began).0));
        (time > 0).then(|| bytes as f64 * 8e9 / (rate * time as f64))
    }

    /// Returns the latencies of packets with data on one path.
    pub fn latency(&self, via: Via) -> &Histogram {
        &self.latency[via as usize]
    }

    /// Returns the latencies of all packets with data.
    pub fn all_latencies(&self) -> Histogram {
        let mut all = self.latency[0].clone();
        all.merge(&self.latency[1]);
        all
    }
}

/// Histogram of times, exact up to 1023 ns and to one part in 1024 above.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

/// Bins per power of two.
const BINS: u64 = 1 << 9;

impl Histogram {
    fn bin(value: u64) -> usize {
        let shift = (value / (2 * BINS)).checked_ilog2().map_or(0, |log| u64::from(log) + 1);
        (shift * BINS + (value >> shift)) as usize
    }

    /// Middle of a bin.
    fn value(bin: usize) -> u64 {
        let bin = bin as u64;
        let shift = (bin / BINS).saturating_sub(1);
        ((bin - shift * BINS) << shift) + ((1 << shift) >> 1)
    }

    /// Adds a value.
    pub fn add(&mut self, value: Nanos) {
        let bin = Histogram::bin(value.0);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.total += 1;
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.total += other.total;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the value that a share (0 to 1) of all values do not exceed (nearest rank). `None` without
    /// values.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = ((share * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut below = 0;
        let bin = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        (self.total > 0).then(|| Nanos(Histogram::value(bin)))
    }

    /// Returns each value with its count, in ascending order.
    pub fn bins(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let some = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        some.map(|(bin, &count)| (Nanos(Histogram::value(bin)), count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_exact_to_a_part_in_a_thousand(
            mut values in prop::collection::vec(prop_oneof![0_u64..2000, 0_u64..10_000_000], 1..300),
            share in 0.0_f64..=1.0,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(Nanos(value)));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, estimate) = (values[rank - 1], histogram.quantile(share).expect("there are values").0);
            prop_assert!(exact.abs_diff(estimate) * 1024 <= exact, "{}, exact {}", estimate, exact);
            prop_assert_eq!(histogram.bins().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
