//! A lab that stands until it is stopped, for programs that are run in it: a switch of circuits without traffic of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use leeward_packets::{Demand, Plan, Scenario};

use crate::bpf::Bpf;
use crate::cgroup;
use crate::clock::Clock;
use crate::error::LabError;
use crate::hosts::{Hosts, Nics, Programs};
use crate::kernel::KernelSettings;
use crate::live::Live;
use crate::names::LabName;
use crate::reports;
use crate::run::{Options, all_places, announce_divisions, raise_open_files, stop_after};
use crate::state;
use crate::switch::{Shared, SwitchLoop};

/// Real time between views of the lab, and between reports of the kernel.
pub(crate) const VIEW: Duration = Duration::from_millis(250);
const KERNEL_REPORTS: &str = "every_us=1000";

/// Environment of programs in a standing lab, and missing parts of the lab.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Variables of their environment.
    pub environment: Vec<(String, String)>,
    /// Missing parts of the lab, each with the reason.
    pub notes: Vec<String>,
}

/// Brings up a lab with all hosts of a scenario, and switches their packets until `goes_on` returns false. `ready` is
/// called once, when programs may run. A file has the latest view of the lab: see [`view_of`]. Everything that the lab
/// made is removed.
///
/// # Errors
/// Returns an error without root or TUN devices, for a scenario that kernels cannot run, or if a schedule fails.
pub fn stand(
    scenario: &Scenario,
    options: &Options,
    ready: &dyn Fn(&Standing),
    goes_on: &dyn Fn() -> bool,
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
    let standing = Standing::of(options, &clock, socket.as_ref(), &kernel.notes);
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
    let hosts = Hosts::make(&options.name, places, &nics, &kernel, programs)?;
    let reports = match (&socket, hosts.namespaces().first()) {
        (Some(socket), Some(namespace)) => Some(reports::open(socket, namespace)?),
        _ => None,
    };
    let bpf = match (loader, &group) {
        (Some(loader), Some(group)) => {
            fs::create_dir(group).map_err(LabError::system(group.display().to_string()))?;
            Some(Bpf::attach(&loader, group, &kernel.bpf)?)
        }
        _ => None,
    };
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
        let mut failed = Ok(());
        ready(&standing);
        while !switching.is_finished() {
            thread::sleep(VIEW);
            let written = shared.live().map_or(Ok(()), |live| write_view(&view, &live));
            if written.is_err() || !goes_on() {
                shared.stop();
                failed = written;
            }
        }
        failed.and(switching.join().expect("the switch does not panic"))
    });
    if let Some(bpf) = bpf {
        bpf.finish()?;
    }
    switched.map(drop)
}

/// Writes a view at once, so that no reader sees a part of it.
fn write_view(path: &Path, live: &Live) -> Result<(), LabError> {
    let temporary = path.with_extension("new");
    let write = || {
        fs::write(&temporary, serde_json::to_vec(live)?)?;
        fs::rename(&temporary, path)
    };
    write().map_err(LabError::system(path.display().to_string()))
}

/// Latest view of a lab that stands, as JSON; `None` if there is no such lab.
///
/// # Errors
/// Returns an error if the view cannot be read.
pub fn view_of(name: &LabName) -> Result<Option<String>, LabError> {
    let path = state::folder_of(name).join(state::VIEW);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LabError::system(path.display().to_string())(error)),
    }
}

impl Standing {
    /// Environment of programs: virtual time from the lab's clock, and reports to a socket.
    fn of(options: &Options, clock: &Clock, socket: Option<&PathBuf>, notes: &[String]) -> Standing {
        let mut standing = Standing { environment: Vec::new(), notes: notes.to_vec() };
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
