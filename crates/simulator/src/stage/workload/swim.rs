//! SWIM traces of jobs (Chen et al., MASCOTS 2011): the files that jobs write.
//!
//! A line is a job, with tabs between its fields: name, submission in seconds, gap to the job before, and the bytes of
//! map input, of shuffle and of output; a seventh field may name the input. Only the output is used here: it is
//! split evenly over writer tasks, as a reducer's hash does, each on a host drawn for it, and each writes one file.
//!
//! The trace has no tasks and no durations, so all writers of a job start when it is submitted. Facebook's traces are
//! of clusters of 600 machines (2009) and 3000 (2010): a cluster of N hosts is loaded alike with `keep` at N/600 or
//! N/3000, which thins the jobs and leaves each as it was. `scale` shrinks every job instead, for clusters on which
//! a single large job would not fit (the largest of 2010 write tens of terabytes).

use leeward_fabric::input::{Clock, InputError, Line, Text};
use leeward_fabric::{Bytes, Cluster, HostId, Nanos};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Coding, Factor, Share, Window, amount, copies, positive, task_hosts, whole_bytes};
use super::source::Loaded;
use super::{FileWrite, Job, MOST_RECORDS, Workload};
use crate::stage::random::{Kind, stream};

const JOB: Kind = Kind::named("swim.job");

/// File writes from a SWIM trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swim {
    /// The trace: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Where in the trace the run begins.
    #[serde(default)]
    pub from: Nanos,
    /// How much of the trace is used; all that the run has time for if not given.
    pub duration: Option<Nanos>,
    /// Share of the jobs that is kept, drawn for each.
    #[serde(default = "Share::all")]
    pub keep: Share,
    /// Factor on the output of each job.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// The most that one task writes: a job has as many writers as this needs.
    #[serde(default = "gibibyte", deserialize_with = "positive")]
    pub bytes_per_writer: Bytes,
    /// The size of blocks.
    #[serde(default = "block", deserialize_with = "positive")]
    pub block: Bytes,
    /// Copies of each block.
    #[serde(default = "replicas")]
    pub replicas: std::num::NonZeroU8,
    /// An erasure code instead of copies, such as `6+3`.
    #[serde(default)]
    pub coding: Option<Coding>,
}

fn gibibyte() -> Bytes {
    Bytes(1 << 30)
}

/// Blocks of 256 MiB, as in Sinbad's evaluation.
pub(super) fn block() -> Bytes {
    Bytes(256 << 20)
}

/// Three copies, the default of the file systems that Sinbad is about.
pub(super) fn replicas() -> std::num::NonZeroU8 {
    std::num::NonZeroU8::new(3).expect("three is not zero")
}

impl Swim {
    /// Reads the trace.
    pub fn read(&self, text: Text, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        let window = Window::new(self.from, self.duration, horizon);
        let hosts = task_hosts(cluster);
        let (mut lines, mut clock, mut read, mut used) = (text.lines(), Clock::default(), 0, 0);
        let (mut workload, mut bytes) = (Workload::default(), 0);
        let (replicas, layout) = copies(self.replicas, self.coding);
        while let Some(line) = lines.next_line()? {
            let record = Record::parse(line)?;
            let submitted = clock.reach(&line, "submission", record.submitted)?;
            let Some(output) = whole_bytes(record.output * self.scale.get()) else {
                return Err(line.error("output", format!("{:e} bytes: too much for one job", record.output)));
            };
            let mut random = stream(seed, JOB, read);
            read += 1;
            // Drawn for every job, so that the jobs kept at one share are among those kept at any larger one.
            let kept = random.random::<f64>() < self.keep.get();
            let Some(start) = window.place(submitted).filter(|_| kept) else { continue };
            used += 1;
            if output == 0 {
                continue;
            }
            let writers = output.div_ceil(self.bytes_per_writer.0);
            if writers > (MOST_RECORDS - workload.files.len()) as u64 {
                let message = format!("more than {MOST_RECORDS} files; set a larger `bytes_per_writer`");
                return Err(line.error("output", message));
            }
            let job = workload.jobs.len() as u32;
            workload.jobs.push(Job { name: record.name.to_owned(), start });
            bytes += u128::from(output);
            for writer in 0..writers {
                workload.files.push(FileWrite {
                    start,
                    job: Some(job),
                    writer: draw(&hosts, &mut random),
                    bytes: Bytes(output / writers + u64::from(writer < output % writers)),
                    block: self.block,
                    replicas,
                    layout,
                });
            }
        }
        let provenance = format!(
            "swim {}: {used} of {read} jobs ({window}), {} of them write {} in {} files",
            self.file,
            workload.jobs.len(),
            amount(bytes),
            workload.files.len()
        );
        Ok(Loaded { workload, provenance })
    }
}

/// Any of `hosts`, each as likely as another.
pub(super) fn draw(hosts: &[HostId], random: &mut impl rand::Rng) -> HostId {
    // A cluster has at least one host.
    hosts[random.random_range(0..hosts.len())]
}

/// The fields of a line that are used.
struct Record<'a> {
    name: &'a str,
    submitted: f64,
    output: f64,
}

impl<'a> Record<'a> {
    fn parse(line: Line<'a>) -> Result<Record<'a>, InputError> {
        const FIELDS: [&str; 6] = ["name", "submission", "gap", "input", "shuffle", "output"];
        let mut fields = [""; 6];
        let mut words = line.text.split('\t');
        for (field, name) in fields.iter_mut().zip(FIELDS) {
            let message =
                "the line ends here; expected name, submission, gap, input, shuffle, output, with tabs";
            *field = words.next().ok_or_else(|| line.error(name, message))?.trim();
        }
        let bytes = |at: usize| line.number(FIELDS[at], "bytes", fields[at]);
        line.number("gap", "seconds", fields[2])?;
        bytes(3)?;
        bytes(4)?;
        Ok(Record {
            name: fields[0],
            submitted: line.number("submission", "seconds", fields[1])?,
            output: bytes(5)?,
        })
    }
}
