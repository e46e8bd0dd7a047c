//! Doubts about the assumptions of stochastic bounds (SLO section 4.3.2): traces whose load changes over their time, and
//! traces whose bursts coincide.

use std::collections::BTreeMap;

use leeward_calculus::assumptions::{Activity, Stationarity, dependences};

use super::{Entry, Workloads};
use crate::system::Sets;

/// Greatest number of workloads that a note names.
const MOST_NAMES: usize = 4;

/// Two workloads whose bursts coincide by more than chance, and that do not depend on each other in the file.
#[derive(Clone, PartialEq, Debug)]
pub struct DependentPair {
    /// Names of the workloads.
    pub workloads: [String; 2],
    /// Correlation of their requests over time.
    pub correlation: f64,
    /// p-value, for all pairs of the file together.
    pub p: f64,
}

/// Dependent pairs among workloads with traces, and between these and existing workloads. Workloads with equal traces are
/// not tested: such a trace stands for several workloads like it.
pub(super) fn dependent_pairs(entries: &[Entry], others: Option<&Workloads>) -> Vec<DependentPair> {
    let is_replaced = |other: &&Entry| entries.iter().any(|entry| entry.workload.name == other.workload.name);
    let existing = others.iter().flat_map(|others| &others.entries).filter(|other| !is_replaced(other));
    let existing: Vec<&Entry> = existing.collect();
    let all: Vec<&Entry> = existing.iter().copied().chain(entries).collect();
    let numbers: BTreeMap<&str, usize> =
        all.iter().enumerate().map(|(at, entry)| (entry.workload.name.as_str(), at)).collect();
    let mut groups = Sets::new(all.len());
    for (at, entry) in all.iter().enumerate() {
        let known = entry.workload.dependencies.iter().filter_map(|name| numbers.get(name.as_str()));
        known.for_each(|&other| groups.join(at, other));
    }
    let group: Vec<usize> = (0..all.len()).map(|at| groups.find(at)).collect();
    let traced: Vec<(usize, &Activity)> = (all.iter().enumerate())
        .filter_map(|(at, entry)| Some((at, &*entry.traced.as_ref()?.activity)))
        .collect();
    let activities: Vec<&Activity> = traced.iter().map(|&(_, activity)| activity).collect();
    let is_open = |one: usize, other: usize| {
        let (first, second) = (&traced[one], &traced[other]);
        second.0 >= existing.len() && group[first.0] != group[second.0] && first.1 != second.1
    };
    let pairs = dependences(&activities, is_open).into_iter().map(|pair| {
        let name = |at: usize| all[traced[at].0].workload.name.clone();
        let workloads = [name(pair.traces.0), name(pair.traces.1)];
        DependentPair { workloads, correlation: pair.correlation, p: pair.p }
    });
    pairs.collect()
}

impl Workloads {
    /// Notes about traces that break an assumption of stochastic bounds.
    pub fn doubts(&self) -> Vec<String> {
        let changes = self.entries.iter().filter(|entry| {
            let tested = entry.traced.as_ref().and_then(|traced| traced.stationarity);
            tested.is_some_and(|tested: Stationarity| tested.is_rejected())
        });
        let note = |entry: &Entry| {
            let name = &entry.workload.name;
            format!("{name}: the load of its trace changes over time; bounds by snc assume that it does not")
        };
        let mut notes: Vec<String> = changes.map(note).collect();
        // Each group of workloads that depend on one another is one note.
        let names: Vec<&str> =
            self.dependent.iter().flat_map(|pair| pair.workloads.iter().map(String::as_str)).collect();
        let mut numbers = BTreeMap::new();
        for &name in &names {
            let next = numbers.len();
            numbers.entry(name).or_insert(next);
        }
        let mut sets = Sets::new(numbers.len());
        names.chunks(2).for_each(|pair| sets.join(numbers[pair[0]], numbers[pair[1]]));
        let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (&name, &number) in &numbers {
            groups.entry(sets.find(number)).or_default().push(name);
        }
        for group in groups.values() {
            let (first, others) = (group[0], &group[1..]);
            let named = others[..others.len().min(MOST_NAMES)].join(", ");
            let more = others.len().saturating_sub(MOST_NAMES);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            notes.push(format!(
                "{first}: its bursts coincide with those of {named}{rest}; without `depends_on`, bounds by snc \
                 may be too low"
            ));
        }
        notes
    }
}
