//! Resolves the racks, hosts and devices of a cluster file: fills in defaults, assigns names, and rejects
//! contradictions. `layout` then turns the result into ids and capacities.

use std::sync::Arc;

use super::applies;
use super::errors::Errors;
use super::file::{DeviceFile, HostFile, RackFile};
use super::tags::{Labels, TagNames};
use super::values::{Duplex, Listing, Ratio};
use crate::fabric::Device;
use crate::input::{InputError, Place, Spanned};
use crate::{Bytes, Cost, Cpus, RackKind, Shape};

/// Largest number of hosts. A larger count is a typing error and would fill memory.
const MAX_HOSTS: u64 = 4_000_000;
/// Largest number of hosts of a pipe mesh. Each ordered pair has a link: 16.8 million of them.
const MAX_PIPE_HOSTS: u64 = 4_096;
/// Largest number of devices of one host. The largest storage servers have about a hundred.
const MAX_HOST_DEVICES: usize = 1_000;
/// Largest number of devices of a cluster. The ids of devices and links together easily fit 32 bits.
const MAX_DEVICES: u64 = 100_000_000;
/// Largest cost of a host per hour.
const MAX_COST: Cost = Cost(1_000_000 * 1_000_000);
/// Names of the links of a host, rack or pod. Devices must not have these names.
const LINK_NAMES: [&str; 4] = ["egress", "ingress", "uplink", "downlink"];

/// Contents of a cluster file with defaults filled in: racks pod by pod, hosts rack by rack.
pub(super) struct Resolved {
    pub racks: Vec<Rack>,
    pub pods: Vec<Pod>,
    pub rack_link: Option<Link>,
    pub pod_link: Option<Link>,
    pub tag_names: Vec<String>,
}

pub(super) struct Rack {
    pub name: String,
    pub pod: Option<usize>,
    pub kind: RackKind,
    pub fault_domain: Option<String>,
    pub hosts: Vec<Host>,
    pub link: Option<Link>,
}

pub(super) struct Host {
    pub name: String,
    pub nic: Option<Duplex>,
    pub tags: u64,
    pub devices: Arc<[Device]>,
    pub cpus: Option<Cpus>,
    pub memory: Option<Bytes>,
    pub cost: Cost,
}

pub(super) struct Pod {
    pub name: String,
    pub link: Option<Link>,
    pub at: Place,
}

/// The rate of a link, or the oversubscription that determines it from the sum of the rates below.
#[derive(Clone, Copy)]
pub(super) enum Link {
    Rate(Duplex),
    Oversubscribed(f64, Place),
}

/// Reads the file, with the defaults for fields that a rack or host leaves out.
struct Reader<'a> {
    errors: Errors<'a>,
    devices: Arc<[Device]>,
    tag_names: TagNames,
    /// Number of hosts and of devices so far.
    hosts: u64,
    host_devices: u64,
}

/// Fields that all hosts of one rack share.
struct Common {
    nic: Option<Duplex>,
    tags: u64,
    labels: Labels,
    devices: Arc<[Device]>,
    cpus: Option<Cpus>,
    memory: Option<Bytes>,
    cost: Cost,
}

impl Common {
    fn host(&self, name: String) -> Host {
        let Common { nic, tags, ref labels, ref devices, cpus, memory, cost } = *self;
        let tags = labels.values().fold(tags, |all, label| all | label);
        Host { name, nic, tags, devices: devices.clone(), cpus, memory, cost }
    }
}

pub(super) fn resolve(errors: Errors<'_>) -> Result<Resolved, InputError> {
    applies::check(errors)?;
    let file = errors.file;
    let rate = |rate: &Option<Spanned<Duplex>>| rate.as_ref().map(|rate| rate.value);
    let rack_link = link(errors, rate(&file.rack_link), "rack_link", &file.oversubscription)?;
    let pod_link = link(errors, rate(&file.pod_link), "pod_link", &file.pod_oversubscription)
        .map_err(|error| error.in_field("pod_oversubscription"))?;
    let devices = devices(errors, &file.devices)?;
    let mut reader = Reader { errors, devices, tag_names: TagNames::default(), hosts: 0, host_devices: 0 };
    let pods = reader.pods()?;
    let mut racks = reader.racks(&pods)?;
    // The hosts of a pod are a range, so its racks must be adjacent.
    racks.sort_by_key(|rack| rack.pod);
    Ok(Resolved { racks, pods, rack_link, pod_link, tag_names: reader.tag_names.into_names() })
}

impl Reader<'_> {
    fn pods(&self) -> Result<Vec<Pod>, InputError> {
        let Some(spanned) = &self.errors.file.pods else { return Ok(Vec::new()) };
        match &spanned.value {
            Listing::Count(count) => {
                let at = spanned.place;
                check_size(self.errors, u64::from(*count), MAX_HOSTS, "pods", at)
                    .map_err(|error| error.under("pods"))?;
                Ok((0..*count).map(|i| Pod { name: format!("p{i}"), link: None, at }).collect())
            }
            Listing::Each(each) => (each.iter().enumerate())
                .map(|(i, item)| {
                    let pod = &item.value;
                    let link = link(self.errors, pod.link, "link", &pod.oversubscription)
                        .map_err(|error| error.under(format_args!("pods[{i}]")))?;
                    Ok(Pod { name: pod.name.0.clone(), link, at: item.place })
                })
                .collect(),
        }
    }

    fn racks(&mut self, pods: &[Pod]) -> Result<Vec<Rack>, InputError> {
        let file = self.errors.file;
        match (&file.racks, &file.hosts) {
            (Some(racks), None) => self.listed_racks(racks, pods),
            (None, Some(hosts)) => self.hosts_without_racks(hosts),
            (Some(_), Some(hosts)) => {
                Err(self.errors.at(hosts.place, "hosts", "give `racks` or `hosts`, not both"))
            }
            (None, None) if file.shape == Shape::Tree => Err(self.errors.missing("racks", "150")),
            (None, None) => Err(self.errors.missing("hosts", "10")),
        }
    }

    /// Builds a mesh without racks: each host is its own domain.
    fn hosts_without_racks(&mut self, hosts: &Spanned<Listing<HostFile>>) -> Result<Vec<Rack>, InputError> {
        let common = self.common(&RackFile::default(), hosts.place)?;
        let hosts = match &hosts.value {
            Listing::Count(count) => {
                self.check_counts(u64::from(*count), &common.devices, hosts.place)
                    .map_err(|error| error.under("hosts"))?;
                (0..*count).map(|i| common.host(format!("h{i}"))).collect()
            }
            Listing::Each(each) => self.each_host(each, &common)?,
        };
        let alone = |host: Host| Rack {
            name: host.name.clone(),
            pod: None,
            kind: self.errors.file.kind,
            fault_domain: None,
            hosts: vec![host],
            link: None,
        };
        Ok(hosts.into_iter().map(alone).collect())
    }

    fn listed_racks(
        &mut self,
        spanned: &Spanned<Listing<RackFile>>,
        pods: &[Pod],
    ) -> Result<Vec<Rack>, InputError> {
        let mut racks = Vec::new();
        match &spanned.value {
            Listing::Count(count) => {
                if self.hosts_per_rack().is_none() {
                    return Err(self.errors.missing("hosts_per_rack", "20"));
                }
                self.push_identical(&RackFile::default(), *count, spanned.place, pods, &mut racks)
                    .map_err(|error| error.under("racks"))?;
            }
            Listing::Each(each) => {
                let some_pod = each.iter().any(|rack| rack.value.pod.is_some());
                for (i, item) in each.iter().enumerate() {
                    if some_pod && item.value.pod.is_none() {
                        let message = "missing; other racks name their pod, so every rack must";
                        return Err(self.errors.at(item.place, format!("racks[{i}].pod"), message));
                    }
                    let count = item.value.count.map_or(1, |count| count.0);
                    self.push_identical(&item.value, count, item.place, pods, &mut racks)
                        .map_err(|error| error.under(format_args!("racks[{i}]")))?;
                }
            }
        }
        if racks.iter().all(|rack| rack.pod.is_none()) {
            self.distribute(&mut racks, pods)?;
        }
        Ok(racks)
    }

    /// Distributes the racks that name no pod to the pods in order, with the same number of racks for each pod.
    fn distribute(&self, racks: &mut [Rack], pods: &[Pod]) -> Result<(), InputError> {
        let Some(first) = pods.first() else { return Ok(()) };
        if !racks.len().is_multiple_of(pods.len()) {
            let message =
                format!("{} racks cannot be distributed evenly to {} pods", racks.len(), pods.len());
            return Err(self.errors.at(first.at, "pods", message));
        }
        let each = racks.len() / pods.len();
        for (i, rack) in racks.iter_mut().enumerate() {
            rack.pod = Some(i / each);
        }
        Ok(())
    }

    /// Appends `count` identical racks.
    fn push_identical(
        &mut self,
        rack: &RackFile,
        count: u32,
        at: Place,
        pods: &[Pod],
        out: &mut Vec<Rack>,
    ) -> Result<(), InputError> {
        let link = link(self.errors, rack.link, "link", &rack.oversubscription)?;
        let pod = match &rack.pod {
            Some(name) => Some(pods.iter().position(|pod| pod.name == name.value.0).ok_or_else(|| {
                let message = format!("`{}`: no such pod; list it under `pods`", name.value.0);
                self.errors.at(name.place, "pod", message)
            })?),
            None => None,
        };
        if rack.count.is_some() && rack.name.is_some() {
            let message = "`count` racks are named by number; leave `name` out";
            return Err(self.errors.at(at, "name", message));
        }
        if rack.count.is_some() && matches!(rack.hosts, Some(Listing::Each(_))) {
            let message = "the hosts of `count` racks are named by number; give their number";
            return Err(self.errors.at(at, "hosts", message));
        }
        let default = self.hosts_per_rack().map(Listing::Count);
        let hosts = rack.hosts.as_ref().or(default.as_ref()).ok_or_else(|| {
            let message = "missing; expected for example `hosts: 20`, or `hosts_per_rack: 20` for all";
            self.errors.at(at, "hosts", message)
        })?;
        let common = self.common(rack, at)?;
        if let Listing::Count(hosts) = hosts {
            self.check_counts(u64::from(count) * u64::from(*hosts), &common.devices, at)?;
        }
        for _ in 0..count {
            let name = rack.name.as_ref().map_or_else(|| format!("r{}", out.len()), |name| name.0.clone());
            let hosts = match hosts {
                Listing::Count(hosts) => (0..*hosts).map(|j| common.host(format!("{name}h{j}"))).collect(),
                Listing::Each(each) => self.each_host(each, &common)?,
            };
            out.push(Rack {
                name,
                pod,
                kind: rack.kind.unwrap_or(self.errors.file.kind),
                fault_domain: rack.fault_domain.as_ref().map(|name| name.0.clone()),
                hosts,
                link,
            });
        }
        Ok(())
    }

    /// Default number of hosts of a rack. The default on a mesh is one.
    fn hosts_per_rack(&self) -> Option<u32> {
        let file = self.errors.file;
        let one = (file.shape != Shape::Tree).then_some(1);
        file.hosts_per_rack.as_ref().map(|count| count.value.0).or(one)
    }

    fn common(&mut self, rack: &RackFile, at: Place) -> Result<Common, InputError> {
        let file = self.errors.file;
        let nic = rack.nic.or(file.nic.as_ref().map(|nic| nic.value));
        let tags = self.tag_names.tags(self.errors, &rack.tags, at)?;
        let labels = self.tag_names.labels(self.errors, &rack.labels, at)?;
        let devices = self.devices_or(&rack.devices, &self.devices)?;
        let (cpus, memory) = (rack.cpus.or(file.cpus), rack.memory.or(file.memory));
        check_cost(self.errors, rack.cost.or(file.cost), at)?;
        let cost = rack.cost.or(file.cost).unwrap_or_default();
        Ok(Common { nic, tags, labels, devices, cpus, memory, cost })
    }

    fn each_host(&mut self, each: &[Spanned<HostFile>], common: &Common) -> Result<Vec<Host>, InputError> {
        let hosts = each.iter().enumerate().map(|(i, item)| {
            self.host(item, common).map_err(|error| error.under(format_args!("hosts[{i}]")))
        });
        hosts.collect()
    }

    fn host(&mut self, item: &Spanned<HostFile>, common: &Common) -> Result<Host, InputError> {
        let host = &item.value;
        let devices = self.devices_or(&host.devices, &common.devices)?;
        self.check_counts(1, &devices, item.place)?;
        let mut labels = common.labels.clone();
        labels.extend(self.tag_names.labels(self.errors, &host.labels, item.place)?);
        let tags = self.tag_names.tags(self.errors, &host.tags, item.place)?;
        let labels = labels.values().fold(0, |all, label| all | label);
        check_cost(self.errors, host.cost, item.place)?;
        Ok(Host {
            name: host.name.0.clone(),
            nic: host.nic.or(common.nic),
            tags: common.tags | labels | tags,
            devices,
            cpus: host.cpus.or(common.cpus),
            memory: host.memory.or(common.memory),
            cost: host.cost.unwrap_or(common.cost),
        })
    }

    fn devices_or(
        &self,
        listed: &Option<Vec<Spanned<DeviceFile>>>,
        default: &Arc<[Device]>,
    ) -> Result<Arc<[Device]>, InputError> {
        listed.as_ref().map_or_else(|| Ok(default.clone()), |listed| devices(self.errors, listed))
    }

    /// Counts hosts and devices before they are created, so that a typing error costs no memory.
    fn check_counts(&mut self, hosts: u64, devices: &[Device], at: Place) -> Result<(), InputError> {
        self.hosts = self.hosts.saturating_add(hosts);
        self.host_devices = self.host_devices.saturating_add(hosts.saturating_mul(devices.len() as u64));
        if self.errors.file.shape == Shape::Pipe && self.hosts > MAX_PIPE_HOSTS {
            let hosts = self.hosts;
            let message =
                format!("{hosts} hosts: a pipe mesh has at most {MAX_PIPE_HOSTS}; use `shape: hose`");
            return Err(self.errors.about(message).at_place(at));
        }
        check_size(self.errors, self.hosts, MAX_HOSTS, "hosts", at)?;
        check_size(self.errors, self.host_devices, MAX_DEVICES, "devices", at)
    }
}

/// Rejects a cost that is a typing error. The costs of all hosts together fit 64 bits.
fn check_cost(errors: Errors<'_>, cost: Option<Cost>, at: Place) -> Result<(), InputError> {
    match cost.filter(|&cost| cost > MAX_COST) {
        Some(cost) => Err(errors.at(at, "cost", format!("{cost}: expected at most {MAX_COST}"))),
        None => Ok(()),
    }
}

fn check_size(errors: Errors<'_>, size: u64, limit: u64, kind: &str, at: Place) -> Result<(), InputError> {
    if size <= limit {
        return Ok(());
    }
    Err(errors.about(format!("{size} {kind}: expected at most {limit}")).at_place(at))
}

fn link(
    errors: Errors<'_>,
    rate: Option<Duplex>,
    rate_field: &str,
    ratio: &Option<Spanned<Ratio>>,
) -> Result<Option<Link>, InputError> {
    match (rate, ratio) {
        (Some(_), Some(ratio)) => {
            let message = format!("give this or `{rate_field}`, not both");
            Err(errors.at(ratio.place, "oversubscription", message))
        }
        (None, Some(ratio)) => Ok(Some(Link::Oversubscribed(ratio.value.0, ratio.place))),
        (rate, None) => Ok(rate.map(Link::Rate)),
    }
}

fn devices(errors: Errors<'_>, files: &[Spanned<DeviceFile>]) -> Result<Arc<[Device]>, InputError> {
    let mut devices = Vec::<Device>::with_capacity(files.len());
    for (i, item) in files.iter().enumerate() {
        let file = &item.value;
        let name = file.name.as_ref().map_or_else(|| format!("disk{i}"), |name| name.0.clone());
        let invalid = |message: String| Err(errors.at(item.place, format!("devices[{i}]"), message));
        if i >= MAX_HOST_DEVICES {
            return invalid(format!("more than {MAX_HOST_DEVICES} devices in a host"));
        }
        if LINK_NAMES.contains(&name.as_str()) {
            return invalid(format!("`{name}`: a link of the host has this name; choose another"));
        }
        if devices.iter().any(|device| *device.name == *name) {
            return invalid(format!("`{name}`: two devices of a host have this name"));
        }
        if file.capacity == Some(Bytes(0)) {
            return invalid("capacity: 0B: must be positive; leave it out for no limit".into());
        }
        devices.push(Device {
            name: name.into(),
            read_ns_per_byte: file.read.0.ns_per_byte(),
            write_ns_per_byte: file.write.0.ns_per_byte(),
            capacity: file.capacity,
            storage: file.storage.as_ref().map(|storage| storage.0.as_str().into()),
        });
    }
    Ok(devices.into())
}
