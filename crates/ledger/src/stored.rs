//! Entries in the ledger, with their progress towards telemetry.

use leeward_fabric::Nanos;

use crate::entry::{Demand, Entry, Fade};
use crate::share::Rates;

/// An entry in the ledger, with the values derived from it at commit.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub entry: Entry,
    pub stage: Stage,
    pub rates: Rates,
    /// Time at which the entry stops being pending without an event.
    pub deadline: Option<Nanos>,
}

/// Progress of an entry towards telemetry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Counts at its full rate until it starts, is released, or the next window comes.
    Held,
    /// Started at this time, and fading into telemetry.
    Started(Nanos),
    /// The rate no longer counts; flows and reservations stay until release.
    Gone,
}

impl Entry {
    /// True if the rate was promised. The mean rate of a promise fades apart from best effort.
    pub(crate) fn is_promised(&self) -> bool {
        matches!(self.demand, Demand::Envelope { .. })
    }

    pub(crate) fn fades(&self) -> bool {
        matches!(self.fade, Fade::WithEstimator | Fade::After(_))
    }

    /// Known start of the entry, if it fades from then on.
    pub(crate) fn fades_from(&self) -> Option<Nanos> {
        self.starts.filter(|_| self.fades())
    }
}

impl Stored {
    /// End of a transfer that started at `started`, according to its committed rate. The transfer then stops being
    /// pending.
    pub fn transfer_end(&self, started: Nanos) -> Option<Nanos> {
        match self.entry.demand {
            Demand::Elastic { bytes, .. } if self.rates.face > 0.0 => {
                Some(started.plus(Nanos::from_secs_f64(bytes.0 as f64 / self.rates.face)))
            }
            _ => None,
        }
    }
}
