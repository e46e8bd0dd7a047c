//! Status of an enforcer: each workload with its class, its state in the kernel and its counters.

use leeward_fabric::input::InputError;
use serde::Serialize;

use crate::difference::{Program, difference};
use crate::error::{EnforceError, StartError};
use crate::facts;
use crate::interface::{Interface, Reading};
use crate::nft;
use crate::plan::{Plan, plan};
use crate::promises::{HostPromises, LeftOut};
use crate::settings::Settings;
use crate::sources::read_once;
use crate::state_file::{self, Taken};
use crate::tc::{ClassCounters, Root};
use crate::tree::{BEST_EFFORT, Marks, OTHERS, class_id, dscp};

/// Status of a host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// Name of the host.
    pub host: String,
    /// Version of the promises; `None` for those of a file.
    pub version: Option<u64>,
    /// Interfaces.
    pub interfaces: Vec<InterfaceStatus>,
    /// Workloads of each interface, in the order of the promises.
    pub workloads: Vec<WorkloadStatus>,
    /// Notes about limits.
    pub notes: Vec<String>,
}

impl Status {
    /// True if the kernel has every promise.
    pub fn is_enforced(&self) -> bool {
        let workloads = self.workloads.iter().all(|one| matches!(one.state, "enforced" | "best-effort"));
        self.interfaces.iter().all(|one| one.problem.is_none()) && workloads
    }
}

/// Status of an interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct InterfaceStatus {
    /// Name of the interface.
    pub interface: String,
    /// Rate of the link in bytes per second; `None` if it is unknown.
    pub rate_bytes_s: Option<u64>,
    /// Difference from the promises, or the reason why nothing is enforced.
    pub problem: Option<String>,
    /// Bytes of all other packets; `None` if nothing is enforced.
    pub other_bytes: Option<u64>,
}

/// A token bucket that is enforced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LimitStatus {
    /// Rate in bytes per second.
    pub rate_bytes_s: u64,
    /// Burst in bytes.
    pub burst_bytes: u32,
}

/// Status of a workload at an interface. Workloads of one class have its counters in common.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WorkloadStatus {
    /// Name of the interface.
    pub interface: String,
    /// Name of the workload.
    pub workload: String,
    /// Direction of its packets: `to-server` or `to-client`.
    pub direction: &'static str,
    /// Priority, 0 first; `None` for best effort.
    pub priority: Option<u32>,
    /// DSCP of its packets, such as `cs7`.
    pub dscp: Option<String>,
    /// Class of its packets; `None` without one.
    pub class: Option<String>,
    /// Enforced limits, which hold at once.
    pub limits: Vec<LimitStatus>,
    /// `enforced`, `missing` (the kernel differs), `left-out` (it cannot be enforced), `best-effort` (without a class), or
    /// `planned` in a dry run.
    pub state: &'static str,
    /// Reason why it is left out.
    pub why: Option<String>,
    /// Bytes that were sent.
    pub bytes: Option<u64>,
    /// Packets that were sent.
    pub packets: Option<u64>,
    /// Packets that were dropped, because the queue was full.
    pub drops: Option<u64>,
    /// Times at which a limit held packets back.
    pub overlimits: Option<u64>,
    /// Bytes that wait.
    pub waiting_bytes: Option<u64>,
}

/// Compares the kernel with the promises. An enforcer may run meanwhile.
///
/// # Errors
/// A [`StartError`] for an invalid file, or if `tc` or `nft` fails.
pub fn status(settings: &Settings) -> Result<Status, StartError> {
    let (promises, left_out) = read_once(settings)?;
    let taken = state_file::read(&settings.state)?;
    let names = names_of(settings, &taken)?;
    let mut status = Status {
        host: promises.host.clone(),
        version: promises.version,
        interfaces: Vec::with_capacity(names.len()),
        workloads: Vec::new(),
        notes: Vec::new(),
    };
    for name in &names {
        let reading = Interface::new(name).read(taken.get(name).copied())?;
        let facts = facts::read(name, settings.rate, reading.as_ref().and_then(Reading::link));
        let problem = problem_of(reading.as_ref(), taken.contains_key(name));
        let facts = match facts {
            Ok(facts) => facts,
            Err(error) => {
                let is_default = reading.is_some_and(|reading| reading.root == Root::Default);
                let problem = problem.filter(|_| !is_default).or_else(|| Some(without_name(name, &error)));
                let interface = name.clone();
                let none = InterfaceStatus { interface, rate_bytes_s: None, problem, other_bytes: None };
                status.interfaces.push(none);
                continue;
            }
        };
        let plan = plan(&promises, &facts);
        let current = reading.as_ref().map(|reading| reading.state.clone()).unwrap_or_default();
        let program = difference(&current, &plan.wanted, &Marks::new()).map_err(EnforceError::from)?;
        let has_rules =
            reading.as_ref().and_then(|reading| reading.rules.as_deref()).is_some_and(nft::has_rules);
        let differs = || (!program.is_empty()).then(|| "the kernel differs from the promises".to_owned());
        let lacks = || (!has_rules).then(|| "rules of nftables are missing".to_owned());
        let others = reading.as_ref().and_then(|reading| reading.counters.get(&OTHERS));
        status.interfaces.push(InterfaceStatus {
            interface: name.clone(),
            rate_bytes_s: Some(facts.link),
            problem: problem.or_else(differs).or_else(lacks),
            other_bytes: others.map(|count| count.bytes),
        });
        let compare = Some(reading.as_ref());
        status.workloads.extend(rows(name, &promises, &plan, &program, &left_out, compare));
        status.notes.extend(plan.notes.iter().map(|note| format!("{name}: {note}")));
    }
    Ok(status)
}

/// Interfaces to compare: the named ones, or those that an enforcer programs, or all physical ones.
fn names_of(settings: &Settings, taken: &Taken) -> Result<Vec<String>, InputError> {
    match settings.interfaces.is_empty() && !taken.is_empty() {
        true => Ok(taken.keys().cloned().collect()),
        false => facts::interfaces(&settings.interfaces),
    }
}

/// Reason why an interface is not enforced, by what the kernel has; `None` if the enforcer's root qdisc is there.
fn problem_of(reading: Option<&Reading>, is_taken: bool) -> Option<String> {
    match reading.map(|reading| &reading.root) {
        None => Some("no such interface".to_owned()),
        Some(Root::Default) => Some("not enforced".to_owned()),
        Some(Root::Foreign { qdisc }) => Some(format!("the root qdisc `{qdisc}` belongs to another owner")),
        Some(Root::Own { .. }) if !is_taken => Some("the state file does not have it".to_owned()),
        Some(Root::Own { .. }) => None,
    }
}

/// Message of an error about an interface that is named beside it.
fn without_name(name: &str, error: &EnforceError) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_owned()
}

/// Rows of an interface. `compare` has the reading to compare with; without it, workloads are planned.
pub(crate) fn rows(
    interface: &str,
    promises: &HostPromises,
    plan: &Plan,
    program: &Program,
    left_out: &[LeftOut],
    compare: Option<Option<&Reading>>,
) -> Vec<WorkloadStatus> {
    let mut rows = Vec::with_capacity(promises.workloads.len() + left_out.len());
    for (promise, of) in promises.workloads.iter().zip(&plan.of_promise) {
        let mut row = WorkloadStatus::empty(interface, &promise.name);
        row.direction = promise.direction.name();
        row.priority = promise.priority;
        match *of {
            Some(at) => {
                let (wanted, class) = (&plan.wanted.workloads[at], program.classes[at]);
                row.dscp = Some(dscp(wanted.level));
                row.class = Some(class_id(class));
                let limit = |limit: &crate::limits::Limit| LimitStatus {
                    rate_bytes_s: limit.rate,
                    burst_bytes: limit.burst,
                };
                row.limits = wanted.limits.iter().map(limit).collect();
                row.state = match compare {
                    None => "planned",
                    Some(Some(reading)) if is_enforced(reading, program, at, plan) => "enforced",
                    Some(_) => "missing",
                };
                let counters = compare.flatten().and_then(|reading| reading.counters.get(&class));
                row.count(counters.copied().filter(|_| row.state == "enforced"));
            }
            None => match plan.left_out.iter().find(|left| left.workload == promise.name) {
                Some(left) => (row.state, row.why) = ("left-out", Some(left.why.clone())),
                None => (row.state, row.dscp) = ("best-effort", Some(dscp(BEST_EFFORT))),
            },
        }
        rows.push(row);
    }
    for left in left_out {
        let mut row = WorkloadStatus::empty(interface, &left.workload);
        (row.state, row.why) = ("left-out", Some(left.why.clone()));
        rows.push(row);
    }
    rows
}

/// True if the kernel has the classes of a workload and the marks of its packets.
fn is_enforced(reading: &Reading, program: &Program, at: usize, plan: &Plan) -> bool {
    let (goal, state) = (&program.goal, &reading.state);
    let same_class = |id: &u16| state.classes.get(id) == goal.classes.get(id);
    let chain = goal.chain(program.classes[at]).unwrap_or_default();
    let mut pairs = plan.wanted.workloads[at].pairs.iter();
    chain.iter().all(same_class) && pairs.all(|pair| state.marks.get(pair) == goal.marks.get(pair))
}

impl WorkloadStatus {
    fn empty(interface: &str, workload: &str) -> WorkloadStatus {
        WorkloadStatus {
            interface: interface.to_owned(),
            workload: workload.to_owned(),
            direction: "",
            priority: None,
            dscp: None,
            class: None,
            limits: Vec::new(),
            state: "",
            why: None,
            bytes: None,
            packets: None,
            drops: None,
            overlimits: None,
            waiting_bytes: None,
        }
    }

    fn count(&mut self, counters: Option<ClassCounters>) {
        self.bytes = counters.map(|count| count.bytes);
        self.packets = counters.map(|count| count.packets);
        self.drops = counters.map(|count| count.drops);
        self.overlimits = counters.map(|count| count.overlimits);
        self.waiting_bytes = counters.map(|count| count.backlog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::Hook;
    use crate::settings::Arguments;

    #[test]
    fn the_interfaces_of_the_state_file_come_before_the_physical_ones() {
        let settings = |interfaces: &[&str]| {
            let interfaces = interfaces.iter().map(|&name| name.to_owned()).collect();
            let arguments =
                Arguments { interfaces, workloads: Some("w.yaml".to_owned()), ..Arguments::default() };
            Settings::new(arguments).expect("valid settings")
        };
        let taken = Taken::from([("bond0".to_owned(), Hook::Egress), ("eth7".to_owned(), Hook::Egress)]);
        assert_eq!(names_of(&settings(&[]), &taken), Ok(vec!["bond0".to_owned(), "eth7".to_owned()]));
        assert_eq!(names_of(&settings(&["br0"]), &taken), Ok(vec!["br0".to_owned()]));
        // No interface at all is an error, as it is for an enforcer.
        assert_eq!(names_of(&settings(&[]), &Taken::new()), facts::interfaces(&[]));
    }

    #[test]
    fn a_problem_names_no_interface_and_a_missing_one_is_no_question_of_its_speed() {
        assert_eq!(problem_of(None, false).as_deref(), Some("no such interface"));
        let unknown = without_name("eth0", &EnforceError::NoRate("eth0".to_owned()));
        assert_eq!(unknown, "the speed of the interface is unknown; --rate states it");
        let system =
            EnforceError::System { what: "getifaddrs".to_owned(), error: std::io::Error::other("no") };
        assert_eq!(without_name("eth0", &system), "getifaddrs: no");
    }
}
