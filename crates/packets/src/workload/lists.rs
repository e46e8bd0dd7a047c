//! Lists of flows, each with its start and its size.

use leeward_fabric::Nanos;

use super::{Flow, Piece, Place, Workload, WorkloadError};

/// A flow that sends all of its bytes from its start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Ends and class of the flow.
    pub flow: Flow,
    /// Start time.
    pub start: Nanos,
    /// Number of bytes.
    pub bytes: u64,
}

/// Returns a workload of the listed transfers.
///
/// # Errors
/// Returns an error for the first invalid flow.
pub fn listed(racks: u32, hosts: u32, transfers: &[Transfer]) -> Result<Workload, WorkloadError> {
    let mut workload = Workload::new(racks, hosts);
    for transfer in transfers {
        add(&mut workload, transfer)?;
    }
    Ok(workload)
}

/// Returns a workload of `flows` flows of `bytes` each from one rack to another, all from the beginning. Flows go
/// between hosts with the same number, one pair after another (Etalon, section 4: 16 flows from rack 1 to rack 2).
///
/// # Errors
/// Returns an error if there are no hosts, for an unknown rack, or if both racks are the same.
pub fn long(
    racks: u32,
    hosts: u32,
    [from, to]: [u32; 2],
    flows: u32,
    bytes: u64,
) -> Result<Workload, WorkloadError> {
    if hosts == 0 {
        return Err(WorkloadError::setting("hosts", hosts, "above 0"));
    }
    let mut workload = Workload::new(racks, hosts);
    for number in 0..flows {
        let [source, destination] = [from, to].map(|rack| Place { rack, host: number % hosts });
        let flow = Flow { source, destination, class: 0 };
        add(&mut workload, &Transfer { flow, start: Nanos(0), bytes })?;
    }
    Ok(workload)
}

/// Adds a transfer; returns the number of its piece.
pub(super) fn add(workload: &mut Workload, transfer: &Transfer) -> Result<u32, WorkloadError> {
    let flow = workload.add_flow(transfer.flow)?;
    workload.add_piece(Piece { flow, bytes: transfer.bytes, wait: transfer.start }, &[])
}
