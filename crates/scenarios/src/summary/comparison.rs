//! Comparison of two runs on the same arrivals: each write is compared with the same write of the other run (Sinbad
//! section 7).
//!
//! A factor is the baseline's time over the time of this run, so a value above one is better (section 7.1). The paper
//! reports factors of blocks, of writers and of jobs. A writer is a task; its time includes its fetches and its write.
//! A job's time is its communication time, *weighted by size* (section 7.2). The paper defines neither the weight nor
//! the mean. Here the factor is the ratio of two weighted means, and the weight is the number of bytes that the job
//! writes:
//!
//! ```text
//! sum over jobs of bytes * time under the baseline  /  sum over jobs of bytes * time under this policy
//! ```
//!
//! Jobs are also compared in groups by the share of their time spent writing (table 3, figure 6) and by bytes written
//! (figure 7). The paper gives no limits of the groups by bytes; here the limits are decades from 100 MB. The share of
//! time is taken from the baseline, so that a job has the same group in every comparison.

use std::collections::HashMap;

use leeward_coflows::Class;
use serde::Serialize;

use super::coflows::ByClass;
use crate::record::{App, Block, Coflow, File, Job, Read, Record, WRITE_SHARES};

/// Comparison of a run with a baseline.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Blocks of any size.
    pub blocks: Paired,
    /// Full blocks, which policies place by load.
    pub full_blocks: Paired,
    /// Partial blocks.
    pub partial_blocks: Paired,
    /// Files, each from the start of its task: the paper's writers.
    pub files: Paired,
    /// Files, each from its first block: the write phase of tasks.
    pub writes: Paired,
    /// Jobs, from submission to the last file.
    pub jobs: Paired,
    /// Communication time of jobs.
    pub communication: Paired,
    /// Factor of communication time, with jobs weighted by the bytes they write.
    pub communication_by_bytes: f64,
    /// Jobs by the share of their time spent writing.
    pub by_write_share: Vec<Group>,
    /// Jobs by the bytes they write.
    pub by_bytes: Vec<Group>,
    /// Reads, each with the read of the same number; `None` for runs without a source of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<Paired>,
    /// Apps, from arrival to the last transfer; `None` for other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apps: Option<Paired>,
    /// Coflows with flows, from arrival to the end of the last flow; `None` for runs without coflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coflows: Option<Paired>,
    /// Coflows by class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coflow_classes: Option<ByClass<Paired>>,
    /// Largest difference of two times that count as the same, as a share of the baseline's time.
    pub same_within: f64,
}

/// Writes of a kind that ended in both runs, compared one by one.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Paired {
    /// Number of pairs.
    pub count: u64,
    /// Mean time of the baseline over mean time of this run; 1 without pairs.
    pub factor: f64,
    /// Share of faster writes.
    pub faster: f64,
    /// Share of writes with the same time.
    pub same: f64,
    /// Share of slower writes.
    pub slower: f64,
    /// Share of writes in half the time or less.
    pub twice_as_fast: f64,
}

/// A group of jobs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Group {
    /// Lower limit of the group.
    pub from: f64,
    /// Upper limit, exclusive; null for the last group.
    pub to: Option<f64>,
    /// Jobs, from submission to the last file.
    pub jobs: Paired,
    /// Write phases: for each job, the summed write time of its tasks.
    pub writes: Paired,
    /// Communication time.
    pub communication: Paired,
    /// Factor of communication time, with jobs weighted by the bytes they write.
    pub communication_by_bytes: f64,
}

/// Two write times within this share of each other count as the same.
const SAME_WITHIN: f64 = 0.01;

/// Lower limits of groups by bytes written.
const WRITE_SIZES: [f64; 5] = [0.0, 1e8, 1e9, 1e10, 1e11];

/// Times under this run and under the baseline, if known.
type Pair = (Option<f64>, Option<f64>);

impl Paired {
    /// Compares pairs of (this run's, the baseline's) durations.
    fn of(pairs: impl IntoIterator<Item = Pair>) -> Paired {
        let (mut faster, mut slower, mut twice, mut count) = (0u64, 0u64, 0u64, 0u64);
        let (mut sum, mut baseline_sum) = (0.0, 0.0);
        for (ours, baseline) in pairs {
            let (Some(ours), Some(baseline)) = (ours, baseline) else { continue };
            count += 1;
            (sum, baseline_sum) = (sum + ours, baseline_sum + baseline);
            faster += u64::from(ours < baseline * (1.0 - SAME_WITHIN));
            slower += u64::from(ours > baseline * (1.0 + SAME_WITHIN));
            twice += u64::from(ours * 2.0 <= baseline && ours < baseline);
        }
        let share = |n: u64| n as f64 / count.max(1) as f64;
        Paired {
            count,
            factor: factor(sum, baseline_sum),
            faster: share(faster),
            same: share(count - faster - slower),
            slower: share(slower),
            twice_as_fast: share(twice),
        }
    }
}

fn factor(ours: f64, baseline: f64) -> f64 {
    if ours > 0.0 { baseline / ours } else { 1.0 }
}

/// A job in both runs.
struct JobPair<'a> {
    ours: &'a Job,
    baseline: &'a Job,
    /// Summed write time of its tasks, if all of them ended.
    writes: Pair,
}

impl JobPair<'_> {
    fn durations(&self) -> Pair {
        (self.ours.duration(), self.baseline.duration())
    }

    fn communication(&self) -> Pair {
        (self.ours.communicating(), self.baseline.communicating())
    }
}

/// Factor of communication time, with jobs weighted by the bytes they write.
fn by_bytes<'a>(jobs: impl IntoIterator<Item = &'a JobPair<'a>>) -> f64 {
    let (mut sum, mut baseline_sum) = (0.0, 0.0);
    for job in jobs {
        let (Some(ours), Some(baseline)) = job.communication() else { continue };
        let bytes = job.ours.bytes.0 as f64;
        (sum, baseline_sum) = (sum + bytes * ours, baseline_sum + bytes * baseline);
    }
    factor(sum, baseline_sum)
}

/// Groups jobs by a value; groups begin at `limits`.
fn groups(
    jobs: &[JobPair<'_>],
    limits: &[f64],
    value_of: impl Fn(&JobPair<'_>) -> Option<f64>,
) -> Vec<Group> {
    let group = |(index, &from): (usize, &f64)| {
        let to = limits.get(index + 1).copied();
        let holds = |value: f64| value >= from && to.is_none_or(|to| value < to);
        let members: Vec<&JobPair<'_>> = jobs.iter().filter(|job| value_of(job).is_some_and(holds)).collect();
        Group {
            from,
            to,
            jobs: Paired::of(members.iter().map(|job| job.durations())),
            writes: Paired::of(members.iter().map(|job| job.writes)),
            communication: Paired::of(members.iter().map(|job| job.communication())),
            communication_by_bytes: by_bytes(members),
        }
    };
    limits.iter().enumerate().map(group).collect()
}

/// Returns the summed write time of each job's tasks; `None` if one did not end.
fn writes_of_jobs(record: &Record) -> Vec<Option<f64>> {
    let mut sums = vec![Some(0.0); record.jobs.len()];
    for file in &record.files {
        if let Some(job) = file.job {
            let sum = &mut sums[job as usize];
            *sum = sum.zip(file.write_time()).map(|(sum, time)| sum + time);
        }
    }
    sums
}

/// Returns the times of reads that were made in both runs. Each run lists them in the order of their numbers.
fn read_pairs<'a>(
    record: &'a Record,
    baseline: &'a Record,
    warmup: f64,
) -> impl Iterator<Item = Pair> + use<'a> {
    let mut baseline_reads = baseline.reads.iter().peekable();
    record.reads.iter().filter(move |read| read.asked >= warmup).map(move |read| {
        while baseline_reads.next_if(|other| other.number < read.number).is_some() {}
        let same = baseline_reads.next_if(|other| other.number == read.number);
        (read.duration(), same.and_then(Read::duration))
    })
}

/// Returns the completion times of the coflows of a class, or of all coflows with flows.
fn coflow_pairs<'a>(
    record: &'a Record,
    baseline: &'a Record,
    warmup: f64,
    class: Option<Class>,
) -> impl Iterator<Item = Pair> + use<'a> {
    let is_counted = move |coflow: &Coflow| {
        let own = coflow.class();
        coflow.arrival.arrive >= warmup && own.is_some() && (class.is_none() || own == class)
    };
    let pairs = record.coflows.iter().zip(&baseline.coflows).filter(move |(coflow, _)| is_counted(coflow));
    pairs.map(|(ours, baseline)| (ours.completion_time(), baseline.completion_time()))
}

impl Comparison {
    /// Compares a run with a baseline on the same arrivals; `warmup` in seconds.
    pub fn of(record: &Record, baseline: &Record, warmup: f64) -> Comparison {
        // Files interleave their blocks, so the order of blocks over all files differs from run to run.
        let key = |block: &Block| (block.file, block.index);
        let baseline_times: HashMap<(u32, u32), f64> =
            baseline.blocks.iter().filter_map(|block| Some((key(block), block.duration()?))).collect();
        let counted = || record.blocks_after(warmup);
        let pair = |block: &Block| (block.duration(), baseline_times.get(&key(block)).copied());
        let files = || record.files.iter().zip(&baseline.files).filter(|(file, _)| file.start >= warmup);
        let files_by = |time: fn(&File) -> Option<f64>| {
            Paired::of(files().map(|(ours, baseline)| (time(ours), time(baseline))))
        };
        let writes = writes_of_jobs(record).into_iter().zip(writes_of_jobs(baseline));
        let jobs = record.jobs.iter().zip(&baseline.jobs).zip(writes);
        let jobs: Vec<JobPair<'_>> = jobs
            .map(|((ours, baseline), writes)| JobPair { ours, baseline, writes })
            .filter(|job| job.ours.start >= warmup)
            .collect();
        Comparison {
            blocks: Paired::of(counted().map(pair)),
            full_blocks: Paired::of(counted().filter(|block| block.full).map(pair)),
            partial_blocks: Paired::of(counted().filter(|block| !block.full).map(pair)),
            files: files_by(File::duration),
            writes: files_by(File::write_time),
            jobs: Paired::of(jobs.iter().map(JobPair::durations)),
            communication: Paired::of(jobs.iter().map(JobPair::communication)),
            communication_by_bytes: by_bytes(&jobs),
            by_write_share: groups(&jobs, &WRITE_SHARES, |job| job.baseline.write_share()),
            by_bytes: groups(&jobs, &WRITE_SIZES, |job| job.ours.finished.map(|_| job.ours.bytes.0 as f64)),
            reads: record.skipped_reads.map(|_| Paired::of(read_pairs(record, baseline, warmup))),
            apps: (!record.apps.is_empty()).then(|| {
                let pairs = record.apps.iter().zip(&baseline.apps);
                let counted = pairs.filter(|(app, _)| app.arrived >= warmup);
                Paired::of(counted.map(|(ours, baseline)| (App::duration(ours), App::duration(baseline))))
            }),
            coflows: (!record.coflows.is_empty())
                .then(|| Paired::of(coflow_pairs(record, baseline, warmup, None))),
            coflow_classes: (!record.coflows.is_empty()).then(|| {
                ByClass::of(|class| Paired::of(coflow_pairs(record, baseline, warmup, Some(class))))
            }),
            same_within: SAME_WITHIN,
        }
    }
}
