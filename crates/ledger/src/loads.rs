//! Telemetry files: what links were seen to carry, as CSV, for a decision without a live feed.
//!
//! The columns are `link` (its name, such as `r3:downlink` or `r3h7:ingress`) and `load_bps` (bits per second), in any
//! order and with others beside them. A link may have several lines: they are windows of one interval each, the oldest first.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, Table, Text};
use leeward_fabric::{Fabric, Load, Nanos, ResourceId, ResourceKind};

use crate::Sample;

/// Reads a telemetry file. The last window of every link ends at the time returned with the samples.
pub fn read_loads(text: Text, fabric: &Fabric, interval: Nanos) -> Result<(Vec<Sample>, Nanos), InputError> {
    let mut table = Table::open(text, ["link", "load_bps"])?;
    let mut loads: BTreeMap<ResourceId, Vec<Load>> = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let [link, load] = row.cells;
        let resource = fabric.resource(link).filter(|&link| fabric.kind(link) != ResourceKind::Device);
        let resource = resource.ok_or_else(|| {
            let message = format!("`{link}`: the cluster has no such link; links are named like r3:downlink");
            row.line.error("link", message)
        })?;
        let load = row.line.number("load_bps", "bits per second", load)?;
        if load > MOST_BPS {
            return Err(row.line.error("load_bps", format!("{load}: more than any link carries")));
        }
        loads.entry(resource).or_default().push(Load(load.round() as i64));
    }
    let windows = loads.values().map(Vec::len).max().unwrap_or(0) as u64;
    let mut samples = Vec::new();
    for (&resource, loads) in &loads {
        let first = windows - loads.len() as u64;
        for (at, &load) in (first..).zip(loads) {
            let window = (Nanos(at * interval.0), Nanos((at + 1) * interval.0));
            samples.push(Sample { resource, window, load, guaranteed: None });
        }
    }
    samples.sort_by_key(|sample| (sample.window, sample.resource));
    Ok((samples, Nanos(windows * interval.0)))
}

/// Above this a load is an error: 1 Eb/s.
const MOST_BPS: f64 = 1e18;
