//! The program that turns the state of an interface into the wanted one without a gap: a pure function.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Class, FIRST, LINK, Mark, Marks, OTHERS, Pair, State, Wanted};

/// A change of the qdisc or a class. It affects no packets that have marks, or only how fast they leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Adds the root qdisc. Packets pass it unqueued until their classes are there.
    Root,
    /// Adds a class.
    Add(u16, Class),
    /// Changes the rates, bursts and the priority of a class. Its queued packets stay.
    Alter(u16, Class),
    /// Adds a qdisc of this kind for all other packets.
    Leaf(String),
}

/// Changes in their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// True if the root qdisc has to be removed first, because its classes cannot be changed into the wanted ones. Only
    /// changes by another hand cause this.
    pub rebuild: bool,
    /// Changes before packets are marked.
    pub before: Vec<Change>,
    /// New marks of all packets, in one transaction; `None` if they stay.
    pub marks: Option<Marks>,
    /// Classes to delete when their queues are empty, children first.
    pub after: Vec<u16>,
    /// State after the program.
    pub goal: State,
    /// Class of each wanted workload, in order.
    pub classes: Vec<u16>,
}

impl Program {
    /// True if nothing has to be changed, apart from classes that wait for their deletion.
    pub fn is_empty(&self) -> bool {
        !self.rebuild && self.before.is_empty() && self.marks.is_none()
    }
}

/// More classes than a qdisc of HTB can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the workloads need more classes than HTB has numbers (65535)")]
pub struct TooManyClasses;

/// Difference from the state of an interface to the wanted one. A workload keeps its class if it has the same number of
/// limits as before; its class is found by the marks of its addresses, or by those that are `known` from before another
/// hand removed them. Every other workload gets new classes, to which its packets are switched before the old ones go.
///
/// # Errors
/// [`TooManyClasses`].
pub fn difference(current: &State, wanted: &Wanted, known: &Marks) -> Result<Program, TooManyClasses> {
    let rebuild = current.is_rooted && !is_compatible(current);
    let emptied = State { marks: current.marks.clone(), ..State::default() };
    let base = if rebuild { &emptied } else { current };
    let mut builder = Builder { base, before: Vec::new(), goal: State::default(), claimed: BTreeSet::new() };
    if !base.is_rooted {
        builder.before.push(Change::Root);
    }
    builder.goal.is_rooted = true;
    builder.class(LINK, Class::link(wanted.link));
    let is_new = !base.classes.contains_key(&OTHERS);
    builder.class(OTHERS, Class::others(wanted.link));
    if is_new {
        builder.goal.leaf.clone_from(&wanted.leaf);
        builder.before.extend(wanted.leaf.clone().map(Change::Leaf));
    } else {
        // Another qdisc would lose the packets that wait in this one.
        builder.goal.leaf.clone_from(&base.leaf);
    }
    let mut free = Numbers::without(base);
    let children = base.children();
    let marked = base.marks.values().fold(BTreeMap::<u16, usize>::new(), |mut marked, mark| {
        *marked.entry(mark.class).or_default() += 1;
        marked
    });
    let mut classes = Vec::with_capacity(wanted.workloads.len());
    for workload in &wanted.workloads {
        let former = |pair: &Pair| {
            [base.marks.get(pair), known.get(pair)].into_iter().flatten().map(|mark| mark.class)
        };
        let kept = workload
            .pairs
            .iter()
            .flat_map(former)
            .filter_map(|class| base.chain(class))
            .find(|chain| chain.len() == workload.depth() && builder.is_free(chain, &children));
        // The number of a class that is gone is used again if no other packets have it.
        let is_own = |class: u16| {
            let own = workload
                .pairs
                .iter()
                .filter(|pair| base.marks.get(*pair).is_some_and(|mark| mark.class == class));
            own.count() == marked.get(&class).copied().unwrap_or(0)
        };
        let gone = workload.pairs.iter().flat_map(former).find(|&class| {
            let is_free =
                class >= FIRST && !base.classes.contains_key(&class) && !builder.claimed.contains(&class);
            is_free && is_own(class)
        });
        let chain = match kept {
            Some(chain) => chain,
            None => {
                let count = workload.depth() - usize::from(gone.is_some());
                let mut chain = Vec::with_capacity(workload.depth());
                while chain.len() < count {
                    let number = free.next().ok_or(TooManyClasses)?;
                    if !builder.claimed.contains(&number) && Some(number) != gone {
                        chain.push(number);
                    }
                }
                chain.extend(gone);
                chain
            }
        };
        let mut parent = LINK;
        for (at, &id) in chain.iter().enumerate() {
            // Only the priority of the innermost class counts.
            let prio = if at + 1 == chain.len() { workload.level } else { 0 };
            let class = match workload.limits.get(at) {
                Some(&limit) => Class::limited(parent, limit, prio),
                None => Class::unlimited(wanted.link, prio),
            };
            builder.class(id, class);
            parent = id;
        }
        builder.claimed.extend(&chain);
        let mark = Mark { class: parent, level: workload.level };
        builder.goal.marks.extend(workload.pairs.iter().map(|&pair| (pair, mark)));
        classes.push(parent);
    }
    let Builder { before, goal, .. } = builder;
    let marks = (goal.marks != current.marks).then(|| goal.marks.clone());
    let after = childless_first(base, &goal);
    Ok(Program { rebuild, before, marks, after, goal, classes })
}

/// True if unclassified packets go where they should, and the classes of the link and of all other packets are there as
/// the enforcer makes them, or not at all.
fn is_compatible(state: &State) -> bool {
    if state.misses_default {
        return false;
    }
    if state.classes.is_empty() {
        return true;
    }
    let is_below = |id: u16, parent: u16| state.classes.get(&id).is_some_and(|class| class.parent == parent);
    let has_children = state.classes.values().any(|class| class.parent == OTHERS);
    let others = !state.classes.contains_key(&OTHERS) || is_below(OTHERS, LINK);
    is_below(LINK, 0) && others && !has_children
}

struct Builder<'s> {
    base: &'s State,
    before: Vec<Change>,
    goal: State,
    /// Classes that a workload keeps or gets.
    claimed: BTreeSet<u16>,
}

impl Builder<'_> {
    /// Adds a class to the goal, and the change that makes it.
    fn class(&mut self, id: u16, class: Class) {
        let change = match self.base.classes.get(&id) {
            None => Some(Change::Add(id, class)),
            Some(now) if now.is_like(&class) => None,
            Some(_) => Some(Change::Alter(id, class)),
        };
        // A class that stays keeps its bursts as the kernel rounds them.
        let kept = if change.is_none() { self.base.classes.get(&id).copied() } else { None };
        self.before.extend(change);
        self.goal.classes.insert(id, kept.unwrap_or(class));
    }

    /// True if no workload has these classes yet, and no other class is within them.
    fn is_free(&self, chain: &[u16], children: &BTreeMap<u16, Vec<u16>>) -> bool {
        let within = |at: usize| children.get(&chain[at]).map_or(&[][..], Vec::as_slice);
        (0..chain.len()).all(|at| {
            chain[at] >= FIRST
                && !self.claimed.contains(&chain[at])
                && within(at) == chain.get(at + 1).copied().as_slice()
        })
    }
}

/// Numbers of new classes, in order. Numbers of present classes and of present marks are left out: packets with such a
/// mark would enter the class of another workload.
struct Numbers {
    used: BTreeSet<u16>,
    next: Option<u16>,
}

impl Numbers {
    fn without(state: &State) -> Numbers {
        let marked = state.marks.values().map(|mark| mark.class);
        Numbers { used: state.classes.keys().copied().chain(marked).collect(), next: Some(FIRST) }
    }
}

impl Iterator for Numbers {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        loop {
            let number = self.next?;
            self.next = number.checked_add(1);
            if !self.used.contains(&number) {
                return Some(number);
            }
        }
    }
}

/// Classes that the goal does not have, children before the classes around them.
fn childless_first(base: &State, goal: &State) -> Vec<u16> {
    let depth = |id: u16| {
        let parents = std::iter::successors(base.classes.get(&id), |class| base.classes.get(&class.parent));
        // A broken reading may have a circle.
        parents.take(base.classes.len()).count()
    };
    let mut gone: Vec<u16> =
        base.classes.keys().copied().filter(|id| !goal.classes.contains_key(id)).collect();
    gone.sort_by_key(|&id| (std::cmp::Reverse(depth(id)), id));
    gone
}
