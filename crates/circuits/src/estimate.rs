//! Demand estimates: bytes that racks still have to send to each other, from four sources of information.
//!
//! These are the switch's queues, application data units ([`Adus`]), socket buffers, and complete knowledge of
//! all flows. Each estimate lists bytes by source rack, then destination. A rack has no demand for itself, because such
//! bytes cross no circuit.

use crate::switch::Switch;

/// Estimates demand from the switch's queues. A switch alone has no other information, and queue capacity limits the
/// estimate (Etalon, section 2.2).
pub fn of_queues<P: Copy>(switch: &Switch<P>) -> Vec<u64> {
    let racks = switch.settings().racks;
    let mut bytes = vec![0; racks * racks];
    for source in 0..racks {
        for destination in (0..racks).filter(|&destination| destination != source) {
            bytes[source * racks + destination] = switch.queued(source, destination).1;
        }
    }
    bytes
}

/// Sums the remaining bytes of flows, given as (source, destination, bytes).
///
/// With the bytes in the flows' sockets, the result is the estimate of a network that queries its hosts. With all bytes
/// that the flows will ever send, it is the estimate of an oracle.
///
/// # Errors
/// Returns an error for a flow from or to a rack that does not exist.
pub fn of_flows(
    racks: usize,
    flows: impl IntoIterator<Item = (usize, usize, u64)>,
) -> Result<Vec<u64>, EstimateError> {
    let mut bytes = vec![0_u64; racks * racks];
    for (source, destination, left) in flows {
        check(racks, source, destination)?;
        if source != destination {
            let sum = &mut bytes[source * racks + destination];
            *sum = sum.saturating_add(left);
        }
    }
    Ok(bytes)
}

fn check(racks: usize, source: usize, destination: usize) -> Result<(), EstimateError> {
    for (end, rack) in [("source", source), ("destination", destination)] {
        if rack >= racks {
            return Err(EstimateError::NoRack { end, rack, racks });
        }
    }
    Ok(())
}

/// Invalid input to an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EstimateError {
    /// A rack that does not exist.
    #[error("{end} rack {rack}: there are {racks} racks, numbered from 0")]
    NoRack {
        /// `source` or `destination`.
        end: &'static str,
        /// Rack, from 0.
        rack: usize,
        /// Number of racks.
        racks: usize,
    },
    /// A flow that is already open.
    #[error("flow {flow} is open: it must be closed before it is opened again")]
    Open {
        /// Number of the flow.
        flow: usize,
    },
    /// A flow that was never opened or is closed.
    #[error("flow {flow} is not open: nothing can be written to it")]
    NotOpen {
        /// Number of the flow.
        flow: usize,
    },
}

/// Application data units (Etalon, section 5.2): bytes that applications have written and the switch has not yet seen.
///
/// The estimate tracks for each flow the bytes written and the highest byte that entered the switch, so a retransmitted
/// byte counts once. Closing a flow removes its remaining bytes. The switch may see bytes before it learns that they
/// were written. Until then the flow has zero remaining bytes, never fewer.
#[derive(Clone, Debug)]
pub struct Adus {
    racks: usize,
    flows: Vec<Option<Flow>>,
    /// Remaining bytes of all flows of a pair, by source, then destination.
    left: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    pair: usize,
    written: u64,
    seen: u64,
}

impl Flow {
    fn left(&self) -> u64 {
        self.written.saturating_sub(self.seen)
    }
}

impl Adus {
    /// Creates an estimate without flows for `racks` racks.
    pub fn new(racks: usize) -> Adus {
        Adus { racks, flows: Vec::new(), left: vec![0; racks * racks] }
    }

    /// Opens a flow under a number that the caller chooses. Memory grows with the largest number in use, so small
    /// numbers are best.
    ///
    /// # Errors
    /// Returns an error for a rack that does not exist or a number in use.
    pub fn open(&mut self, flow: usize, source: usize, destination: usize) -> Result<(), EstimateError> {
        check(self.racks, source, destination)?;
        if self.flows.get(flow).is_some_and(Option::is_some) {
            return Err(EstimateError::Open { flow });
        }
        if self.flows.len() <= flow {
            self.flows.resize(flow + 1, None);
        }
        self.flows[flow] = Some(Flow { pair: source * self.racks + destination, written: 0, seen: 0 });
        Ok(())
    }

    /// Records that the application writes `bytes` bytes to the flow.
    ///
    /// # Errors
    /// Returns an error if the flow is not open.
    pub fn write(&mut self, flow: usize, bytes: u64) -> Result<(), EstimateError> {
        self.change(flow, |flow| flow.written = flow.written.saturating_add(bytes))
            .ok_or(EstimateError::NotOpen { flow })
    }

    /// Records that a packet of the flow enters the switch; its last byte is the `end`th byte written. Packets of a
    /// closed flow are ignored.
    pub fn seen(&mut self, flow: usize, end: u64) {
        self.change(flow, |flow| flow.seen = flow.seen.max(end));
    }

    /// Closes a flow and discards its remaining bytes. Closing a closed flow has no effect.
    pub fn close(&mut self, flow: usize) {
        self.change(flow, |flow| flow.seen = u64::MAX);
        if let Some(flow) = self.flows.get_mut(flow) {
            *flow = None;
        }
    }

    fn change(&mut self, flow: usize, change: impl FnOnce(&mut Flow)) -> Option<()> {
        let flow = self.flows.get_mut(flow)?.as_mut()?;
        let before = flow.left();
        change(flow);
        let left = &mut self.left[flow.pair];
        *left = left.wrapping_sub(before).wrapping_add(flow.left());
        Some(())
    }

    /// Remaining bytes of all flows, by source, then destination.
    pub fn demand(&self) -> Vec<u64> {
        let mut bytes = self.left.clone();
        (0..self.racks).for_each(|rack| bytes[rack * self.racks + rack] = 0);
        bytes
    }
}
