//! Programs on a model of the kernel: the result is the wanted state, and no step leaves packets without their class.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use leeward_enforce::difference::{Change, Program, difference};
use leeward_enforce::limits::Limit;
use leeward_enforce::tree::{Class, FIRST, LINK, Mark, Marks, OTHERS, Pair, State, Wanted, WantedWorkload};
use proptest::prelude::*;

/// Largest number of classes around a class of HTB, with the link.
const MOST_AROUND: usize = 7;

/// A kernel with one interface. Each step fails as the kernel does, or where it would lose packets.
#[derive(Clone, Debug)]
struct Kernel(State);

impl Kernel {
    fn has_children(&self, id: u16) -> bool {
        self.0.classes.values().any(|class| class.parent == id)
    }

    fn is_marked(&self, id: u16) -> bool {
        self.0.marks.values().any(|mark| mark.class == id)
    }

    fn depth(&self, mut id: u16) -> usize {
        let mut around = 0;
        while let Some(class) = self.0.classes.get(&id).filter(|class| class.parent != 0) {
            (id, around) = (class.parent, around + 1);
        }
        around
    }

    fn change(&mut self, change: &Change, goal: &Marks) -> Result<(), String> {
        let fail = |why: &str| Err(format!("{change:?}: {why}"));
        match change {
            Change::Root if self.0.is_rooted => return fail("there is a root"),
            Change::Root => self.0.is_rooted = true,
            Change::Add(id, class) => {
                if !self.0.is_rooted || self.0.classes.contains_key(id) {
                    return fail("no root, or the class exists");
                }
                if class.parent != 0 && !self.0.classes.contains_key(&class.parent) {
                    return fail("no class around it");
                }
                if self.is_marked(class.parent) {
                    return fail("the class around it has packets, which would be lost");
                }
                let stays = |pair: &Pair| goal.get(pair).is_some_and(|wanted| wanted.class == *id);
                if self.0.marks.iter().any(|(pair, mark)| mark.class == *id && !stays(pair)) {
                    return fail("packets of other workloads would enter it");
                }
                self.0.classes.insert(*id, *class);
                if self.depth(*id) > MOST_AROUND {
                    return fail("the tree is too deep");
                }
            }
            Change::Alter(id, class) => match self.0.classes.get_mut(id) {
                Some(now) if now.parent == class.parent => *now = *class,
                _ => return fail("no such class, or another class around it"),
            },
            Change::Leaf(kind) => {
                if !self.0.classes.contains_key(&OTHERS) || self.0.leaf.is_some() {
                    return fail("no class for it, or there is one");
                }
                self.0.leaf = Some(kind.clone());
            }
        }
        Ok(())
    }

    fn mark(&mut self, marks: &Marks) -> Result<(), String> {
        for (pair, mark) in marks {
            if !self.0.classes.contains_key(&mark.class) || self.has_children(mark.class) {
                return Err(format!("{pair:?}: {mark:?}: no class, or one with children"));
            }
        }
        self.0.marks.clone_from(marks);
        Ok(())
    }

    fn delete(&mut self, id: u16) -> Result<(), String> {
        if self.has_children(id) || self.is_marked(id) {
            return Err(format!("{id:x}: it has children or packets"));
        }
        self.0.classes.remove(&id).map(drop).ok_or_else(|| format!("{id:x}: no such class"))
    }

    fn run(&mut self, program: &Program) -> Result<(), String> {
        // Marks of classes that another hand removed have nothing to keep.
        let exists = |mark: &Mark| self.0.classes.contains_key(&mark.class);
        let marked = self.0.marks.iter().filter(|(_, mark)| exists(mark));
        let marked: Marks = marked.map(|(&pair, &mark)| (pair, mark)).collect();
        let keeps = |kernel: &Kernel| {
            let lost = marked.iter().find(|(_, mark)| !kernel.0.classes.contains_key(&mark.class));
            lost.map_or(Ok(()), |(pair, mark)| Err(format!("{pair:?}: {mark:?} has no class")))
        };
        for change in &program.before {
            self.change(change, &program.goal.marks)?;
            keeps(self)?;
        }
        if let Some(marks) = &program.marks {
            self.mark(marks)?;
        }
        program.after.iter().try_for_each(|&id| self.delete(id))
    }
}

fn compare(state: &State, wanted: &Wanted) -> Program {
    difference(state, wanted, &Marks::new()).expect("few classes")
}

fn pair(number: u8) -> Pair {
    let address = |last: u8| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
    Pair { source: address(1), destination: address(10 + number) }
}

/// Trees in which each of eight pairs belongs to one of six workloads or to none.
fn wanted() -> impl Strategy<Value = Wanted> {
    let limit = (1_u64..2_000_000_000, 1_u32..1_000_000).prop_map(|(rate, burst)| Limit { rate, burst });
    let workload = (0_u8..8, proptest::collection::vec(limit, 0..=7));
    let owners = proptest::collection::vec(0_usize..8, 8);
    let leaf = proptest::option::of(Just("fq_codel".to_owned()));
    (proptest::collection::vec(workload, 6), owners, 1_000_u64..20_000_000_000, leaf).prop_map(
        |(workloads, owners, link, leaf)| {
            let pairs = |at: usize| -> BTreeSet<Pair> {
                (0..)
                    .zip(&owners)
                    .filter(|&(_, &owner)| owner == at)
                    .map(|(number, _)| pair(number))
                    .collect()
            };
            let all = workloads.into_iter().enumerate().map(|(at, (level, limits))| WantedWorkload {
                names: vec![format!("w{at}")],
                level,
                limits,
                pairs: pairs(at),
            });
            let workloads = all.filter(|workload| !workload.pairs.is_empty()).collect();
            Wanted { link, leaf, workloads }
        },
    )
}

/// Mutations by another hand, as `tc` and `nft` allow them.
fn damage() -> impl Strategy<Value = Vec<(u8, u16, u64)>> {
    proptest::collection::vec((0_u8..5, 0_u16..40, 1_u64..1_000_000), 0..6)
}

fn apply_damage(state: &mut State, damage: &[(u8, u16, u64)]) {
    for &(kind, number, value) in damage {
        let ids: Vec<u16> = state.classes.keys().copied().collect();
        let picked = ids.get(usize::from(number) % ids.len().max(1)).copied();
        match (kind, picked) {
            (0, Some(id)) if !state.classes.values().any(|class| class.parent == id) => {
                state.classes.remove(&id);
                if id == OTHERS {
                    state.leaf = None;
                }
            }
            (1, Some(id)) => {
                state.classes.entry(id).and_modify(|class| class.ceil = value);
            }
            (2, Some(parent)) => {
                let id = 0x100 + number;
                state.classes.entry(id).or_insert(Class::limited(parent, Limit { rate: value, burst: 1 }, 0));
            }
            (3, _) => {
                state.marks.remove(&pair(number as u8 % 8));
            }
            (4, _) => {
                state.marks.insert(pair(number as u8 % 8), Mark { class: FIRST + number, level: 1 });
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn each_program_leads_to_the_wanted_state_and_loses_no_packet(
        trees in proptest::collection::vec(wanted(), 1..6),
    ) {
        let mut kernel = Kernel(State::default());
        for tree in trees {
            let program = compare(&kernel.0, &tree);
            prop_assert!(!program.rebuild);
            let result = kernel.run(&program);
            prop_assert!(result.is_ok(), "{:?}", result);
            prop_assert_eq!(&kernel.0, &program.goal);
            // The state is the wanted one.
            for (workload, &class) in tree.workloads.iter().zip(&program.classes) {
                for pair in &workload.pairs {
                    let mark = Mark { class, level: workload.level };
                    prop_assert_eq!(kernel.0.marks.get(pair), Some(&mark));
                }
                let chain = kernel.0.chain(class).expect("below the link");
                prop_assert_eq!(chain.len(), workload.depth());
                for (&id, &limit) in chain.iter().zip(&workload.limits) {
                    let class = kernel.0.classes[&id];
                    prop_assert!(class.is_like(&Class::limited(class.parent, limit, class.prio)));
                }
                prop_assert_eq!(kernel.0.classes[&class].prio, workload.level);
            }
            let depths: usize = tree.workloads.iter().map(WantedWorkload::depth).sum();
            prop_assert_eq!(kernel.0.classes.len(), depths + 2);
            let pairs: usize = tree.workloads.iter().map(|workload| workload.pairs.len()).sum();
            prop_assert_eq!(kernel.0.marks.len(), pairs);
            // Nothing is left to do.
            let again = compare(&kernel.0, &tree);
            prop_assert!(again.is_empty() && again.after.is_empty(), "{:?}", again);
        }
    }

    #[test]
    fn a_workload_keeps_its_class_while_the_number_of_its_limits_stays(
        tree in wanted(), levels in proptest::collection::vec(0_u8..8, 6), rate in 1_u64..1_000_000_000,
    ) {
        let mut kernel = Kernel(State::default());
        let first = compare(&kernel.0, &tree);
        kernel.run(&first).expect("a program for nothing");
        let mut changed = tree.clone();
        for (workload, level) in changed.workloads.iter_mut().zip(levels) {
            workload.level = level;
            workload.limits.iter_mut().for_each(|limit| limit.rate = rate);
        }
        let second = compare(&kernel.0, &changed);
        prop_assert_eq!(&second.classes, &first.classes);
        prop_assert!(second.after.is_empty());
        prop_assert!(second.before.iter().all(|change| matches!(change, Change::Alter(..))), "{:?}", second);
    }

    #[test]
    fn classes_stay_if_another_hand_removed_the_marks_or_the_qdisc(tree in wanted(), is_rooted: bool) {
        let mut kernel = Kernel(State::default());
        let first = compare(&kernel.0, &tree);
        kernel.run(&first).expect("a program for nothing");
        let known = kernel.0.marks.clone();
        if is_rooted {
            kernel.0.marks.clear();
        } else {
            kernel.0 = State { marks: known.clone(), ..State::default() };
        }
        let program = difference(&kernel.0, &tree, &known).expect("few classes");
        prop_assert_eq!(&program.classes, &first.classes);
        prop_assert!(program.after.is_empty());
        kernel.run(&program).expect("it loses no packet");
        prop_assert_eq!(&kernel.0.marks, &known);
    }

    #[test]
    fn changes_by_another_hand_are_mended(tree in wanted(), damage in damage()) {
        let mut kernel = Kernel(State::default());
        kernel.run(&compare(&kernel.0, &tree)).expect("a program for nothing");
        apply_damage(&mut kernel.0, &damage);
        let program = compare(&kernel.0, &tree);
        if program.rebuild {
            kernel.0 = State { marks: kernel.0.marks, ..State::default() };
        }
        let result = kernel.run(&program);
        prop_assert!(result.is_ok(), "{:?} {:?}", result, program);
        prop_assert_eq!(&kernel.0, &program.goal);
        let again = compare(&kernel.0, &tree);
        prop_assert!(again.is_empty() && again.after.is_empty(), "{:?}", again);
    }
}

#[test]
fn a_root_without_the_class_of_the_link_is_built_again() {
    let mut state = State { is_rooted: true, ..State::default() };
    state.classes.insert(0x99, Class::limited(0, Limit { rate: 1, burst: 1 }, 0));
    let tree = Wanted { link: 1_000_000, leaf: None, workloads: Vec::new() };
    let elsewhere = State { is_rooted: true, misses_default: true, ..State::default() };
    assert!(compare(&elsewhere, &tree).rebuild);
    let program = compare(&state, &tree);
    assert!(program.rebuild);
    assert_eq!(
        program.before,
        [
            Change::Root,
            Change::Add(LINK, Class::link(1_000_000)),
            Change::Add(OTHERS, Class::others(1_000_000))
        ]
    );
}
