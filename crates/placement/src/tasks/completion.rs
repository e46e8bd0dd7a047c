//! When an app's transfers are over, by a model (Choreo appendix): all begin together, transfers that cross a link share
//! it, and each link carries for the app what one more transfer would get on it. The link that takes longest decides.
//!
//! In the appendix's words: E over R at each link, where S, which paths share a bottleneck, is which paths cross a link of
//! the fabric. On a pipe mesh no two do; on a hose mesh those out of one host do.

use leeward_fabric::{BITS_PER_BYTE, HostId, ResourceId};
use leeward_ledger::View;

use super::Transfer;
use super::rates::{Estimate, Rates};

/// When an app's transfers are over.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// When the last is, in seconds from the start; infinite where a link carries nothing.
    pub seconds: f64,
    /// Each transfer, in the order of the request.
    pub transfers: Vec<Carried>,
}

/// What holds a transfer up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Carried {
    /// The link on its path that takes longest; `None` within a host.
    pub limit: Option<ResourceId>,
    /// When that link has carried everything that crosses it, in seconds.
    pub seconds: f64,
}

/// When `transfers` between tasks on these hosts are over, one for each.
pub fn completion(
    view: &View<'_>,
    transfers: &[Transfer],
    hosts: &[HostId],
    estimate: Estimate,
) -> Completion {
    let mut rates = Rates::new(view, estimate);
    let mut bytes = vec![0_u64; view.fabric().resource_count()];
    let ends = |transfer: &Transfer| (hosts[transfer.from as usize], hosts[transfer.to as usize]);
    for transfer in transfers {
        let (from, to) = ends(transfer);
        for &link in rates.path(from, to) {
            let carried = &mut bytes[link.index()];
            *carried = carried.saturating_add(transfer.bytes.0);
        }
    }
    let mut path = Vec::new();
    let carried: Vec<Carried> = (transfers.iter())
        .map(|transfer| {
            let (from, to) = ends(transfer);
            path.clear();
            path.extend_from_slice(rates.path(from, to));
            let mut worst = Carried { limit: None, seconds: 0.0 };
            for &link in path.iter().filter(|_| transfer.bytes.0 > 0) {
                let seconds = seconds(bytes[link.index()], rates.of_link(link));
                if worst.limit.is_none() || seconds > worst.seconds {
                    worst = Carried { limit: Some(link), seconds };
                }
            }
            worst
        })
        .collect();
    let seconds = carried.iter().map(|carried| carried.seconds).fold(0.0, f64::max);
    Completion { seconds, transfers: carried }
}

/// How long a link takes for so many bytes at a rate in bit/s.
pub(super) fn seconds(bytes: u64, rate: f64) -> f64 {
    if bytes == 0 { 0.0 } else { bytes as f64 * BITS_PER_BYTE / rate }
}
