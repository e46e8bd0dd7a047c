//! What a bound takes the queues to be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use leeward_traces::Stage;

use super::SystemError;
use crate::volumes::Demand;

/// The bytes that a link serves whole: an Ethernet frame of 1500 bytes with its header, its checksum, preamble and gap.
const FRAME: f64 = 1538.0;
/// The least that is a frame: that of Ethernet.
pub(in crate::volumes) const LEAST_FRAME: f64 = 64.0;

/// What is served whole once it is in service, whatever comes meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nothing: a higher priority interrupts at once, and work moves on as it is served. The thesis' model.
    Fluid,
    /// Frames on links, requests at devices.
    Frames,
    /// Requests, everywhere. On a link that serves frames this is on the safe side.
    Requests,
}

/// Settings of bounds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BoundSettings {
    /// What is served whole. Default `requests`.
    pub unit: Unit,
    /// Bytes of a frame, where frames are served whole; at least 64. Default 1538: Ethernet with 1500 bytes of payload.
    pub frame: f64,
    /// Whether limits let single frames pass, as hosts do that pace what they send; else they let whole requests pass, also where links
    /// serve frames. Not for files: limits of a file let whole requests pass.
    #[serde(skip)]
    pub paced: bool,
    /// Whether requests of one priority are known to be served in order of arrival. Where not, `priority-meister` takes
    /// equal priorities in any order, as published, and `plp` has no bound; the curves of `dnc` know it. Default true.
    pub fifo: bool,
    /// Buckets of a curve in the linear program at most; fewer are faster, and never lower a bound. Default 32.
    pub buckets: usize,
    /// Whether percentiles of stochastic bounds are of requests; else of time, as published. Default true.
    pub by_request: bool,
    /// Requests that a device is handed at once, and serves before whatever comes then: as many times its largest request count as in
    /// service, where requests are served whole. Default 1.
    pub outstanding: u32,
    /// Whether stochastic bounds are tightened by Lyapunov's inequality, some seven to ten times slower. Default false.
    pub lyapunov: bool,
    /// Whether stochastic bounds take unions over blocks of steps and not over each step; never below what holds, and lower by
    /// far where steps are short. Default true.
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
            outstanding: 1,
            lyapunov: false,
            blocks: true,
        }
    }
}

impl BoundSettings {
    /// The model of the thesis: a fluid, percentiles over time, unions over each step, equal priorities in any order.
    pub fn published() -> BoundSettings {
        let (unit, fifo, by_request, blocks) = (Unit::Fluid, false, false, false);
        BoundSettings { unit, fifo, by_request, blocks, ..BoundSettings::default() }
    }

    /// What of a demand is served whole, in work.
    pub fn packet(&self, demand: &Demand) -> f64 {
        match self.unit {
            Unit::Fluid => 0.0,
            Unit::Frames if demand.stage != Stage::Storage => demand.largest.min(self.frame),
            Unit::Frames | Unit::Requests => demand.largest,
        }
    }

    /// # Errors
    /// An invalid number.
    pub fn check(&self) -> Result<(), SystemError> {
        let fault = |setting, value, expected| Err(SystemError::Setting { setting, value, expected });
        match self {
            Self { frame, .. } if !(frame.is_finite() && *frame >= LEAST_FRAME) => {
                fault("frame", *frame, "finite and at least 64, in bytes")
            }
            Self { buckets: 0, .. } => fault("buckets", 0.0, "at least 1"),
            Self { outstanding: 0, .. } => fault("outstanding", 0.0, "at least 1"),
            _ => Ok(()),
        }
    }
}
