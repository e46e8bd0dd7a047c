//! Source of the workloads: files, or a controller.

use std::net::SocketAddr;

use leeward_fabric::input::{InputError, excerpt};
use leeward_lease::{ControllerSettings, Given};
use leeward_records::EnforcerKind;

use super::Arguments;
use crate::server::{ExportName, machine_name};

/// Source of the workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadSource {
    /// Files.
    Files(WorkloadFiles),
    /// A controller, under a lease.
    Controller(ControllerSettings),
}

/// Files of the workloads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadFiles {
    /// SLO file, or the JSON of a command.
    pub workloads: String,
    /// Cluster file, if any.
    pub cluster: Option<String>,
    /// Server of the workloads.
    pub host: Option<String>,
    /// File of addresses.
    pub addresses: Option<String>,
}

/// Exports of single workloads.
pub(super) fn workload_exports(
    given: &Arguments,
    exports: &[(ExportName, SocketAddr)],
) -> Result<Vec<(String, usize)>, InputError> {
    let named_export = |text: &String| {
        let invalid =
            |message: &str| InputError::new("--workload", format!("`{}`: {message}", excerpt(text)));
        let (workload, path) = text
            .split_once('=')
            .filter(|(workload, _)| !workload.is_empty())
            .ok_or_else(|| invalid("expected a workload and the path of its export, such as mail=/vol"))?;
        let named: Vec<usize> = (0..exports.len()).filter(|&at| exports[at].0.path == path).collect();
        match named[..] {
            [export] => Ok((workload.to_owned(), export)),
            [] => Err(invalid("no export has this path")),
            _ => Err(invalid("several servers have an export of this path: run a proxy for each")),
        }
    };
    given.workload_exports.iter().map(named_export).collect()
}

/// Source of the workloads.
pub(super) fn workload_source(given: &Arguments) -> Result<Option<WorkloadSource>, InputError> {
    let own = Given {
        controllers: given.controllers.clone(),
        name: given.name.clone(),
        lease: given.lease.clone(),
        token_file: given.token_file.clone(),
        ca: given.ca.clone(),
        dscp: given.dscp.clone(),
    };
    if !own.controllers.is_empty() {
        let files = [("--workloads", given.workloads.is_some()), ("--cluster", given.cluster.is_some())];
        if let Some((option, _)) = files.into_iter().find(|&(_, is_given)| is_given) {
            let message = "workloads come from files or from a controller: give one of them";
            return Err(InputError::new(option, message));
        }
        if given.device.is_none() {
            let message =
                "missing; the limits of promises are seconds of service, which depend on the device";
            return Err(InputError::new("--device", message));
        }
        let host = given.host.clone().unwrap_or_else(machine_name);
        let settings = ControllerSettings::new(EnforcerKind::Nfs, &host, own, given.addresses.clone())?
            // A machine may have several proxies.
            .at_place(&given.listen.join(","));
        return Ok(Some(WorkloadSource::Controller(settings)));
    }
    if let Some(option) = own.without_controller() {
        return Err(InputError::new(option, "only for a controller; give --controller too"));
    }
    let Some(workloads) = &given.workloads else {
        // clap checks some of these for the program, and this check is for all other callers.
        let without = [
            ("--cluster", given.cluster.is_some()),
            ("--host", given.host.is_some()),
            ("--workload", !given.workload_exports.is_empty()),
            ("--over", given.over.is_some()),
            ("--addresses", given.addresses.is_some()),
        ];
        return match without.into_iter().find(|&(_, is_given)| is_given) {
            Some((option, _)) => {
                Err(InputError::new(option, "only for workloads; give --workloads or --controller too"))
            }
            None => Ok(None),
        };
    };
    Ok(Some(WorkloadSource::Files(WorkloadFiles {
        workloads: workloads.clone(),
        cluster: given.cluster.clone(),
        host: given.host.clone(),
        addresses: given.addresses.clone(),
    })))
}
