//! Numbers that a policy may see: of hosts, racks and links, as the ledger and the pool know them. Constants belong to the
//! cluster; the others may change with each decision.

use std::iter::successors;

use leeward_fabric::{DomainId, Fabric, HostId, Load, ResourceId};
use leeward_ledger::View;
use leeward_placement::{Context, Pool};

use crate::names::kind_name;
use crate::policy::values::Values;

/// Bits of a byte, and nanoseconds of a second.
const BIT_NANOS: f64 = 8e9;

/// A property of each host, rack or link that never changes.
#[derive(Clone, Copy)]
pub enum Constant {
    Hosts,
    Racks,
    Links,
    RackOf,
    PodOf,
    FaultDomainOf,
    HostNames,
    RackNames,
    LinkNames,
    LinkKinds,
    Ingress,
    Egress,
    Downlink,
    Uplink,
}

impl Constant {
    /// Number of constants.
    pub const COUNT: usize = Constant::Uplink as usize + 1;

    /// Reads the property.
    pub fn read(self, fabric: &Fabric) -> Values {
        let hosts = || fabric.all_hosts();
        let racks = || fabric.all_racks();
        let links = || (0..fabric.link_count() as u32).map(ResourceId);
        let ids = |ids: &mut dyn Iterator<Item = u32>| Values::Ids(ids.map(|id| id as i32).collect());
        let maybe = |ids: &mut dyn Iterator<Item = Option<ResourceId>>| {
            Values::Ids(ids.map(|id| id.map_or(-1, |id| id.0 as i32)).collect())
        };
        match self {
            Constant::Hosts => ids(&mut hosts().map(|host| host.0)),
            Constant::Racks => ids(&mut racks().map(|rack| rack.0)),
            Constant::Links => ids(&mut links().map(|link| link.0)),
            Constant::RackOf => ids(&mut hosts().map(|host| fabric.rack_of(host).0)),
            Constant::PodOf => {
                let first = fabric.rack_count() as i32;
                let pod = |rack| fabric.parent(rack).map_or(-1, |pod| pod.0 as i32 - first);
                Values::Ids(racks().map(pod).collect())
            }
            Constant::FaultDomainOf => {
                ids(&mut hosts().map(|host| fabric.fault_domain(fabric.rack_of(host)).0))
            }
            Constant::HostNames => {
                Values::Texts(hosts().map(|host| fabric.host_name(host).to_owned()).collect())
            }
            Constant::RackNames => {
                Values::Texts(racks().map(|rack| fabric.domain_name(rack).to_owned()).collect())
            }
            Constant::LinkNames => Values::Texts(links().map(|link| fabric.resource_name(link)).collect()),
            Constant::LinkKinds => {
                Values::Texts(links().map(|link| kind_name(fabric.kind(link)).to_owned()).collect())
            }
            Constant::Ingress => maybe(&mut hosts().map(|host| fabric.ingress(host))),
            Constant::Egress => maybe(&mut hosts().map(|host| fabric.egress(host))),
            Constant::Downlink => maybe(&mut racks().map(|rack| fabric.into_domain(rack))),
            Constant::Uplink => maybe(&mut racks().map(|rack| fabric.out_of_domain(rack))),
        }
    }
}

/// A number of each host, rack or link that may change with each decision.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Number {
    IsOpen,
    FreeBytes,
    StoredBytes,
    FreeCpus,
    FreeMemory,
    DiskResidual,
    ResidualIn,
    ResidualOut,
    UtilizationIn,
    UtilizationOut,
    RackResidualIn,
    RackResidualOut,
    RackUtilizationIn,
    RackUtilizationOut,
    LinkCapacity,
    LinkMeasured,
    LinkLoad,
    LinkResidual,
    LinkUtilization,
    LinkExpected,
    LinkShare,
    LinkHot,
}

impl Number {
    /// Reads the number, with the what-if of the view.
    pub fn read(self, context: &Context<'_, '_>) -> Values {
        let (view, pool): (&View<'_>, &Pool) = (&*context.view, context.pool);
        let fabric = view.fabric();
        let residual = |link: ResourceId| view.residual(link).0 as f64;
        let utilization = |link: ResourceId| view.utilization_with(link, Load(0)).unwrap_or(f64::NAN);
        let of_hosts =
            |number: &dyn Fn(HostId) -> f64| Values::Floats(fabric.all_hosts().map(number).collect());
        let of_racks = |link: LinkOf, number: &dyn Fn(ResourceId) -> f64| {
            let own = |rack| link(fabric, rack).map_or(f64::NAN, number);
            Values::Floats(fabric.all_racks().map(own).collect())
        };
        let of_links = |number: &dyn Fn(ResourceId) -> f64| {
            Values::Floats((0..fabric.link_count() as u32).map(ResourceId).map(number).collect())
        };
        let maybe = |load: Option<Load>| load.map_or(f64::NAN, |load| load.0 as f64);
        match self {
            Number::IsOpen => Values::Flags(fabric.all_hosts().map(|host| pool.is_open(host)).collect()),
            Number::FreeBytes => of_hosts(&|host| match pool.storage_of(host) {
                Some(_) => pool.room(host).0 as f64,
                None => f64::INFINITY,
            }),
            Number::StoredBytes => of_hosts(&|host| pool.stored(host).0 as f64),
            Number::FreeCpus => {
                of_hosts(&|host| pool.cpus_left(host).map_or(f64::INFINITY, |cpus| cpus.0 as f64 / 1000.0))
            }
            Number::FreeMemory => {
                of_hosts(&|host| pool.memory_left(host).map_or(f64::INFINITY, |bytes| bytes.0 as f64))
            }
            Number::DiskResidual => of_hosts(&|host| disk_residual(view, host)),
            Number::ResidualIn => along(fabric, INTO, &residual, f64::min),
            Number::ResidualOut => along(fabric, OUT_OF, &residual, f64::min),
            Number::UtilizationIn => along(fabric, INTO, &utilization, fuller),
            Number::UtilizationOut => along(fabric, OUT_OF, &utilization, fuller),
            Number::RackResidualIn => of_racks(Fabric::into_domain, &residual),
            Number::RackResidualOut => of_racks(Fabric::out_of_domain, &residual),
            Number::RackUtilizationIn => of_racks(Fabric::into_domain, &utilization),
            Number::RackUtilizationOut => of_racks(Fabric::out_of_domain, &utilization),
            Number::LinkCapacity => of_links(&|link| view.capacity(link).0 as f64),
            Number::LinkMeasured => of_links(&|link| maybe(view.measured(link))),
            Number::LinkLoad => of_links(&|link| maybe(view.numbers(link).load)),
            Number::LinkResidual => of_links(&residual),
            Number::LinkUtilization => of_links(&utilization),
            Number::LinkExpected => of_links(&|link| maybe(view.expected_capacity(link))),
            Number::LinkShare => of_links(&|link| view.share(link, 1).0 as f64),
            Number::LinkHot => {
                let links = (0..fabric.link_count() as u32).map(ResourceId);
                Values::Flags(links.map(|link| view.hot_since(link).is_some()).collect())
            }
        }
    }
}

/// The link of a rack or pod in one direction.
type LinkOf = fn(&Fabric, DomainId) -> Option<ResourceId>;
/// The links in one direction between a host and the core: its own, and those of its rack and pod.
type Direction = (fn(&Fabric, HostId) -> Option<ResourceId>, LinkOf);

const INTO: Direction = (Fabric::ingress, Fabric::into_domain);
const OUT_OF: Direction = (Fabric::egress, Fabric::out_of_domain);

/// The larger utilization; unknown if one of them is.
fn fuller(one: f64, other: f64) -> f64 {
    if one.is_nan() || other.is_nan() { f64::NAN } else { one.max(other) }
}

/// For each host, the worst number of the links between it and the core in one direction; NaN without links.
fn along(
    fabric: &Fabric,
    (of_host, of_domain): Direction,
    number: &dyn Fn(ResourceId) -> f64,
    worse: fn(f64, f64) -> f64,
) -> Values {
    let of_rack = |rack: DomainId| {
        let domains = successors(Some(rack), |&domain| fabric.parent(domain));
        domains.filter_map(|domain| of_domain(fabric, domain)).map(number).reduce(worse)
    };
    let racks: Vec<Option<f64>> = fabric.all_racks().map(of_rack).collect();
    let of_path = |host: HostId| {
        let own = of_host(fabric, host).map(number);
        own.into_iter().chain(racks[fabric.rack_of(host).index()]).reduce(worse).unwrap_or(f64::NAN)
    };
    Values::Floats(fabric.all_hosts().map(of_path).collect())
}

/// Rate that a host's least busy disk can still write, in bit/s: infinite without disks, NaN if no disk has a known load.
fn disk_residual(view: &View<'_>, host: HostId) -> f64 {
    let fabric = view.fabric();
    let devices = fabric.devices(host);
    if devices.is_empty() {
        return f64::INFINITY;
    }
    let rates = (0u16..).zip(devices).filter_map(|(index, device)| {
        let resource = fabric.device(host, index)?;
        view.measured(resource)?;
        // Nanoseconds of service per second, times bits per nanosecond of service.
        Some(view.residual(resource).0 as f64 / 1e9 * BIT_NANOS / device.write_ns_per_byte)
    });
    rates.fold(f64::NAN, f64::max)
}
