//! One interface: readings of the kernel's state, and programs that change it.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use nix::net::if_::if_nametoindex;

use crate::classes::{self, Classes};
use crate::difference::{Change, Program};
use crate::error::EnforceError;
use crate::nft::{self, Hook, Listing};
use crate::programs::run;
use crate::tc::{self, ClassCounters, Root};
use crate::tree::{LINK, Marks, State};

/// Messages of `tc` and `nft` about something that does not exist.
const NO_DEVICE: &str = "Cannot find device";
const NO_TABLE: &str = "No such file or directory";
/// Messages of `tc` about a kind of qdisc that the kernel does not have. Before Linux 4.16 it is that of a missing file.
const NO_KIND: [&str; 2] = ["qdisc kind is unknown", "No such file or directory"];
/// Looks at queues that drain, and the time between them.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// State of an interface.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Root qdisc.
    pub root: Root,
    /// The enforcer's part. Without its root qdisc, it has marks at most.
    pub state: State,
    /// Counters of classes.
    pub counters: BTreeMap<u16, ClassCounters>,
    /// Chains and rules of the table, as [`Listing::rules`]; `None` without a table.
    pub rules: Option<String>,
}

impl Reading {
    /// Rate of the enforcer's link, in bytes per second; `None` without one.
    pub fn link(&self) -> Option<u64> {
        self.state.classes.get(&LINK).map(|class| class.ceil)
    }
}

/// An interface of this machine, in the network namespace of the calling thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    name: String,
}

impl Interface {
    /// The interface of a valid name; see [`Settings`](crate::Settings).
    pub(crate) fn new(name: &str) -> Interface {
        Interface { name: name.to_owned() }
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hook that works on this machine: packets are not marked by trial.
    ///
    /// # Errors
    /// An error if none works.
    pub(crate) fn detect_hook(&self) -> Result<Hook, EnforceError> {
        first_hook(|hook| {
            let table = nft::table(&self.name, hook, &Marks::new(), true);
            run("nft", &["-c", "-f", "-"], &table).map(drop)
        })
    }

    /// Reads the state; `None` if there is no such interface. The table is read at the given hook.
    ///
    /// # Errors
    /// An error if `tc` or `nft` fails, or if its output is not understood.
    pub(crate) fn read(&self, hook: Option<Hook>) -> Result<Option<Reading>, EnforceError> {
        let Some(root) = self.show(&["-j", "qdisc"])? else { return Ok(None) };
        let root = tc::read_root(&root).map_err(|problem| self.misread("tc qdisc show", problem))?;
        let mut state = State::default();
        let mut counters = BTreeMap::new();
        if let Root::Own { leaf, is_default_right } = &root {
            let Some(classes) = self.classes()? else { return Ok(None) };
            for (id, (class, count)) in classes {
                state.classes.insert(id, class);
                counters.insert(id, count);
            }
            state.is_rooted = true;
            state.leaf.clone_from(leaf);
            state.misses_default = !is_default_right;
        }
        let listing = hook.map(|hook| self.table(hook)).transpose()?.flatten();
        let (marks, rules) =
            listing.map_or((Marks::new(), None), |Listing { marks, rules }| (marks, Some(rules)));
        state.marks = marks;
        Ok(Some(Reading { root, state, counters, rules }))
    }

    /// The enforcer's classes; `None` if there is no such interface.
    fn classes(&self) -> Result<Option<Classes>, EnforceError> {
        let failed = EnforceError::system(format!("{}: classes", self.name));
        let Ok(index) = if_nametoindex(self.name.as_str()) else { return Ok(None) };
        match classes::read(index) {
            Ok(classes) => Ok(Some(classes)),
            // It went meanwhile.
            Err(_) if if_nametoindex(self.name.as_str()).is_err() => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Output of a command of `tc` that shows; `None` if there is no such interface.
    fn show(&self, words: &[&str]) -> Result<Option<String>, EnforceError> {
        let mut arguments = words.to_vec();
        arguments.extend(["show", "dev", &self.name]);
        match run("tc", &arguments, "") {
            Ok(text) => Ok(Some(text)),
            Err(EnforceError::Program { problem, .. }) if problem.contains(NO_DEVICE) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The enforcer's table; `None` if there is none.
    fn table(&self, hook: Hook) -> Result<Option<Listing>, EnforceError> {
        let text =
            listed(run("nft", &["-j", "list", "table", hook.family(), &nft::table_name(&self.name)], ""))?;
        let table = text.map(|text| nft::read_table(&text));
        table.transpose().map_err(|problem| self.misread("nft list table", problem))
    }

    fn misread(&self, program: &str, problem: String) -> EnforceError {
        EnforceError::Program { program: format!("{program} ({})", self.name), problem }
    }

    /// Carries out the part of a program that comes before deletions. With `marks_anyway`, the table is replaced even if
    /// its marks stay. If a command fails, the ones before it stay; packets still have their earlier classes.
    ///
    /// # Errors
    /// The error of the failed command.
    pub(crate) fn apply(
        &self,
        program: &Program,
        hook: Hook,
        clears: bool,
        marks_anyway: bool,
    ) -> Result<(), EnforceError> {
        if program.rebuild {
            self.batch(&tc::delete_root(&self.name))?;
        }
        let (roots, others): (Vec<&Change>, Vec<&Change>) =
            program.before.iter().partition(|change| **change == Change::Root);
        if !roots.is_empty() {
            self.batch(&tc::command(&self.name, &Change::Root)).map_err(root_error)?;
        }
        if !others.is_empty() {
            let lines: Vec<String> = others.iter().map(|change| tc::command(&self.name, change)).collect();
            self.batch(&lines.join("\n"))?;
        }
        if program.marks.is_some() || marks_anyway {
            run("nft", &["-f", "-"], &nft::table(&self.name, hook, &program.goal.marks, clears))?;
        }
        Ok(())
    }

    /// Deletes classes whose queues are empty, in this order, and waits a little for those that drain. Returns the classes
    /// that are left.
    ///
    /// # Errors
    /// The error of a failed command.
    pub(crate) fn retire(&self, classes: &[u16]) -> Result<Vec<u16>, EnforceError> {
        let mut left = classes.to_vec();
        for _ in 0..LOOKS {
            if left.is_empty() {
                break;
            }
            // Packets that got their mark before the switch may still be on their way into a queue.
            thread::sleep(PAUSE);
            let Some(reading) = self.read(None)? else { return Ok(Vec::new()) };
            let (kept, drained) = drained(&left, &reading);
            if !drained.is_empty() {
                let lines: Vec<String> = drained.iter().map(|&id| tc::delete(&self.name, id)).collect();
                self.batch(&lines.join("\n"))?;
            }
            left = kept;
        }
        Ok(left)
    }

    /// Removes the root qdisc if it is the enforcer's, and its table. The kernel then gives the interface its default
    /// qdisc. Returns false if there is no such interface.
    ///
    /// # Errors
    /// The error of a failed command.
    pub(crate) fn undo(&self, hook: Hook) -> Result<bool, EnforceError> {
        let reading = self.read(None)?;
        if reading.as_ref().is_some_and(|reading| matches!(reading.root, Root::Own { .. })) {
            self.batch(&tc::delete_root(&self.name))?;
        }
        run("nft", &["-f", "-"], &nft::delete_table(&self.name, hook))?;
        Ok(reading.is_some())
    }

    fn batch(&self, lines: &str) -> Result<(), EnforceError> {
        run("tc", &["-batch", "-"], &format!("{lines}\n")).map(drop)
    }
}

/// Error of the root qdisc: a message of `tc` that the kernel does not know the kind names HTB.
fn root_error(error: EnforceError) -> EnforceError {
    match error {
        EnforceError::Program { problem, .. } if NO_KIND.iter().any(|kind| problem.contains(kind)) => {
            EnforceError::NoHtb(problem)
        }
        other => other,
    }
}

/// The first hook that `check` accepts.
fn first_hook(check: impl Fn(Hook) -> Result<(), EnforceError>) -> Result<Hook, EnforceError> {
    let Err(egress) = check(Hook::Egress) else { return Ok(Hook::Egress) };
    match check(Hook::Postrouting) {
        Ok(()) => Ok(Hook::Postrouting),
        // Without the program, neither hook was checked.
        Err(error @ EnforceError::NotStarted { .. }) => Err(error),
        Err(error) => Err(EnforceError::NoMarks(format!("At egress: {egress}. After routing: {error}"))),
    }
}

/// The enforcer's table, if a listing of it succeeded; `None` if `nft` says that there is none.
fn listed(result: Result<String, EnforceError>) -> Result<Option<String>, EnforceError> {
    match result {
        Ok(text) => Ok(Some(text)),
        Err(EnforceError::Program { problem, .. }) if problem.contains(NO_TABLE) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Classes to keep for now and classes to delete, in this order. A class is kept if packets wait in it, or if a class
/// within it is kept. Classes that are already gone are neither.
fn drained(classes: &[u16], reading: &Reading) -> (Vec<u16>, Vec<u16>) {
    let (mut kept, mut gone): (Vec<u16>, Vec<u16>) = (Vec::new(), Vec::new());
    for &id in classes {
        if !reading.state.classes.contains_key(&id) {
            continue;
        }
        let waits = reading.counters.get(&id).is_some_and(|count| count.waiting > 0);
        let is_around = kept.iter().any(|inner| reading.state.classes[inner].parent == id);
        match waits || is_around {
            true => kept.push(id),
            false => gone.push(id),
        }
    }
    (kept, gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limit;
    use crate::tree::Class;

    fn failed(program: &str, problem: &str) -> EnforceError {
        EnforceError::Program { program: program.to_owned(), problem: problem.to_owned() }
    }

    fn missing(package: &'static str) -> EnforceError {
        let error = std::io::Error::from_raw_os_error(2);
        EnforceError::NotStarted { program: package.to_owned(), error, package }
    }

    #[test]
    fn a_kernel_without_htb_and_a_missing_program_are_different_errors() {
        for problem in
            ["Error: Specified qdisc kind is unknown.", "RTNETLINK answers: No such file or directory"]
        {
            let error = root_error(failed("tc -batch -", problem));
            assert!(matches!(&error, EnforceError::NoHtb(said) if said == problem), "{error}");
        }
        let busy = root_error(failed("tc -batch -", "RTNETLINK answers: Device or resource busy"));
        assert!(matches!(busy, EnforceError::Program { .. }), "{busy}");
        let error = root_error(missing("iproute2")).to_string();
        assert!(error.ends_with("No such file or directory (os error 2): is iproute2 installed?"), "{error}");
    }

    #[test]
    fn a_kernel_without_hooks_is_an_error_with_both_reasons() {
        let old = |hook| match hook {
            Hook::Egress => Err(failed("nft", "egress: Operation not supported")),
            Hook::Postrouting => Ok(()),
        };
        assert_eq!(first_hook(old).expect("one hook works"), Hook::Postrouting);
        let error = first_hook(|hook| Err(failed("nft", &format!("{}: not supported", hook.name()))));
        let error = error.expect_err("no hook").to_string();
        assert!(error.starts_with("nftables is unavailable, so packets cannot be marked"), "{error}");
        assert!(
            error.contains("egress: not supported") && error.contains("postrouting: not supported"),
            "{error}"
        );
        let error = first_hook(|_| Err(missing("nftables"))).expect_err("no program").to_string();
        assert!(error.ends_with("is nftables installed?"), "{error}");
    }

    #[test]
    fn a_missing_table_is_none_and_a_missing_program_an_error() {
        let none =
            listed(Err(failed("nft", "Error: No such file or directory; list table netdev leeward-eth0")));
        assert_eq!(none.expect("no table"), None);
        assert!(matches!(listed(Err(missing("nftables"))), Err(EnforceError::NotStarted { .. })));
    }

    #[test]
    fn classes_go_when_no_packet_waits_in_them_or_within() {
        let limit = Limit { rate: 1, burst: 1 };
        let mut state = State::default();
        for (id, parent) in [(0x10, LINK), (0x11, 0x10), (0x12, LINK), (0x13, LINK), (0x14, 0x13)] {
            state.classes.insert(id, Class::limited(parent, limit, 0));
        }
        let waiting = ClassCounters { waiting: 1, ..ClassCounters::default() };
        let counters = BTreeMap::from([(0x11, waiting), (0x12, ClassCounters::default())]);
        let root = Root::Own { is_default_right: true, leaf: None };
        let reading = Reading { root, state, counters, rules: None };
        let (kept, gone) = drained(&[0x11, 0x14, 0x10, 0x12, 0x13, 0x99], &reading);
        assert_eq!((kept, gone), (vec![0x11, 0x10], vec![0x14, 0x12, 0x13]));
    }
}
