//! Run of a scenario in a lab that lasts as long as the run.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_packets::workload::{Driver, Place};
use leeward_packets::{Outcome, Plan, Scenario, Settings};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::bpf::{Bpf, Counters};
use crate::cgroup::{self, Membership};
use crate::clock::Clock;
use crate::error::LabError;
use crate::hosts::{Hosts, Nics, Programs};
use crate::kernel::KernelSettings;
use crate::kernel_parts::KernelParts;
use crate::names::LabName;
use crate::switch::{Shared, SwitchLoop};
use crate::timing::Timing;
use crate::traffic::{self, Traffic};

/// Real time between reports of progress.
const REPORT: Duration = Duration::from_millis(100);

/// Open files that a process may have for other purposes.
const OTHER_FILES: u64 = 256;

/// Options of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Name of the lab.
    pub name: LabName,
    /// Real nanoseconds for each virtual one.
    pub dilation: u32,
    /// Largest lateness of 99 % of the packets, in virtual time. Without it, the caller judges the timing.
    pub bound: Option<Nanos>,
    /// Parts in C that the lab may use.
    pub parts: KernelParts,
}

/// Result of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Records as of the simulator.
    pub outcome: Outcome,
    /// Timing of the lab.
    pub timing: Timing,
    /// Counters of the kernels' BPF programs.
    pub counters: Vec<(String, Counters)>,
    /// Settings of the scenario that the kernels did not follow, one sentence each.
    pub notes: Vec<String>,
}

/// Runs a scenario on kernels of this machine. `progress` receives the elapsed share of the horizon and returns false to
/// stop the run. Whatever happens, everything that the lab made is removed.
///
/// # Errors
/// Returns an error without root or TUN devices, for a scenario that kernels cannot run, if a schedule fails, or if the
/// timing drifted past its bound.
pub fn run(scenario: &Scenario, options: &Options, progress: &dyn Fn(f64) -> bool) -> Result<Run, LabError> {
    let mut settings = scenario.settings().clone();
    let dilation = options.dilation.max(1);
    let driver = Driver::new(scenario.workload().clone());
    traffic::check(&driver)?;
    let mut kernel = KernelSettings::of(&settings, dilation, &options.parts)?;
    announce_divisions(&mut settings);
    let settings = &settings;
    let nics = Nics::of(settings, dilation);
    let racks = settings.switch.racks;
    let places = places_of(scenario);
    raise_open_files(scenario.workload().flows().len(), places.len())?;
    let loader = options.parts.loader().ok();
    let group = loader.as_ref().map(|_| cgroup::folder(&options.name)).transpose()?;
    let programs = Programs { group: group.clone(), ..Programs::default() };
    let hosts = Hosts::make(&options.name, places, &nics, &kernel, programs, &|_| progress(0.0))?;
    let programs = match (loader, group) {
        (Some(loader), Some(group)) => {
            let membership = Membership::join(group)?;
            match Bpf::attach(&loader, membership.folder(), &kernel.bpf)? {
                Ok(bpf) => Some((bpf, membership)),
                Err(reason) => {
                    kernel.without_programs(&reason);
                    None
                }
            }
        }
        _ => None,
    };
    let clock = Clock::start(dilation);
    let plan = scenario.plan();
    let demand = match &plan {
        Plan::Weekly { demand, .. } => Some(*demand),
        _ => None,
    };
    let shared = Shared::new(racks, demand, scenario.placer()?);
    let horizon = scenario.horizon();
    let mut switch = SwitchLoop::new(settings, plan, &shared, clock, &hosts, kernel.mtu)?;
    if let Some(bound) = options.bound {
        switch.end_when_late(bound, horizon);
    }
    let is_stopped = AtomicBool::new(false);
    let (switched, carried) = thread::scope(|scope| {
        let switching = scope.spawn(|| stop_after(&shared, || switch.run()));
        let carrying = scope.spawn(|| {
            stop_after(&shared, || {
                let (name, places) = (&options.name, hosts.places());
                Traffic::new(settings, &shared, clock, driver, name, places, &kernel.control)?.run(horizon)
            })
        });
        while !switching.is_finished() || !carrying.is_finished() {
            thread::sleep(REPORT);
            let elapsed = shared.begin().map_or(Nanos(0), |begin| clock.now().since(begin));
            let share = (elapsed.0 as f64 / horizon.0.max(1) as f64).min(1.0);
            if !is_stopped.load(Ordering::Relaxed) && !progress(share) {
                is_stopped.store(true, Ordering::Relaxed);
                shared.stop();
            }
        }
        let join = "a thread of the lab panicked";
        (switching.join().expect(join), carrying.join().expect(join))
    });
    if is_stopped.load(Ordering::Relaxed) {
        return Err(LabError::Stopped);
    }
    // A scheduler that failed is the reason why the traffic stopped.
    let (mut records, mut timing, bytes_in_switch) = switched?;
    let (of_traffic, ended) = carried?;
    records.flows = of_traffic.flows;
    records.blocks = of_traffic.blocks;
    let drops = hosts.drops()?;
    (timing.nic_drops, timing.device_drops) = (drops.nic, drops.device);
    let mut notes = std::mem::take(&mut kernel.notes);
    if hosts.memory_shortages()? > 0 {
        notes.push("net.ipv4.tcp_mem: the kernel was short of memory for TCP, and closed windows".to_owned());
    }
    let mut counters = Vec::new();
    if let Some((bpf, _membership)) = programs {
        let (of_programs, remarks) = bpf.finish()?;
        counters = of_programs;
        notes.extend(remarks);
    }
    if let Some(bound) = options.bound {
        timing.check(bound)?;
    }
    Ok(Run { outcome: Outcome { records, ended, bytes_in_switch }, timing, counters, notes })
}

/// Places of all hosts, rack by rack.
pub(crate) fn all_places(settings: &Settings) -> Vec<Place> {
    (0..settings.switch.racks as u32)
        .flat_map(|rack| (0..settings.hosts_per_rack as u32).map(move |host| Place { rack, host }))
        .collect()
}

/// Lets the switch announce circuits to TDTCP by the marks of reTCP. The simulator tells its hosts without a packet.
pub(crate) fn announce_divisions(settings: &mut Settings) {
    if settings.tcp.divisions > 1 {
        settings.switch.circuit_marks = Some(Nanos(0));
    }
}

/// Places of the hosts that a scenario needs, rack by rack: all if copies may be placed anywhere, or else those of its
/// flows.
fn places_of(scenario: &Scenario) -> Vec<Place> {
    let all = all_places(scenario.settings());
    if !scenario.workload().blocks().is_empty() {
        return all;
    }
    let used: HashSet<Place> =
        scenario.workload().flows().iter().flat_map(|flow| [flow.source, flow.destination]).collect();
    all.into_iter().filter(|place| used.contains(place)).collect()
}

/// Raises the limit on open files of this process, if flows and hosts need more.
pub(crate) fn raise_open_files(flows: usize, hosts: usize) -> Result<(), LabError> {
    let needed = 2 * flows as u64 + 2 * hosts as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // Root may also raise the limit of the limit.
    let most = limit.maximum.map(|most| most.max(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: most }).map_err(|_| {
        let most = limit.maximum.unwrap_or(needed);
        let problem = format!("{flows} flows need {needed} open files, and this process may have {most}");
        LabError::Unsupported { field: "workload", problem }
    })
}

/// Runs a part of the lab, and stops the other parts when it ends.
pub(crate) fn stop_after<T>(
    shared: &Shared,
    part: impl FnOnce() -> Result<T, LabError>,
) -> Result<T, LabError> {
    struct Stop<'a>(&'a Shared);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.stop();
        }
    }
    // The other parts stop even if this one panics.
    let _stop = Stop(shared);
    part()
}
