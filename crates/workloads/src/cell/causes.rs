//! Causes of hotspots that last longer than tasks: a rack's demand and supply of bandwidth are out of balance (Hotspots
//! sections 1 and 3.3). All are off by default.
//!
//! ```text
//! growth    network-intensive services send more than before                       sections 1, 3.3 and 5.1
//! losses    racks lose a part of their uplinks, and the scheduler does not know    sections 1 and 3.4
//! storage   disk servers send by the size of their disks, not of their uplinks     sections 3.2 and 3.3
//! ```
//!
//! The other imbalance of section 3.3 is in the cluster's file: racks with newer servers, or with more or larger disks,
//! and the same uplinks. Placement that ignores bandwidth, the other factor of that section, is the policy's.
//!
//! Imbalances last for days, weeks or months, until operators restore the balance (section 3.3); outages of uplinks are
//! temporary (section 1). The paper has no distribution, so times are log-uniform between two bounds. It states neither
//! the share of services that grow, nor their factor, nor the share of racks with losses. These settings have no
//! defaults.

use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, DomainId, HostId, Load, Nanos};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Cell, LONGEST, SHORTEST, invalid};
use crate::model::{CapacityChange, DiskServer, GrownDemand, MOST_RECORDS};
use crate::settings::{Factor, Share};

const LOSS: Kind = Kind::named("cell.loss");

/// Services whose demand grows beyond the data of the scheduler (Hotspots sections 1 and 3.3: growth of
/// network-intensive workloads; section 5.1: estimates are wrong if a workload's use of the network changes). A growth
/// begins at any time of the service's run, and ends when operators have restored the balance, or with the service.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Approximate share of services that grow: those with the most bandwidth per processor.
    pub share: Share,
    /// Traffic over the traffic before, 1 to 100. It is less if a task's peak would exceed the slowest interface.
    pub factor: Factor,
    /// Shortest time until the balance is restored, at least 5min. Default 1d: imbalances persist for days.
    #[serde(default = "day")]
    pub shortest: Nanos,
    /// Longest time until the balance is restored. Default 90d: or for months.
    #[serde(default = "months")]
    pub longest: Nanos,
}

/// Racks that lose a part of their uplinks, in both directions (Hotspots section 1: outages of uplinks; section 3.4:
/// half of the uplinks of several racks, unknown to the scheduler).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// Share of racks that lack uplinks at any time, on average; below 1.
    pub racks: Share,
    /// Share of the capacity that is left. Default 0.5.
    #[serde(default = "half")]
    pub left: Share,
    /// Shortest duration of a loss, at least 5min. Default 1h.
    #[serde(default = "hour")]
    pub shortest: Nanos,
    /// Longest duration of a loss. Default 7d.
    #[serde(default = "week")]
    pub longest: Nanos,
    /// If true, the scheduler is informed. Default false.
    #[serde(default)]
    pub told: bool,
}

fn half() -> Share {
    Share::new(0.5).expect("a half is a share")
}

fn hour() -> Nanos {
    Nanos(3600 * Nanos::SECOND.0)
}

fn day() -> Nanos {
    Nanos(86_400 * Nanos::SECOND.0)
}

fn week() -> Nanos {
    Nanos(7 * day().0)
}

fn months() -> Nanos {
    Nanos(90 * day().0)
}

/// A log-uniform time, in seconds.
#[derive(Clone, Copy, Debug)]
struct LogUniform {
    shortest: f64,
    longest: f64,
}

impl LogUniform {
    /// Creates the distribution; `field` names its settings in errors.
    fn new(field: &str, shortest: Nanos, longest: Nanos) -> Result<LogUniform, InputError> {
        if !(SHORTEST..=LONGEST).contains(&shortest) {
            let message = format!("{shortest}: expected {SHORTEST} to {LONGEST}");
            return Err(invalid(&format!("{field}.shortest"), message));
        }
        if !(shortest..=LONGEST).contains(&longest) {
            let message = format!("{longest}: expected {shortest} (`shortest`) to {LONGEST}");
            return Err(invalid(&format!("{field}.longest"), message));
        }
        Ok(LogUniform { shortest: shortest.as_secs_f64(), longest: longest.as_secs_f64() })
    }

    fn draw(self, random: &mut ChaCha8Rng) -> f64 {
        self.shortest * (self.longest / self.shortest).powf(random.random::<f64>())
    }

    /// Draws the rest of a time that is in progress. It tends to be a long one, whose length is then uniform, and the
    /// moment is uniform in it.
    fn draw_rest(self, random: &mut ChaCha8Rng) -> f64 {
        let whole = self.shortest + (self.longest - self.shortest) * random.random::<f64>();
        whole * random.random::<f64>()
    }

    fn mean(self) -> f64 {
        let ratio = (self.longest / self.shortest).ln();
        if ratio == 0.0 { self.shortest } else { (self.longest - self.shortest) / ratio }
    }
}

/// Distribution of the growth of a service.
#[derive(Debug)]
pub(super) struct GrowthModel {
    factor: f64,
    time: LogUniform,
}

impl GrowthModel {
    /// # Errors
    /// Returns an error for an invalid setting.
    pub fn new(settings: &Growth) -> Result<GrowthModel, InputError> {
        let factor = settings.factor.get();
        if !(1.0..=100.0).contains(&factor) {
            return Err(invalid("growth.factor", format!("{factor}: expected 1 to 100")));
        }
        let time = LogUniform::new("growth", settings.shortest, settings.longest)?;
        Ok(GrowthModel { factor, time })
    }

    /// Draws the growth of a service that begins at `start` and runs for `seconds`.
    pub fn draw(&self, mut random: ChaCha8Rng, start: f64, seconds: f64) -> GrownDemand {
        let from = start + seconds * random.random::<f64>();
        let until = from + self.time.draw(&mut random);
        GrownDemand { from, until, factor: self.factor }
    }
}

impl Losses {
    /// Generates the losses of a run, by time. Each rack draws its own, and has all of its uplinks for an exponential
    /// time between two losses. Losses in progress at the start of the run begin there.
    ///
    /// # Errors
    /// Returns an error for an invalid setting, or too many losses.
    pub(super) fn generate(
        &self,
        cluster: &Cluster,
        seed: u64,
        horizon: f64,
    ) -> Result<Vec<CapacityChange>, InputError> {
        let time = LogUniform::new("losses", self.shortest, self.longest)?;
        let share = self.racks.get();
        if share >= 1.0 {
            return Err(invalid("losses.racks", format!("{share}: expected a share below 1")));
        }
        // Each loss is a change at its start and one at its end, of two links.
        let changes = 4.0 * cluster.fabric.rack_count() as f64 * share * (1.0 + horizon / time.mean());
        if changes > MOST_RECORDS as f64 {
            let message =
                format!("{changes:.1e} changes of links: more than {MOST_RECORDS}; set longer losses");
            return Err(invalid("losses.shortest", message));
        }
        let mut all = Vec::new();
        for rack in cluster.fabric.all_racks().filter(|_| share > 0.0) {
            let mut random = stream(seed, LOSS, u64::from(rack.0));
            let between = time.mean() * (1.0 - share) / share;
            let mut is_lost = random.random::<f64>() < share;
            let mut at = 0.0;
            while at < horizon {
                if is_lost {
                    self.change(cluster, rack, at, self.left.get(), &mut all);
                    at += if at == 0.0 { time.draw_rest(&mut random) } else { time.draw(&mut random) };
                    if at < horizon {
                        self.change(cluster, rack, at, 1.0, &mut all);
                    }
                } else {
                    at -= between * (1.0 - random.random::<f64>()).ln();
                }
                is_lost = !is_lost;
            }
        }
        all.sort_by(|a, b| a.at.total_cmp(&b.at));
        Ok(all)
    }

    /// Adds a change of both links of a rack to a share of their capacity.
    fn change(&self, cluster: &Cluster, rack: DomainId, at: f64, share: f64, all: &mut Vec<CapacityChange>) {
        let links = [cluster.fabric.out_of_domain(rack), cluster.fabric.into_domain(rack)];
        all.extend(links.into_iter().flatten().map(|resource| {
            let whole = cluster.capacities.get(resource).0 as f64;
            let capacity = Load((whole * share).round() as i64);
            CapacityChange { at, resource, capacity, announced: self.told }
        }));
    }
}

/// Creates the disk servers of a cell, one on each host with disks.
///
/// # Arguments
/// * `traffic`: mean traffic of all tasks in each direction, in bit/s
///
/// # Errors
/// Returns an error if a cell with `storage` has no disks with a capacity.
pub(super) fn disk_servers(
    cell: &Cell,
    cluster: &Cluster,
    traffic: f64,
) -> Result<Vec<DiskServer>, InputError> {
    if cell.storage.get() == 0.0 {
        return Ok(Vec::new());
    }
    let fabric = &cluster.fabric;
    let sizes: Option<Vec<(HostId, f64)>> =
        fabric.all_hosts().map(|host| Some((host, fabric.storage(host)?.0 as f64))).collect();
    let sizes = sizes
        .ok_or_else(|| invalid("storage", "a host has disks without a `capacity`, or none has disks"))?;
    let whole: f64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    if whole == 0.0 {
        return Err(invalid("storage", "all disks of the cluster have a `capacity` of 0"));
    }
    let (total, peak) = (cell.storage.get() * traffic, cell.peak.get());
    let server = |(host, bytes): (HostId, f64)| {
        let interfaces = [fabric.egress(host), fabric.ingress(host)].into_iter().flatten();
        let slowest = interfaces.map(|link| cluster.capacities.get(link).0).min().unwrap_or(i64::MAX);
        let bps = (total * bytes / whole).min(slowest as f64 / peak).round() as u64;
        DiskServer { host, bps, peak, day: cell.day.get() }
    };
    Ok(sizes.into_iter().filter(|(_, bytes)| *bytes > 0.0).map(server).collect())
}
