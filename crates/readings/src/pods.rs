//! Pods whose agents report their rates, and the jobs that a scheduler names for them. An agent knows a pod by its UID
//! alone. Memory is bounded: for each host, so that a faulty agent takes no room from others, and in total. A pod is
//! forgotten some time after its last report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use leeward_fabric::{HostId, Nanos};

/// Largest number of pods of a host. Kubernetes supports 110, and some distributions 500.
pub const PODS_PER_HOST: usize = 1_024;
/// Largest number of pods of all hosts. Kubernetes supports 150,000.
const MAX_PODS: usize = 200_000;
/// Time after its last report from which a pod may be forgotten. Agents report a pod twice a minute.
const FORGET_AFTER: Nanos = Nanos(600 * Nanos::SECOND.0);
/// Positions of the hyphens in a UID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// UID of a pod: 32 hexadecimal digits, in groups of 8-4-4-4-12 or, for the pod of a static manifest, without hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PodId(pub u128);

impl PodId {
    /// Parses a UID; `None` for another text.
    pub fn read(text: &str) -> Option<PodId> {
        let is_grouped = text.len() == 36;
        let fits = |(at, byte): (usize, u8)| {
            if is_grouped && HYPHENS.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
        };
        let is_valid = (is_grouped || text.len() == 32) && text.bytes().enumerate().all(fits);
        is_valid.then(|| u128::from_str_radix(&text.replace('-', ""), 16).ok()).flatten().map(PodId)
    }
}

impl fmt::Display for PodId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let mut from = 0;
        for group in [8, 4, 4, 4] {
            write!(formatter, "{}-", &digits[from..from + group])?;
            from += group;
        }
        formatter.write_str(&digits[from..])
    }
}

/// A pod with reported rates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportedPod {
    /// Job of the pod; `None` until a scheduler names it.
    pub job: Option<Arc<str>>,
    /// Time at which its rates last counted towards its job; `None` before.
    pub counted: Option<Nanos>,
    /// Time of its last report.
    seen: Nanos,
}

/// Pods with reported rates.
#[derive(Debug, Default)]
pub struct Pods {
    by_host: BTreeMap<HostId, BTreeMap<PodId, ReportedPod>>,
    count: usize,
    /// Pods without a job.
    unnamed: BTreeSet<(HostId, PodId)>,
    /// Last pod of the last list of unnamed pods.
    listed: Option<(HostId, PodId)>,
    /// Host whose pods were looked through last.
    swept: Option<HostId>,
}

/// First entry after `last`, or the first entry of all.
fn after<T: Copy + Ord>(last: Option<T>) -> (Bound<T>, Bound<T>) {
    (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

impl Pods {
    /// Number of pods, and of those without a job.
    pub fn counts(&self) -> (usize, usize) {
        (self.count, self.unnamed.len())
    }

    /// Notes the report of a pod by the agent of its host. Returns the pod; `None` if there is no room for a new pod.
    pub fn report(&mut self, host: HostId, pod: PodId, now: Nanos) -> Option<&mut ReportedPod> {
        let pods = self.by_host.entry(host).or_default();
        if !pods.contains_key(&pod) {
            if pods.len() >= PODS_PER_HOST || self.count >= MAX_PODS {
                return None;
            }
            self.count += 1;
            self.unnamed.insert((host, pod));
            pods.insert(pod, ReportedPod { job: None, counted: None, seen: now });
        }
        let reported = pods.get_mut(&pod)?;
        reported.seen = reported.seen.max(now);
        Some(reported)
    }

    /// Names the job of a pod on a host. Returns true if the pod is known and had no job: the first name stays, because
    /// a pod has one owner.
    pub fn name(&mut self, host: HostId, pod: PodId, job: &Arc<str>) -> bool {
        let reported = self.by_host.get_mut(&host).and_then(|pods| pods.get_mut(&pod));
        let Some(reported) = reported.filter(|reported| reported.job.is_none()) else { return false };
        reported.job = Some(job.clone());
        self.unnamed.remove(&(host, pod));
        true
    }

    /// Lists at most `limit` pods without a job. The next call continues after them and begins again at the end, so that
    /// pods that nobody can name do not hide others.
    pub fn list_unnamed(&mut self, limit: usize) -> Vec<(HostId, PodId)> {
        let limit = limit.min(self.unnamed.len());
        let later = self.unnamed.range(after(self.listed));
        let listed: Vec<_> = later.chain(&self.unnamed).take(limit).copied().collect();
        self.listed = listed.last().copied().or(self.listed);
        listed
    }

    /// Forgets the pods of one host, the next one at each call, that were not reported for a while. Returns their jobs.
    pub fn forget(&mut self, now: Nanos) -> Vec<Arc<str>> {
        let next = |range| self.by_host.range::<HostId, _>(range).next().map(|(&host, _)| host);
        let Some(host) = next(after(self.swept)).or_else(|| next(after(None))) else { return Vec::new() };
        self.swept = Some(host);
        let Some(pods) = self.by_host.get_mut(&host) else { return Vec::new() };
        let (mut jobs, before) = (Vec::new(), pods.len());
        pods.retain(|&pod, reported| {
            let stays = now <= reported.seen.plus(FORGET_AFTER);
            if !stays {
                self.unnamed.remove(&(host, pod));
                jobs.extend(reported.job.take());
            }
            stays
        });
        self.count -= before - pods.len();
        if pods.is_empty() {
            self.by_host.remove(&host);
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Report(u32, u128),
        Name(u32, u128),
        List(usize),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u32..3, 0_u128..6).prop_map(|(host, pod)| Step::Report(host, pod)),
            2 => (0_u32..3, 0_u128..6).prop_map(|(host, pod)| Step::Name(host, pod)),
            1 => (0_usize..4).prop_map(Step::List),
            1 => (0_u64..400).prop_map(Step::Wait),
        ]
    }

    /// Counts are those of the pods, and exactly the unnamed ones are listed.
    fn check(pods: &Pods) -> Result<(), TestCaseError> {
        let all =
            pods.by_host.iter().flat_map(|(&host, pods)| pods.iter().map(move |(&pod, it)| (host, pod, it)));
        let unnamed: BTreeSet<_> =
            all.clone().filter(|(.., it)| it.job.is_none()).map(|(host, pod, _)| (host, pod)).collect();
        prop_assert_eq!(pods.counts(), (all.count(), unnamed.len()));
        prop_assert_eq!(&pods.unnamed, &unnamed);
        Ok(())
    }

    proptest! {
        #[test]
        fn each_named_pod_gives_its_job_back_once_and_old_pods_are_forgotten(
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let (mut pods, mut now) = (Pods::default(), Nanos(0));
            let job: Arc<str> = "default/Deployment/web".into();
            let (mut named, mut freed) = (0, 0);
            for step in steps {
                match step {
                    Step::Report(host, pod) => {
                        prop_assert!(pods.report(HostId(host), PodId(pod), now).is_some());
                        freed += pods.forget(now).len();
                    }
                    Step::Name(host, pod) => {
                        named += usize::from(pods.name(HostId(host), PodId(pod), &job));
                        prop_assert!(!pods.name(HostId(host), PodId(pod), &"other".into()), "the first name stays");
                    }
                    Step::List(limit) => {
                        let listed = pods.list_unnamed(limit);
                        let distinct: BTreeSet<_> = listed.iter().collect();
                        prop_assert_eq!(distinct.len(), limit.min(pods.counts().1), "each pod once");
                    }
                    Step::Wait(seconds) => now = now.plus(Nanos(seconds * Nanos::SECOND.0)),
                }
                check(&pods)?;
            }
            now = now.plus(FORGET_AFTER).plus(Nanos(1));
            for _ in 0..3 {
                freed += pods.forget(now).len();
            }
            prop_assert_eq!((pods.counts(), freed), ((0, 0), named));
        }

        #[test]
        fn a_uid_reads_back_with_and_without_hyphens(number in any::<u128>()) {
            let text = PodId(number).to_string();
            prop_assert_eq!(PodId::read(&text), Some(PodId(number)));
            prop_assert_eq!(PodId::read(&text.replace('-', "")), Some(PodId(number)));
            prop_assert_eq!(PodId::read(&text.to_uppercase()), Some(PodId(number)));
        }

        #[test]
        fn no_other_text_is_a_uid(text in "\\PC{0,40}") {
            let hex = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
            prop_assert!(PodId::read(&text).is_none() || (hex && [32, 36].contains(&text.len())));
        }
    }

    #[test]
    fn texts_that_are_almost_uids_are_none() {
        for text in [
            "",
            "web-0",
            "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7d5",
            "5f0c9b9e1-d3a-4f43-9a53-9b0c2f1b7d5e",
            "5f0c9b9e-1d3a-4f43-9a53-9b0c2f1b7dée",
            "+f0c9b9e1d3a4f439a539b0c2f1b7d5e",
        ] {
            assert_eq!(PodId::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_host_with_too_many_pods_takes_no_room_from_others() {
        let mut pods = Pods::default();
        let report = |pods: &mut Pods, host, pod| pods.report(HostId(host), PodId(pod), Nanos(0)).is_some();
        let accepted = (0..5_000).filter(|&pod| report(&mut pods, 0, pod)).count();
        assert_eq!(accepted, PODS_PER_HOST);
        assert!(report(&mut pods, 0, 0), "a known pod stays");
        assert!(report(&mut pods, 1, 0), "the same UID on another host is another pod");
        for host in 2..1_000 {
            for pod in 0..PODS_PER_HOST as u128 {
                report(&mut pods, host, pod);
            }
        }
        assert_eq!(pods.counts(), (MAX_PODS, MAX_PODS));
    }

    #[test]
    fn lists_of_unnamed_pods_reach_every_pod() {
        let mut pods = Pods::default();
        for pod in 0..25 {
            pods.report(HostId(pod % 3), PodId(u128::from(pod)), Nanos(0));
        }
        let listed: BTreeSet<_> = (0..3).flat_map(|_| pods.list_unnamed(10)).collect();
        assert_eq!(listed.len(), 25);
    }
}
