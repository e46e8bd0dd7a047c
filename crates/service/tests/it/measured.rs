//! Measured demand: rates of pods count towards the job that a client names, and the peaks of jobs are listed.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::{Engine, HistorySettings, Policies, Rates};
use leeward_fabric::{Cluster, HostId, Nanos};
use leeward_placement::Explain;
use leeward_service::{Coordinator, GetPeaks, Limits, NamePods, PODS_PER_HOST, PodId, PodRates, Report};
use leeward_testing::clusters::{cluster, ledger};
use proptest::prelude::*;

use crate::support::{Numbers, labels};

const SECOND: u64 = Nanos::SECOND.0;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const NIC: u64 = 10_000_000_000;
const CLUSTER: &str = "{racks: 2, hosts_per_rack: 2, nic: 10Gbps, rack_link: 40Gbps}";
const PERCENTILE: f64 = 0.9;

fn coordinator(cluster: &Cluster, history: bool) -> Coordinator<Numbers> {
    let history = history.then_some(HistorySettings { window: Nanos(HOUR), percentile: PERCENTILE });
    let policies = Policies { history, ..Policies::default() };
    Coordinator::new(Engine::new(ledger(cluster), policies, 7, Explain::Off), labels(), Limits::default())
}

fn job(number: u8) -> String {
    format!("shop/Deployment/j{number}")
}

/// A report of pods, each with its host and its rate out; twice as much goes in. Returns the number of skipped ones.
fn report(coordinator: &mut Coordinator<Numbers>, now: Nanos, pods: &[(u128, u32, u64)]) -> u64 {
    let rates = |bps: u64| Rates { egress_bps: bps, ingress_bps: bps.saturating_mul(2) };
    let pods = pods.iter().map(|&(pod, host, bps)| PodRates {
        pod: PodId(pod),
        host: HostId(host),
        rates: rates(bps),
    });
    let window = (now.since(Nanos::SECOND), now);
    let report = Report { window, pods: pods.collect(), ..Report::default() };
    coordinator.report(now, report).expect("a valid report").skipped.unknown
}

/// Names pods with their hosts, and returns the number of those that had no job.
fn name(coordinator: &mut Coordinator<Numbers>, now: Nanos, pods: &[(u128, u32, u8)]) -> usize {
    let pods = pods.iter().map(|&(pod, host, number)| (PodId(pod), HostId(host), job(number).into()));
    coordinator.name_pods(now, NamePods { pods: pods.collect(), limit: 1 }).named
}

/// The peaks of all jobs, in pages of at most `limit` jobs.
fn peaks(
    coordinator: &mut Coordinator<Numbers>,
    now: Nanos,
    limit: usize,
) -> Vec<(String, leeward_engine::Observed)> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = coordinator.peaks(now, GetPeaks { after, limit });
        assert!(page.jobs.len() <= limit);
        all.extend(page.jobs);
        let Some(next) = page.next else { return all };
        after = Some(next);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Report(Vec<(u128, u32, u64)>),
    Name(Vec<(u128, u32, u8)>),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let rate = prop_oneof![0_u64..1_000, 0_u64..2 * NIC, Just(u64::MAX)];
    prop_oneof![
        3 => prop::collection::vec((0_u128..5, 0_u32..4, rate), 0..6).prop_map(Step::Report),
        2 => prop::collection::vec((0_u128..5, 0_u32..4, 0_u8..3), 0..4).prop_map(Step::Name),
        2 => (1_u64..8).prop_map(Step::Wait),
    ]
}

/// Job of a pod, and the time of its last count.
type NamedPod = (Option<u8>, Option<u64>);

/// The rules, written down a second time: pods by host and UID.
#[derive(Default)]
struct Model {
    pods: BTreeMap<(u32, u128), NamedPod>,
    seen: Vec<(u8, u64, u64)>,
}

impl Model {
    fn report(&mut self, now: u64, (pod, host, bps): (u128, u32, u64)) {
        let entry = self.pods.entry((host, pod)).or_default();
        let Some(number) = entry.0 else { return };
        if entry.1.is_none_or(|counted| now >= counted + 5 * MINUTE) {
            entry.1 = Some(now);
            self.seen.push((number, now, bps.min(NIC)));
        }
    }

    /// Sorted rates out of a job's pods in the window, which has eight parts.
    fn rates(&self, number: u8, now: u64) -> Vec<u64> {
        let since = (now / (HOUR / 8)).saturating_sub(7) * (HOUR / 8);
        let counted = self.seen.iter().filter(|(seen, at, _)| *seen == number && *at >= since);
        let mut rates: Vec<u64> = counted.map(|&(.., bps)| bps).collect();
        rates.sort_unstable();
        rates
    }
}

proptest! {
    #[test]
    fn peaks_are_percentiles_of_what_the_hosts_of_named_pods_report(
        steps in prop::collection::vec(step(), 1..60), limit in 1_usize..4,
    ) {
        let mut coordinator = coordinator(&cluster(CLUSTER), true);
        let (mut model, mut now) = (Model::default(), 10 * SECOND);
        for step in steps {
            match step {
                Step::Report(pods) => {
                    prop_assert_eq!(report(&mut coordinator, Nanos(now), &pods), 0);
                    pods.iter().for_each(|&pod| model.report(now, pod));
                }
                Step::Name(pods) => {
                    let mut unnamed = 0;
                    for &(pod, host, number) in &pods {
                        let known = model.pods.get_mut(&(host, pod)).filter(|entry| entry.0.is_none());
                        known.into_iter().for_each(|entry| {
                            entry.0 = Some(number);
                            unnamed += 1;
                        });
                    }
                    prop_assert_eq!(name(&mut coordinator, Nanos(now), &pods), unnamed);
                }
                // Shorter than the time after which a pod is forgotten, but for those that nobody reports again.
                Step::Wait(minutes) => {
                    now += minutes * MINUTE;
                    let all: Vec<_> = model.pods.keys().map(|&(host, pod)| (pod, host, 5)).collect();
                    report(&mut coordinator, Nanos(now), &all);
                    all.iter().for_each(|&pod| model.report(now, pod));
                }
            }
            let listed = peaks(&mut coordinator, Nanos(now), limit);
            let expected: Vec<u8> = (0..3).filter(|&number| !model.rates(number, now).is_empty()).collect();
            let names: Vec<String> = listed.iter().map(|(name, _)| name.clone()).collect();
            prop_assert_eq!(names, expected.iter().map(|&number| job(number)).collect::<Vec<_>>());
            for (number, (_, observed)) in expected.into_iter().zip(listed) {
                let rates = model.rates(number, now);
                prop_assert_eq!(observed.count, rates.len() as u64);
                let mean = rates.iter().sum::<u64>() / rates.len() as u64;
                let exact = rates[((PERCENTILE * rates.len() as f64).ceil() as usize).max(1) - 1];
                prop_assert_eq!(observed.egress.mean_bps, mean);
                prop_assert!((exact..=(exact + exact / 16).max(mean)).contains(&observed.egress.peak_bps));
                prop_assert!(observed.ingress.peak_bps <= NIC + NIC / 16, "at most what the link carries");
            }
        }
    }
}

/// A coordinator in which pods of 300 jobs were seen.
fn with_300_jobs(cluster: &Cluster) -> Coordinator<Numbers> {
    let mut coordinator = coordinator(cluster, true);
    let now = Nanos(10 * SECOND);
    for number in 0..300_u128 {
        let host = (number % 4) as u32;
        report(&mut coordinator, now, &[(number, host, 1_000)]);
        let named = vec![(PodId(number), HostId(host), format!("j{number:03}").into())];
        coordinator.name_pods(now, NamePods { pods: named, limit: 1 });
        report(&mut coordinator, now, &[(number, host, 1_000 + number as u64)]);
    }
    coordinator
}

#[test]
fn pages_list_each_job_once_in_the_order_of_names() {
    let mut coordinator = with_300_jobs(&cluster(CLUSTER));
    let expected: Vec<String> = (0..300).map(|number| format!("j{number:03}")).collect();
    for limit in [1, 7, 300, 1_000] {
        let listed = peaks(&mut coordinator, Nanos(10 * SECOND), limit);
        assert_eq!(listed.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), expected, "{limit}");
    }
}

#[test]
fn observed_traffic_survives_a_change_of_the_cluster_and_leaves_with_its_window() {
    let mut before = with_300_jobs(&cluster(CLUSTER));
    let now = Nanos(20 * SECOND);
    let expected = peaks(&mut before, now, 100);
    let mut after =
        coordinator(&cluster("{racks: 3, hosts_per_rack: 1, nic: 1Gbps, rack_link: 1Gbps}"), true);
    after.wake(now);
    after.set_observed_jobs(before.take_observed_jobs());
    assert_eq!(peaks(&mut after, now, 100), expected);
    assert_eq!(peaks(&mut before, now, 100), []);
    // The window has parts of an eighth.
    let late = Nanos(HOUR + 20 * SECOND);
    assert_eq!(peaks(&mut after, late, 100), []);
    let mut without = coordinator(&cluster(CLUSTER), false);
    without.wake(now);
    without.set_observed_jobs(after.take_observed_jobs());
    assert_eq!(peaks(&mut without, now, 100), []);
}

#[test]
fn a_host_with_too_many_pods_has_its_other_ones_skipped() {
    let mut coordinator = coordinator(&cluster(CLUSTER), true);
    let now = Nanos(10 * SECOND);
    let pods: Vec<_> = (0..PODS_PER_HOST as u128 + 30).map(|pod| (pod, 0, 1)).collect();
    assert_eq!(report(&mut coordinator, now, &pods), 30);
    assert_eq!(report(&mut coordinator, now, &[(7_000, 1, 1)]), 0);
    let counts = coordinator.snapshot().counts;
    assert_eq!((counts.pods, counts.unnamed_pods), (PODS_PER_HOST + 1, PODS_PER_HOST + 1));
    let mut listed = BTreeSet::new();
    for _ in 0..3 {
        listed.extend(coordinator.name_pods(now, NamePods { pods: Vec::new(), limit: 500 }).unnamed);
    }
    assert_eq!(listed.len(), counts.unnamed_pods, "lists begin where the last one ended");
}
