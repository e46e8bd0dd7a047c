//! Threads that run jobs, one per queue: admissions, apps, what-if queries, scores of many hosts, and comparisons. A
//! thread ends
//! after its current job when the actor has ended.

use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

use super::Command;
use crate::core::{Job, Queue};

/// Channels to the threads.
pub(super) struct JobThreads {
    promises: std_mpsc::Sender<(u64, Job)>,
    apps: std_mpsc::Sender<(u64, Job)>,
    what_ifs: std_mpsc::Sender<(u64, Job)>,
    scores: std_mpsc::Sender<(u64, Job)>,
    comparisons: std_mpsc::Sender<(u64, Job)>,
}

impl JobThreads {
    /// Starts the threads, which send job results to `inbox`.
    pub fn start(inbox: &mpsc::Sender<Command>) -> std::io::Result<JobThreads> {
        Ok(JobThreads {
            promises: thread("leeward-promise", inbox)?,
            apps: thread("leeward-app", inbox)?,
            what_ifs: thread("leeward-what-if", inbox)?,
            scores: thread("leeward-score", inbox)?,
            comparisons: thread("leeward-compare", inbox)?,
        })
    }

    /// Runs a job for the coordinator of this number.
    pub fn run(&self, coordinator: u64, job: Job) {
        let thread = match job.queue() {
            Queue::Promises => &self.promises,
            Queue::Apps => &self.apps,
            Queue::WhatIfs => &self.what_ifs,
            Queue::Scores => &self.scores,
            Queue::Comparisons => &self.comparisons,
        };
        // The thread runs as long as this value exists.
        let _ = thread.send((coordinator, job));
    }
}

fn thread(name: &str, inbox: &mpsc::Sender<Command>) -> std::io::Result<std_mpsc::Sender<(u64, Job)>> {
    let (sender, jobs) = std_mpsc::channel::<(u64, Job)>();
    // The weak sender lets the actor end while a job runs.
    let inbox = inbox.downgrade();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        for (coordinator, job) in jobs {
            let queue = job.queue();
            let result = job.run();
            if result.failed() {
                tracing::error!(?queue, "job panicked: a bug in this program; the client gets an error");
            }
            let Some(inbox) = inbox.upgrade() else { return };
            let _ = inbox.blocking_send(Command::JobDone(coordinator, Box::new(result)));
        }
    })?;
    Ok(sender)
}
