//! Background flows from a list of transfers, CSV or Parquet.
//!
//! The columns are `t_arrival_s` (seconds), `src`, `dst` and `size_bytes`, in any order; other columns are ignored. An
//! end (`src` or `dst`) is the name of a host, a rack or a pod, or a number ([`Numbers`]). A transfer from an end to
//! itself crosses no link, and the reader drops it. The provenance has the number of dropped transfers.

use leeward_fabric::input::{Clock, InputError, Line, Table, Text, excerpt};
use leeward_fabric::{Bytes, Cluster, DomainId, Endpoint, HostId, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Flow, Loaded, MOST_RECORDS, Workload};
use crate::settings::{Factor, Window, amount, check_rack_links, whole_bytes};

/// The columns of the list.
pub(crate) const COLUMNS: [&str; 4] = ["t_arrival_s", "src", "dst", "size_bytes"];

/// Background flows from a list, CSV or Parquet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The list: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the list.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the list; by default up to the end of the run.
    pub duration: Option<Nanos>,
    /// Factor on the bytes of each flow.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// Meaning of a number in `src` or `dst`; numbers count from 0.
    #[serde(default)]
    pub numbers: Numbers,
}

/// Meaning of a number in place of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// Hosts, rack by rack.
    #[default]
    Hosts,
    /// Racks.
    Racks,
}

impl Flows {
    /// Reads the list.
    ///
    /// # Errors
    /// Returns an error with the line and column of the first invalid value. Also returns an error for ends that are
    /// racks, on a cluster whose racks have no links.
    pub fn read(&self, text: Text, cluster: &Cluster, horizon: f64) -> Result<Loaded, InputError> {
        if self.numbers == Numbers::Racks {
            check_rack_links(cluster, "`numbers: hosts`")
                .map_err(|message| InputError::new(&self.file, message).in_field("numbers"))?;
        }
        let window = Window::new(self.from, self.duration, horizon);
        let mut table = Table::open(text, COLUMNS)?;
        let (mut clock, mut read, mut dropped) = (Clock::default(), 0_u64, 0_u64);
        let (mut flows, mut total) = (Vec::new(), 0);
        while let Some(row) = table.next_row()? {
            let [arrival, from, to, size] = row.cells;
            let arrival = row.line.number("t_arrival_s", "seconds", arrival)?;
            let arrival = clock.reach(&row.line, "t_arrival_s", arrival)?;
            let from = self.endpoint(cluster, &row.line, "src", &from.text())?;
            let to = self.endpoint(cluster, &row.line, "dst", &to.text())?;
            let size = row.line.number("size_bytes", "bytes", size)? * self.scale.get();
            let Some(bytes) = whole_bytes(size) else {
                return Err(row.line.error("size_bytes", format!("{size:e} bytes: too much for one flow")));
            };
            read += 1;
            let Some(start) = window.place(arrival) else { continue };
            if from == to {
                dropped += 1;
                continue;
            }
            if flows.len() == MOST_RECORDS {
                let message = format!("more than {MOST_RECORDS} flows; set a shorter `duration`");
                return Err(row.line.error("t_arrival_s", message));
            }
            total += u128::from(bytes);
            flows.push(Flow { start, from, to, bytes: Bytes(bytes), coflow: None });
        }
        let provenance = format!(
            "flows {}: {} of {read} flows ({window}) of {}; {dropped} dropped, from an end to itself",
            self.file,
            flows.len(),
            amount(total)
        );
        Ok(Loaded { workload: Workload { flows, ..Workload::default() }, provenance })
    }

    fn endpoint(
        &self,
        cluster: &Cluster,
        line: &Line<'_>,
        field: &str,
        text: &str,
    ) -> Result<Endpoint, InputError> {
        let fabric = &cluster.fabric;
        if let Some(host) = fabric.host(text) {
            return Ok(Endpoint::Host(host));
        }
        if let Some(domain) = fabric.domain(text) {
            check_rack_links(cluster, "hosts").map_err(|message| line.error(field, message))?;
            return Ok(Endpoint::Domain(domain));
        }
        let (count, things) = match self.numbers {
            Numbers::Hosts => (fabric.host_count(), "hosts"),
            Numbers::Racks => (fabric.rack_count(), "racks"),
        };
        match text.parse::<u32>() {
            Ok(number) if (number as usize) < count => Ok(match self.numbers {
                Numbers::Hosts => Endpoint::Host(HostId(number)),
                Numbers::Racks => Endpoint::Domain(DomainId(number)),
            }),
            Ok(number) => {
                Err(line.error(field, format!("{number}: this cluster has {things} 0 to {}", count - 1)))
            }
            Err(_) => {
                let message = format!(
                    "`{}`: no host, rack or pod of this cluster has that name (its first host is `{}`)",
                    excerpt(text),
                    fabric.host_name(HostId(0))
                );
                Err(line.error(field, message))
            }
        }
    }
}
