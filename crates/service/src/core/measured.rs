//! Measured demand. Agents report the rates of pods, which they know by UID alone, and a scheduler names the job of each
//! pod. The rates then count towards the history of the job, and schedulers read its peaks.

use std::ops::Bound;
use std::sync::Arc;

use leeward_engine::{HistorySettings, Observed, Rates};
use leeward_fabric::{HostId, Nanos};
use leeward_readings::PodId;

use super::{Addresses, Coordinator};

/// Largest numbers of names that a page of peaks looks at, and of jobs that it estimates: each about two milliseconds.
const MAX_LOOKS: usize = 10_000;
const MAX_ESTIMATES: usize = 200;

/// Mean rates of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRates {
    /// The pod.
    pub pod: PodId,
    /// Host of the agent that reports it.
    pub host: HostId,
    /// Its rates.
    pub rates: Rates,
}

/// Names the jobs of pods, and requests a list of pods without one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamePods {
    /// Pods with their hosts and jobs.
    pub pods: Vec<(PodId, HostId, Arc<str>)>,
    /// Largest number of listed pods.
    pub limit: usize,
}

/// Result of [`NamePods`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPods {
    /// Number of pods that had no job before.
    pub named: usize,
    /// Pods with rates and without a job.
    pub unnamed: Vec<(HostId, PodId)>,
}

/// Requests the observed traffic of jobs, in the order of their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GetPeaks {
    /// Only names after this one.
    pub after: Option<String>,
    /// Largest number of jobs; a page may have fewer.
    pub limit: usize,
}

/// Observed traffic of jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Peaks {
    /// Settings of the history; `None` without one.
    pub settings: Option<HistorySettings>,
    /// Jobs by name.
    pub jobs: Vec<(String, Observed)>,
    /// Name after which the next page begins; `None` at the end.
    pub next: Option<String>,
}

impl<A: Addresses> Coordinator<A> {
    /// Takes in the rates of pods, at most those that the links of their hosts carry. Returns the number of pods for
    /// which there is no room.
    pub(super) fn note_pods(&mut self, pods: &[PodRates]) -> u64 {
        let mut skipped = 0;
        for &PodRates { pod, host, rates } in pods {
            let rates = self.carried(host, rates);
            let Some(reported) = self.pods.report(host, pod, self.now) else {
                skipped += 1;
                continue;
            };
            let job = reported.job.as_deref().and_then(|name| self.job_names.named(name));
            if job.is_some_and(|job| self.engine.note_rates(job, rates, reported.counted)) {
                reported.counted = Some(self.now);
            }
        }
        if !pods.is_empty() {
            for name in self.pods.forget(self.now) {
                self.release_name(&name);
            }
        }
        skipped
    }

    /// Rates that the links of a host can carry: traffic between pods of one host is on none of them.
    fn carried(&mut self, host: HostId, Rates { egress_bps, ingress_bps }: Rates) -> Rates {
        let ledger = self.engine.ledger();
        let (fabric, view) = (ledger.fabric(), ledger.view(self.now, &mut self.scratch));
        let carried = |link, bps: u64| match link {
            Some(link) => bps.min(u64::try_from(view.capacity(link).0).unwrap_or(0)),
            None => bps,
        };
        Rates {
            egress_bps: carried(fabric.egress(host), egress_bps),
            ingress_bps: carried(fabric.ingress(host), ingress_bps),
        }
    }

    /// Names the jobs of pods with reported rates.
    pub fn name_pods(&mut self, now: Nanos, NamePods { pods, limit }: NamePods) -> NamedPods {
        self.wake(now);
        let mut named = 0;
        for (pod, host, job) in pods {
            if self.pods.name(host, pod, &job) {
                self.job_names.hold(&job);
                named += 1;
            }
        }
        NamedPods { named, unnamed: self.pods.list_unnamed(limit) }
    }

    /// A page of the observed traffic of jobs.
    pub fn peaks(&mut self, now: Nanos, GetPeaks { after, limit }: GetPeaks) -> Peaks {
        self.wake(now);
        let mut peaks = Peaks { settings: self.engine.history_settings(), jobs: Vec::new(), next: None };
        let (after, most) = (after.map_or(Bound::Unbounded, Bound::Excluded), limit.min(MAX_ESTIMATES));
        let mut last: Option<&String> = None;
        for (looks, (name, job)) in self.job_names.after(after).enumerate() {
            if peaks.jobs.len() == most || looks == MAX_LOOKS {
                peaks.next = last.cloned();
                break;
            }
            peaks.jobs.extend(self.engine.observed(job).map(|observed| (name.clone(), observed)));
            last = Some(name);
        }
        peaks
    }
}
