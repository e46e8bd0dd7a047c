//! Workloads of this server from an SLO file and its cluster, or from a file that states their priorities and limits.

use std::path::Path;
use std::sync::Arc;

use leeward_calculus::TokenBucket;
use leeward_capture::places::Prefix;
use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError, excerpt, read_text};
use leeward_lease::{Addresses, DecidedFile, DecidedWorkload};
use leeward_shaping::OverLimit;
use leeward_slo::file::{Entry as FileEntry, Workloads as SloFile};
use leeward_traces::Stage;
use leeward_traces::device::Device;

use crate::settings::USUAL_OVER;
use crate::workloads::{Entry, Workload};

/// Priority of a workload for which a file states none: after all others, and before clients without a workload.
const LAST: u32 = u32::MAX - 1;

/// Files and names that decide about the workloads of a proxy.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    /// SLO file; without a cluster also the JSON of `leeward slo pack` or `prioritize`.
    pub workloads: &'a str,
    /// Cluster file. Without one, the file of the workloads states their priorities and limits.
    pub cluster: Option<&'a str>,
    /// Server in the SLO file whose workloads count: a host, or `host:device`. `None` if the file has one server.
    pub server: Option<&'a str>,
    /// Exports of single workloads: names of workloads and indices of exports. The other workloads use all exports.
    pub exports: &'a [(String, usize)],
    /// Handling of requests over a limit, unless the file states it; `None` for the usual one.
    pub over: Option<OverLimit>,
    /// True if the device file of the workloads is replaced by another one. A file that states priorities and limits then
    /// needs none.
    pub has_device: bool,
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
        let Some(cluster) = self.cluster else {
            return self.decided(&DecidedFile::read(self.workloads, &read_text(self.workloads)?)?, addresses);
        };
        let cluster = Cluster::from_text(cluster, &read_text(cluster)?)?;
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
                    over: self.over(entry).unwrap_or(USUAL_OVER),
                    slo: entry.workload.slo,
                },
                clients: clients(addresses, name, client)?,
                export: self.export(name),
            });
            if let Some(device) = entry.traced.as_ref().and_then(|traced| traced.device.clone())
                && devices.iter().all(|(other, _)| *other != device.0)
            {
                devices.push(device);
            }
        }
        self.check(&entries, &server)?;
        let is_stated = |entry: &FileEntry| {
            let is_own = names(entry, cluster).contains(&server);
            !is_own || self.over(entry).is_some()
        };
        notes.extend(over_note(file.entries.iter().all(is_stated), &entries));
        if let [(one, _), (other, _), ..] = &devices[..] {
            let message =
                format!("{server} has the device files {one} and {other}: name one device in --host");
            return Err(InputError::new(self.workloads, message));
        }
        Ok(ServerWorkloads { entries, device: devices.pop(), notes })
    }

    /// Workloads whose priorities and limits a file states.
    fn decided(&self, file: &DecidedFile, addresses: &Addresses) -> Result<ServerWorkloads, InputError> {
        let server = self.decided_server(file)?;
        let host = host_of(&server);
        // A server without a device may mean its only one.
        let is_own = |workload: &&DecidedWorkload| {
            let own = workload.server.as_deref();
            own.is_some_and(|own| own == server || own == host || (server == host && host_of(own) == host))
        };
        let (mut entries, mut notes) = (Vec::<Entry>::new(), Vec::new());
        for workload in file.workloads.iter().filter(is_own) {
            let DecidedWorkload { name, client, slo, .. } = workload;
            let stage = workload.at(Stage::Storage).map_err(|missing| missing.in_file(&file.path))?;
            let Some(stage) = stage else {
                notes.push(format!("{name}: it has no storage stage, so its requests are best effort"));
                continue;
            };
            let invalid = |message: String| InputError::new(&file.path, format!("{name}: {message}"));
            let mut limits = Vec::with_capacity(stage.limits.len());
            for (rate, burst) in stage.limits {
                let bucket = TokenBucket::new(rate, burst).map_err(|error| invalid(error.to_string()))?;
                if bucket.rate() <= 0.0 {
                    return Err(invalid("a limit of rate 0 at storage: expected above 0".to_owned()));
                }
                limits.push(bucket);
            }
            entries.push(Entry {
                workload: Workload {
                    name: name.clone(),
                    priority: stage.priority.unwrap_or(LAST),
                    limits,
                    over: workload.over.map(OverLimit::from).or(self.over).unwrap_or(USUAL_OVER),
                    slo: *slo,
                },
                clients: clients(addresses, name, client)?,
                export: self.export(name),
            });
        }
        self.check(&entries, &server)?;
        let is_stated = self.over.is_some()
            || file.workloads.iter().filter(is_own).all(|workload| workload.over.is_some());
        notes.extend(over_note(is_stated, &entries));
        let device = match file.device_of(&server).filter(|_| !self.has_device) {
            Some(path) => Some((path.clone(), Arc::new(Device::read(&path)?))),
            None => None,
        };
        Ok(ServerWorkloads { entries, device, notes })
    }

    /// Name of the server whose workloads of a decided file count.
    fn decided_server(&self, file: &DecidedFile) -> Result<String, InputError> {
        if let Some(server) = self.server {
            return Ok(server.to_owned());
        }
        let servers = file.workloads.iter().filter_map(|workload| workload.server.clone());
        self.only(servers.collect())
    }

    /// Checks that the server has workloads, among them those of `--workload`.
    fn check(&self, entries: &[Entry], server: &str) -> Result<(), InputError> {
        if entries.is_empty() {
            let message = format!("no workload has its volume at `{}`", excerpt(server));
            return Err(InputError::new(self.workloads, message));
        }
        for (name, _) in self.exports {
            if !entries.iter().any(|entry| entry.workload.name == *name) {
                let message =
                    format!("`{}`: {} has no such workload at {server}", excerpt(name), self.workloads);
                return Err(InputError::new("--workload", message));
            }
        }
        Ok(())
    }

    /// The only one of several names of servers.
    fn only(&self, mut servers: Vec<String>) -> Result<String, InputError> {
        servers.sort_unstable();
        servers.dedup();
        if servers.len() > 1 {
            let message =
                format!("missing; expected one of the servers of {}: {}", self.workloads, servers.join(", "));
            return Err(InputError::new("--host", message));
        }
        servers.pop().ok_or_else(|| InputError::new(self.workloads, "no workload has a server"))
    }

    /// Name of the server whose workloads count.
    fn server(&self, file: &SloFile, cluster: &Cluster) -> Result<String, InputError> {
        if let Some(server) = self.server {
            return Ok(server.to_owned());
        }
        self.only(file.entries.iter().filter_map(|entry| names(entry, cluster).pop()).collect())
    }

    /// Handling of requests over a limit at the device: that of the file, or else that of the settings.
    fn over(&self, entry: &FileEntry) -> Option<OverLimit> {
        let at = Stage::Storage as usize;
        if entry.over_stated[at] { Some(entry.over[at]) } else { self.over }
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

/// Note for the log if nothing states the handling of requests over a limit: the usual one is not that of bounds.
fn over_note(is_stated: bool, entries: &[Entry]) -> Option<String> {
    let has_limits = entries.iter().any(|entry| !entry.workload.limits.is_empty());
    let note = "requests over a limit are demoted, as neither the workloads nor --over say what happens to them; bounds \
                assume that they are held";
    (has_limits && !is_stated).then(|| note.to_owned())
}

/// Host of a server, which may be named with its device.
fn host_of(server: &str) -> &str {
    server.split(':').next().unwrap_or(server)
}

/// Addresses of the client of a workload.
fn clients(addresses: &Addresses, workload: &str, client: &str) -> Result<Vec<Prefix>, InputError> {
    addresses.of_client(workload, client).map_err(|message| InputError::new("--addresses", message))
}
