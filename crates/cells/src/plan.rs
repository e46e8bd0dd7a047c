//! Checked values of a scenario.

use std::sync::Arc;

use leeward_fabric::{Cluster, Nanos};
use leeward_ledger::LedgerSettings;
use leeward_registry::PolicySpec;
use leeward_workloads::Facebook;
use serde_json::{Map, Value};

use crate::background::Levels;
use crate::digest::Choice;
use crate::geometry::Geometry;

/// Everything that a run needs besides its arm.
#[derive(Clone)]
pub(crate) struct Plan {
    pub geometry: Geometry,
    /// Fields of the cluster of one cell.
    pub fields: Map<String, Value>,
    /// Network of one cell, with the host that stands for everything outside.
    pub cell: Arc<Cluster>,
    pub policy: PolicySpec,
    pub ledger: LedgerSettings,
    pub choice: Choice,
    /// Room by which another cell must exceed the home cell to get copies that may be anywhere.
    pub margin: f64,
    pub writes: Facebook,
    /// Largest rate of a write, in bit/s.
    pub rate_bps: u64,
    /// Shares of files whose copies must be in another cell, and may be anywhere.
    pub elsewhere: f64,
    pub anywhere: f64,
    pub background: Levels,
    pub exchange: Exchange,
    pub absences: Vec<Absence>,
    pub arms: Vec<Arm>,
    pub horizon: Nanos,
    pub warmup: Nanos,
    pub seed: u64,
}

/// Messages between cells, apart from what differs between arms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Exchange {
    pub delay: Nanos,
    pub jitter: Nanos,
    /// True if an answer carries the state of the cell.
    pub answers_carry_state: bool,
    /// Number of intervals for which a digest counts.
    pub unknown_after: f64,
    pub timeout: Nanos,
    pub repeats: u32,
    pub tries: u32,
    pub lease: Nanos,
}

/// Time in which the controller of a cell is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Absence {
    pub cell: u32,
    pub from: Nanos,
    pub until: Nanos,
}

/// A run of a scenario: who decides, and what the deciders know.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arm {
    /// One controller with one ledger for the whole network.
    OneLedger,
    /// A controller for each cell.
    Cells {
        /// Time between the digests of a cell; zero if each decision knows the present state of all cells.
        interval: Nanos,
        /// Share of lost messages.
        loss: f64,
        /// True if the controllers that the scenario names are away for a time.
        absent: bool,
    },
}

impl Arm {
    /// Name of the arm in results: `one-ledger` or `cells`.
    pub fn name(&self) -> &'static str {
        match self {
            Arm::OneLedger => "one-ledger",
            Arm::Cells { .. } => "cells",
        }
    }
}

impl Exchange {
    /// Time for which a digest counts, if one comes every `interval`. Messages may be late by the longest delay.
    pub fn known_for(&self, interval: Nanos) -> Nanos {
        let intervals = Nanos((self.unknown_after * interval.0 as f64) as u64);
        if interval == Nanos(0) { intervals } else { intervals.plus(self.delay).plus(self.jitter) }
    }
}
