//! Jobs, their writers, and their files.
//!
//! Each writer task writes one file. File sizes are log-normal, cut at 64 blocks. One parameter is fitted so that 32 %
//! of blocks are full, the other so that full blocks hold 81 % of the bytes (Sinbad section 4.3). Most files are then a
//! few megabytes, and 8 % are larger than a block.
//!
//! The gaps between jobs have a Gamma distribution. Jobs are of the five kinds of Sinbad table 3, by the share of a
//! job's duration in writing. Kinds 1 to 4 have a shuffle and write `output`, kind 5 (ingestion, preprocessing) writes
//! `other`. The bytes of the two groups follow the shares of table 2: 25 and 75 % of written bytes. (Table 3 has 33 and
//! 67 %.) Within the first group, the bytes follow table 3. The number of writers per job is log-normal. Writers start
//! over a span of time, in waves of tasks. With the mean span, the mean write time of a job is 291 s at 50 MB/s
//! (section 7.1). The time between a job's submission and its first file is the time that its kind spends on other
//! phases.
//!
//! With `writers: paced`, each block has a writer of its own. All writers of a job start with its first file, and each
//! produces its block evenly over the job's write time. By the paper's counts this is the nearer model: its 18 writers per
//! second (table 1, 37 % of all tasks) are more than its 12.5 blocks per second, and writing for 291 s they are 5,300 at a
//! time, about two on each host. A block that began before the run continues with the rest of its bytes.
//!
//! With `phases`, the writers of kinds 1 to 4 shuffle in that time. For each byte that it writes, each writer fetches
//! table 2's ratio of shuffle to output from the hosts of its job's maps. The fetches begin before the write, by the
//! time that they take at a task's own rate, but not before the job is submitted. The writer starts to write when all
//! bytes have arrived; on a busy network, this is later than without phases. Bytes fetched before the run are left out.

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster, HostId};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use rand::distr::weighted::WeightedIndex;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma, LogNormal};

use super::settings::{Facebook, HOSTS, WARM_UP, Writers, invalid};
use crate::model::{FileWrite, Job, MOST_RECORDS, Workload};
use crate::phases::{Phases, fetches};
use crate::settings::{DISK, copies, draw_host};

const ARRIVALS: Kind = Kind::named("facebook.arrivals");
const JOB: Kind = Kind::named("facebook.job");
/// Draws of phases. They are separate from the draws above, so that files are the same with and without phases.
const PHASES: Kind = Kind::named("facebook.phases");
/// Draws of paced writers, also separate.
const PACED_WRITERS: Kind = Kind::named("facebook.paced");

const WEEK: f64 = 7.0 * 86_400.0;
/// File sizes in blocks: the mean and deviation of the logarithm, and the largest. See `Sizes`.
const SIZE: (f64, f64, f64) = (-4.186, 3.02, 64.0);
/// Full blocks per file and mean size in blocks, for files of `SIZE`. Each file has one more block, which is smaller.
const FULL_BLOCKS_A_FILE: f64 = 0.4706;
const BLOCKS_A_FILE: f64 = 0.5812;
/// Standard deviation of the logarithm of writers per job. The largest of a thousand jobs then has about 30 times the
/// mean number.
const WRITERS_SIGMA: f64 = 1.5;
/// Largest mean number of writers of a job; no cluster can use more.
const MOST_WRITERS: f64 = 10_000.0;
/// Mean seconds from the first to the last start of a job's writers, if they start in waves.
const SPAN: f64 = 420.0;
/// Mean write time of a job with paced writers, in seconds (section 7.1).
const PACED: f64 = 291.0;

/// A kind of job: Sinbad table 3.
struct Bin {
    /// Share of jobs.
    jobs: f64,
    /// Share of bytes.
    bytes: f64,
    /// Range of the share of a job's duration spent in writing. The paper has no data below 5 %.
    writing: (f64, f64),
}

/// Number of kinds that shuffle; they are the first kinds.
const SHUFFLING: usize = 4;

const BINS: [Bin; 5] = [
    Bin { jobs: 0.16, bytes: 0.22, writing: (0.05, 0.25) },
    Bin { jobs: 0.12, bytes: 0.05, writing: (0.25, 0.50) },
    Bin { jobs: 0.12, bytes: 0.03, writing: (0.50, 0.75) },
    Bin { jobs: 0.08, bytes: 0.03, writing: (0.75, 0.90) },
    Bin { jobs: 0.52, bytes: 0.67, writing: (0.90, 1.00) },
];

/// Model of writes for one cluster.
pub(super) struct Writes<'a> {
    settings: &'a Facebook,
    files_per_second: f64,
    jobs_per_second: f64,
    kinds: WeightedIndex<f64>,
    /// Mean writers of a job, by kind.
    writers: [f64; 5],
    /// File sizes in blocks, before the cut at the largest size.
    sizes: LogNormal<f64>,
    /// With phases: bytes shuffled for each byte written by a job that shuffles.
    shuffled: f64,
}

/// A job of a run, and its context.
struct JobContext<'a> {
    index: u64,
    /// Time of its first file's write on a quiet network.
    first_file: f64,
    horizon: f64,
    hosts: &'a [HostId],
    seed: u64,
}

impl<'a> Writes<'a> {
    pub fn new(settings: &'a Facebook, cluster: &Cluster) -> Result<Self, InputError> {
        let size = settings.load.get() * cluster.fabric.host_count() as f64 / HOSTS;
        let files_per_second = size * settings.full_blocks.get() / FULL_BLOCKS_A_FILE;
        let jobs_per_second = size * settings.jobs.get() / WEEK;
        if files_per_second > 0.0 && jobs_per_second == 0.0 {
            return Err(invalid("jobs", "0: must be positive, because jobs write the `full_blocks`"));
        }
        let shares = settings.shares;
        let output = shares.output.get() / (shares.output.get() + shares.other.get());
        let with_shuffle: f64 = BINS[..SHUFFLING].iter().map(|bin| bin.bytes).sum();
        let mut writers = [0.0; 5];
        for (i, (mean, bin)) in writers.iter_mut().zip(&BINS).enumerate() {
            let bytes = if i == SHUFFLING { 1.0 - output } else { output * bin.bytes / with_shuffle };
            *mean = files_per_second / jobs_per_second.max(f64::MIN_POSITIVE) * bytes / bin.jobs;
        }
        if let Some(most) = writers.into_iter().find(|&mean| mean > MOST_WRITERS) {
            let message =
                format!("too few for `full_blocks`: a job would have {most:.1e} writers on average");
            return Err(invalid("jobs", message));
        }
        let mut shuffled = 0.0;
        if settings.phases.is_some() && shares.shuffle.get() > 0.0 {
            if shares.output.get() == 0.0 {
                return Err(invalid(
                    "shares",
                    "`output` is 0, but with `phases` only the jobs that write `output` shuffle",
                ));
            }
            shuffled = f64::from(settings.crossings.get()) * shares.shuffle.get() / shares.output.get();
        }
        let kinds = WeightedIndex::new(BINS.map(|bin| bin.jobs)).expect("shares are positive");
        let sizes = LogNormal::new(SIZE.0, SIZE.1).expect("both are finite");
        Ok(Writes { settings, files_per_second, jobs_per_second, kinds, writers, sizes, shuffled })
    }

    /// Mean bytes written per second, before replication.
    pub fn bytes_per_second(&self) -> f64 {
        self.files_per_second * BLOCKS_A_FILE * self.settings.block.0 as f64
    }

    /// Generates the jobs of one run, whose tasks run on `hosts`.
    pub fn generate(&self, hosts: &[HostId], seed: u64, horizon: f64) -> Result<Workload, InputError> {
        let mut workload = Workload::default();
        if self.files_per_second == 0.0 {
            return Ok(workload);
        }
        // With phases, the tasks of a job begin before the time of its first file's write.
        let until = horizon + self.longest_shuffle();
        let files_a_writer = match self.settings.writers {
            Writers::Paced => 1.0 + FULL_BLOCKS_A_FILE,
            Writers::Waves | Writers::None => 1.0,
        };
        let records = (until + WARM_UP) * (self.files_per_second * files_a_writer).max(self.jobs_per_second);
        if records > MOST_RECORDS as f64 {
            let message =
                format!("{records:.1e} files or jobs: more than {MOST_RECORDS}; lower `load` or the horizon");
            return Err(invalid("load", message));
        }
        let shape = 1.0 / self.settings.burstiness.get();
        let gaps = Gamma::new(shape, 1.0 / (shape * self.jobs_per_second))
            .map_err(|error| invalid("jobs", format!("{}: {error}", self.settings.jobs.get())))?;
        let mut arrivals = stream(seed, ARRIVALS, 0);
        let (mut first_file, mut index, mut jobs, mut fetched) = (-WARM_UP, 0, Vec::new(), 0);
        loop {
            first_file += gaps.sample(&mut arrivals);
            if first_file >= until {
                break;
            }
            let mut random = stream(seed, JOB, index);
            let context = JobContext { index, first_file, horizon, hosts, seed };
            jobs.extend(self.job(&context, &mut random, &mut fetched)?);
            index += 1;
            if index > 2 * MOST_RECORDS as u64 {
                return Err(invalid("burstiness", "too many jobs at one time; lower `jobs` or `burstiness`"));
            }
        }
        jobs.sort_by(|(a, _), (b, _)| a.start.total_cmp(&b.start));
        for (number, (job, files)) in (0..).zip(jobs) {
            workload.jobs.push(job);
            workload.files.extend(files.into_iter().map(|file| FileWrite { job: Some(number), ..file }));
        }
        workload.files.sort_by(|a, b| a.start.total_cmp(&b.start));
        Ok(workload)
    }

    /// Longest time by which a task's fetches begin before its write, in seconds.
    fn longest_shuffle(&self) -> f64 {
        let bytes = SIZE.2 * self.settings.block.0 as f64 * self.shuffled;
        self.settings.phases.as_ref().map_or(0.0, |phases| phases.seconds(bytes))
    }

    /// Draws a job, and returns it with its tasks within the run, if any. Adds the number of its fetches to `fetched`.
    fn job(
        &self,
        context: &JobContext<'_>,
        random: &mut ChaCha8Rng,
        fetched: &mut usize,
    ) -> Result<Option<(Job, Vec<FileWrite>)>, InputError> {
        let &JobContext { index, first_file, horizon, hosts, .. } = context;
        let bin = self.kinds.sample(random);
        let length: f64 = random.sample(Exp1);
        let (span, producing, disk) = (SPAN * length, PACED * length, DISK.bytes_per_second());
        let (mut files, mut last_end) = (Vec::new(), first_file);
        let (replicas, layout) = copies(self.settings.replicas, self.settings.coding);
        let file = |start: f64, writer: HostId, bytes: u64, pace: f64| FileWrite {
            start,
            job: None,
            writer,
            bytes: Bytes(bytes),
            block: self.settings.block,
            replicas,
            layout,
            fetches: Vec::new(),
            flexible: self.settings.flexible,
            pace,
            failure: None,
            choices: None,
        };
        let mut paced = stream(context.seed, PACED_WRITERS, index);
        for writer in 0..self.writers(bin, random) {
            // Both values of `writers` draw the same bytes.
            let start = if writer == 0 { first_file } else { first_file + span * random.random::<f64>() };
            let bytes = self.file_size(random);
            let host = draw_host(hosts, random);
            if self.settings.writers != Writers::Paced {
                last_end = last_end.max(start + bytes as f64 / disk);
                // Files written before the run are left out.
                if start >= 0.0 {
                    files.push(file(start, host, bytes, f64::INFINITY));
                }
                continue;
            }
            let mut left = bytes;
            while left > 0 {
                let block = left.min(self.settings.block.0);
                let host = if left == bytes { host } else { draw_host(hosts, &mut paced) };
                left -= block;
                let seconds = producing.max(block as f64 / disk);
                last_end = last_end.max(first_file + seconds);
                // Bytes written before the run are left out.
                let share = (1.0 + first_file.min(0.0) / seconds).max(0.0);
                let bytes = (block as f64 * share).round() as u64;
                if bytes > 0 {
                    files.push(file(first_file.max(0.0), host, bytes, block as f64 / seconds));
                }
            }
        }
        let (least, most) = BINS[bin].writing;
        let writing = random.random_range(least..most);
        let before = (last_end - first_file) * (1.0 - writing) / writing;
        let job = Job { name: format!("bin{}/{index}", bin + 1), start: first_file - before };
        if let Some(phases) = self.settings.phases.as_ref().filter(|_| bin < SHUFFLING) {
            self.shuffle(context, phases, job.start, &mut files, fetched)?;
        }
        files.retain(|file| file.start < horizon);
        Ok((!files.is_empty()).then_some((job, files)))
    }

    /// Adds a shuffle before the files of a job.
    fn shuffle(
        &self,
        context: &JobContext<'_>,
        phases: &Phases,
        submitted: f64,
        files: &mut [FileWrite],
        fetched: &mut usize,
    ) -> Result<(), InputError> {
        let shuffle_bytes = |file: &FileWrite| file.bytes.0 as f64 * self.shuffled;
        let total: f64 = files.iter().map(shuffle_bytes).sum();
        let maps = (total / self.settings.block.0 as f64).ceil() as u64;
        let mappers = phases.mappers(maps, context.hosts, &mut stream(context.seed, PHASES, context.index));
        for file in files {
            let (write, bytes) = (file.start, shuffle_bytes(file));
            let fetch_start = (write - phases.seconds(bytes)).max(submitted);
            file.start = fetch_start.max(0.0);
            if file.start >= context.horizon {
                continue;
            }
            let remaining =
                if write > fetch_start { (write - file.start) / (write - fetch_start) } else { 1.0 };
            file.fetches = fetches(&mappers, (bytes * remaining).round() as u64);
            *fetched += file.remote_fetches(file.writer).count();
            if *fetched > MOST_RECORDS {
                let message = format!("more than {MOST_RECORDS} fetches; lower `mappers` or the horizon");
                return Err(invalid("phases", message));
            }
        }
        Ok(())
    }

    /// Draws the number of writers of a job: log-normal, rounded at random so that the mean stays the same. A job
    /// without writers is dropped.
    fn writers(&self, bin: usize, random: &mut ChaCha8Rng) -> u64 {
        let centre = self.writers[bin].ln() - WRITERS_SIGMA * WRITERS_SIGMA / 2.0;
        let writers = LogNormal::new(centre, WRITERS_SIGMA).map_or(0.0, |spread| spread.sample(random));
        (writers + random.random::<f64>()) as u64
    }

    fn file_size(&self, random: &mut ChaCha8Rng) -> u64 {
        let blocks = loop {
            let blocks = self.sizes.sample(random);
            if blocks <= SIZE.2 {
                break blocks;
            }
        };
        ((blocks * self.settings.block.0 as f64).round() as u64).max(1)
    }
}
