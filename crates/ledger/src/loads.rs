//! Telemetry files: observed loads of links, as CSV, for a decision without a live feed.
//!
//! The columns are `link` (a name such as `r3:downlink` or `r3h7:ingress`) and `load_bps` (bits per second), in any
//! order; other columns are ignored. Several lines of one link are windows of one interval each, the oldest first. An
//! optional column `t_s` contains the time of each measurement, in seconds since 1970.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, Table, Text, excerpt, format_number};
use leeward_fabric::{Fabric, Load, Nanos, ResourceId, ResourceKind};

use crate::{Clock, Sample};

/// Measured loads of links, in any order of links. Several measurements of one link are windows of one interval each, the
/// oldest first.
#[derive(Clone, Debug, Default)]
pub struct MeasuredLoads {
    loads: BTreeMap<ResourceId, Vec<Load>>,
    /// Time of the last measurement of each link, in seconds since 1970.
    measured: BTreeMap<ResourceId, f64>,
}

impl MeasuredLoads {
    /// Adds the next measurement of a link; `at` is its time in seconds since 1970, if it is known.
    pub fn add(&mut self, link: ResourceId, load: Load, at: Option<f64>) {
        self.loads.entry(link).or_default().push(load);
        if let Some(at) = at {
            self.measured.insert(link, at);
        }
    }

    /// Samples of all measurements. The last window of every link ends at the time returned with the samples. With a
    /// clock, links with old measurements are rejected, if their times are known; `name` is their source in the error.
    ///
    /// # Errors
    ///
    /// Fails if the clock rejects the age of a link.
    pub fn samples(
        &self,
        name: &str,
        fabric: &Fabric,
        interval: Nanos,
        clock: Option<Clock>,
    ) -> Result<(Vec<Sample>, Nanos), InputError> {
        clock.map_or(Ok(()), |clock| clock.check(name, fabric, &self.measured))?;
        let windows = self.loads.values().map(Vec::len).max().unwrap_or(0) as u64;
        let mut samples = Vec::new();
        for (&resource, loads) in &self.loads {
            let first = windows - loads.len() as u64;
            for (index, &load) in (first..).zip(loads) {
                let window = (Nanos(index * interval.0), Nanos((index + 1) * interval.0));
                samples.push(Sample { resource, window, load, guaranteed: None });
            }
        }
        samples.sort_by_key(|sample| (sample.window, sample.resource));
        Ok((samples, Nanos(windows * interval.0)))
    }
}

/// Reads a telemetry file. The last window of every link ends at the time returned with the samples. With a clock,
/// links with old measurements are rejected, if the file has times.
///
/// # Errors
///
/// Fails if the file cannot be read, if a line has no valid link, load or time, or if the clock rejects the age of a
/// link.
pub fn read_loads(
    text: Text,
    fabric: &Fabric,
    interval: Nanos,
    clock: Option<Clock>,
) -> Result<(Vec<Sample>, Nanos), InputError> {
    let name = text.name().to_owned();
    let mut table = Table::with_extra(text, ["link", "load_bps"], Some("t_s"))?;
    let mut loads = MeasuredLoads::default();
    while let Some(row) = table.next_row()? {
        let [link, load] = row.cells;
        let link = find_link(fabric, &link.text()).map_err(|message| row.line.error("link", message))?;
        let load = row.line.number("load_bps", "bits per second", load)?;
        let load = parse_load(load).map_err(|message| row.line.error("load_bps", message))?;
        let time = row.extra.map(|time| row.line.number("t_s", "seconds since 1970", time)).transpose()?;
        loads.add(link, load, time);
    }
    loads.samples(&name, fabric, interval, clock)
}

/// Reads a file of cross traffic: the number of connections of others on links, as CSV with the columns `link` and
/// `connections`.
///
/// # Errors
///
/// Fails if the file cannot be read, if a line has no valid link or number, or if two lines name one link.
pub fn read_cross_traffic(text: Text, fabric: &Fabric) -> Result<Vec<(ResourceId, f64)>, InputError> {
    let mut table = Table::with_extra(text, ["link", "connections"], None)?;
    let mut connections = BTreeMap::new();
    while let Some(row) = table.next_row()? {
        let [link, count] = row.cells;
        let resource = find_link(fabric, &link.text()).map_err(|message| row.line.error("link", message))?;
        let count = row.line.number("connections", "connections that always send", count)?;
        let count = parse_connections(count).map_err(|message| row.line.error("connections", message))?;
        if connections.insert(resource, count).is_some() {
            let message = format!("`{}`: this link has a line above", excerpt(&link.text()));
            return Err(row.line.error("link", message));
        }
    }
    Ok(connections.into_iter().collect())
}

/// A number of connections of others on a link.
///
/// # Errors
///
/// Fails if the number is NaN, negative or too large; the error is the message for the user.
pub fn parse_connections(count: f64) -> Result<f64, String> {
    if (0.0..=MOST_CONNECTIONS).contains(&count) {
        return Ok(count);
    }
    let (number, most) = (format_number(count), format_number(MOST_CONNECTIONS));
    Err(format!("{number}: expected a number from 0 to {most}"))
}

/// Largest number of connections of others on a link. A larger number is a typing error.
const MOST_CONNECTIONS: f64 = 1e6;

/// The link with this name. Telemetry covers links, not devices.
///
/// # Errors
///
/// Fails if the cluster has no such link; the error is the message for the user.
pub fn find_link(fabric: &Fabric, name: &str) -> Result<ResourceId, String> {
    let link = fabric.resource(name).filter(|&link| fabric.kind(link) != ResourceKind::Device);
    let name = excerpt(name);
    link.ok_or_else(|| format!("`{name}`: the cluster has no such link; links are named like r3:downlink"))
}

/// A load given in bits per second.
///
/// # Errors
///
/// Fails if the load is NaN, negative, or more than any link carries; the error is the message for the user.
pub fn parse_load(bps: f64) -> Result<Load, String> {
    if bps.is_nan() || bps < 0.0 {
        Err(format!("{}: expected bits per second, not negative", format_number(bps)))
    } else if bps > MOST_BPS {
        Err(format!("{}: more than any link carries", format_number(bps)))
    } else {
        Ok(Load(bps.round() as i64))
    }
}

/// Largest valid load: 1 Eb/s.
const MOST_BPS: f64 = 1e18;
