//! A list of block or file writes as CSV, like the log of a name node.
//!
//! The columns are `t_arrival_s` (seconds), `writer` (the name of a host, or its number) and `size_bytes`; `job` and
//! `replicas` are optional, and other columns are ignored. A line is a file: one task writes it in blocks of `block`.
//! Lines with the same `job` are one job, submitted with the first of them.

use std::collections::BTreeMap;
use std::num::NonZeroU8;

use leeward_fabric::input::{Cell, Clock, InputError, Line, Text, excerpt};
use leeward_fabric::{Bytes, Cluster, HostId, Nanos};
use leeward_placement::replicas::{Coding, Layout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::model::{FileWrite, Job, Loaded, MOST_RECORDS, Workload};
use crate::settings::{
    Factor, Window, amount, copies, default_block, default_replicas, enough_hosts, positive, whole_bytes,
};

/// Required columns of the list.
pub(crate) const COLUMNS: [&str; 3] = ["t_arrival_s", "writer", "size_bytes"];
/// Optional columns.
pub(crate) const OPTIONAL: [&str; 2] = ["job", "replicas"];

/// File writes from a list, CSV or Parquet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// The list: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the list.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the list; by default up to the end of the run.
    pub duration: Option<Nanos>,
    /// Factor on the bytes of each file.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// Block size.
    #[serde(default = "default_block", deserialize_with = "positive")]
    pub block: Bytes,
    /// Number of copies of each block, if the list does not have it.
    #[serde(default = "default_replicas")]
    pub replicas: NonZeroU8,
    /// An erasure code instead of copies, such as `6+3`.
    #[serde(default)]
    pub coding: Option<Coding>,
    /// If true, writers could be anywhere (Sinbad section 7.2): their own outbound links never delay a block.
    #[serde(default)]
    pub flexible: bool,
}

impl Blocks {
    /// Reads the list.
    ///
    /// # Errors
    /// Returns an error with the line and column of the first invalid value.
    pub fn read(&self, text: Text, cluster: &Cluster, horizon: f64) -> Result<Loaded, InputError> {
        let window = Window::new(self.from, self.duration, horizon);
        let mut lines = text.lines();
        let list = List::open(&mut lines, COLUMNS, OPTIONAL)?;
        let (mut clock, mut read, mut empty, mut total) = (Clock::default(), 0_u64, 0_u64, 0);
        let (mut workload, mut jobs) = (Workload::default(), BTreeMap::new());
        while let Some(line) = lines.next_line()? {
            let [arrival, writer, size, job, replicas] = list.cells(&line)?;
            let arrival = line.number("t_arrival_s", "seconds", arrival)?;
            let arrival = clock.reach(&line, "t_arrival_s", arrival)?;
            let writer = host(cluster, &line, &writer.text())?;
            let size = line.number("size_bytes", "bytes", size)? * self.scale.get();
            let Some(bytes) = whole_bytes(size) else {
                return Err(line.error("size_bytes", format!("{size:e} bytes: too much for one file")));
            };
            let (replicas, layout) = copies(self.replicas(cluster, &line, replicas)?, self.coding);
            read += 1;
            let Some(start) = window.place(arrival) else { continue };
            if bytes == 0 {
                empty += 1;
                continue;
            }
            if workload.files.len() == MOST_RECORDS {
                let message = format!("more than {MOST_RECORDS} files; set a shorter `duration`");
                return Err(line.error("t_arrival_s", message));
            }
            let job = (!job.is_empty()).then(|| {
                let job = job.text();
                *jobs.entry(job.clone().into_owned()).or_insert_with(|| {
                    workload.jobs.push(Job { name: job.into_owned(), start });
                    workload.jobs.len() as u32 - 1
                })
            });
            total += u128::from(bytes);
            workload.files.push(FileWrite {
                start,
                job,
                writer,
                bytes: Bytes(bytes),
                block: self.block,
                replicas,
                layout,
                fetches: Vec::new(),
                flexible: self.flexible,
                pace: f64::INFINITY,
                failure: None,
                choices: None,
            });
        }
        let provenance = format!(
            "blocks {}: {} of {read} files ({window}) of {}, {} jobs; {empty} empty files dropped",
            self.file,
            workload.files.len(),
            amount(total),
            workload.jobs.len()
        );
        Ok(Loaded { workload, provenance })
    }

    fn replicas(&self, cluster: &Cluster, line: &Line<'_>, cell: Cell<'_>) -> Result<NonZeroU8, InputError> {
        if cell.is_empty() {
            return Ok(self.replicas);
        }
        if self.coding.is_some() {
            let cell = excerpt(&cell.text());
            let message = format!("`{cell}`: with `coding` blocks have no copies; leave the cell empty");
            return Err(line.error("replicas", message));
        }
        let count = line.count("replicas", "copies of each block", cell)?;
        let copies = u8::try_from(count).ok().and_then(NonZeroU8::new);
        let invalid = |message| line.error("replicas", message);
        let copies = copies.ok_or_else(|| invalid(format!("{count}: expected 1 to 255 copies")))?;
        enough_hosts(cluster, copies.get(), Layout::Chain).map_err(invalid)?;
        Ok(copies)
    }
}

/// Returns a host by its name or number.
fn host(cluster: &Cluster, line: &Line<'_>, text: &str) -> Result<HostId, InputError> {
    let fabric = &cluster.fabric;
    if let Some(host) = fabric.host(text) {
        return Ok(host);
    }
    let count = fabric.host_count();
    match text.parse::<u32>() {
        Ok(number) if (number as usize) < count => Ok(HostId(number)),
        Ok(number) => {
            Err(line.error("writer", format!("{number}: this cluster has hosts 0 to {}", count - 1)))
        }
        Err(_) => {
            let (name, first) = (excerpt(text), fabric.host_name(HostId(0)));
            let message = format!("`{name}`: no host of this cluster has that name (its first is `{first}`)");
            Err(line.error("writer", message))
        }
    }
}
