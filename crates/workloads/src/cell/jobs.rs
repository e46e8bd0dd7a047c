//! Jobs and their tasks, each job from its own stream.

use leeward_engine::Availability;
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster, Cpus};
use leeward_placement::tasks::{Class, Task, Traffic};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::causes::GrowthModel;
use super::settings::{Cell, UnknownPeak, check_cluster, invalid};
use crate::model::{CellJob, CellKind, CellTask, GrownDemand, Workload};

/// Jobs that arrive, and jobs that run at the start.
const JOB: Kind = Kind::named("cell.job");
const FIRST: Kind = Kind::named("cell.first");
const GAPS: Kind = Kind::named("cell.gaps");
/// Growth of jobs that arrive, and of jobs that run at the start.
const JOB_GROWTH: Kind = Kind::named("cell.job.growth");
const FIRST_GROWTH: Kind = Kind::named("cell.first.growth");

/// Thousandths of a processor per task, and the share of jobs with such tasks.
const SIZES: [(u64, f64); 5] = [(500, 0.30), (1000, 0.30), (2000, 0.20), (4000, 0.15), (8000, 0.05)];
/// Memory of a task, as a multiple of its processors' share of the hosts' memory.
const MEMORY: [(f64, f64); 4] = [(0.25, 0.3), (0.5, 0.3), (1.0, 0.3), (1.5, 0.1)];
/// Memory per processor if hosts state none.
const MEMORY_PER_CPU: f64 = (4_u64 << 30) as f64;
/// Standard deviation of the logarithm of times over jobs of a class.
const TIMES: f64 = 1.0;
/// Standard deviation of the logarithm of times, and of rates, over tasks of a job.
const WITHIN: f64 = 0.3;
/// Range of the sent share of a job's traffic; its tasks receive the rest.
const SENT: (f64, f64) = (0.2, 0.8);
/// Range of the share of a batch task's work that waits for the network (Hotspots section 4: compute ratios
/// of 0.1 to 0.9).
const NETWORK_SHARE: (f64, f64) = (0.1, 0.9);
/// Share of the processors that the largest job's tasks need.
const LARGEST_JOB: f64 = 0.02;

/// A class of jobs.
#[derive(Clone, Copy, PartialEq)]
enum JobClass {
    Service,
    Batch,
}

/// Distributions of jobs.
pub(super) struct Model<'a> {
    settings: &'a Cell,
    /// Thousandths of processors of all hosts.
    processors: f64,
    memory_per_cpu: f64,
    /// Sizes of tasks that fit on the hosts.
    sizes: Vec<(u64, f64)>,
    most_tasks: u32,
    /// Mean bit/s of all tasks in each direction.
    traffic: f64,
    /// Mean bit/s in each direction per thousandth of a processor.
    bandwidth: f64,
    /// Largest mean rate of a task: its peak then fills the slowest interface.
    most_bps: f64,
    /// Tags that constrained jobs demand, and the normal deviate of bandwidth above which a job is constrained.
    constrained: (u64, f64),
    growth: Option<GrowthModel>,
    /// Normal deviate of bandwidth above which a service grows.
    grows: f64,
}

/// Generated jobs with their tasks.
#[derive(Default)]
struct JobDraws {
    workload: Workload,
    /// Thousandths of processors.
    processors: f64,
}

impl<'a> Model<'a> {
    pub fn new(settings: &'a Cell, cluster: &Cluster, tags: u64) -> Result<Model<'a>, InputError> {
        check_cluster(cluster).map_err(|message| invalid("processors", message))?;
        let (fabric, capacities) = (&cluster.fabric, &cluster.capacities);
        let cpus = || fabric.all_hosts().filter_map(|host| fabric.cpus(host)).map(|cpus| cpus.0);
        let processors: f64 = cpus().map(|cpus| cpus as f64).sum();
        let memory: Option<f64> =
            fabric.all_hosts().map(|host| fabric.memory(host).map(|memory| memory.0 as f64)).sum();
        // A task has at most a quarter of the processors of the smallest host, so that hosts can be filled.
        let largest = cpus().filter(|&cpus| cpus > 0).min().unwrap_or(0) / 4;
        let mut sizes: Vec<(u64, f64)> = SIZES.into_iter().filter(|(size, _)| *size <= largest).collect();
        if sizes.is_empty() {
            sizes.push((largest.max(1), 1.0));
        }
        let mean_size = mean(&sizes);
        let most_tasks = settings.tasks_per_job.map_or_else(
            || (processors * LARGEST_JOB / mean_size).clamp(1.0, 1000.0) as u32,
            std::num::NonZeroU32::get,
        );
        let uplinks = fabric.all_racks().filter_map(|rack| fabric.out_of_domain(rack));
        let capacity: f64 = uplinks.map(|link| capacities.get(link).0 as f64).sum();
        let slowest = |link: Option<_>| link.map_or(f64::INFINITY, |link| capacities.get(link).0 as f64);
        let interfaces = fabric.all_hosts().flat_map(|host| [fabric.egress(host), fabric.ingress(host)]);
        let slowest = interfaces.map(slowest).fold(f64::INFINITY, f64::min);
        let constrained = settings.constrained.as_ref().map_or(0.0, |constrained| constrained.share.get());
        let grows = settings.growth.as_ref().map_or(0.0, |growth| growth.share.get());
        let growth = settings.growth.as_ref().map(GrowthModel::new).transpose()?;
        let traffic = settings.network.get() * capacity;
        Ok(Model {
            settings,
            processors,
            memory_per_cpu: memory.map_or(MEMORY_PER_CPU, |memory| memory / processors * 1000.0),
            sizes,
            most_tasks,
            traffic,
            bandwidth: traffic / (processors * settings.processors.get()),
            most_bps: slowest / settings.peak.get(),
            constrained: (tags, least_deviate(constrained)),
            growth,
            grows: least_deviate(grows),
        })
    }

    /// Mean bit/s of all tasks in each direction.
    pub fn traffic(&self) -> f64 {
        self.traffic
    }

    /// Processors of all hosts.
    pub fn all_processors(&self) -> f64 {
        self.processors / 1000.0
    }

    /// Mean number of processors that tasks request.
    pub fn demand(&self) -> f64 {
        self.all_processors() * self.settings.processors.get()
    }

    /// Expected number of tasks in a run.
    pub fn expected_tasks(&self, horizon: f64) -> f64 {
        let tasks = |job_class| {
            let running = self.target_processors(job_class) / mean(&self.sizes);
            running * (1.0 + horizon / self.mean_run_time(job_class))
        };
        tasks(JobClass::Service) + tasks(JobClass::Batch)
    }

    /// Target for the processors of all tasks of a class, in thousandths.
    fn target_processors(&self, job_class: JobClass) -> f64 {
        let tolerant = self.settings.tolerant.get();
        let share = if job_class == JobClass::Batch { tolerant } else { 1.0 - tolerant };
        self.processors * self.settings.processors.get() * share
    }

    /// Mean run time of tasks of a class, in seconds.
    fn mean_run_time(&self, job_class: JobClass) -> f64 {
        let time = if job_class == JobClass::Batch { self.settings.batch } else { self.settings.service };
        time.as_secs_f64()
    }

    /// Generates the arrivals.
    pub fn generate(&self, seed: u64, horizon: f64) -> Workload {
        let mut drawn = JobDraws::default();
        for (number, job_class) in [(0, JobClass::Service), (1, JobClass::Batch)] {
            let target = self.target_processors(job_class);
            let growth = self.growth.as_ref().filter(|_| job_class == JobClass::Service);
            drawn.processors = 0.0;
            let mut index = 0;
            while drawn.processors < target {
                let mut random = stream(seed, FIRST, 2 * index + number);
                // A job that runs at a given time tends to be long, and that time is uniform within the job's duration.
                let whole =
                    self.mean_run_time(job_class) * log_normal(&mut random, TIMES) * (TIMES * TIMES).exp();
                let rest = whole * random.random::<f64>();
                let growth =
                    growth.map(|growth| growth.draw(stream(seed, FIRST_GROWTH, index), rest - whole, whole));
                self.job(&mut random, job_class, (0.0, rest), growth, &mut drawn);
                index += 1;
            }
            let processors_per_job = mean(&self.sizes) * mean_tasks(self.most_tasks);
            let per_second = target / (processors_per_job * self.mean_run_time(job_class));
            let mut gaps = stream(seed, GAPS, number);
            let (mut at, mut index) = (0.0, 0);
            // At a rate of zero nothing ever arrives.
            loop {
                at -= (1.0 - gaps.random::<f64>()).ln() / per_second;
                if at.is_nan() || at >= horizon {
                    break;
                }
                let mut random = stream(seed, JOB, 2 * index + number);
                let seconds = self.mean_run_time(job_class) * log_normal(&mut random, TIMES);
                let growth = growth.map(|growth| growth.draw(stream(seed, JOB_GROWTH, index), at, seconds));
                self.job(&mut random, job_class, (at, seconds), growth, &mut drawn);
                index += 1;
            }
        }
        let mut workload = drawn.workload;
        workload.tasks.sort_by(|a, b| a.arrive.total_cmp(&b.arrive));
        workload
    }

    /// Draws one job, whose tasks arrive at a time and run for `seconds` on average. A job with enough bandwidth has
    /// the `growth`.
    fn job(
        &self,
        random: &mut ChaCha8Rng,
        job_class: JobClass,
        (arrive, seconds): (f64, f64),
        growth: Option<GrownDemand>,
        drawn: &mut JobDraws,
    ) {
        let settings = self.settings;
        // Log-uniform from one task to the largest number, so there are as many jobs of 1 task as of 2 and 3 tasks
        // together.
        let tasks = (f64::from(self.most_tasks) + 1.0).powf(random.random::<f64>()) as u32;
        let tasks = tasks.clamp(1, self.most_tasks);
        let cpus = pick(random, &self.sizes);
        let memory = self.memory_per_cpu * cpus as f64 / 1000.0 * pick(random, &MEMORY);
        let deviate: f64 = StandardNormal.sample(random);
        let (spread, error) = (settings.spread.get(), settings.error.get());
        let bandwidth = self.bandwidth * cpus as f64 * (spread * deviate - spread * spread / 2.0).exp();
        let sent = random.random_range(SENT.0..SENT.1);
        let means = [2.0 * bandwidth * sent, 2.0 * bandwidth * (1.0 - sent)];
        let network_share = random.random_range(NETWORK_SHARE.0..NETWORK_SHARE.1);
        let declared = {
            let deviation: f64 = StandardNormal.sample(random);
            let known = random.random::<f64>() >= settings.unknown.get();
            means.map(|mean| self.declared(mean.min(self.most_bps) * (error * deviation).exp(), known))
        };
        let mut task = Task {
            cpus: Cpus(cpus),
            memory: Bytes(memory as u64),
            tolerant: job_class == JobClass::Batch,
            ..Task::default()
        };
        let class = if job_class == JobClass::Batch { Class::BestEffort } else { Class::Critical };
        [task.egress[class as usize], task.ingress[class as usize]] = declared;
        let Workload { tasks: all, cell_kinds, cell_jobs, .. } = &mut drawn.workload;
        let (job, kind) = (cell_jobs.len() as u32, cell_kinds.len() as u32);
        cell_kinds.push(CellKind {
            demand: task,
            peak: settings.peak.get(),
            day: settings.day.get(),
            network_share: if job_class == JobClass::Batch { network_share } else { 0.0 },
            restart: settings.restart.as_secs_f64(),
            growth: None,
        });
        let at_least_one = |share: f64| Some(((f64::from(tasks) * share) as u32).max(1));
        cell_jobs.push(CellJob {
            name: format!("{}{job}", if job_class == JobClass::Batch { "batch" } else { "service" }),
            availability: Availability {
                down: at_least_one(settings.down.get()),
                evictions_per_hour: at_least_one(settings.evictions.get()),
            },
            tags: if deviate >= self.constrained.1 { self.constrained.0 } else { 0 },
        });
        let mut busiest = 0.0_f64;
        for _ in 0..tasks {
            let within = if job_class == JobClass::Batch { log_normal(random, WITHIN) } else { 1.0 };
            let factor = log_normal(random, WITHIN);
            let rates = means.map(|mean| (mean * factor).min(self.most_bps));
            busiest = rates.into_iter().fold(busiest, f64::max);
            let [egress_bps, ingress_bps] = rates.map(|rate| rate.round() as u64);
            // Durations below a second are shorter than any observation interval.
            let duration = (seconds * within).max(1.0);
            all.push(CellTask { arrive, duration, job, kind, egress_bps, ingress_bps });
        }
        // All tasks grow alike, and no peak exceeds the slowest interface.
        cell_kinds[kind as usize].growth = growth.filter(|_| deviate >= self.grows).map(|growth| {
            let most = if busiest > 0.0 { self.most_bps / busiest } else { f64::INFINITY };
            GrownDemand { factor: growth.factor.min(most).max(1.0), ..growth }
        });
        drawn.processors += cpus as f64 * f64::from(tasks);
    }

    /// Returns a rate as the scheduler assumes it.
    fn declared(&self, mean: f64, known: bool) -> Traffic {
        let bps = |rate: f64| rate.round() as u64;
        match (known, self.settings.unknown_peak) {
            (true, _) => Traffic { mean_bps: bps(mean), peak_bps: bps(mean * self.settings.peak.get()) },
            (false, UnknownPeak::Mean) => Traffic { mean_bps: bps(mean), peak_bps: bps(mean) },
            (false, UnknownPeak::Zero) => Traffic::default(),
        }
    }
}

/// Returns a factor with a mean of one, whose logarithm has the standard deviation `sigma`.
fn log_normal(random: &mut ChaCha8Rng, sigma: f64) -> f64 {
    let deviate: f64 = StandardNormal.sample(random);
    (sigma * deviate - sigma * sigma / 2.0).exp()
}

/// Returns the normal deviate that about this share of draws exceeds.
fn least_deviate(share: f64) -> f64 {
    // The logistic curve differs from the normal one by at most a hundredth.
    if share >= 1.0 { f64::NEG_INFINITY } else { ((1.0 - share) / share).ln() / 1.702 }
}

/// Draws one of `choices` by weight.
fn pick<T: Copy>(random: &mut ChaCha8Rng, choices: &[(T, f64)]) -> T {
    let total: f64 = choices.iter().map(|(_, weight)| weight).sum();
    let mut left = random.random::<f64>() * total;
    let choice = choices.iter().find(|(_, weight)| {
        left -= weight;
        left < 0.0
    });
    choice.unwrap_or(&choices[choices.len() - 1]).0
}

fn mean(sizes: &[(u64, f64)]) -> f64 {
    let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
    sizes.iter().map(|(size, weight)| *size as f64 * weight).sum::<f64>() / total
}

/// Mean number of tasks of a job: k tasks have a probability proportional to ln((k + 1) / k).
fn mean_tasks(most: u32) -> f64 {
    let all = (f64::from(most) + 1.0).ln();
    (1..=most).map(f64::from).map(|k| k * ((k + 1.0) / k).ln() / all).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_number_of_tasks_per_job_matches_the_arrival_rate() {
        let mut random = stream(1, JOB, 0);
        let draw = |random: &mut ChaCha8Rng| 201f64.powf(random.random::<f64>()).floor();
        let drawn = (0..100_000).map(|_| draw(&mut random)).sum::<f64>() / 1e5;
        let mean = mean_tasks(200);
        assert!((drawn / mean - 1.0).abs() < 0.02, "{drawn} tasks, {mean} assumed");
    }
}
