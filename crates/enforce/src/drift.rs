//! Differences between the kernel and what was programmed, in words.

use std::collections::BTreeSet;

use crate::difference::{Change, Program};
use crate::interface::Reading;
use crate::tree::{Marks, Wanted, class_id};

/// Largest number of differences that an event names.
const MOST_NAMED: usize = 3;

/// A tree that was programmed.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub wanted: Wanted,
    /// Marks of packets.
    pub marks: Marks,
    /// Rules of the table as the kernel shows them.
    pub rules: Option<String>,
    /// Former classes whose queues were not empty yet.
    pub retired: BTreeSet<u16>,
}

/// Difference that another hand made; `None` if there is none.
pub(crate) fn drift_of(applied: &Applied, reading: &Reading, program: &Program) -> Option<String> {
    let rules = (applied.rules != reading.rules).then(|| "rules of nftables".to_owned());
    named(program, &applied.retired).or(rules)
}

/// Changes of a program in words; `None` if it only deletes classes that are about to go.
pub(crate) fn named(program: &Program, retired: &BTreeSet<u16>) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    if program.rebuild {
        parts.push("classes of the link".to_owned());
    }
    let changes = program.before.iter().map(|change| match change {
        Change::Root => "root qdisc".to_owned(),
        Change::Leaf(kind) => format!("qdisc {kind}"),
        Change::Add(id, _) => format!("no class {}", class_id(*id)),
        Change::Alter(id, _) => format!("class {}", class_id(*id)),
    });
    parts.extend(changes);
    if program.marks.is_some() {
        parts.push("marks of packets".to_owned());
    }
    let strange = program.after.iter().filter(|id| !retired.contains(*id));
    parts.extend(strange.map(|&id| format!("an unknown class {}", class_id(id))));
    let more = parts.len().saturating_sub(MOST_NAMED);
    parts.truncate(MOST_NAMED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::difference;
    use crate::tree::{Marks, State, Wanted};

    #[test]
    fn a_difference_is_named_shortly() {
        let wanted = Wanted { link: 1_000_000, leaf: None, workloads: Vec::new() };
        let compare = |state: &State| difference(state, &wanted, &Marks::new()).expect("few classes");
        let program = compare(&State::default());
        assert_eq!(
            named(&program, &BTreeSet::new()).as_deref(),
            Some("root qdisc, no class 7ee0:1, no class 7ee0:2")
        );
        let mut state = program.goal.clone();
        assert_eq!(named(&compare(&state), &BTreeSet::new()), None);
        state.classes.insert(0x55, crate::tree::Class::others(1_000_000));
        let program = compare(&state);
        assert_eq!(named(&program, &BTreeSet::new()).as_deref(), Some("an unknown class 7ee0:55"));
        assert_eq!(named(&program, &BTreeSet::from([0x55])), None);
    }
}
