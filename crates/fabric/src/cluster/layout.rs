//! Turns resolved racks into a [`Fabric`] and its [`Capacities`]: assigns ids and adds up rates.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::errors::Errors;
use super::file::ClusterFile;
use super::mesh_links;
use super::resolve::{Link, Resolved, resolve};
use super::values::Duplex;
use super::{Cluster, cross_traffic, round_trips};
use crate::fabric::Domain;
use crate::input::InputError;
use crate::mesh_links::MeshLinks;
use crate::names::Names;
use crate::round_trips::RoundTrips;
use crate::units::{Bandwidth, Cost};
use crate::{Capacities, Discipline, DomainId, Fabric, FaultDomainId, Load, ResourceId, Shape};

/// Capacity of a device: 1e9 ns of service per second.
const DEVICE_CAPACITY: Load = Load(1_000_000_000);

pub(super) fn build(path: &str, file: &ClusterFile) -> Result<Cluster, InputError> {
    let errors = Errors { path, file };
    let layout = Layout { errors, resolved: resolve(errors)? };
    let mut fabric = layout.fabric()?;
    fabric.mesh_links = mesh_links::build(errors, &fabric)?;
    fabric.round_trips = round_trips::build(errors, &fabric)?;
    let capacities = layout.capacities(&fabric)?;
    let cross_traffic = cross_traffic::build(errors, &fabric)?;
    Ok(Cluster { fabric: Arc::new(fabric), capacities, cross_traffic, source: Arc::default() })
}

struct Layout<'a> {
    errors: Errors<'a>,
    resolved: Resolved,
}

impl Layout<'_> {
    fn fabric(&self) -> Result<Fabric, InputError> {
        let Resolved { racks, pods, tag_names, .. } = &self.resolved;
        let mut domains = Vec::with_capacity(racks.len() + pods.len());
        let mut fault_domains = BTreeMap::<&str, FaultDomainId>::new();
        let (mut host_names, mut host_racks, mut host_tags) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first_device, mut devices) = (vec![0], Vec::new());
        let (mut host_compute, mut host_costs) = (Vec::new(), Vec::new());
        let mut device_count = 0;
        let mut rack_fault_domains = Vec::new();
        for (i, rack) in racks.iter().enumerate() {
            let first = host_names.len() as u32;
            for host in &rack.hosts {
                host_names.push(Box::<str>::from(&*host.name));
                host_racks.push(DomainId(i as u32));
                host_tags.push(host.tags);
                host_compute.push((host.cpus, host.memory));
                host_costs.push(host.cost);
                device_count += host.devices.len() as u32;
                first_device.push(device_count);
                devices.push(host.devices.clone());
            }
            let fault_domain = rack.fault_domain.as_deref().unwrap_or(&rack.name);
            let next = FaultDomainId(fault_domains.len() as u32);
            rack_fault_domains.push(*fault_domains.entry(fault_domain).or_insert(next));
            domains.push(Domain {
                name: rack.name.as_str().into(),
                parent: rack.pod.map(|pod| DomainId((racks.len() + pod) as u32)),
                hosts: first..host_names.len() as u32,
                children: 0..0,
            });
        }
        for (i, pod) in pods.iter().enumerate() {
            let first = racks.partition_point(|rack| rack.pod < Some(i));
            let end = racks.partition_point(|rack| rack.pod <= Some(i));
            if first == end {
                let message = format!("pod {} has no racks; name it in a rack's `pod`", pod.name);
                return Err(self.errors.at(pod.at, format!("pods[{i}]"), message));
            }
            domains.push(Domain {
                name: pod.name.as_str().into(),
                parent: None,
                hosts: domains[first].hosts.start..domains[end - 1].hosts.end,
                children: first as u32..end as u32,
            });
        }
        if host_costs.iter().all(|&cost| cost == Cost(0)) {
            host_costs.clear();
        }
        let domains_by_name = Names::new(domains.len(), |at| &domains[at as usize].name)
            .map_err(|at| self.errors.duplicate_domain(&domains[at as usize].name))?;
        let hosts_by_name = Names::new(host_names.len(), |at| &host_names[at as usize])
            .map_err(|at| self.errors.duplicate_host(&host_names[at as usize]))?;
        let fabric = Fabric {
            name: self.errors.file.name.as_deref().unwrap_or("cluster").into(),
            shape: self.errors.file.shape,
            discipline: self.discipline()?,
            mesh_links: MeshLinks::default(),
            round_trips: RoundTrips::default(),
            hosts_by_name,
            domains_by_name,
            host_names,
            host_racks,
            host_tags,
            host_compute,
            host_costs,
            tag_names: tag_names.clone(),
            domains,
            racks: racks.len() as u32,
            rack_kinds: racks.iter().map(|rack| rack.kind).collect(),
            rack_fault_domains,
            fault_domain_count: fault_domains.len(),
            first_device,
            devices,
        };
        Ok(fabric)
    }

    fn discipline(&self) -> Result<Discipline, InputError> {
        let Some(count) = &self.errors.file.priorities else { return Ok(Discipline::Fifo) };
        match u8::try_from(count.value.0) {
            Ok(classes) => Ok(Discipline::StrictPriority { classes }),
            Err(_) => {
                let message = format!("{}: expected at most {} classes", count.value.0, u8::MAX);
                Err(self.errors.at(count.place, "priorities", message))
            }
        }
    }

    fn capacities(&self, fabric: &Fabric) -> Result<Capacities, InputError> {
        let mut capacity = vec![Load(0); fabric.resource_count()];
        let hosts = self.resolved.racks.iter().flat_map(|rack| &rack.hosts);
        mesh_links::capacities(self.errors, fabric, &mut capacity)?;
        if fabric.shape() != Shape::Pipe {
            for (host, id) in hosts.zip(fabric.all_hosts()) {
                let nic = host.nic.ok_or_else(|| self.errors.missing("nic", "10Gbps"))?;
                set(&mut capacity, fabric.egress(id), nic.up.as_load());
                set(&mut capacity, fabric.ingress(id), nic.down.as_load());
            }
        }
        if fabric.shape() == Shape::Tree {
            self.domain_capacities(fabric, &mut capacity)?;
        }
        for host in fabric.all_hosts() {
            for index in 0..fabric.devices(host).len() {
                set(&mut capacity, fabric.device(host, index as u16), DEVICE_CAPACITY);
            }
        }
        Ok(Capacities::new(capacity))
    }

    fn domain_capacities(&self, fabric: &Fabric, capacity: &mut [Load]) -> Result<(), InputError> {
        let Resolved { racks, pods, rack_link, pod_link, .. } = &self.resolved;
        let mut uplinks = Vec::with_capacity(racks.len());
        for (i, rack) in racks.iter().enumerate() {
            let link =
                rack.link.or(*rack_link).ok_or_else(|| self.errors.missing("oversubscription", "10"))?;
            let below = sum(rack.hosts.iter().filter_map(|host| host.nic));
            let link = self.rate(link, below, &rack.name)?;
            set(capacity, fabric.out_of_domain(DomainId(i as u32)), link.up.as_load());
            set(capacity, fabric.into_domain(DomainId(i as u32)), link.down.as_load());
            uplinks.push(link);
        }
        for (i, pod) in pods.iter().enumerate() {
            let id = DomainId((racks.len() + i) as u32);
            let link =
                pod.link.or(*pod_link).ok_or_else(|| self.errors.missing("pod_oversubscription", "3"))?;
            let below = sum(fabric.children(Some(id)).map(|rack| uplinks[rack.index()]));
            let link = self.rate(link, below, &pod.name)?;
            set(capacity, fabric.out_of_domain(id), link.up.as_load());
            set(capacity, fabric.into_domain(id), link.down.as_load());
        }
        Ok(())
    }

    /// Returns the rates of a domain's link; `below` is the total rate of the links below the domain.
    fn rate(&self, link: Link, below: Duplex, name: &str) -> Result<Duplex, InputError> {
        let (ratio, at) = match link {
            Link::Rate(rate) => return Ok(rate),
            Link::Oversubscribed(ratio, at) => (ratio, at),
        };
        let divided = |rate: Bandwidth| (rate.0 as f64 / ratio).round();
        let (up, down) = (divided(below.up), divided(below.down));
        let possible = 1.0..i64::MAX as f64;
        if possible.contains(&up) && possible.contains(&down) {
            return Ok(Duplex { up: Bandwidth(up as u64), down: Bandwidth(down as u64) });
        }
        let message = format!(
            "{ratio}: {name} would have an uplink of {up:e} bit/s and a downlink of {down:e} bit/s, out of range"
        );
        Err(self.errors.at(at, "oversubscription", message))
    }
}

fn set(capacity: &mut [Load], resource: Option<ResourceId>, value: Load) {
    if let Some(resource) = resource {
        capacity[resource.index()] = value;
    }
}

fn sum(rates: impl Iterator<Item = Duplex>) -> Duplex {
    rates.fold(Duplex { up: Bandwidth(0), down: Bandwidth(0) }, |total, rate| Duplex {
        up: Bandwidth(total.up.0.saturating_add(rate.up.0)),
        down: Bandwidth(total.down.0.saturating_add(rate.down.0)),
    })
}
