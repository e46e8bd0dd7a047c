//! SWIM traces of jobs (Chen et al., MASCOTS 2011): the files that jobs write, and their shuffles.
//!
//! A line is a job with fields separated by tabs. The fields are name, submission in seconds, gap to the previous job,
//! and bytes of map input, of shuffle and of output. A seventh field may name the input. The output is split evenly
//! over writer tasks, as a reducer's hash does. Each task is on a random host and writes one file.
//!
//! The trace has no tasks and no durations. Without `phases`, the default, all writers of a job start when the job is
//! submitted, and nothing is shuffled. Usually a coflow trace provides the shuffles; with `phases` too, they would
//! count twice. With `phases`, a job has a map task for each block of its input, which lasts for the time that a disk
//! needs to read this block. Then the writers fetch the shuffle, and then they write. A job that shuffles and writes
//! nothing sends the same flows to random hosts, as background. Facebook's traces are of clusters of 600 machines
//! (2009) and 3000 (2010). A cluster of N hosts has the same load with `keep` at N/600 or N/3000. This setting drops
//! jobs and leaves the others unchanged. `scale` shrinks every job instead. It serves clusters too small for a single
//! large job (the largest jobs of 2010 write tens of terabytes).

use leeward_fabric::input::{Clock, InputError, Line, Text};
use leeward_fabric::{Bytes, Cluster, Endpoint, HostId, Nanos};
use leeward_placement::replicas::Coding;
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{FileWrite, Flow, Job, Loaded, MOST_RECORDS, Workload};
use crate::phases::{Phases, fetches};
use crate::settings::{
    Factor, Share, Window, amount, copies, default_block, default_replicas, draw_host, positive, task_hosts,
    whole_bytes,
};

const JOB: Kind = Kind::named("swim.job");
/// Draws of phases. They are separate from the draws above, so that files are the same with and without phases.
const PHASES: Kind = Kind::named("swim.phases");

/// File writes from a SWIM trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swim {
    /// The trace: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the trace.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the trace; by default up to the end of the run.
    pub duration: Option<Nanos>,
    /// Share of jobs to keep, drawn for each job.
    #[serde(default = "Share::all")]
    pub keep: Share,
    /// Factor on the bytes of each job.
    #[serde(default = "Factor::one")]
    pub scale: Factor,
    /// Largest number of bytes of one writer task; it determines the number of writers of a job.
    #[serde(default = "gibibyte", deserialize_with = "positive")]
    pub bytes_per_writer: Bytes,
    /// Block size.
    #[serde(default = "default_block", deserialize_with = "positive")]
    pub block: Bytes,
    /// Copies of each block.
    #[serde(default = "default_replicas")]
    pub replicas: std::num::NonZeroU8,
    /// An erasure code instead of copies, such as `6+3`.
    #[serde(default)]
    pub coding: Option<Coding>,
    /// Map and shuffle phases of jobs before their writes; no phases if absent.
    #[serde(default)]
    pub phases: Option<Phases>,
    /// If true, writers could be anywhere (Sinbad section 7.2): their own outbound links never delay a block.
    #[serde(default)]
    pub flexible: bool,
}

fn gibibyte() -> Bytes {
    Bytes(1 << 30)
}

impl Swim {
    /// Reads the trace.
    ///
    /// # Errors
    /// Returns an error with the line and field of the first invalid value.
    pub fn read(&self, text: Text, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        let window = Window::new(self.from, self.duration, horizon);
        let (mut lines, mut clock, mut read, mut used) = (text.lines(), Clock::default(), 0, 0);
        let mut jobs = JobBuilder {
            settings: self,
            hosts: task_hosts(cluster),
            seed,
            horizon,
            workload: Workload::default(),
            written: 0,
            fetches: 0,
            shuffled: 0,
            late: 0,
        };
        while let Some(line) = lines.next_line()? {
            let record = Record::parse(line, self.scale.get())?;
            let submitted = clock.reach(&line, "submission", record.submitted)?;
            let mut random = stream(seed, JOB, read);
            read += 1;
            // Every job draws, so the jobs kept at one share are also kept at any larger share.
            let kept = random.random::<f64>() < self.keep.get();
            let Some(start) = window.place(submitted).filter(|_| kept) else { continue };
            used += 1;
            jobs.add(&record, read - 1, start, &mut random, line)?;
        }
        let JobBuilder { mut workload, written, fetches, shuffled, late, .. } = jobs;
        // Maps take time, so jobs submitted in order may write out of order.
        workload.files.sort_by(|a, b| a.start.total_cmp(&b.start));
        workload.flows.sort_by(|a, b| a.start.total_cmp(&b.start));
        let mut provenance = format!(
            "swim {}: {used} of {read} jobs ({window}), {} of them write {} in {} files",
            self.file,
            workload.jobs.len(),
            amount(written),
            workload.files.len()
        );
        if self.phases.is_some() {
            provenance += &format!(
                "; {} shuffled in {fetches} fetches; {late} jobs are still in their map phase at the end",
                amount(shuffled)
            );
        }
        Ok(Loaded { workload, provenance })
    }
}

/// Converts jobs into tasks, and counts them.
struct JobBuilder<'a> {
    settings: &'a Swim,
    hosts: Vec<HostId>,
    seed: u64,
    horizon: f64,
    workload: Workload,
    /// Bytes of the generated files.
    written: u128,
    /// Generated fetches from other hosts, and their bytes.
    fetches: usize,
    shuffled: u128,
    /// Jobs with maps that do not end within the run.
    late: u64,
}

impl JobBuilder<'_> {
    fn add(
        &mut self,
        record: &Record<'_>,
        index: u64,
        submitted: f64,
        random: &mut impl rand::Rng,
        line: Line<'_>,
    ) -> Result<(), InputError> {
        let settings = self.settings;
        let (mut start, mut shuffle, mut mappers) = (submitted, 0, Vec::new());
        let mut phases = stream(self.seed, PHASES, index);
        if let Some(settings_of_phases) = &settings.phases {
            let block = settings.block.0;
            start += settings_of_phases.seconds(record.input.min(block) as f64);
            shuffle = record.shuffle;
            if shuffle > 0 {
                mappers = settings_of_phases.mappers(record.input.div_ceil(block), &self.hosts, &mut phases);
            }
        }
        let writes = record.output > 0;
        if !writes && shuffle == 0 {
            return Ok(());
        }
        if start >= self.horizon {
            self.late += 1;
            return Ok(());
        }
        let bytes = if writes { record.output } else { shuffle };
        let tasks = bytes.div_ceil(settings.bytes_per_writer.0);
        let field = if writes { "output" } else { "shuffle" };
        if tasks > (MOST_RECORDS - self.workload.files.len()) as u64 {
            let message = format!("more than {MOST_RECORDS} files; set a larger `bytes_per_writer`");
            return Err(line.error(field, message));
        }
        if tasks.saturating_mul(mappers.len() as u64) > (MOST_RECORDS - self.fetches) as u64 {
            let message = format!("more than {MOST_RECORDS} fetches; set a larger `bytes_per_writer`");
            return Err(line.error("shuffle", message));
        }
        let job = self.workload.jobs.len() as u32;
        if writes {
            self.workload.jobs.push(Job { name: record.name.to_owned(), start: submitted });
            self.written += u128::from(record.output);
        }
        let (replicas, layout) = copies(settings.replicas, settings.coding);
        for task in 0..tasks {
            let part = |bytes: u64| bytes / tasks + u64::from(task < bytes % tasks);
            let host =
                if writes { draw_host(&self.hosts, random) } else { draw_host(&self.hosts, &mut phases) };
            let fetches = fetches(&mappers, part(shuffle));
            let remote = || fetches.iter().filter(|fetch| fetch.from != host);
            self.fetches += remote().count();
            self.shuffled += remote().map(|fetch| u128::from(fetch.bytes.0)).sum::<u128>();
            if !writes {
                let (to, flows) = (Endpoint::Host(host), &mut self.workload.flows);
                flows.extend(remote().map(|fetch| Flow {
                    start,
                    from: Endpoint::Host(fetch.from),
                    to,
                    bytes: fetch.bytes,
                    coflow: None,
                }));
                continue;
            }
            self.workload.files.push(FileWrite {
                start,
                job: Some(job),
                writer: host,
                bytes: Bytes(part(record.output)),
                block: settings.block,
                replicas,
                layout,
                fetches,
                flexible: settings.flexible,
                pace: f64::INFINITY,
                failure: None,
                choices: None,
            });
        }
        Ok(())
    }
}

/// Used fields of a line; bytes are scaled.
struct Record<'a> {
    name: &'a str,
    submitted: f64,
    input: u64,
    shuffle: u64,
    output: u64,
}

impl<'a> Record<'a> {
    fn parse(line: Line<'a>, scale: f64) -> Result<Record<'a>, InputError> {
        const FIELDS: [&str; 6] = ["name", "submission", "gap", "input", "shuffle", "output"];
        let mut fields = [""; 6];
        let mut words = line.text.split('\t');
        for (field, name) in fields.iter_mut().zip(FIELDS) {
            let message =
                "the line ends here; expected name, submission, gap, input, shuffle, output, with tabs";
            *field = words.next().ok_or_else(|| line.error(name, message))?.trim();
        }
        let bytes = |index: usize| {
            let bytes = line.number(FIELDS[index], "bytes", fields[index])?;
            let too_much = || line.error(FIELDS[index], format!("{bytes:e} bytes: too much for one job"));
            whole_bytes(bytes * scale).ok_or_else(too_much)
        };
        line.number("gap", "seconds", fields[2])?;
        Ok(Record {
            name: fields[0],
            input: bytes(3)?,
            shuffle: bytes(4)?,
            submitted: line.number("submission", "seconds", fields[1])?,
            output: bytes(5)?,
        })
    }
}
