//! What happened in a run, as plain tables.

use leeward_circuits::routing::MOST_HOPS;
use leeward_circuits::switch::Via;
use leeward_fabric::Nanos;

use super::workload::{Block, Flow, Place, Train};

/// A flow, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// Between whom, and of which class.
    pub flow: Flow,
    /// When its first bytes were written.
    pub began: Option<Nanos>,
    /// When its last byte arrived.
    pub finished: Option<Nanos>,
    /// What was written to it.
    pub written: u64,
    /// What has arrived in order.
    pub delivered: u64,
    /// Segments sent.
    pub segments: u64,
    /// Segments among them that were sent before.
    pub again: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl FlowRecord {
    /// Of a flow that has not begun.
    pub(super) fn of(flow: &Flow) -> FlowRecord {
        FlowRecord {
            flow: *flow,
            began: None,
            finished: None,
            written: 0,
            delivered: 0,
            segments: 0,
            again: 0,
            timeouts: 0,
        }
    }
}

/// A block of a file, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// The file, by number.
    pub file: u32,
    /// Who writes it.
    pub writer: Place,
    /// How many bytes it has.
    pub bytes: u64,
    /// When its first packet was written.
    pub began: Option<Nanos>,
    /// When the writer had the last answer.
    pub finished: Option<Nanos>,
    /// Where its copies beside the writer's are, in the order of the chain; none before it began.
    pub copies: Vec<Place>,
}

impl BlockRecord {
    /// Of a block that has not begun.
    pub(super) fn of(block: &Block) -> BlockRecord {
        let Block { file, writer, bytes, .. } = *block;
        BlockRecord { file, writer, bytes, began: None, finished: None, copies: Vec::new() }
    }
}

/// A train, by its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrainRecord {
    /// What was to be sent.
    pub train: Train,
    /// When its first packet went to the NIC.
    pub began: Option<Nanos>,
    /// Packets that the NIC has taken.
    pub sent: u64,
    /// Packets that have arrived, in that order.
    pub arrivals: Vec<Arrival>,
}

/// A packet of a train at its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its number in the train, from 0.
    pub packet: u32,
    /// When it came.
    pub at: Nanos,
}

impl TrainRecord {
    /// Of a train that has not begun.
    pub(super) fn of(train: &Train) -> TrainRecord {
        TrainRecord { train: *train, began: None, sent: 0, arrivals: Vec::new() }
    }
}

/// A circuit's day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayRecord {
    /// The rack it leads from.
    pub source: usize,
    /// The rack it leads to.
    pub destination: usize,
    /// When it came up.
    pub began: Nanos,
    /// When it went down.
    pub ended: Nanos,
    /// What was sent on it.
    pub bytes: u64,
}

/// A pair of racks at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// The rack the packets come from.
    pub source: usize,
    /// The rack they go to.
    pub destination: usize,
    /// Packets in the pair's queue.
    pub packets: u32,
    /// Bytes in it.
    pub bytes: u64,
    /// How many packets it may hold.
    pub capacity: u32,
    /// Bytes of all flows of the pair that have arrived in order: the sum of the next sequence numbers that receivers expect.
    pub delivered: u64,
}

/// Packets and bytes of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// How many packets.
    pub packets: u64,
    /// Their bytes, with headers.
    pub bytes: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// What a plant records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Records {
    /// All flows of the workload, by number.
    pub flows: Vec<FlowRecord>,
    /// All blocks of files, by number.
    pub blocks: Vec<BlockRecord>,
    /// All trains, by number.
    pub trains: Vec<TrainRecord>,
    /// All circuits' days that have ended, by their end.
    pub days: Vec<DayRecord>,
    /// Samples, by time.
    pub samples: Vec<Sample>,
    /// How long packets with data were in the switch, by way: [`Via::Packet`], [`Via::Circuit`].
    pub latency: [Histogram; 2],
    /// All that hosts sent, data and acknowledgements.
    pub sent: Traffic,
    /// What came to hosts by the switch, by way.
    pub delivered: [Traffic; 2],
    /// And by how many links between racks it took: 1, 2 and so on; more than one where racks pass packets on.
    pub hops: [Traffic; MOST_HOPS as usize],
    /// What came to hosts of the same rack, without it.
    pub local: Traffic,
    /// Bytes that racks sent up to the packet switch, those that it sent back each time.
    pub raised_bytes: u64,
    /// What the switch lost.
    pub dropped: Traffic,
    /// Packets with data that came to their host.
    pub data_packets: u64,
}

impl Records {
    /// The share of a circuit's days from one rack to another that began at `from` or later in which it sent (Etalon, section
    /// 4), given its bits per second. None without such a day.
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

    /// Latencies of packets with data by one way.
    pub fn latency(&self, via: Via) -> &Histogram {
        &self.latency[via as usize]
    }

    /// Latencies of all packets with data.
    pub fn all_latencies(&self) -> Histogram {
        let mut all = self.latency[0].clone();
        all.merge(&self.latency[1]);
        all
    }
}

/// How many values there are of each size, exact up to 1023 ns and to a part in 1024 beyond.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

/// Bins of each doubling.
const BINS: u64 = 1 << 9;

impl Histogram {
    fn bin(value: u64) -> usize {
        let shift = (value / (2 * BINS)).checked_ilog2().map_or(0, |log| u64::from(log) + 1);
        (shift * BINS + (value >> shift)) as usize
    }

    /// The middle of a bin.
    fn value(bin: usize) -> u64 {
        let bin = bin as u64;
        let shift = (bin / BINS).saturating_sub(1);
        ((bin - shift * BINS) << shift) + ((1 << shift) >> 1)
    }

    pub(super) fn add(&mut self, value: Nanos) {
        let bin = Histogram::bin(value.0);
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += 1;
        self.total += 1;
    }

    fn merge(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
        self.total += other.total;
    }

    /// How many values there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The value that a share of all, from 0 to 1, do not exceed (nearest rank). None without values.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = ((share * self.total as f64).ceil() as u64).clamp(1, self.total.max(1));
        let mut below = 0;
        let bin = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        (self.total > 0).then(|| Nanos(Histogram::value(bin)))
    }

    /// The values and how many there are of each, from the least.
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
        fn quantiles_are_those_of_the_values_to_a_part_in_a_thousand(
            mut values in prop::collection::vec(prop_oneof![0_u64..2000, 0_u64..10_000_000], 1..300),
            share in 0.0_f64..=1.0,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(Nanos(value)));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (exact, ours) = (values[rank - 1], histogram.quantile(share).expect("there are values").0);
            prop_assert!(exact.abs_diff(ours) * 1024 <= exact, "{} beside {}", ours, exact);
            prop_assert_eq!(histogram.bins().map(|(_, count)| count).sum::<u64>(), values.len() as u64);
        }
    }

    #[test]
    fn of_no_values_there_is_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
