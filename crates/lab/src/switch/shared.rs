//! State that the switch and the traffic of a lab share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use leeward_circuits::estimate::{self, EstimateError};
use leeward_fabric::Nanos;
use leeward_packets::{Demand, Placer};

use super::AduTable;
use crate::frame::Packet;
use crate::live::Live;

/// Progress of a flow: bytes written by its application, acknowledged, and delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    pub(crate) source: usize,
    pub(crate) destination: usize,
    pub(crate) written: u64,
    pub(crate) acknowledged: u64,
    pub(crate) delivered: u64,
}

/// State that the threads of a lab share.
pub struct Shared {
    racks: usize,
    stopped: AtomicBool,
    /// Virtual time at which the workload begins; `u64::MAX` until it is known.
    begin: AtomicU64,
    /// True when everything that applications write at the beginning is written.
    written: AtomicBool,
    /// Bytes that have arrived at receivers, by pair of racks.
    arrived: Vec<AtomicU64>,
    demand: Option<Demand>,
    adus: Option<Mutex<AduTable>>,
    /// Progress of all flows.
    flows: Mutex<Vec<Progress>>,
    placer: Option<Mutex<Placer>>,
    report_every: Option<Nanos>,
    live: Mutex<Option<Live>>,
}

/// Locks a mutex; a thread that panicked with it ends the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    /// Creates the state of a lab of `racks` racks, whose demand is estimated from `demand`, and whose blocks `placer`
    /// places.
    pub fn new(racks: usize, demand: Option<Demand>, placer: Option<Placer>) -> Shared {
        Shared {
            racks,
            stopped: AtomicBool::new(false),
            begin: AtomicU64::new(u64::MAX),
            written: AtomicBool::new(false),
            arrived: (0..racks * racks).map(|_| AtomicU64::new(0)).collect(),
            demand,
            adus: (demand == Some(Demand::Adus)).then(|| Mutex::new(AduTable::new(racks))),
            flows: Mutex::new(Vec::new()),
            report_every: placer.as_ref().map(Placer::every),
            placer: placer.map(Mutex::new),
            live: Mutex::new(None),
        }
    }

    /// Stops the switch and the traffic.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Begins the schedule of circuits and the records at a virtual time.
    pub fn begin_at(&self, at: Nanos) {
        self.begin.store(at.0, Ordering::Release);
    }

    pub(crate) fn begin(&self) -> Option<Nanos> {
        let at = self.begin.load(Ordering::Acquire);
        (at != u64::MAX).then_some(Nanos(at))
    }

    /// Says that the first demand is complete.
    pub(crate) fn set_written(&self) {
        self.written.store(true, Ordering::Release);
    }

    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Acquire)
    }

    pub(crate) fn adus(&self) -> Option<MutexGuard<'_, AduTable>> {
        self.adus.as_ref().map(lock)
    }

    #[inline]
    pub(super) fn see(&self, packet: &Packet) {
        if let Some(adus) = &self.adus {
            lock(adus).see(packet);
        }
    }

    /// Returns true if the demand is that of sockets: written and not acknowledged.
    pub(crate) fn needs_acknowledged(&self) -> bool {
        self.demand == Some(Demand::Sockets)
    }

    pub(crate) fn flows(&self) -> MutexGuard<'_, Vec<Progress>> {
        lock(&self.flows)
    }

    pub(crate) fn placer(&self) -> Option<MutexGuard<'_, Placer>> {
        self.placer.as_ref().map(lock)
    }

    pub(super) fn report_every(&self) -> Option<Nanos> {
        self.report_every
    }

    /// Takes the latest view of the lab.
    pub(crate) fn live(&self) -> Option<Live> {
        lock(&self.live).take()
    }

    pub(super) fn show(&self, live: Live) {
        *lock(&self.live) = Some(live);
    }

    pub(crate) fn add_arrived(&self, pair: usize, bytes: u64) {
        self.arrived[pair].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn arrived(&self, pair: usize) -> u64 {
        self.arrived[pair].load(Ordering::Relaxed)
    }

    /// Demand by source rack, then destination, from what hosts know.
    pub(super) fn demand(&self, of: Demand) -> Result<Vec<u64>, EstimateError> {
        if let (Demand::Adus, Some(adus)) = (of, self.adus()) {
            return Ok(adus.demand());
        }
        let flows = self.flows();
        let left = flows.iter().map(|flow| {
            let done = if of == Demand::Sockets { flow.acknowledged } else { flow.delivered };
            (flow.source, flow.destination, flow.written.saturating_sub(done))
        });
        estimate::of_flows(self.racks, left)
    }
}
