//! A lab that stands until it is stopped, for programs that are run in it: a switch of circuits without traffic of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use leeward_packets::{Demand, Plan, Scenario};
use serde::Serialize;

use crate::bpf::Bpf;
use crate::cgroup;
use crate::clock::Clock;
use crate::drops::Drops;
use crate::error::LabError;
use crate::hosts::{Hosts, Nics, Programs};
use crate::kernel::KernelSettings;
use crate::live::Live;
use crate::names::LabName;
use crate::reports;
use crate::run::{Options, all_places, announce_divisions, raise_open_files, stop_after};
use crate::state::{self, Failure, State};
use crate::switch::{Shared, SwitchLoop};
use crate::timing::Timing;

/// Real time between views of the lab, and between reports of the kernel.
pub(crate) const VIEW: Duration = Duration::from_millis(250);
/// Views between readings of the hosts' counters.
const VIEWS_OF_DROPS: u32 = 4;
/// Real time between looks for the first view.
const FIRST_VIEW: Duration = Duration::from_millis(1);
const KERNEL_REPORTS: &str = "every_us=1000";

/// Environment of programs in a standing lab, and missing parts of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Variables of their environment.
    pub environment: Vec<(String, String)>,
    /// Missing parts of the lab, each with the reason.
    pub notes: Vec<String>,
}

/// Brings up a lab with all hosts of a scenario, and switches their packets until `goes_on` returns false. `goes_on`
/// receives the share of the hosts that are up. `ready` is called once, when programs may run. A file has the latest view
/// of the lab: see [`view_of`]. Everything that the lab made is removed.
///
/// # Errors
/// Returns an error without root or TUN devices, for a scenario that kernels cannot run, or if a schedule fails.
pub fn stand(
    scenario: &Scenario,
    options: &Options,
    ready: &dyn Fn(&Standing),
    goes_on: &dyn Fn(f64) -> bool,
) -> Result<(), LabError> {
    let plan = scenario.plan();
    let demand = match &plan {
        Plan::Weekly { demand, .. } => Some(*demand),
        _ => None,
    };
    if matches!(demand, Some(Demand::Sockets | Demand::Oracle)) {
        let problem = "programs report `adu`, and `voq` needs no report".to_owned();
        return Err(LabError::Unsupported { field: "scheduler.demand", problem });
    }
    let dilation = options.dilation.max(1);
    let mut settings = scenario.settings().clone();
    let mut kernel = KernelSettings::of(&settings, dilation, &options.parts)?;
    announce_divisions(&mut settings);
    let nics = Nics::of(&settings, dilation);
    let places = all_places(&settings);
    raise_open_files(0, places.len())?;
    let clock = Clock::start(dilation);
    let folder = state::folder_of(&options.name);
    let socket = (demand == Some(Demand::Adus)).then(|| folder.join("demand"));
    let mut standing = Standing::of(options, &clock, socket.as_ref());
    let loader = options.parts.loader().ok();
    if let (Some(_), Some(socket)) = (&loader, &socket) {
        kernel.bpf.extend(["--adu".to_owned(), format!("{},{KERNEL_REPORTS}", socket.display())]);
    }
    let programs = Programs {
        group: loader.as_ref().map(|_| cgroup::folder(&options.name)).transpose()?,
        environment: standing.environment.clone(),
        files: socket
            .iter()
            .cloned()
            .chain([folder.join(state::VIEW), folder.join(state::NEW_VIEW)])
            .collect(),
        folder: Some(folder),
    };
    let (group, view) = (programs.group.clone(), state::folder_of(&options.name).join(state::VIEW));
    let hosts = Hosts::make(&options.name, places, &nics, &kernel, programs, goes_on)?;
    let reports = match (&socket, hosts.namespaces().first()) {
        (Some(socket), Some(namespace)) => Some(reports::open(socket, namespace)?),
        _ => None,
    };
    let bpf = match (loader, &group) {
        (Some(loader), Some(group)) => {
            fs::create_dir(group).map_err(LabError::system(group.display().to_string()))?;
            let attached = Bpf::attach(&loader, group, &kernel.bpf)?;
            attached.map_err(|reason| kernel.without_programs(&reason)).ok()
        }
        _ => None,
    };
    standing.notes.extend(kernel.notes.iter().cloned());
    hosts.use_control(&kernel)?;
    let shared = Shared::new(settings.switch.racks, demand, None);
    let mut switch = SwitchLoop::new(&settings, plan, &shared, clock, &hosts, kernel.mtu)?;
    switch.show_every(VIEW);
    shared.set_written();
    shared.begin_at(clock.now());
    let switched = thread::scope(|scope| {
        let switching = scope.spawn(|| stop_after(&shared, || switch.run()));
        if let Some(socket) = &reports {
            scope.spawn(|| reports::receive(socket, &shared));
        }
        let mut lost = Lost::default();
        let mut write = |live: Live| {
            let live = Live { lost_packets: lost.of(&live, &hosts)?, ..live };
            write_view(&view, &View { live, remarks: remarks(bpf.as_ref(), &shared) })
        };
        let mut written = Ok(());
        let mut is_ready = false;
        while !switching.is_finished() {
            if let Some(live) = shared.live() {
                written = written.and_then(|()| write(live));
                if !is_ready && written.is_ok() {
                    is_ready = true;
                    ready(&standing);
                }
            }
            if written.is_err() || !goes_on(1.0) {
                shared.stop();
            }
            thread::sleep(if is_ready { VIEW } else { FIRST_VIEW });
        }
        written.and(switching.join().expect("the switch does not panic"))
    });
    let finished = bpf.map_or(Ok(()), |bpf| bpf.finish().map(drop));
    // The failure of the switch came first.
    switched.map(drop).and(finished)
}

/// View of a lab for programs of this machine.
#[derive(Serialize)]
struct View {
    #[serde(flatten)]
    live: Live,
    /// What the user should know of the lab's parts, one sentence each.
    remarks: Vec<String>,
}

/// Remarks of the kernel's programs, and of the table of demand.
fn remarks(bpf: Option<&Bpf>, shared: &Shared) -> Vec<String> {
    let mut remarks = bpf.map_or_else(Vec::new, Bpf::remarks);
    let ignored = shared.adus().map_or(0, |adus| adus.ignored());
    if ignored > 0 {
        remarks.push(format!(
            "demand: {ignored} openings of connections are ignored: too many are open at once"
        ));
    }
    remarks
}

/// Packets that were lost outside the switch. The kernels of many hosts take long to read, so that not every view does.
#[derive(Default)]
struct Lost {
    views: u32,
    by_hosts: Drops,
}

impl Lost {
    /// Lost packets of a view, which has those that devices refused.
    fn of(&mut self, live: &Live, hosts: &Hosts) -> Result<u64, LabError> {
        if self.views.is_multiple_of(VIEWS_OF_DROPS) {
            self.by_hosts = hosts.drops()?;
        }
        self.views += 1;
        let timing = Timing {
            refused: live.lost_packets,
            nic_drops: self.by_hosts.nic,
            device_drops: self.by_hosts.device,
            ..Timing::default()
        };
        Ok(timing.lost())
    }
}

/// Writes a view at once, so that no reader sees a part of it.
fn write_view(path: &Path, view: &View) -> Result<(), LabError> {
    let temporary = path.with_extension("new");
    let write = || {
        fs::write(&temporary, serde_json::to_vec(view)?)?;
        fs::rename(&temporary, path)
    };
    write().map_err(LabError::system(path.display().to_string()))
}

/// Latest view of a lab that stands, as JSON; `None` if the lab has no circuits, or has no view yet.
///
/// # Errors
/// Returns an error if no lab of this name is up, or if the view cannot be read.
pub fn view_of(name: &LabName) -> Result<Option<String>, LabError> {
    if State::read(name)?.is_none_or(|state| !state.is_up()) {
        return Err(Failure::not_up(name));
    }
    let path = state::folder_of(name).join(state::VIEW);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::system(path.display().to_string())(error)),
    }
}

impl Standing {
    /// Environment of programs: virtual time from the lab's clock, and reports to a socket.
    fn of(options: &Options, clock: &Clock, socket: Option<&PathBuf>) -> Standing {
        let mut standing = Standing::default();
        let mut libraries = Vec::new();
        match options.parts.time() {
            Ok(library) => {
                libraries.push(library);
                standing.environment.extend([
                    ("LEEWARD_VT_FACTOR".to_owned(), clock.dilation().to_string()),
                    ("LEEWARD_VT_EPOCH".to_owned(), clock.epoch().to_string()),
                ]);
            }
            Err(reason) => standing.notes.push(format!("programs see real time: {reason}")),
        }
        if let Some(socket) = socket {
            match options.parts.demand() {
                Ok(library) => {
                    libraries.push(library);
                    standing
                        .environment
                        .push(("LEEWARD_ADU_SOCKET".to_owned(), socket.display().to_string()));
                }
                Err(reason) => standing.notes.push(format!("programs report no demand: {reason}")),
            }
        }
        let libraries: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
        if !libraries.is_empty() {
            standing.environment.push(("LD_PRELOAD".to_owned(), libraries.join(":")));
        }
        standing
    }
}
