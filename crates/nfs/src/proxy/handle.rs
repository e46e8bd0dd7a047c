//! Access to a proxy that runs: its workloads, its counters and its state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::shared::{Scratch, Shared};
use crate::counters::Summary;
use crate::event::Event;
use crate::queue::{Counted, InvalidWorkload};
use crate::workloads::Workloads;

/// Counters of a proxy at one time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Seconds since 1970.
    pub at_s: f64,
    /// Seconds since the start.
    pub elapsed_s: f64,
    /// Names of the exports.
    pub exports: Vec<String>,
    /// Open connections.
    pub connections: usize,
    /// Connections that were refused, by the limits or because of their address.
    pub refused_connections: u64,
    /// Connections that were closed because of broken calls.
    pub broken_connections: u64,
    /// Requests that wait in the queue.
    pub waiting: usize,
    /// Requests at the server.
    pub in_service: usize,
    /// Calls that passed on at once.
    pub passed: u64,
    /// Requests that lost their place at the device because no answer came in time.
    pub unanswered: u64,
    /// Rows of traces that were not written: the disk was too slow, the limit was reached, or an error occurred.
    pub lost_rows: u64,
    /// Counters of workloads, and of clients without one.
    pub workloads: Vec<Summary>,
}

/// Access to a proxy that runs.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// Replaces the workloads, also for waiting requests.
    ///
    /// # Errors
    /// Fails for invalid settings of a workload; nothing is changed then.
    pub fn replace(&self, workloads: Workloads) -> Result<(), InvalidWorkload> {
        let count = workloads.list().len();
        let workloads = Arc::new(workloads);
        // Requests that waited for tokens may start now.
        let replaced =
            self.0.with_queue(None, &mut Scratch::default(), |queue, now| queue.replace(now, workloads));
        if replaced.is_ok() {
            self.0.events.send(Event::Replaced { workloads: count });
        }
        replaced
    }

    /// Number of rounds of housekeeping so far: a number that stands still for a second means that the proxy hangs.
    pub fn rounds(&self) -> u64 {
        self.0.numbers.rounds.load(Ordering::Relaxed)
    }

    /// Numbers of open connections, of requests that wait, and of requests at the server.
    pub fn load(&self) -> (usize, usize, usize) {
        let (waiting, in_service) = self.0.lock_queue().depth();
        (self.0.numbers.connections.load(Ordering::Relaxed), waiting, in_service)
    }

    /// Counters and recent latencies of all workloads, for an acknowledgement.
    pub fn counted(&self) -> Vec<Counted> {
        let now = self.0.clock.now();
        self.0.lock_queue().counted(now)
    }

    /// Counters. The latencies since the last report begin again.
    pub fn report(&self) -> Report {
        let Shared { numbers, clock, exports, .. } = &*self.0;
        let now = clock.now();
        let connections = numbers.connections.load(Ordering::Relaxed);
        let (workloads, (waiting, in_service)) = {
            let mut queue = self.0.lock_queue();
            (queue.summaries(), queue.depth())
        };
        let number = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Report {
            at_s: clock.wall(now).as_secs_f64(),
            elapsed_s: now.as_secs_f64(),
            exports: exports.iter().map(|export| export.server.export.to_string()).collect(),
            connections,
            refused_connections: number(&numbers.refused),
            broken_connections: number(&numbers.broken),
            waiting,
            in_service,
            passed: number(&numbers.passed),
            unanswered: number(&numbers.unanswered),
            lost_rows: number(&numbers.lost_rows),
            workloads,
        }
    }
}
