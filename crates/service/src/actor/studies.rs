//! The threads that look into what takes longer than a turn of the coordinator: one for what is to be promised, one for apps
//! that are to be placed, one for what would be, one for the scores of many hosts. They end with the handle, or with what they are looking into.

use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

use super::Command;
use crate::core::{Lane, Study};

/// The ways to the threads.
pub(super) struct Studies {
    promises: std_mpsc::Sender<(u64, Study)>,
    apps: std_mpsc::Sender<(u64, Study)>,
    what_ifs: std_mpsc::Sender<(u64, Study)>,
    scores: std_mpsc::Sender<(u64, Study)>,
}

impl Studies {
    /// Starts the threads, which tell `inbox` what they find.
    pub fn start(inbox: &mpsc::Sender<Command>) -> std::io::Result<Studies> {
        Ok(Studies {
            promises: thread("leeward-promise", inbox)?,
            apps: thread("leeward-app", inbox)?,
            what_ifs: thread("leeward-what-if", inbox)?,
            scores: thread("leeward-score", inbox)?,
        })
    }

    /// Has something looked into for the coordinator of this number.
    pub fn look_into(&self, coordinator: u64, study: Study) {
        let thread = match study.lane() {
            Lane::Promises => &self.promises,
            Lane::Apps => &self.apps,
            Lane::WhatIfs => &self.what_ifs,
            Lane::Scores => &self.scores,
        };
        // The thread is there as long as this is.
        let _ = thread.send((coordinator, study));
    }
}

fn thread(name: &str, inbox: &mpsc::Sender<Command>) -> std::io::Result<std_mpsc::Sender<(u64, Study)>> {
    let (orders, studies) = std_mpsc::channel::<(u64, Study)>();
    // The handle is open while others hold its inbox, and not for the sake of what is looked into.
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
