//! From resolved racks to a [`Fabric`] and its [`Capacities`]: ids are dealt out and rates added up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Cluster;
use super::errors::Errors;
use super::file::{ClusterFile, Duplex};
use super::resolve::{Resolved, resolve};
use crate::fabric::Domain;
use crate::input::{InputError, Spanned};
use crate::units::Bandwidth;
use crate::{
    Capacities, Discipline, DomainId, DomainKind, Fabric, FaultDomainId, HostId, Load, ResourceId, Shape,
};

/// Device time: 1e9 ns of service per second is a busy device.
const BUSY: Load = Load(1_000_000_000);
/// The largest pipe mesh: a resource for each ordered pair is 16.8 million of them.
const PIPE_HOSTS: usize = 4_096;

pub(super) fn build(path: &str, file: &ClusterFile) -> Result<Cluster, InputError> {
    let layout = Layout { errors: Errors { path }, file, resolved: resolve(path, file)? };
    let fabric = layout.fabric()?;
    if fabric.shape() == Shape::Pipe && fabric.host_count() > PIPE_HOSTS {
        return Err(layout.errors.about(format!(
            "{} hosts: a pipe mesh has a resource for each pair and at most {PIPE_HOSTS} hosts; use `shape: hose`",
            fabric.host_count()
        )));
    }
    let capacities = layout.capacities(&fabric)?;
    Ok(Cluster { fabric: Arc::new(fabric), capacities })
}

struct Layout<'a> {
    errors: Errors<'a>,
    file: &'a ClusterFile,
    resolved: Resolved,
}

impl Layout<'_> {
    fn fabric(&self) -> Result<Fabric, InputError> {
        let Resolved { racks, pods, tag_names } = &self.resolved;
        let mut domains = Vec::with_capacity(racks.len() + pods.len());
        let mut fault_domains = BTreeMap::<&str, FaultDomainId>::new();
        let mut fault_domain_names = Vec::new();
        let (mut host_names, mut host_racks, mut host_tags) = (Vec::new(), Vec::new(), Vec::new());
        let (mut first_device, mut devices) = (vec![0], Vec::new());
        let mut rack_fault_domains = Vec::new();
        for (i, rack) in racks.iter().enumerate() {
            let first = host_names.len() as u32;
            for host in &rack.hosts {
                host_names.push(Box::<str>::from(&*host.name));
                host_racks.push(DomainId(i as u32));
                host_tags.push(host.tags);
                devices.extend(host.devices.iter().cloned());
                first_device.push(devices.len() as u32);
            }
            let fault_domain = rack.fault_domain.as_deref().unwrap_or(&rack.name);
            let next = FaultDomainId(fault_domain_names.len() as u32);
            let id = *fault_domains.entry(fault_domain).or_insert(next);
            if id == next {
                fault_domain_names.push(fault_domain.to_owned());
            }
            rack_fault_domains.push(id);
            domains.push(Domain {
                name: rack.name.as_str().into(),
                kind: DomainKind::Rack,
                parent: rack.pod.map(|pod| DomainId((racks.len() + pod) as u32)),
                hosts: first..host_names.len() as u32,
                children: 0..0,
            });
        }
        for (i, pod) in pods.iter().enumerate() {
            let first = racks.partition_point(|rack| rack.pod < Some(i));
            let end = racks.partition_point(|rack| rack.pod <= Some(i));
            if first == end {
                return Err(self.errors.about(format!("pod {} has no racks", pod.name)).in_field("pods"));
            }
            domains.push(Domain {
                name: pod.name.as_str().into(),
                kind: DomainKind::Pod,
                parent: None,
                hosts: domains[first].hosts.start..domains[end - 1].hosts.end,
                children: first as u32..end as u32,
            });
        }
        let discipline = match self.file.priorities {
            Some(classes) if classes > 0 => Discipline::StrictPriority { classes },
            _ => Discipline::Fifo,
        };
        let fabric = Fabric {
            name: self.file.name.as_deref().unwrap_or("cluster").into(),
            shape: self.file.shape,
            discipline,
            hosts_by_name: self.sorted(&host_names, "host")?.into_iter().map(HostId).collect(),
            domains_by_name: {
                let names: Vec<&str> = domains.iter().map(|domain| &*domain.name).collect();
                self.sorted(&names, "rack or pod")?.into_iter().map(DomainId).collect()
            },
            host_names,
            host_racks,
            host_tags,
            tag_names: tag_names.clone(),
            domains,
            racks: racks.len() as u32,
            rack_kinds: racks.iter().map(|rack| rack.kind).collect(),
            rack_fault_domains,
            fault_domain_names,
            first_device,
            devices,
        };
        Ok(fabric)
    }

    /// Positions by name; the same name twice is an error.
    fn sorted<S: AsRef<str>>(&self, names: &[S], what: &str) -> Result<Vec<u32>, InputError> {
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_unstable_by_key(|&at| names[at as usize].as_ref());
        let name = |at: u32| names[at as usize].as_ref();
        match order.windows(2).find(|pair| name(pair[0]) == name(pair[1])) {
            Some(pair) => Err(self.errors.about(format!("duplicate {what} `{}`", name(pair[0])))),
            None => Ok(order),
        }
    }

    fn capacities(&self, fabric: &Fabric) -> Result<Capacities, InputError> {
        let mut capacity = vec![Load(0); fabric.resource_count()];
        let file = self.file;
        self.errors.check_link(file.nic.as_ref(), "nic", file.nic.as_ref().map(|n| n.value), None)?;
        let hosts = self.resolved.racks.iter().flat_map(|rack| &rack.hosts);
        if fabric.shape() == Shape::Pipe {
            self.pair_capacities(fabric, &mut capacity)?;
        } else {
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
                set(&mut capacity, fabric.device(host, index as u16), BUSY);
            }
        }
        Ok(Capacities::new(capacity))
    }

    fn domain_capacities(&self, fabric: &Fabric, capacity: &mut [Load]) -> Result<(), InputError> {
        let (file, Resolved { racks, pods, .. }) = (self.file, &self.resolved);
        let below: Vec<Duplex> = racks.iter().map(|rack| sum(rack.hosts.iter().map(|h| h.nic))).collect();
        let rack_link =
            self.link("rack_link", &file.rack_link, "oversubscription", &file.oversubscription)?;
        let mut uplinks = Vec::new();
        for (i, rack) in racks.iter().enumerate() {
            let own = Link::of(rack.link, rack.oversubscription);
            let link = own.or(rack_link).ok_or_else(|| self.errors.missing("oversubscription", "10"))?;
            let link = self.rate(link, below[i], &rack.name)?;
            set(capacity, fabric.out_of_domain(DomainId(i as u32)), link.up.as_load());
            set(capacity, fabric.into_domain(DomainId(i as u32)), link.down.as_load());
            uplinks.push(link);
        }
        let pod_link =
            self.link("pod_link", &file.pod_link, "pod_oversubscription", &file.pod_oversubscription)?;
        for (i, pod) in pods.iter().enumerate() {
            let id = DomainId((racks.len() + i) as u32);
            let own = Link::of(pod.link, pod.oversubscription);
            let link = own.or(pod_link).ok_or_else(|| self.errors.missing("pod_oversubscription", "3"))?;
            let below = sum(fabric.children(Some(id)).map(|rack| Some(uplinks[rack.index()])));
            let link = self.rate(link, below, &pod.name)?;
            set(capacity, fabric.out_of_domain(id), link.up.as_load());
            set(capacity, fabric.into_domain(id), link.down.as_load());
        }
        Ok(())
    }

    fn pair_capacities(&self, fabric: &Fabric, capacity: &mut [Load]) -> Result<(), InputError> {
        let file = self.file;
        if let Some(pair) = &file.pair {
            let rate = Some(Duplex { up: pair.value, down: pair.value });
            self.errors.check_link(Some(pair), "pair", rate, None)?;
            for from in fabric.all_hosts() {
                for to in fabric.all_hosts() {
                    set(capacity, fabric.pair(from, to), pair.value.as_load());
                }
            }
        }
        for (i, item) in file.pairs.iter().enumerate() {
            let field = format!("pairs[{i}]");
            let host = |name: &str| {
                fabric
                    .host(name)
                    .ok_or_else(|| self.errors.at(Some(item), &field, format!("unknown host `{name}`")))
            };
            let pair = fabric.pair(host(&item.value.from)?, host(&item.value.to)?);
            if pair.is_none() || item.value.rate.0 == 0 {
                let message = "expected two different hosts and a positive rate".to_owned();
                return Err(self.errors.at(Some(item), &field, message));
            }
            set(capacity, pair, item.value.rate.as_load());
        }
        for from in fabric.all_hosts() {
            for to in fabric.all_hosts() {
                if fabric.pair(from, to).is_some_and(|pair| capacity[pair.index()].0 == 0) {
                    let names = (fabric.host_name(from), fabric.host_name(to));
                    let message =
                        format!("no rate from {} to {}; give `pair: 1Gbps` for all", names.0, names.1);
                    return Err(self.errors.about(message).in_field("pairs"));
                }
            }
        }
        Ok(())
    }

    fn link(
        &self,
        rate_field: &str,
        rate: &Option<Spanned<Duplex>>,
        ratio_field: &str,
        ratio: &Option<Spanned<f64>>,
    ) -> Result<Option<Link>, InputError> {
        self.errors.check_link(rate.as_ref(), rate_field, rate.as_ref().map(|r| r.value), None)?;
        self.errors.check_link(ratio.as_ref(), ratio_field, None, ratio.as_ref().map(|r| r.value))?;
        if rate.is_some() && ratio.is_some() {
            let message = format!("give `{rate_field}` or `{ratio_field}`, not both");
            return Err(self.errors.at(ratio.as_ref(), ratio_field, message));
        }
        Ok(Link::of(rate.as_ref().map(|r| r.value), ratio.as_ref().map(|r| r.value)))
    }

    /// The rates of a link with `below` under it.
    fn rate(&self, link: Link, below: Duplex, name: &str) -> Result<Duplex, InputError> {
        match link {
            Link::Rate(rate) => Ok(rate),
            Link::Oversubscribed(ratio) => {
                let divided = |rate: Bandwidth| Bandwidth((rate.0 as f64 / ratio).round() as u64);
                let link = Duplex { up: divided(below.up), down: divided(below.down) };
                if link.up.0 == 0 || link.down.0 == 0 {
                    let message = format!("{name}: an oversubscription of {ratio} leaves its uplink nothing");
                    return Err(self.errors.about(message).in_field("oversubscription"));
                }
                Ok(link)
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Link {
    Rate(Duplex),
    Oversubscribed(f64),
}

impl Link {
    fn of(rate: Option<Duplex>, oversubscription: Option<f64>) -> Option<Link> {
        rate.map(Link::Rate).or(oversubscription.map(Link::Oversubscribed))
    }
}

fn set(capacity: &mut [Load], resource: Option<ResourceId>, value: Load) {
    if let Some(resource) = resource {
        capacity[resource.index()] = value;
    }
}

fn sum(rates: impl Iterator<Item = Option<Duplex>>) -> Duplex {
    rates.flatten().fold(Duplex { up: Bandwidth(0), down: Bandwidth(0) }, |total, rate| Duplex {
        up: Bandwidth(total.up.0.saturating_add(rate.up.0)),
        down: Bandwidth(total.down.0.saturating_add(rate.down.0)),
    })
}
