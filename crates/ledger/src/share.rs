//! Contribution of an entry to one resource: converts bytes and rates of payload to whole units of the resource's
//! work per second.

use leeward_fabric::{BITS_PER_BYTE, Nanos, ResourceId};

use crate::entry::{Demand, Entry, Sign};
use crate::numbers::whole;

/// Largest counted rate, 140 Tb/s. No link carries more, so the limit does not change any residual. Tens of thousands
/// of blocks placed a nanosecond before a report still add up within 64 bits.
const MOST: f64 = (1u64 << 47) as f64;

/// The rates at which an entry's work counts as pending, in payload bytes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// The whole rate, negative if the entry relieves.
    pub face: f64,
    /// The part that does not fade after the start.
    lasting: f64,
}

impl Rates {
    /// The requested rate of an entry. For elastic work it is the rate on its whole path; `share` returns the rate of a
    /// number of flows at one resource, in native units per second.
    pub fn of(entry: &Entry, hold_peak: bool, share: impl Fn(ResourceId, u32) -> f64) -> Rates {
        let bytes = |bps: u64| bps as f64 / BITS_PER_BYTE;
        let (face, lasting) = match entry.demand {
            Demand::Stream { mean_bps, peak_bps } if hold_peak => {
                (bytes(peak_bps), bytes(peak_bps.saturating_sub(mean_bps)))
            }
            Demand::Stream { peak_bps, .. } => (bytes(peak_bps), 0.0),
            Demand::Envelope { mean_bps, .. } => (bytes(mean_bps), 0.0),
            Demand::Elastic { flows, cap_bps, .. } => {
                let hops = entry.hops.iter().filter(|hop| hop.work > 0.0);
                let least =
                    hops.map(|hop| share(hop.resource, flows) / hop.work).fold(f64::INFINITY, f64::min);
                let rate = least.min(cap_bps.map_or(f64::INFINITY, bytes));
                (if rate.is_finite() { rate } else { 0.0 }, 0.0)
            }
        };
        match entry.sign {
            Sign::Adds => Rates { face, lasting },
            Sign::Relieves => Rates { face: -face, lasting: 0.0 },
        }
    }

    /// The fading part and the lasting part of started work, at a hop with `work` units per byte.
    pub fn parts(&self, work: f64) -> (i64, i64) {
        let lasting = units(self.lasting * work);
        (units(self.face * work) - lasting, lasting)
    }
}

/// Contribution of one entry to one resource's sums, in native units per second.
#[derive(Default)]
pub(crate) struct Share {
    pub rate: i64,
    pub flows: i64,
    pub inelastic: i64,
    pub reserved_mean: i64,
    pub reserved_rate: i64,
    /// Bytes of work that Sinbad's pressure spreads over the time to the next report.
    pub pressing: f64,
}

impl Share {
    /// The share of an entry at a hop with `work` units per byte. An entry that relieves removes only its rate: flows
    /// and reservations leave with the entry that added them.
    pub fn of(entry: &Entry, rates: &Rates, work: f64) -> Share {
        let rate = units(rates.face * work);
        match (&entry.demand, entry.sign) {
            (_, Sign::Relieves) => Share { rate, ..Share::default() },
            (Demand::Elastic { bytes, flows, .. }, _) => {
                Share { rate, flows: i64::from(*flows), pressing: bytes.0 as f64 * work, ..Share::default() }
            }
            (Demand::Stream { .. }, _) => Share { rate, inelastic: rate, ..Share::default() },
            (Demand::Envelope { rate_bps, .. }, _) => Share {
                rate,
                inelastic: rate,
                reserved_mean: rate,
                reserved_rate: units(*rate_bps as f64 / BITS_PER_BYTE * work),
                ..Share::default()
            },
        }
    }

    /// Placement pressure: the work spread over the time `d` to the next report.
    pub fn pressure(&self, d: Nanos) -> i64 {
        units(self.pressing / d.as_secs_f64().max(1e-9))
    }
}

/// A rate as a whole number of units per second.
fn units(rate: f64) -> i64 {
    whole(rate.clamp(-MOST, MOST)).0
}
