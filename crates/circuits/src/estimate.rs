//! What racks still have for each other, as it can be known: by what is in the switch's queues, by what applications have
//! written ([`Adus`]), by what is in sockets, by the whole truth.
//!
//! Each gives bytes by source rack, then destination; a rack has nothing for itself, since that crosses no circuit.

use crate::switch::Switch;

/// Demand as what is in the switch's queues: all that a switch can know alone, and no more than its queues hold (Etalon,
/// section 2.2).
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

/// Demand as the sum of what flows have left, given as (source, destination, bytes): with what is in their sockets the estimate of
/// a network that asks its hosts, with all that they will ever send an oracle's.
///
/// # Errors
/// A flow from or to a rack that is not there.
pub fn of_flows(
    racks: usize,
    flows: impl IntoIterator<Item = (usize, usize, u64)>,
) -> Result<Vec<u64>, EstimateError> {
    let mut bytes = vec![0_u64; racks * racks];
    for (source, destination, left) in flows {
        check(racks, source, destination)?;
        if source != destination {
            let of = &mut bytes[source * racks + destination];
            *of = of.saturating_add(left);
        }
    }
    Ok(bytes)
}

fn check(racks: usize, source: usize, destination: usize) -> Result<(), EstimateError> {
    for (what, rack) in [("source", source), ("destination", destination)] {
        if rack >= racks {
            return Err(EstimateError::NoRack { what, rack, racks });
        }
    }
    Ok(())
}

/// What cannot be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EstimateError {
    /// A rack that is not there.
    #[error("{what} rack {rack} of {racks}, numbered from 0")]
    NoRack {
        /// Source or destination.
        what: &'static str,
        /// Which.
        rack: usize,
        /// How many there are.
        racks: usize,
    },
    /// A flow that is open already.
    #[error("flow {flow} is open: it must be closed before it is opened again")]
    Open {
        /// Which.
        flow: usize,
    },
    /// A flow that was never opened, or was closed.
    #[error("flow {flow} is not open: nothing can be written to it")]
    NotOpen {
        /// Which.
        flow: usize,
    },
}

/// Application data units (Etalon, section 5.2): what applications have written and the switch has not yet seen.
///
/// Of each flow it is known how many bytes were written and up to which of them a packet has entered the switch, so a byte sent
/// again counts once. The end of a flow takes away what it has left. A switch may see bytes before it hears that they were
/// written; until then the flow has nothing left, not less.
#[derive(Clone, Debug)]
pub struct Adus {
    racks: usize,
    flows: Vec<Option<Flow>>,
    /// What all flows of a pair have left; by source, then destination.
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
    /// No flows between so many racks.
    pub fn new(racks: usize) -> Adus {
        Adus { racks, flows: Vec::new(), left: vec![0; racks * racks] }
    }

    /// A flow begins, under a number of the caller's; small numbers are best, as each up to the largest takes some memory.
    ///
    /// # Errors
    /// A rack that is not there, a number in use.
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

    /// An application writes so many bytes.
    ///
    /// # Errors
    /// A flow that is not open.
    pub fn write(&mut self, flow: usize, bytes: u64) -> Result<(), EstimateError> {
        self.change(flow, |flow| flow.written = flow.written.saturating_add(bytes))
            .ok_or(EstimateError::NotOpen { flow })
    }

    /// A packet of the flow enters the switch: its last byte is the `end`th that was written. Packets of a flow that was closed
    /// may still come, and are nothing.
    pub fn seen(&mut self, flow: usize, end: u64) {
        self.change(flow, |flow| flow.seen = flow.seen.max(end));
    }

    /// A flow ends; what it has left will not be sent. One that has ended may end again.
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

    /// What the flows of a pair have left.
    ///
    /// # Panics
    /// If there is no such rack.
    pub fn of_pair(&self, source: usize, destination: usize) -> u64 {
        assert!(destination < self.racks, "rack {destination}");
        self.left[source * self.racks + destination]
    }

    /// Demand as what all flows have left.
    pub fn demand(&self) -> Vec<u64> {
        let mut bytes = self.left.clone();
        (0..self.racks).for_each(|rack| bytes[rack * self.racks + rack] = 0);
        bytes
    }
}
