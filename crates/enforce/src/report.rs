//! States of workloads for acknowledgements: from the states of all interfaces, a pure function.

use std::collections::{BTreeMap, BTreeSet};

use leeward_promises::RequestCounters;
use leeward_promises::bodies::{AcknowledgedBody, AppliedWord};

use crate::difference::{Change, Program};
use crate::facts;
use crate::plan::Plan;
use crate::promises::{HostPromises, LeftOut};
use crate::tc;
use crate::tree::{LINK, OTHERS, Wanted};

/// State of an interface for acknowledgements.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct InterfaceState {
    name: String,
    pub standing: Standing,
    /// Workloads that this interface cannot enforce.
    pub left_out: Vec<LeftOut>,
    /// Last change by another hand, until an acknowledgement has stated it.
    drift: Option<Drift>,
    counters: BTreeMap<String, RequestCounters>,
}

/// Result of the last turn of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Nothing was done yet.
    New,
    /// The kernel has the promises.
    Enforced,
    /// They cannot be enforced.
    Failed(String),
    /// There is no such interface.
    Gone,
    /// It has no carrier, and was not programmed before. It sends nothing.
    NoCarrier,
}

/// A change by another hand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Drift {
    difference: String,
    /// Workloads that it concerns; `None` for all.
    workloads: Option<BTreeSet<String>>,
    is_reported: bool,
}

impl Drift {
    pub fn new(difference: String, workloads: Option<BTreeSet<String>>) -> Drift {
        Drift { difference, workloads, is_reported: false }
    }
}

/// Workloads whose classes a program changes; `None` for all, because it changes what they have in common.
pub(crate) fn affected(
    program: &Program,
    wanted: &Wanted,
    has_other_rules: bool,
) -> Option<BTreeSet<String>> {
    if program.rebuild || program.marks.is_some() || has_other_rules {
        return None;
    }
    let mut changed = BTreeSet::new();
    for change in &program.before {
        match change {
            Change::Add(id, _) | Change::Alter(id, _) if ![LINK, OTHERS].contains(id) => changed.insert(*id),
            Change::Add(..) | Change::Alter(..) | Change::Root | Change::Leaf(_) => return None,
        };
    }
    if changed.is_empty() {
        return None;
    }
    let has_changed = |class: u16| {
        let chain = program.goal.chain(class).unwrap_or_default();
        chain.iter().any(|id| changed.contains(id))
    };
    let workloads = wanted.workloads.iter().zip(&program.classes).filter(|&(_, &class)| has_changed(class));
    Some(workloads.flat_map(|(workload, _)| workload.names.iter().cloned()).collect())
}

impl InterfaceState {
    pub fn new(name: &str) -> InterfaceState {
        InterfaceState {
            name: name.to_owned(),
            standing: Standing::New,
            left_out: Vec::new(),
            drift: None,
            counters: BTreeMap::new(),
        }
    }

    /// Takes the counters of a reading. `program` leads from the reading to the plan.
    pub fn count(
        &mut self,
        promises: &HostPromises,
        plan: &Plan,
        program: &Program,
        counters: &BTreeMap<u16, tc::ClassCounters>,
    ) {
        let count = |(promise, of): (&crate::promises::WorkloadPromise, &Option<usize>)| {
            let count = counters.get(program.classes.get((*of)?)?)?;
            let over_limit = count.overlimits;
            Some((
                promise.name.clone(),
                RequestCounters { bytes: count.bytes, over_limit, ..RequestCounters::default() },
            ))
        };
        self.counters = promises.workloads.iter().zip(&plan.of_promise).filter_map(count).collect();
    }

    /// Takes what a turn has seen of other hands. A drift that no acknowledgement has stated yet stays.
    pub fn see(&mut self, drift: Option<Drift>) {
        match drift {
            Some(drift) => self.drift = Some(drift),
            None => self.drift = self.drift.take().filter(|drift| !drift.is_reported),
        }
    }
}

/// State of each workload. A workload is applied if one interface enforces it and none fails or has drifted: packets of a
/// workload leave by one of them. An interface without addresses sends none.
pub(crate) fn report<'i>(
    promises: &HostPromises,
    unresolved: &[LeftOut],
    interfaces: impl Iterator<Item = &'i mut InterfaceState>,
) -> Vec<AcknowledgedBody> {
    let has_addresses = |name: &str| facts::addresses(name).is_ok_and(|addresses| !addresses.is_empty());
    report_by(promises, unresolved, interfaces, &has_addresses)
}

fn report_by<'i>(
    promises: &HostPromises,
    unresolved: &[LeftOut],
    interfaces: impl Iterator<Item = &'i mut InterfaceState>,
    has_addresses: &dyn Fn(&str) -> bool,
) -> Vec<AcknowledgedBody> {
    let mut interfaces: Vec<&mut InterfaceState> = interfaces.collect();
    let failed: Vec<String> = interfaces
        .iter()
        .filter(|one| matches!(one.standing, Standing::Failed(_)) && has_addresses(&one.name))
        .map(|one| match &one.standing {
            Standing::Failed(error) => error.clone(),
            _ => String::new(),
        })
        .collect();
    let unresolved = unresolved.iter().map(|left| (&left.workload, Some(&left.why)));
    let named = promises.workloads.iter().map(|promise| (&promise.name, None));
    let mut bodies: BTreeMap<&String, AcknowledgedBody> = BTreeMap::new();
    for (name, unresolved) in unresolved.chain(named) {
        if bodies.contains_key(name) {
            continue;
        }
        let (state, detail) = match unresolved {
            Some(why) => (AppliedWord::Refused, Some(why.clone())),
            None => state(name, &interfaces, &failed),
        };
        let mut counters = RequestCounters::default();
        interfaces.iter().filter_map(|one| one.counters.get(name)).for_each(|&own| counters.add(own));
        let (workload, latencies) = (name.clone(), Vec::new());
        bodies.insert(name, AcknowledgedBody { workload, state, detail, counters, latencies });
    }
    interfaces.iter_mut().filter_map(|one| one.drift.as_mut()).for_each(|drift| drift.is_reported = true);
    bodies.into_values().collect()
}

/// State of a workload with addresses.
fn state(
    name: &String,
    interfaces: &[&mut InterfaceState],
    failed: &[String],
) -> (AppliedWord, Option<String>) {
    let drifted = interfaces.iter().find_map(|one| {
        let drift = one.drift.as_ref()?;
        let concerns = drift.workloads.as_ref().is_none_or(|workloads| workloads.contains(name));
        concerns.then(|| format!("{}: {}", one.name, drift.difference))
    });
    if let Some(difference) = drifted {
        return (AppliedWord::Drifted, Some(difference));
    }
    if let Some(error) = failed.first() {
        return (AppliedWord::Refused, Some(error.clone()));
    }
    let left_out = |one: &InterfaceState| one.left_out.iter().find(|left| left.workload == *name).cloned();
    let is_enforced =
        |one: &&&mut InterfaceState| one.standing == Standing::Enforced && left_out(one).is_none();
    if interfaces.iter().any(|one| is_enforced(&one)) {
        return (AppliedWord::Applied, None);
    }
    let why = interfaces.iter().find_map(|one| match &one.standing {
        Standing::Enforced => Some(format!("{}: {}", one.name, left_out(one)?.why)),
        Standing::Failed(error) => Some(error.clone()),
        Standing::Gone => Some(format!("{}: no such interface", one.name)),
        Standing::NoCarrier => Some(format!("{}: no carrier", one.name)),
        Standing::New => None,
    });
    (AppliedWord::Refused, Some(why.unwrap_or_else(|| "no interface is enforced".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::difference;
    use crate::limits::Limit;
    use crate::promises::{Direction, WorkloadPromise};
    use crate::tree::{Class, Marks, Pair, State, WantedWorkload};

    fn promises(names: &[&str]) -> HostPromises {
        let promise = |&name: &&str| WorkloadPromise {
            name: name.to_owned(),
            direction: Direction::ToServer,
            own: Vec::new(),
            peers: Vec::new(),
            priority: Some(0),
            buckets: Vec::new(),
        };
        HostPromises {
            host: "c0".to_owned(),
            version: Some(1),
            workloads: names.iter().map(promise).collect(),
            notes: Vec::new(),
        }
    }

    fn interface(name: &str, standing: Standing) -> InterfaceState {
        InterfaceState { standing, ..InterfaceState::new(name) }
    }

    fn states(interfaces: &mut [InterfaceState]) -> Vec<String> {
        let unresolved = [LeftOut { workload: "lost".to_owned(), why: "no address".to_owned() }];
        let has_addresses = |name: &str| name != "idle0";
        let bodies =
            report_by(&promises(&["mail", "web"]), &unresolved, interfaces.iter_mut(), &has_addresses);
        let shown = |body: &AcknowledgedBody| {
            format!("{} {:?} {}", body.workload, body.state, body.detail.as_deref().unwrap_or("-"))
        };
        bodies.iter().map(shown).collect()
    }

    #[test]
    fn a_workload_is_applied_if_one_interface_enforces_it_and_none_fails() {
        let failed = |name| interface(name, Standing::Failed(format!("{name}: another owner")));
        let mut left = interface("eth0", Standing::Enforced);
        left.left_out = vec![LeftOut { workload: "web".to_owned(), why: "priority 9".to_owned() }];
        let lost = "lost Refused no address";
        for (mut interfaces, expected) in [
            (vec![interface("eth0", Standing::Enforced)], ["mail Applied -", "web Applied -"]),
            (vec![left.clone()], ["mail Applied -", "web Refused eth0: priority 9"]),
            (vec![left, interface("eth1", Standing::Enforced)], ["mail Applied -", "web Applied -"]),
            (
                vec![interface("eth0", Standing::Enforced), failed("eth1")],
                ["mail Refused eth1: another owner", "web Refused eth1: another owner"],
            ),
            (
                vec![interface("eth0", Standing::Enforced), failed("idle0")],
                ["mail Applied -", "web Applied -"],
            ),
            // A spare port has an address and no carrier.
            (
                vec![interface("eth0", Standing::Enforced), interface("eth1", Standing::NoCarrier)],
                ["mail Applied -", "web Applied -"],
            ),
            (
                vec![interface("eth0", Standing::NoCarrier)],
                ["mail Refused eth0: no carrier", "web Refused eth0: no carrier"],
            ),
            (
                vec![interface("eth0", Standing::Gone)],
                ["mail Refused eth0: no such interface", "web Refused eth0: no such interface"],
            ),
            (Vec::new(), ["mail Refused no interface is enforced", "web Refused no interface is enforced"]),
        ] {
            let [mail, web] = expected;
            assert_eq!(states(&mut interfaces), [lost, mail, web]);
        }
    }

    #[test]
    fn a_drift_is_stated_at_least_once_and_concerns_the_workloads_of_its_classes() {
        let mut interfaces = [interface("eth0", Standing::Enforced)];
        interfaces[0]
            .see(Some(Drift::new("class 7ee0:10".to_owned(), Some(BTreeSet::from(["mail".to_owned()])))));
        // The next turn finds it mended, before an acknowledgement.
        interfaces[0].see(None);
        let shown = states(&mut interfaces);
        assert_eq!(shown[1..], ["mail Drifted eth0: class 7ee0:10", "web Applied -"]);
        assert_eq!(states(&mut interfaces), shown, "until the next turn");
        interfaces[0].see(None);
        assert_eq!(states(&mut interfaces)[1..], ["mail Applied -", "web Applied -"]);
        interfaces[0].see(Some(Drift::new("rules of nftables".to_owned(), None)));
        assert_eq!(states(&mut interfaces)[2], "web Drifted eth0: rules of nftables");
    }

    #[test]
    fn changed_classes_are_those_of_a_workload_or_of_all() {
        let workload = |name: &str, last: u8| WantedWorkload {
            names: vec![name.to_owned()],
            level: 0,
            limits: vec![Limit { rate: 1000, burst: 1000 }; 2],
            pairs: BTreeSet::from([Pair {
                source: [10, 0, 0, 1].into(),
                destination: [10, 0, 0, last].into(),
            }]),
        };
        let workloads = vec![workload("mail", 2), workload("web", 3)];
        let wanted = Wanted { link: 1_000_000, leaf: None, workloads };
        let first = difference(&State::default(), &wanted, &Marks::new()).expect("few classes");
        let compare = |change: &dyn Fn(&mut State)| {
            let mut state = first.goal.clone();
            change(&mut state);
            let program = difference(&state, &wanted, &first.goal.marks).expect("few classes");
            affected(&program, &wanted, false)
        };
        let outer = first.goal.chain(first.classes[1]).expect("a chain")[0];
        let slower = |state: &mut State, id: u16| {
            let class = state.classes.get_mut(&id).expect("a class");
            *class = Class { ceil: 7, ..*class };
        };
        let web = Some(BTreeSet::from(["web".to_owned()]));
        assert_eq!(compare(&|state| slower(state, outer)), web);
        assert_eq!(compare(&|state| slower(state, LINK)), None);
        assert_eq!(compare(&|state| state.marks.clear()), None);
    }
}
