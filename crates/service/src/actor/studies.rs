//! The threads that run studies, one per queue: admissions, apps, what-if queries, and scores of many hosts.
//! A thread ends with the handle, after its current study.

use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

use super::Command;
use crate::core::{Lane, Study};

/// Channels to the threads.
pub(super) struct Studies {
    promises: std_mpsc::Sender<(u64, Study)>,
    apps: std_mpsc::Sender<(u64, Study)>,
    what_ifs: std_mpsc::Sender<(u64, Study)>,
    scores: std_mpsc::Sender<(u64, Study)>,
}

impl Studies {
    /// Starts the threads, which send their findings to `inbox`.
    pub fn start(inbox: &mpsc::Sender<Command>) -> std::io::Result<Studies> {
        Ok(Studies {
            promises: thread("leeward-promise", inbox)?,
            apps: thread("leeward-app", inbox)?,
            what_ifs: thread("leeward-what-if", inbox)?,
            scores: thread("leeward-score", inbox)?,
        })
    }

    /// Runs a study for the coordinator of this number.
    pub fn look_into(&self, coordinator: u64, study: Study) {
        let thread = match study.lane() {
            Lane::Promises => &self.promises,
            Lane::Apps => &self.apps,
            Lane::WhatIfs => &self.what_ifs,
            Lane::Scores => &self.scores,
        };
        // The thread runs as long as this value exists.
        let _ = thread.send((coordinator, study));
    }
}

fn thread(name: &str, inbox: &mpsc::Sender<Command>) -> std::io::Result<std_mpsc::Sender<(u64, Study)>> {
    let (orders, studies) = std_mpsc::channel::<(u64, Study)>();
    // The weak sender lets the actor end while a study runs.
    let inbox = inbox.downgrade();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        for (coordinator, study) in studies {
            let lane = study.lane();
            let finding = study.find();
            if finding.failed() {
                tracing::error!(
                    ?lane,
                    "an analysis failed, which is a mistake of this program; whoever asked is told"
                );
            }
            let Some(inbox) = inbox.upgrade() else { return };
            let _ = inbox.blocking_send(Command::Found(coordinator, finding));
        }
    })?;
    Ok(orders)
}
