//! Rates on links over time as CSV: background that does not share its capacity.
//!
//! The columns are `t_s` (seconds), `link` (its name, such as `r3:downlink` or `r3h7:ingress`) and `rate_bps` (bits per
//! second), in any order; other columns are ignored. A rate holds from its time until the link's next line; a link
//! without lines carries nothing. The rate before the start of the window continues into it.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::input::{Clock, InputError, Line, Table, Text, excerpt};
use leeward_fabric::{Cluster, DomainId, HostId, Load, Nanos, ResourceId, ResourceKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Loaded, MOST_RECORDS, RateChange, Workload};
use crate::settings::{Factor, Window};

/// The columns of the list.
pub(crate) const COLUMNS: [&str; 3] = ["t_s", "link", "rate_bps"];

/// Background rates on links from a list, CSV or Parquet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// The list: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the list.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the list; by default up to the end of the run. Rates end with this duration.
    pub duration: Option<Nanos>,
    /// Factor on each rate.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
}

impl Rates {
    /// Reads the list.
    ///
    /// # Errors
    /// Returns an error with the line and column of the first invalid value.
    pub fn read(&self, text: Text, cluster: &Cluster, horizon: f64) -> Result<Loaded, InputError> {
        let window = Window::new(self.from, self.duration, horizon);
        let mut table = Table::open(text, COLUMNS)?;
        let (mut clock, mut read, mut above) = (Clock::default(), 0_u64, 0_u64);
        // Rates at the start of the window, by link; then the changes within it.
        let (mut opening, mut rates) = (BTreeMap::new(), Vec::new());
        while let Some(row) = table.next_row()? {
            let [time, link, rate] = row.cells;
            let time = clock.reach(&row.line, "t_s", row.line.number("t_s", "seconds", time)?)?;
            let resource = self.link(cluster, &row.line, &link.text())?;
            let rate = row.line.number("rate_bps", "bits per second", rate)? * self.scale.get();
            if rate > MOST_BPS {
                let message = format!("{rate:e} bits per second: more than any link carries");
                return Err(row.line.error("rate_bps", message));
            }
            read += 1;
            let rate = Load(rate.round() as i64);
            above += u64::from(rate > cluster.capacities.get(resource));
            match (window.place(time), window.hold(time)) {
                (None, Some(_)) => {
                    opening.insert(resource, rate);
                }
                (Some(at), _) if rates.len() < MOST_RECORDS => rates.push(RateChange { at, resource, rate }),
                (Some(_), _) => {
                    let message = format!("more than {MOST_RECORDS} rates; set a shorter `duration`");
                    return Err(row.line.error("t_s", message));
                }
                (None, None) => {}
            }
        }
        let mut all: Vec<_> =
            opening.into_iter().map(|(resource, rate)| RateChange { at: 0.0, resource, rate }).collect();
        all.append(&mut rates);
        if let Some(end) = self.duration.map(Nanos::as_secs_f64).filter(|&end| end < horizon) {
            let links: BTreeSet<_> = all.iter().map(|change| change.resource).collect();
            all.extend(links.into_iter().map(|resource| RateChange { at: end, resource, rate: Load(0) }));
        }
        let provenance = format!(
            "rates {}: {} changes from {read} lines ({window}); {above} lines are above their link's capacity",
            self.file,
            all.len()
        );
        Ok(Loaded { workload: Workload { rates: all, ..Workload::default() }, provenance })
    }

    fn link(&self, cluster: &Cluster, line: &Line<'_>, name: &str) -> Result<ResourceId, InputError> {
        let fabric = &cluster.fabric;
        match fabric.resource(name) {
            Some(device) if fabric.kind(device) == ResourceKind::Device => Err(line
                .error("link", format!("`{}` is a device; a rate in bits belongs on a link", excerpt(name)))),
            Some(link) => Ok(link),
            None => {
                let example = fabric.into_domain(DomainId(0)).or_else(|| fabric.ingress(HostId(0)));
                let example = example.unwrap_or(ResourceId(1.min(fabric.resource_count() as u32 - 1)));
                let example = fabric.resource_name(example);
                let name = excerpt(name);
                Err(line
                    .error("link", format!("`{name}`: this cluster has no such link (one is `{example}`)")))
            }
        }
    }
}

/// Largest valid rate: 1 Eb/s.
const MOST_BPS: f64 = 1e18;
