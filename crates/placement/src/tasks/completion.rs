//! End of an app's transfers, by a model (Choreo appendix). All transfers of a phase start together, when the earlier
//! phases have ended (section 7.2). Transfers that cross a link share it. Each link carries the app at the rate that one more transfer would get on it. The slowest link determines
//! the end of a phase.
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

use super::rates::Rates;
use super::{Transfer, phases};
use crate::estimate::Estimate;

/// End of an app's transfers.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// End of the last transfer, in seconds from the start; infinite if a link has no capacity.
    pub seconds: f64,
    /// Duration of each phase, in seconds.
    pub phases: Vec<f64>,
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

/// End of each of `transfers` between tasks on these hosts. They are sorted by phase.
pub fn completion(
    view: &View<'_>,
    transfers: &[Transfer],
    hosts: &[HostId],
    estimate: Estimate,
) -> Completion {
    let mut rates = Rates::new(view, estimate);
    debug_assert!(transfers.is_sorted_by_key(|transfer| transfer.phase), "phases are in order");
    let mut bytes = vec![0; view.fabric().resource_count()];
    let (mut start, mut bottlenecks) = (0.0, Vec::with_capacity(transfers.len()));
    let mut durations = vec![0.0; phases(transfers)];
    for phase in transfers.chunk_by(|one, other| one.phase == other.phase) {
        let of_phase = end_phase(&mut rates, phase, hosts, start, &mut bytes);
        let end = of_phase.iter().map(|bottleneck| bottleneck.seconds).fold(start, f64::max);
        durations[phase[0].phase as usize] = if end > start { end - start } else { 0.0 };
        start = end;
        bottlenecks.extend(of_phase);
    }
    Completion { seconds: start, phases: durations, transfers: bottlenecks }
}

/// Bottlenecks of the transfers of a phase, which begin at `start` in seconds. `bytes` has a zero for each link, before and
/// after.
fn end_phase(
    rates: &mut Rates<'_, '_>,
    transfers: &[Transfer],
    hosts: &[HostId],
    start: f64,
    bytes: &mut [u64],
) -> Vec<Bottleneck> {
    let mut crossed = Vec::new();
    let ends = |transfer: &Transfer| (hosts[transfer.from as usize], hosts[transfer.to as usize]);
    for transfer in transfers {
        let (from, to) = ends(transfer);
        for &link in rates.path(from, to) {
            crossed.push(link);
            let carried = &mut bytes[link.index()];
            *carried = carried.saturating_add(transfer.bytes.0);
        }
    }
    let mut path = Vec::new();
    let bottleneck = |transfer: &Transfer| {
        let (from, to) = ends(transfer);
        path.clear();
        path.extend_from_slice(rates.path(from, to));
        let mut worst = Bottleneck { limit: None, seconds: start };
        for &link in path.iter().filter(|_| transfer.bytes.0 > 0) {
            let seconds = start + seconds(bytes[link.index()], rates.of_link(link));
            if worst.limit.is_none() || seconds > worst.seconds {
                worst = Bottleneck { limit: Some(link), seconds };
            }
        }
        worst
    };
    let bottlenecks = transfers.iter().map(bottleneck).collect();
    crossed.into_iter().for_each(|link: ResourceId| bytes[link.index()] = 0);
    bottlenecks
}

/// Time of a link for `bytes` at a rate in bit/s.
pub(super) fn seconds(bytes: u64, rate: f64) -> f64 {
    if bytes == 0 { 0.0 } else { bytes as f64 * BITS_PER_BYTE / rate }
}
