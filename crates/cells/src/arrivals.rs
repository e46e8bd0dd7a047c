//! Blocks that hosts write, in order of time.
//!
//! Each cell has files of its own, from the generator and a seed of its own, so they are the same for all deciders. The
//! blocks of a file follow each other, each at the rate of its writer.

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_registry::random::{Draws, Kind};
use leeward_registry::splitmix;
use leeward_workloads::{Background, Facebook, FileWrite};

use crate::network;
use crate::plan::Plan;

const SCOPE: Kind = Kind::named("cells.scope");

/// Largest number of blocks of a run.
const MOST_BLOCKS: usize = 30_000_000;

/// Cells that may hold the copies of a block, besides the writer's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// The writer's cell.
    Home,
    /// Any other cell.
    Elsewhere,
    /// Any cell.
    Anywhere,
}

/// A block to write.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Arrival {
    pub at: Nanos,
    /// Host that writes it and holds the first copy, by its number in the whole network.
    pub writer: HostId,
    pub bytes: Bytes,
    /// Rate of the write, in bit/s.
    pub rate_bps: u64,
    pub file: u64,
    /// Blocks of the file still to write, this one included.
    pub blocks_left: u32,
    /// Copies besides the writer's.
    pub copies: u8,
    pub scope: Scope,
}

impl Arrival {
    /// Duration of the write.
    pub fn duration(&self) -> Nanos {
        let nanos = u128::from(self.bytes.0) * 8 * 1_000_000_000 / u128::from(self.rate_bps.max(1));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
    }
}

/// Draws the blocks of all cells. Times begin at the first report of telemetry.
///
/// # Errors
/// Returns an error for invalid settings of the generator, or for too many blocks.
pub(crate) fn draw(plan: &Plan) -> Result<Vec<Arrival>, InputError> {
    let geometry = &plan.geometry;
    let first_report = plan.ledger.interval;
    let seconds = plan.horizon.since(first_report).as_secs_f64();
    // The background of this simulator has parts on the core, which that of the generator has not.
    let writes = Facebook { background: Background::None, ..plan.writes.clone() };
    let outside = network::outside(&plan.cell);
    let scopes = Draws::new(plan.seed, SCOPE);
    let mut arrivals = Vec::new();
    for cell in 0..geometry.cells {
        let seed = splitmix(splitmix(plan.seed) ^ u64::from(cell));
        let loaded = writes.generate(&plan.cell, seed, seconds).map_err(|error| error.under("writes"))?;
        let first_host = cell * geometry.hosts_of_cell();
        let files = (0_u64..).zip(&loaded.workload.files).filter(|(_, file)| file.writer != outside);
        for (number, file) in files.filter(|(_, file)| file.replicas > 1) {
            let drawn = scopes.draw(u64::from(cell), number);
            let scope = match drawn {
                _ if geometry.cells == 1 => Scope::Home,
                drawn if drawn < plan.elsewhere => Scope::Elsewhere,
                drawn if drawn < plan.elsewhere + plan.anywhere => Scope::Anywhere,
                _ => Scope::Home,
            };
            let first = Arrival {
                at: Nanos::from_secs_f64(file.start).plus(first_report),
                writer: HostId(first_host + file.writer.0),
                bytes: file.block,
                rate_bps: rate(file, plan.rate_bps),
                file: (u64::from(cell) << 32) | number,
                blocks_left: 1,
                copies: file.replicas - 1,
                scope,
            };
            blocks(file, first, plan.horizon, &mut arrivals);
            if arrivals.len() > MOST_BLOCKS {
                let message = format!("more than {MOST_BLOCKS} blocks; lower `load` or the horizon");
                return Err(InputError::new("cells", message).in_field("writes.load"));
            }
        }
    }
    arrivals.sort_by_key(|arrival: &Arrival| arrival.at);
    Ok(arrivals)
}

/// Rate of a file's writes in bit/s: that of its task, but at most `most`.
fn rate(file: &FileWrite, most: u64) -> u64 {
    ((file.pace * 8.0).min(most as f64) as u64).max(1)
}

/// Appends the blocks of a file, one after another.
fn blocks(file: &FileWrite, first: Arrival, horizon: Nanos, arrivals: &mut Vec<Arrival>) {
    let block = file.block.0.max(1);
    let count = file.bytes.0.div_ceil(block);
    let (mut at, mut left) = (first.at, file.bytes.0);
    for index in 0..count {
        if at >= horizon {
            break;
        }
        let bytes = Bytes(left.min(block));
        let blocks_left = u32::try_from(count - index).unwrap_or(u32::MAX);
        let arrival = Arrival { at, bytes, blocks_left, ..first };
        arrivals.push(arrival);
        left -= bytes.0;
        at = at.plus(arrival.duration());
    }
}
