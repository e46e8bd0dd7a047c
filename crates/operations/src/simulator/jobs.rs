//! Jobs, their stages, and the workers of a stage.

use leeward_fabric::{HostId, Nanos};

use super::{MOST_JOBS, MOST_RECORDS, Simulator, SimulatorError};
use crate::draws::Stream;
use crate::event::Event;
use crate::plan::{Arrivals, Step};
use crate::records::{JobRecord, WorkerRecord};

/// A job in progress.
#[derive(Debug)]
pub(super) struct ActiveJob {
    pub(super) kind: usize,
    number: u32,
    stage: usize,
    /// Workers of the stage that have not ended.
    workers: u32,
    pub(super) began: u64,
}

/// A worker of a stage in progress.
#[derive(Debug)]
pub(super) struct Worker {
    job: u32,
    /// Kind and number of its job, its stage, and its number in the stage.
    pub(super) kind: usize,
    number: u32,
    stage: usize,
    index: u32,
    pub(super) host: HostId,
    pub(super) stream: Stream,
    step: usize,
    /// Times that the steps are still to be followed, this time included.
    repeats: u32,
    /// Operations of the present step that have not begun, and those that have not ended.
    to_begin: u32,
    open: u32,
    began: u64,
    computed: u64,
}

impl Simulator<'_> {
    /// Schedules the first jobs of a kind.
    pub(super) fn begin_arrivals(&mut self, kind: usize) {
        let plan = self.plan;
        let job = &plan.jobs[kind];
        match job.arrivals {
            Arrivals::Rate(_) => self.schedule_arrival(kind, job.start.0),
            Arrivals::Concurrent(count) => {
                // Workers that begin at once would transfer at once for long.
                let spread = job.first_computation().max(1e6).min(job.end.since(job.start).0 as f64);
                for _ in 0..count {
                    let after = (self.gaps[kind].uniform() * spread) as u64;
                    let at = job.start.0.saturating_add(after);
                    if at < job.end.0 {
                        self.agenda.push(at, Event::Arrival(kind as u32));
                    }
                }
            }
        }
    }

    /// Schedules the next arrival after a time.
    fn schedule_arrival(&mut self, kind: usize, after: u64) {
        let plan = self.plan;
        let job = &plan.jobs[kind];
        let Arrivals::Rate(rate) = job.arrivals else { return };
        if rate <= 0.0 {
            return;
        }
        let gap = self.gaps[kind].exponential(1e9 / rate).round() as u64;
        let at = after.saturating_add(gap.max(1));
        if at < job.end.0 {
            self.agenda.push(at, Event::Arrival(kind as u32));
        }
    }

    /// A job of a kind arrives.
    pub(super) fn job_arrives(&mut self, kind: usize) -> Result<(), SimulatorError> {
        self.schedule_arrival(kind, self.now);
        self.begin_job(kind)
    }

    fn begin_job(&mut self, kind: usize) -> Result<(), SimulatorError> {
        if self.jobs.count() >= MOST_JOBS {
            let job = self.plan.jobs[kind].name.clone();
            return Err(SimulatorError::Jobs { job, at: Nanos(self.now) });
        }
        let number = self.begun[kind];
        self.begun[kind] = number.wrapping_add(1);
        let job = self.jobs.add(ActiveJob { kind, number, stage: 0, workers: 0, began: self.now });
        self.begin_stage(job)
    }

    /// Starts the workers of a job's present stage.
    fn begin_stage(&mut self, number: u32) -> Result<(), SimulatorError> {
        let plan = self.plan;
        let Some(job) = self.jobs.get(number) else { return Ok(()) };
        let (kind, of_kind, index) = (job.kind, job.number, job.stage);
        let stage = &plan.jobs[kind].stages[index];
        job.workers = stage.workers;
        for worker in 0..stage.workers {
            let entity = ((kind as u64) << 56)
                | (u64::from(of_kind) << 24)
                | ((index as u64 & 0xff) << 16)
                | u64::from(worker & 0xffff);
            let mut stream = Stream::new(self.draws, entity);
            let hosts = &plan.jobs[kind].hosts;
            let host = hosts[stream.index(hosts.len())];
            let worker = self.workers.add(Worker {
                job: number,
                kind,
                number: of_kind,
                stage: index,
                index: worker,
                host,
                stream,
                step: 0,
                repeats: stage.repeat,
                to_begin: 0,
                open: 0,
                began: self.now,
                computed: 0,
            });
            self.enter_step(worker);
            self.follow(worker)?;
        }
        Ok(())
    }

    /// Prepares the present step of a worker.
    fn enter_step(&mut self, number: u32) {
        let plan = self.plan;
        let Some(worker) = self.workers.get(number) else { return };
        let steps = &plan.jobs[worker.kind].stages[worker.stage].steps;
        if let Some(Step::Operations { count, .. }) = steps.get(worker.step) {
            worker.to_begin = *count;
        }
    }

    /// Lets a worker follow its steps until it waits.
    pub(super) fn follow(&mut self, number: u32) -> Result<(), SimulatorError> {
        let plan = self.plan;
        loop {
            let Some(worker) = self.workers.get(number) else { return Ok(()) };
            let steps = &plan.jobs[worker.kind].stages[worker.stage].steps;
            match steps.get(worker.step).copied() {
                Some(Step::Compute(time)) => {
                    let time = time.draw(&mut worker.stream).max(1);
                    worker.computed += time;
                    worker.step += 1;
                    self.enter_step(number);
                    self.agenda.push(self.now.saturating_add(time), Event::Computed(number));
                    return Ok(());
                }
                Some(Step::Operations { operation, parallel, .. }) => {
                    let begins = worker.to_begin > 0 && worker.open < parallel;
                    if begins {
                        worker.to_begin -= 1;
                        worker.open += 1;
                        self.begin_operation(number, operation)?;
                    } else if worker.to_begin == 0 && worker.open == 0 {
                        worker.step += 1;
                        self.enter_step(number);
                    } else {
                        return Ok(());
                    }
                }
                None if worker.repeats > 1 => {
                    worker.repeats -= 1;
                    worker.step = 0;
                    self.enter_step(number);
                }
                None => return self.end_worker(number),
            }
        }
    }

    /// An operation of a worker has ended.
    pub(super) fn operation_ended(&mut self, number: u32) -> Result<(), SimulatorError> {
        if let Some(worker) = self.workers.get(number) {
            worker.open = worker.open.saturating_sub(1);
        }
        self.follow(number)
    }

    fn end_worker(&mut self, number: u32) -> Result<(), SimulatorError> {
        let Some(worker) = self.workers.remove(number) else { return Ok(()) };
        let plan = self.plan;
        let kind = &plan.jobs[worker.kind];
        if kind.is_recorded && worker.began >= plan.warmup.0 {
            if self.records.workers.len() >= MOST_RECORDS {
                return Err(SimulatorError::Records { at: Nanos(self.now) });
            }
            self.records.workers.push(WorkerRecord {
                job: worker.kind as u32,
                number: worker.number,
                stage: worker.stage as u32,
                worker: worker.index,
                host: worker.host,
                began: Nanos(worker.began),
                ended: Nanos(self.now),
                computed: Nanos(worker.computed),
            });
        }
        let Some(job) = self.jobs.get(worker.job) else { return Ok(()) };
        job.workers -= 1;
        if job.workers > 0 {
            return Ok(());
        }
        job.stage += 1;
        if job.stage < kind.stages.len() {
            return self.begin_stage(worker.job);
        }
        self.end_job(worker.job)
    }

    fn end_job(&mut self, number: u32) -> Result<(), SimulatorError> {
        let Some(job) = self.jobs.remove(number) else { return Ok(()) };
        let plan = self.plan;
        let kind = &plan.jobs[job.kind];
        if kind.is_recorded && job.began >= plan.warmup.0 {
            self.records.jobs.push(JobRecord {
                job: job.kind as u32,
                number: job.number,
                began: Nanos(job.began),
                ended: Nanos(self.now),
            });
        }
        let again = matches!(kind.arrivals, Arrivals::Concurrent(_)) && self.now < kind.end.0;
        if again { self.begin_job(job.kind) } else { Ok(()) }
    }
}
