//! What each rack, host and device of a cluster file is: defaults are filled in, names given, contradictions
//! refused. `layout` then puts the result into ids and capacities.

use std::sync::Arc;

use super::errors::{Errors, is_name};
use super::file::{ClusterFile, DeviceFile, Duplex, HostFile, Listing, RackFile};
use crate::fabric::Device;
use crate::input::{InputError, Spanned};
use crate::{RackKind, Shape};

/// Tags are bits of a word.
const TAGS: usize = 64;
/// Ids are 32 bits, and each host has several resources.
const HOSTS: usize = 50_000_000;

pub(super) struct Rack {
    pub name: String,
    pub pod: Option<usize>,
    pub kind: RackKind,
    pub fault_domain: Option<String>,
    pub hosts: Vec<Host>,
    pub link: Option<Duplex>,
    pub oversubscription: Option<f64>,
}

pub(super) struct Host {
    pub name: String,
    pub nic: Option<Duplex>,
    pub tags: u64,
    pub devices: Arc<[Device]>,
}

pub(super) struct Pod {
    pub name: String,
    pub link: Option<Duplex>,
    pub oversubscription: Option<f64>,
}

/// Reads the file with what stands for fields that a rack or host does not give.
struct Reader<'a> {
    errors: Errors<'a>,
    file: &'a ClusterFile,
    devices: Arc<[Device]>,
    tag_names: Vec<String>,
}

/// What a cluster file says, with defaults filled in: racks pod by pod, hosts rack by rack.
pub(super) struct Resolved {
    pub racks: Vec<Rack>,
    pub pods: Vec<Pod>,
    pub tag_names: Vec<String>,
}

pub(super) fn resolve(path: &str, file: &ClusterFile) -> Result<Resolved, InputError> {
    let devices = file.devices.iter().map(|d| &d.value).cloned().collect::<Vec<_>>();
    let mut reader = Reader { errors: Errors { path }, file, devices: Arc::from([]), tag_names: Vec::new() };
    reader.devices = reader.devices(&devices, "devices", file.devices.first())?;
    let pods = reader.pods()?;
    let mut racks = reader.racks(&pods)?;
    // The hosts of a pod are a range, so its racks stand together.
    racks.sort_by_key(|rack| rack.pod);
    let hosts: usize = racks.iter().map(|rack| rack.hosts.len()).sum();
    if hosts == 0 || hosts > HOSTS {
        return Err(reader.errors.about(format!("{hosts} hosts: expected 1 to {HOSTS}")));
    }
    Ok(Resolved { racks, pods, tag_names: reader.tag_names })
}

impl Reader<'_> {
    // ---- pods, racks, hosts ---------------------------------------------------------------------------

    fn pods(&self) -> Result<Vec<Pod>, InputError> {
        let Some(spanned) = &self.file.pods else { return Ok(Vec::new()) };
        if self.file.shape != Shape::Tree {
            return Err(self.errors.at(Some(spanned), "pods", "a mesh has no pods".into()));
        }
        match &spanned.value {
            Listing::Count(0) => Err(self.errors.at(Some(spanned), "pods", "0: expected at least 1".into())),
            Listing::Count(count) => Ok((0..*count)
                .map(|i| Pod { name: format!("p{i}"), link: None, oversubscription: None })
                .collect()),
            Listing::Each(each) => {
                let mut pods = Vec::new();
                for (i, item) in each.iter().enumerate() {
                    let pod = &item.value;
                    let field = format!("pods[{i}]");
                    self.errors.check_name(item, &field, &pod.name)?;
                    self.errors.check_link(Some(item), &field, pod.link, pod.oversubscription)?;
                    pods.push(Pod {
                        name: pod.name.clone(),
                        link: pod.link,
                        oversubscription: pod.oversubscription,
                    });
                }
                Ok(pods)
            }
        }
    }

    fn racks(&mut self, pods: &[Pod]) -> Result<Vec<Rack>, InputError> {
        let file = self.file;
        match (&file.racks, &file.hosts) {
            (Some(_), Some(hosts)) => {
                Err(self.errors.at(Some(hosts), "hosts", "give `racks` or `hosts`, not both".into()))
            }
            (None, None) if file.shape == Shape::Tree => Err(self.errors.missing("racks", "150")),
            (None, None) => Err(self.errors.missing("hosts", "10")),
            (None, Some(hosts)) if file.shape == Shape::Tree => {
                Err(self.errors.at(Some(hosts), "hosts", "a tree has `racks` and `hosts_per_rack`".into()))
            }
            (None, Some(hosts)) => self.lone_hosts(hosts),
            (Some(racks), None) => self.listed_racks(racks, pods),
        }
    }

    /// A mesh without racks: each host is a domain by itself.
    fn lone_hosts(&mut self, hosts: &Spanned<Listing<HostFile>>) -> Result<Vec<Rack>, InputError> {
        let hosts = match &hosts.value {
            Listing::Count(count) => {
                self.check_count(Some(hosts), "hosts", *count)?;
                (0..*count).map(|i| self.default_host(format!("h{i}"), None, 0, None)).collect()
            }
            Listing::Each(each) => self.each_host(each, "hosts", None, 0, None)?,
        };
        let alone = |host: Host| Rack {
            name: host.name.clone(),
            pod: None,
            kind: self.file.kind,
            fault_domain: None,
            hosts: vec![host],
            link: None,
            oversubscription: None,
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
                self.check_count(Some(spanned), "racks", *count)?;
                let plain = RackFile::default();
                for _ in 0..*count {
                    let rack = self.rack(&plain, None, racks.len(), "racks", spanned)?;
                    racks.push(rack);
                }
                self.deal_out(&mut racks, pods)?;
            }
            Listing::Each(each) => {
                for (i, item) in each.iter().enumerate() {
                    let field = format!("racks[{i}]");
                    let count = item.value.count.unwrap_or(1);
                    self.check_count(Some(item), &format!("{field}.count"), count)?;
                    if item.value.count.is_some() && item.value.name.is_some() {
                        let message = "`count` racks are named by number; leave `name` out".to_owned();
                        return Err(self.errors.at(Some(item), &format!("{field}.name"), message));
                    }
                    let pod = item.value.pod.as_ref();
                    let pod = match pod.map(|name| pods.iter().position(|p| p.name == *name)) {
                        Some(None) => {
                            let message =
                                format!("unknown pod `{}`; list it under `pods`", pod.map_or("", |p| p));
                            return Err(self.errors.at(Some(item), &format!("{field}.pod"), message));
                        }
                        Some(found) => found,
                        None => None,
                    };
                    for _ in 0..count {
                        let rack = self.rack(&item.value, pod, racks.len(), &field, item)?;
                        racks.push(rack);
                    }
                }
                if racks.iter().all(|rack| rack.pod.is_none()) {
                    self.deal_out(&mut racks, pods)?;
                } else if let Some(rack) = racks.iter().find(|rack| rack.pod.is_none()) {
                    let message = format!("rack {} is in no pod, others are", rack.name);
                    return Err(self.errors.at(Some(spanned), "racks", message));
                }
            }
        }
        Ok(racks)
    }

    /// Racks that name no pod go to the pods in order, the same number to each.
    fn deal_out(&self, racks: &mut [Rack], pods: &[Pod]) -> Result<(), InputError> {
        if pods.is_empty() {
            return Ok(());
        }
        if !racks.len().is_multiple_of(pods.len()) {
            let message = format!("{} racks cannot be dealt out evenly to {} pods", racks.len(), pods.len());
            return Err(self.errors.at(self.file.pods.as_ref(), "pods", message));
        }
        let each = racks.len() / pods.len();
        for (i, rack) in racks.iter_mut().enumerate() {
            rack.pod = Some(i / each);
        }
        Ok(())
    }

    fn rack<T>(
        &mut self,
        rack: &RackFile,
        pod: Option<usize>,
        number: usize,
        field: &str,
        at: &Spanned<T>,
    ) -> Result<Rack, InputError> {
        let name = rack.name.clone().unwrap_or_else(|| format!("r{number}"));
        self.errors.check_name(at, &format!("{field}.name"), &name)?;
        self.errors.check_link(Some(at), field, rack.link, rack.oversubscription)?;
        let devices = match &rack.devices {
            Some(devices) => Some(self.devices(devices, &format!("{field}.devices"), Some(at))?),
            None => None,
        };
        let tags = self.tags(&rack.tags, field, at)?;
        let hosts = match &rack.hosts {
            Some(Listing::Each(each)) => {
                self.each_host(each, &format!("{field}.hosts"), rack.nic, tags, devices)?
            }
            other => {
                let count = match other {
                    Some(Listing::Count(count)) => *count,
                    _ => match &self.file.hosts_per_rack {
                        Some(count) => count.value,
                        None if self.file.shape != Shape::Tree => 1,
                        None => return Err(self.errors.missing("hosts_per_rack", "20")),
                    },
                };
                if count == 0 {
                    let message = format!("rack {name} has no hosts; expected at least 1");
                    let field =
                        if other.is_some() { format!("{field}.hosts") } else { "hosts_per_rack".into() };
                    return Err(self.errors.at(Some(at), &field, message));
                }
                (0..count)
                    .map(|j| self.default_host(format!("{name}h{j}"), rack.nic, tags, devices.clone()))
                    .collect()
            }
        };
        Ok(Rack {
            name,
            pod,
            kind: rack.kind.unwrap_or(self.file.kind),
            fault_domain: rack.fault_domain.clone(),
            hosts,
            link: rack.link,
            oversubscription: rack.oversubscription,
        })
    }

    fn default_host(
        &self,
        name: String,
        nic: Option<Duplex>,
        tags: u64,
        devices: Option<Arc<[Device]>>,
    ) -> Host {
        let nic = nic.or(self.file.nic.as_ref().map(|nic| nic.value));
        Host { name, nic, tags, devices: devices.unwrap_or_else(|| self.devices.clone()) }
    }

    fn each_host(
        &mut self,
        each: &[Spanned<HostFile>],
        field: &str,
        nic: Option<Duplex>,
        rack_tags: u64,
        rack_devices: Option<Arc<[Device]>>,
    ) -> Result<Vec<Host>, InputError> {
        let mut hosts = Vec::with_capacity(each.len());
        for (i, item) in each.iter().enumerate() {
            let host = &item.value;
            let field = format!("{field}[{i}]");
            self.errors.check_name(item, &format!("{field}.name"), &host.name)?;
            self.errors.check_link(Some(item), &format!("{field}.nic"), host.nic, None)?;
            let tags = rack_tags | self.tags(&host.tags, &field, item)?;
            let devices = match &host.devices {
                Some(devices) => Some(self.devices(devices, &format!("{field}.devices"), Some(item))?),
                None => rack_devices.clone(),
            };
            hosts.push(self.default_host(host.name.clone(), host.nic.or(nic), tags, devices));
        }
        if hosts.is_empty() {
            return Err(self
                .errors
                .about("an empty list: expected at least one host".into())
                .in_field(field));
        }
        Ok(hosts)
    }

    fn devices<T>(
        &self,
        files: &[DeviceFile],
        field: &str,
        at: Option<&Spanned<T>>,
    ) -> Result<Arc<[Device]>, InputError> {
        let mut devices = Vec::<Device>::with_capacity(files.len());
        for (i, file) in files.iter().enumerate() {
            let field = format!("{field}[{i}]");
            let name = file.name.clone().unwrap_or_else(|| format!("disk{i}"));
            if file.read.0 == 0 || file.write.0 == 0 {
                let message = "zero rate: a device must read and write at a positive rate".to_owned();
                return Err(self.errors.at(at, &field, message));
            }
            let taken = devices.iter().any(|d| *d.name == *name);
            if taken || ["egress", "ingress"].contains(&name.as_str()) || !is_name(&name) {
                let message = format!("`{name}`: not a device name, or used twice in a host");
                return Err(self.errors.at(at, &format!("{field}.name"), message));
            }
            devices.push(Device {
                name: name.into(),
                read_ns_per_byte: file.read.ns_per_byte(),
                write_ns_per_byte: file.write.ns_per_byte(),
                capacity: file.capacity,
            });
        }
        Ok(devices.into())
    }

    fn tags<T>(&mut self, tags: &[String], field: &str, at: &Spanned<T>) -> Result<u64, InputError> {
        let mut mask = 0;
        for tag in tags {
            let bit = match self.tag_names.iter().position(|name| name == tag) {
                Some(bit) => bit,
                None if self.tag_names.len() < TAGS => {
                    self.tag_names.push(tag.clone());
                    self.tag_names.len() - 1
                }
                None => {
                    let message = format!("`{tag}`: more than {TAGS} different tags in the cluster");
                    return Err(self.errors.at(Some(at), &format!("{field}.tags"), message));
                }
            };
            mask |= 1 << bit;
        }
        Ok(mask)
    }

    // ---- checks ---------------------------------------------------------------------------------------

    fn check_count<T>(&self, at: Option<&Spanned<T>>, field: &str, count: u32) -> Result<(), InputError> {
        match count {
            0 => Err(self.errors.at(at, field, "0: expected at least 1".into())),
            n if n as usize > HOSTS => Err(self.errors.at(at, field, format!("{n}: more than {HOSTS}"))),
            _ => Ok(()),
        }
    }
}
