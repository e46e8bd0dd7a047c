//! Turns counters of pods into rates between two readings. No input or output, no clock.

use std::collections::BTreeMap;

use leeward_fabric::Nanos;

use crate::count::{Count, increase};
use crate::pods::{Pod, PodId, Pods};

/// Largest rate in bits per second; the controller accepts no more.
const MAX_BPS: u64 = 1_000_000_000_000_000_000;

/// Mean rates of a pod between two readings, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodRates {
    /// UID.
    pub id: PodId,
    /// Traffic out of the pod.
    pub egress_bps: u64,
    /// Traffic into the pod.
    pub ingress_bps: u64,
}

/// Counters of the last reading.
#[derive(Clone, Debug, Default)]
pub struct PodMeter {
    at: Nanos,
    last: BTreeMap<PodId, Pod>,
}

/// Mean rate between two counts in bits per second; `None` if the counter was reset.
fn rate(before: Count, after: Count, took: Nanos) -> Option<u64> {
    let bits = 8 * u128::from(increase(before, after)?);
    let bps = bits * u128::from(Nanos::SECOND.0) / u128::from(took.0.max(1));
    Some(u64::try_from(bps).unwrap_or(u64::MAX).min(MAX_BPS))
}

impl PodMeter {
    /// Takes a reading, and returns the rates of the pods that were in the last one too. A pod in another network than
    /// before was set up again, so its traffic is unknown.
    pub fn take(&mut self, at: Nanos, pods: &Pods) -> Vec<PodRates> {
        let took = at.since(self.at);
        let rates = |pod: &Pod| {
            let before = self.last.get(&pod.id).filter(|before| before.network == pod.network)?;
            Some(PodRates {
                id: pod.id,
                egress_bps: rate(before.sent, pod.sent, took)?,
                ingress_bps: rate(before.received, pod.received, took)?,
            })
        };
        // Two readings at the same time make no window.
        let rates = if took > Nanos(0) { pods.pods.iter().filter_map(rates).collect() } else { Vec::new() };
        (self.at, self.last) = (at, pods.pods.iter().map(|pod| (pod.id, *pod)).collect());
        rates
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(bytes: u64) -> Count {
        Count { bytes, packets: bytes / 1_000 }
    }

    fn pod(id: u128, network: u64, received: u64, sent: u64) -> Pod {
        Pod { id: PodId(id), network, received: count(received), sent: count(sent) }
    }

    fn reading(pods: Vec<Pod>) -> Pods {
        Pods { pods, ..Pods::default() }
    }

    proptest! {
        #[test]
        fn rates_times_the_time_are_the_bytes_of_each_pod_that_stayed(
            steps in prop::collection::vec((1_u64..60_000, prop::collection::vec((0_u128..6, 0_u64..1 << 40), 0..6)), 1..20),
        ) {
            let (mut meter, mut at, mut bytes) = (PodMeter::default(), Nanos(0), BTreeMap::new());
            let mut present: BTreeMap<u128, u64> = BTreeMap::new();
            for (millis, added) in steps {
                at = at.plus(Nanos(millis * 1_000_000));
                let added: BTreeMap<u128, u64> = added.into_iter().collect();
                let mut now = BTreeMap::new();
                for (&id, &more) in &added {
                    let total: &mut u64 = bytes.entry(id).or_insert(0);
                    *total += more;
                    now.insert(id, *total);
                }
                let pods = now.iter().map(|(&id, &total)| pod(id, 7, total, 2 * total)).collect();
                let rates = meter.take(at, &reading(pods));
                let stayed: Vec<PodId> =
                    now.keys().filter(|id| present.contains_key(id)).map(|&id| PodId(id)).collect();
                prop_assert_eq!(rates.iter().map(|rates| rates.id).collect::<Vec<_>>(), stayed);
                for rates in rates {
                    let bits = 8.0 * (now[&rates.id.0] - present[&rates.id.0]) as f64;
                    let expected = bits / (millis as f64 / 1e3);
                    prop_assert!((rates.ingress_bps as f64 - expected).abs() <= 1.0 + expected * 1e-9);
                    prop_assert!((rates.egress_bps as f64 - 2.0 * expected).abs() <= 2.0 + expected * 1e-9);
                }
                present = now;
            }
        }

        #[test]
        fn no_counters_give_more_than_the_largest_rate(
            counters in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0_u64..3), 1..10),
        ) {
            let mut meter = PodMeter::default();
            for (received, sent, at, network) in counters {
                let counted = |bytes| Count { bytes, packets: 0 };
                let pod = Pod { id: PodId(1), network, received: counted(received), sent: counted(sent) };
                for rates in meter.take(Nanos(at), &reading(vec![pod])) {
                    prop_assert!(rates.egress_bps <= MAX_BPS && rates.ingress_bps <= MAX_BPS);
                }
            }
        }
    }

    #[test]
    fn a_pod_in_a_new_network_and_one_with_reset_counters_have_no_rate_once() {
        let mut meter = PodMeter::default();
        let mut take = |second: u64, network, bytes| {
            meter.take(Nanos(second * Nanos::SECOND.0), &reading(vec![pod(1, network, bytes, bytes)])).len()
        };
        assert_eq!(take(1, 7, 5_000), 0, "the first reading");
        assert_eq!(take(2, 7, 6_000), 1);
        assert_eq!(take(3, 8, 9_000), 0, "another network, although its counters are higher");
        assert_eq!(take(4, 8, 9_500), 1);
        assert_eq!(take(5, 8, 100), 0, "reset counters");
        assert_eq!(take(6, 8, 100), 1);
        assert_eq!(take(6, 8, 100), 0, "no time has passed");
    }
}
