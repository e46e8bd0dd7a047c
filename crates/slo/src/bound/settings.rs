//! Settings of the queue model behind the bounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_traces::Stage;

use super::SystemError;
use crate::{Demand, System};

/// Bytes that a link serves without interruption: an Ethernet frame of 1500 bytes of payload with header,
/// checksum, preamble and gap.
const FRAME: f64 = 1538.0;
/// Smallest Ethernet frame, in bytes.
pub(crate) const LEAST_FRAME: f64 = 64.0;

/// Unit of service that arrivals of a higher priority do not interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// No unit: a higher priority preempts at once, and work moves on while it is served. The model of the thesis.
    Fluid,
    /// Frames on links, requests at devices.
    Frames,
    /// Requests everywhere. On a link that serves frames this is conservative.
    Requests,
}

/// Settings of bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BoundSettings {
    /// Unit of service without interruption. Default `requests`.
    pub unit: Unit,
    /// Frame size in bytes, used with `frames`; at least 64. Default 1538: Ethernet with 1500 bytes of
    /// payload.
    pub frame: f64,
    /// True if limits pass single frames, as hosts with paced sending do. False if limits pass whole requests, also on
    /// links that serve frames. Not for files: limits of a file pass whole requests.
    #[serde(skip)]
    pub paced: bool,
    /// Guarantees that requests of one priority are served in order of arrival. If false, `priority-meister`
    /// takes equal priorities in any order, as published, and `plp` gives no bound. The curves of `dnc`
    /// assume this order regardless. Default true.
    pub fifo: bool,
    /// Largest number of buckets of a curve in the linear program. Fewer buckets are faster, and never lower a bound.
    /// Default 32.
    pub buckets: usize,
    /// If true, percentiles of stochastic bounds count requests; if false, they count time, as published. Default true.
    pub by_request: bool,
    /// Requests that a device takes at once and serves before any later arrival, for devices whose file states no number.
    /// If requests are the unit of service, this many times the largest request counts as in service. Default 1.
    pub outstanding: Option<u32>,
    /// Tightens stochastic bounds by Lyapunov's inequality, which takes seven to ten times longer. Default false.
    pub lyapunov: bool,
    /// Takes the union bounds of stochastic bounds over blocks of steps instead of over single steps. The bounds stay
    /// valid and are much lower for short steps. Default true.
    pub blocks: bool,
}

impl Default for BoundSettings {
    fn default() -> Self {
        BoundSettings {
            unit: Unit::Requests,
            frame: FRAME,
            paced: false,
            fifo: true,
            buckets: 32,
            by_request: true,
            outstanding: None,
            lyapunov: false,
            blocks: true,
        }
    }
}

impl BoundSettings {
    /// Work of a demand that is served without interruption.
    pub fn packet(&self, demand: &Demand) -> f64 {
        match self.unit {
            Unit::Fluid => 0.0,
            Unit::Frames if demand.stage != Stage::Storage => demand.largest.min(self.frame),
            Unit::Frames | Unit::Requests => demand.largest,
        }
    }

    /// Requests that the device of a demand has at once: as its profile states, or else as these settings do.
    pub fn at_once(&self, demand: &Demand) -> u32 {
        demand.outstanding.or(self.outstanding).unwrap_or(1)
    }

    /// Requests that each queue of a system has at once: of a device the largest number that a demand at it states, and 1
    /// of a link.
    pub fn at_once_by_queue(&self, system: &System) -> Vec<u32> {
        let mut numbers = vec![1; system.queues.len()];
        for promise in &system.promises {
            for (demand, path) in promise.workload.demands.iter().zip(&promise.route) {
                for &queue in path.iter().filter(|_| demand.stage == Stage::Storage) {
                    if let Some(number) = numbers.get_mut(queue) {
                        *number = self.at_once(demand).max(*number);
                    }
                }
            }
        }
        numbers
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`SystemError::Setting`] with the first invalid number.
    pub fn check(&self) -> Result<(), SystemError> {
        let fault = |setting, value, expected| Err(SystemError::Setting { setting, value, expected });
        match self {
            Self { frame, .. } if !(frame.is_finite() && *frame >= LEAST_FRAME) => {
                fault("frame", *frame, "finite and at least 64, in bytes")
            }
            Self { buckets: 0, .. } => fault("buckets", 0.0, "at least 1"),
            Self { outstanding: Some(0), .. } => fault("outstanding", 0.0, "at least 1"),
            _ => Ok(()),
        }
    }
}
