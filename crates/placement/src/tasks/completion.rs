//! End of an app's transfers, by a model (Choreo appendix). All transfers start together. Transfers that cross a link
//! share it. Each link carries the app at the rate that one more transfer would get on it. The slowest link determines
//! the end.
//!
//! In the appendix's terms, the time of a link is E over R. S is a set of paths that share a bottleneck; here it is the
//! set of paths that cross a link of the fabric: a pair of hosts, the link out of a source, or a shared link of a mesh.
//! The appendix divides all bytes of a source by the rate of each of its paths. Here a slow path divides its own bytes
//! only, because the source's other paths are not slower for it.
//!
//! The model is a lower bound on the time of transfers that share links max-min fairly. The two are equal if all
//! transfers have the same bottleneck. Otherwise a link may idle while its transfers wait at other links.

use leeward_fabric::{BITS_PER_BYTE, HostId, ResourceId};
use leeward_ledger::View;

use super::Transfer;
use super::rates::Rates;
use crate::estimate::Estimate;

/// End of an app's transfers.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// End of the last transfer, in seconds from the start; infinite if a link has no capacity.
    pub seconds: f64,
    /// Bottleneck of each transfer, in the order of the request.
    pub transfers: Vec<Bottleneck>,
}

/// Bottleneck of a transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bottleneck {
    /// Slowest link on its path; `None` within a host.
    pub limit: Option<ResourceId>,
    /// Time at which that link has carried everything that crosses it, in seconds.
    pub seconds: f64,
}

/// End of each of `transfers` between tasks on these hosts.
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
    let bottlenecks: Vec<Bottleneck> = (transfers.iter())
        .map(|transfer| {
            let (from, to) = ends(transfer);
            path.clear();
            path.extend_from_slice(rates.path(from, to));
            let mut worst = Bottleneck { limit: None, seconds: 0.0 };
            for &link in path.iter().filter(|_| transfer.bytes.0 > 0) {
                let seconds = seconds(bytes[link.index()], rates.of_link(link));
                if worst.limit.is_none() || seconds > worst.seconds {
                    worst = Bottleneck { limit: Some(link), seconds };
                }
            }
            worst
        })
        .collect();
    let seconds = bottlenecks.iter().map(|bottleneck| bottleneck.seconds).fold(0.0, f64::max);
    Completion { seconds, transfers: bottlenecks }
}

/// Time of a link for `bytes` at a rate in bit/s.
pub(super) fn seconds(bytes: u64, rate: f64) -> f64 {
    if bytes == 0 { 0.0 } else { bytes as f64 * BITS_PER_BYTE / rate }
}
