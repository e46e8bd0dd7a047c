//! The wanted tree of an interface for the promises of its host: a pure function.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use leeward_calculus::ArrivalCurve;
use leeward_promises::levels::{LEVELS, level};

use crate::limits::{curve, limits};
use crate::promises::{Direction, HostPromises, LeftOut, WorkloadPromise};
use crate::tree::{BEST_EFFORT, Pair, Wanted, WantedWorkload};

/// Largest number of pairs of addresses of a workload.
const MOST_PAIRS: usize = 4096;

/// Facts of an interface that a plan needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Rate of the link in bytes per second.
    pub link: u64,
    /// Addresses of the interface.
    pub addresses: Vec<IpAddr>,
    /// Kind of the qdisc that the kernel gives to interfaces, for all other packets; `None` for a FIFO.
    pub leaf: Option<String>,
}

/// A planned tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The tree.
    pub wanted: Wanted,
    /// Workloads that cannot be enforced, in the order of their names.
    pub left_out: Vec<LeftOut>,
    /// Notes about limits that are enforced less tightly, priorities that share a level, and best effort whose packets count
    /// as those of a promise, each with the name of its workload.
    pub notes: Vec<String>,
    /// For each promise in its order: the number of its workload in the tree; `None` without a class.
    pub of_promise: Vec<Option<usize>>,
}

/// A promise that has a class of its own, or shares one.
struct Draft {
    names: Vec<String>,
    level: u8,
    curve: Option<ArrivalCurve>,
    pairs: BTreeSet<Pair>,
}

/// Plans the tree of an interface.
///
/// Workloads with the same addresses and priority share a class whose limits are the sum of theirs: nothing tells their
/// packets apart. With different priorities, the more urgent one has the class and the other one is left out. So is one with
/// limits, if the other one has none: no limit of the class would hold the packets of one of them only.
pub fn plan(promises: &HostPromises, facts: &Facts) -> Plan {
    let mut order: Vec<usize> = (0..promises.workloads.len()).collect();
    let key = |at: &usize| {
        let WorkloadPromise { name, direction, priority, buckets, .. } = &promises.workloads[*at];
        (priority.map_or(BEST_EFFORT, level), !buckets.is_empty(), name.as_str(), *direction)
    };
    // The more urgent workload of a pair of addresses comes first, and among those of one level, the ones without limits.
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut drafts: Vec<Draft> = Vec::new();
    let mut owners: BTreeMap<Pair, usize> = BTreeMap::new();
    let (mut left_out, mut notes, mut free) = (Vec::new(), promises.notes.clone(), Vec::new());
    let mut of_promise = vec![None; promises.workloads.len()];
    for at in order {
        let promise = &promises.workloads[at];
        notes.extend(promise.priority.filter(|&priority| priority >= u32::from(LEVELS)).map(|priority| {
            let last = LEVELS - 1;
            format!(
                "{}: priority {priority} is enforced as {last}: networks distinguish {LEVELS}",
                promise.name
            )
        }));
        match draft(promise, facts) {
            Ok(None) => free.push(promise),
            Ok(Some(draft)) => match place(draft, &mut drafts, &mut owners) {
                Ok(number) => of_promise[at] = Some(number),
                Err(why) => left_out.push(LeftOut { workload: promise.name.clone(), why }),
            },
            Err(why) => left_out.push(LeftOut { workload: promise.name.clone(), why }),
        }
    }
    for promise in free {
        // Without addresses, no packet counts as another one's.
        let pairs = pairs(promise, facts).unwrap_or_default();
        let taken = pairs.iter().find_map(|pair| Some((pair, *owners.get(pair)?)));
        notes.extend(taken.map(|(pair, owner)| {
            let names = drafts[owner].names.join(", ");
            format!("{}: {}, which is not best effort", promise.name, counts_as(pair, &names))
        }));
    }
    let mut numbered: Vec<(usize, WantedWorkload)> = Vec::with_capacity(drafts.len());
    for (number, Draft { names, level, curve, pairs }) in drafts.into_iter().enumerate() {
        match curve.map(|curve| limits(&curve)).transpose() {
            Ok(limited) => {
                let (limits, own) = limited.unwrap_or_default();
                notes.extend(own.iter().map(|note| format!("{}: {note}", names.join(", "))));
                numbered.push((number, WantedWorkload { names, level, limits, pairs }));
            }
            Err(why) => {
                left_out.extend(names.into_iter().map(|workload| LeftOut { workload, why: why.clone() }));
            }
        }
    }
    left_out.sort_by(|a, b| a.workload.cmp(&b.workload));
    // In the order of names, the numbers of classes do not depend on priorities.
    numbered.sort_by(|(_, a), (_, b)| (&a.names, &a.pairs).cmp(&(&b.names, &b.pairs)));
    notes.sort();
    let places: BTreeMap<usize, usize> =
        numbered.iter().enumerate().map(|(place, &(number, _))| (number, place)).collect();
    let of_promise = of_promise.into_iter().map(|number| places.get(&number?).copied()).collect();
    let workloads = numbered.into_iter().map(|(_, workload)| workload).collect();
    let wanted = Wanted { link: facts.link, leaf: facts.leaf.clone(), workloads };
    Plan { wanted, left_out, notes, of_promise }
}

/// Draft of a promise; `None` for best effort without a limit, which needs no class.
fn draft(promise: &WorkloadPromise, facts: &Facts) -> Result<Option<Draft>, String> {
    let curve = curve(&promise.buckets)?;
    let level = match promise.priority {
        None if curve.is_none() => return Ok(None),
        None => BEST_EFFORT,
        Some(priority) => level(priority),
    };
    Ok(Some(Draft { names: vec![promise.name.clone()], level, curve, pairs: pairs(promise, facts)? }))
}

/// Addresses of the packets of a promise, at least one pair.
fn pairs(promise: &WorkloadPromise, facts: &Facts) -> Result<BTreeSet<Pair>, String> {
    let own = if promise.own.is_empty() { &facts.addresses } else { &promise.own };
    if own.len().saturating_mul(promise.peers.len()) > MOST_PAIRS {
        return Err(format!("more than {MOST_PAIRS} pairs of its own addresses and those of its peers"));
    }
    let pairs: BTreeSet<Pair> = own
        .iter()
        .flat_map(|&source| promise.peers.iter().map(move |&destination| Pair { source, destination }))
        .filter(|pair| pair.source.is_ipv4() == pair.destination.is_ipv4())
        .collect();
    if pairs.is_empty() {
        let (from, to) = match promise.direction {
            Direction::ToServer => ("client", "server"),
            Direction::ToClient => ("server", "client"),
        };
        return Err(format!(
            "its {from} and its {to} have no addresses of one family; --addresses names them"
        ));
    }
    Ok(pairs)
}

/// Packets that no address tells apart.
fn counts_as(pair: &Pair, names: &str) -> String {
    format!("its packets from {} to {} count as those of {names}", pair.source, pair.destination)
}

/// Adds a draft, or joins it with the one that has the same addresses. Returns its number.
fn place(draft: Draft, drafts: &mut Vec<Draft>, owners: &mut BTreeMap<Pair, usize>) -> Result<usize, String> {
    let taken = draft.pairs.iter().find_map(|pair| Some((*pair, *owners.get(pair)?)));
    let Some((pair, owner)) = taken else {
        let number = drafts.len();
        owners.extend(draft.pairs.iter().map(|&pair| (pair, number)));
        drafts.push(draft);
        return Ok(number);
    };
    let first = &mut drafts[owner];
    let differs = match (&first.curve, &draft.curve) {
        _ if first.level != draft.level => Some("another priority"),
        _ if first.pairs != draft.pairs => Some("other addresses"),
        // Those without limits came first.
        (None, Some(_)) => Some("no limits"),
        _ => None,
    };
    if let Some(differs) = differs {
        return Err(format!(
            "{}, which has {differs}; --addresses may give its client an address of its own",
            counts_as(&pair, &first.names.join(", ")),
        ));
    }
    first.names.extend(draft.names);
    first.curve = first.curve.take().zip(draft.curve).map(|(one, other)| one.plus(&other));
    Ok(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limit;
    use crate::promises::Bucket;

    fn facts() -> Facts {
        let addresses = ["10.0.0.2", "fd00::2"].map(|text| text.parse().expect("valid"));
        Facts { link: 125_000_000, addresses: addresses.into(), leaf: None }
    }

    fn promise(name: &str, priority: Option<u32>, peers: &[&str]) -> WorkloadPromise {
        WorkloadPromise {
            name: name.to_owned(),
            direction: Direction::ToServer,
            own: Vec::new(),
            peers: peers.iter().map(|text| text.parse().expect("valid")).collect(),
            priority,
            buckets: vec![Bucket { rate: 1e6, burst: 64e3 }],
        }
    }

    fn plan_of(workloads: Vec<WorkloadPromise>) -> Plan {
        let promises = HostPromises {
            host: "r0h0".to_owned(),
            version: None,
            workloads,
            notes: vec!["a: note".to_owned()],
        };
        let mut plan = plan(&promises, &facts());
        // Notes of the promises are among those of the plan, in order.
        let own = plan.notes.iter().position(|note| note == "a: note").expect("the note of the promises");
        plan.notes.remove(own);
        plan
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let shown = |workload: &WantedWorkload| {
            let pairs: Vec<String> =
                workload.pairs.iter().map(|pair| format!("{}>{}", pair.source, pair.destination)).collect();
            format!("{} {} {}", workload.names.join("+"), workload.level, pairs.join(" "))
        };
        plan.wanted.workloads.iter().map(shown).collect()
    }

    #[test]
    fn workloads_are_in_the_order_of_names_with_the_pairs_of_each_family() {
        let mut of_guest = promise("b", Some(6), &["10.0.1.2"]);
        of_guest.own = vec!["10.0.0.7".parse().expect("valid")];
        let plan = plan_of(vec![promise("c", Some(0), &["10.0.1.2", "fd00::9"]), of_guest]);
        assert_eq!(shown(&plan), ["b 6 10.0.0.7>10.0.1.2", "c 0 10.0.0.2>10.0.1.2 fd00::2>fd00::9"]);
        assert_eq!(plan.of_promise, [Some(1), Some(0)]);
        assert_eq!((plan.left_out.len(), plan.notes.len()), (0, 0));
        assert_eq!(plan.wanted.workloads[0].limits, [Limit { rate: 1_000_000, burst: 64_000 }]);
    }

    #[test]
    fn workloads_that_no_address_tells_apart_share_a_class_or_the_less_urgent_one_is_left_out() {
        let plan = plan_of(vec![
            promise("loose", Some(1), &["10.0.1.2"]),
            promise("tight1", Some(0), &["10.0.1.2"]),
            promise("tight0", Some(0), &["10.0.1.2"]),
        ]);
        assert_eq!(shown(&plan), ["tight0+tight1 0 10.0.0.2>10.0.1.2"]);
        assert_eq!(plan.wanted.workloads[0].limits, [Limit { rate: 2_000_000, burst: 128_000 }]);
        assert_eq!(plan.of_promise, [None, Some(0), Some(0)]);
        assert_eq!(
            plan.left_out.iter().map(LeftOut::to_string).collect::<Vec<_>>(),
            [
                "loose is not enforced: its packets from 10.0.0.2 to 10.0.1.2 count as those of tight0, tight1, which has \
                 another priority; --addresses may give its client an address of its own"
            ]
        );
    }

    #[test]
    fn a_limit_of_two_workloads_that_look_alike_is_enforced_for_both_or_refused() {
        let mut open = promise("zebra", Some(0), &["10.0.1.2"]);
        open.buckets.clear();
        let plan = plan_of(vec![promise("mail", Some(0), &["10.0.1.2"]), open]);
        assert_eq!(shown(&plan), ["zebra 0 10.0.0.2>10.0.1.2"]);
        assert_eq!((plan.wanted.workloads[0].limits.len(), &plan.of_promise), (0, &vec![None, Some(0)]));
        let [left] = &plan.left_out[..] else { panic!("{:?}", plan.left_out) };
        assert!(
            left.to_string().contains(
                "mail is not enforced: its packets from 10.0.0.2 to 10.0.1.2 count as those of zebra, \
                                       which has no limits; "
            ),
            "{left}"
        );
    }

    #[test]
    fn best_effort_that_looks_like_a_promise_is_a_note() {
        let mut free = promise("backup", None, &["10.0.1.2"]);
        free.buckets.clear();
        let mut elsewhere = promise("elsewhere", None, &["10.0.1.9"]);
        elsewhere.buckets.clear();
        let mut lost = promise("lost", None, &[]);
        lost.buckets.clear();
        let plan = plan_of(vec![free, elsewhere, lost, promise("mail", Some(0), &["10.0.1.2"])]);
        assert_eq!(shown(&plan), ["mail 0 10.0.0.2>10.0.1.2"]);
        assert_eq!(
            plan.notes,
            [
                "backup: its packets from 10.0.0.2 to 10.0.1.2 count as those of mail, which is not best effort"
            ]
        );
    }

    #[test]
    fn priorities_beyond_the_levels_of_networks_share_the_last_one() {
        let plan = plan_of(vec![
            promise("deep", Some(7), &["10.0.1.2"]),
            promise("deeper", Some(40), &["10.0.1.2"]),
            promise("last", Some(6), &["10.0.1.2"]),
        ]);
        assert_eq!(shown(&plan), ["deep+deeper+last 6 10.0.0.2>10.0.1.2"]);
        assert_eq!((plan.left_out.len(), plan.of_promise), (0, vec![Some(0); 3]));
        assert_eq!(
            plan.notes,
            [
                "deep: priority 7 is enforced as 6: networks distinguish 7",
                "deeper: priority 40 is enforced as 6: networks distinguish 7",
            ]
        );
    }

    #[test]
    fn a_burst_that_is_too_long_refuses_its_workload_and_leaves_no_class_without_a_limit() {
        let mut long = promise("long", Some(0), &["10.0.1.3"]);
        long.buckets = vec![Bucket { rate: 1e9, burst: 5e9 }];
        let plan = plan_of(vec![long, promise("mail", Some(0), &["10.0.1.2"])]);
        assert_eq!(shown(&plan), ["mail 0 10.0.0.2>10.0.1.2"]);
        assert_eq!(plan.of_promise, [None, Some(0)]);
        let left: Vec<String> = plan.left_out.iter().map(LeftOut::to_string).collect();
        assert_eq!(left, ["long is not enforced: a burst of 5000000000 bytes: tc takes at most 4 GiB"]);
    }

    #[test]
    fn what_cannot_be_enforced_is_left_out_with_a_reason() {
        let mut broken = promise("broken", Some(0), &["10.0.1.3"]);
        broken.buckets[0].rate = f64::NAN;
        let many: Vec<String> = (0..4097).map(|at| format!("10.1.{}.{}", at / 256, at % 256)).collect();
        let many = promise("many", Some(0), &many.iter().map(String::as_str).collect::<Vec<_>>());
        let mut free = promise("free", None, &["10.0.1.4"]);
        free.buckets.clear();
        let plan = plan_of(vec![
            broken,
            free,
            promise("alone", Some(0), &[]),
            promise("limited", None, &["10.0.1.5"]),
            many,
        ]);
        assert_eq!(shown(&plan), ["limited 7 10.0.0.2>10.0.1.5"]);
        let left: Vec<String> = plan.left_out.iter().map(LeftOut::to_string).collect();
        assert_eq!(
            left,
            [
                "alone is not enforced: its client and its server have no addresses of one family; --addresses names them",
                "broken is not enforced: token bucket of rate NaN and burst 64000: both must be finite and not negative",
                "many is not enforced: more than 4096 pairs of its own addresses and those of its peers",
            ]
        );
    }
}
