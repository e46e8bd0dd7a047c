//! Workloads of this server from an SLO file and its cluster.

use std::path::Path;
use std::sync::Arc;

use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError, excerpt, read_text};
use leeward_shaping::OverLimit;
use leeward_slo::file::{Entry as FileEntry, Workloads as SloFile};
use leeward_traces::Stage;
use leeward_traces::device::Device;

use crate::addresses::Addresses;
use crate::workloads::{Entry, Workload};

/// Files and names that decide about the workloads of a proxy.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// SLO file.
    pub workloads: &'a str,
    /// Cluster file.
    pub cluster: &'a str,
    /// Server in the SLO file whose workloads count: a host, or `host:device`. `None` if the file has one server.
    pub server: Option<&'a str>,
    /// Exports of single workloads: names of workloads and indices of exports. The other workloads use all exports.
    pub exports: &'a [(String, usize)],
}

/// Workloads of a server.
#[derive(Debug)]
pub struct ServerWorkloads {
    /// The workloads with a storage stage at the server.
    pub entries: Vec<Entry>,
    /// Name and contents of the device file, if the SLO file has one for the server.
    pub device: Option<(String, Arc<Device>)>,
    /// Notes for the log.
    pub notes: Vec<String>,
}

impl Sources<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails with file, line and field, or with the option.
    pub fn read(&self, addresses: &Addresses) -> Result<ServerWorkloads, InputError> {
        let cluster = Cluster::from_text(self.cluster, &read_text(self.cluster)?)?;
        let base = Path::new(self.workloads).parent().unwrap_or(Path::new("")).to_owned();
        let files = Files { base, data: std::env::var_os("LEEWARD_DATA").map(Into::into) };
        let file = SloFile::read(self.workloads, &cluster, &files, &|name| files.open(name))?;
        self.select(&file, &cluster, addresses)
    }

    fn select(
        &self,
        file: &SloFile,
        cluster: &Cluster,
        addresses: &Addresses,
    ) -> Result<ServerWorkloads, InputError> {
        let placed = file.system(cluster)?;
        let server = self.server(file, cluster)?;
        let (mut entries, mut notes) = (Vec::<Entry>::new(), Vec::new());
        let mut devices = Vec::<(String, Arc<Device>)>::new();
        for (entry, promise) in file.entries.iter().zip(&placed.system.promises) {
            if !names(entry, cluster).contains(&server) {
                continue;
            }
            let name = &entry.workload.name;
            let stages = &promise.workload.demands;
            let Some(stage) = stages.iter().position(|demand| demand.stage == Stage::Storage) else {
                notes.push(format!("{name}: it has no storage stage, so its requests are best effort"));
                continue;
            };
            let limits = promise.limits[stage].buckets().to_vec();
            if limits.iter().any(|bucket| bucket.rate() <= 0.0) {
                let message = "a limit of rate 0 at storage: expected above 0";
                return Err(file.invalid(entry, "limits", message));
            }
            let client = cluster.fabric.host_name(entry.client);
            entries.push(Entry {
                workload: Workload {
                    name: name.clone(),
                    priority: promise.priorities[stage],
                    limits,
                    over: over(entry),
                    slo: entry.workload.slo,
                },
                clients: addresses.of(name, client)?,
                export: self.export(name),
            });
            if let Some(device) = entry.traced.as_ref().and_then(|traced| traced.device.clone())
                && devices.iter().all(|(other, _)| *other != device.0)
            {
                devices.push(device);
            }
        }
        if entries.is_empty() {
            let message = format!("no workload has its volume at `{}`", excerpt(&server));
            return Err(InputError::new(self.workloads, message));
        }
        for (name, _) in self.exports {
            if !entries.iter().any(|entry| entry.workload.name == *name) {
                let message = format!("`{}`: {} has no such workload at {server}", excerpt(name), file.path);
                return Err(InputError::new("--workload", message));
            }
        }
        if let [(one, _), (other, _), ..] = &devices[..] {
            let message =
                format!("{server} has the device files {one} and {other}: name one device in --host");
            return Err(InputError::new(self.workloads, message));
        }
        Ok(ServerWorkloads { entries, device: devices.pop(), notes })
    }

    /// Name of the server whose workloads count.
    fn server(&self, file: &SloFile, cluster: &Cluster) -> Result<String, InputError> {
        if let Some(server) = self.server {
            return Ok(server.to_owned());
        }
        let mut servers: Vec<String> =
            file.entries.iter().filter_map(|entry| names(entry, cluster).pop()).collect();
        servers.sort_unstable();
        servers.dedup();
        if servers.len() > 1 {
            let message =
                format!("missing; expected one of the servers of {}: {}", file.path, servers.join(", "));
            return Err(InputError::new("--host", message));
        }
        servers.pop().ok_or_else(|| InputError::new(self.workloads, "no workload has a server"))
    }

    fn export(&self, workload: &str) -> Option<usize> {
        self.exports.iter().find(|(name, _)| name == workload).map(|&(_, export)| export)
    }
}

/// Names of a workload's server: the host, then the host with its device.
fn names(entry: &FileEntry, cluster: &Cluster) -> Vec<String> {
    let Some(server) = entry.server else { return Vec::new() };
    let host = cluster.fabric.host_name(server.host);
    let device = server.device.and_then(|device| cluster.fabric.device(server.host, device));
    let device = device.map(|device| cluster.fabric.resource_name(device));
    std::iter::once(host.to_owned()).chain(device).collect()
}

/// Handling of requests over a limit at the device: that of the file, or else that of the thesis' enforcers (SLO section
/// 2.2.1).
fn over(entry: &FileEntry) -> OverLimit {
    let at = Stage::Storage as usize;
    if entry.over_stated[at] { entry.over[at] } else { OverLimit::Demoted }
}
