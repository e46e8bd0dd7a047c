//! Tables and columns of a snapshot. Every value is a whole number, so that differences between two snapshots are
//! exact.

use leeward_fabric::{DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_service::{DeviceState, HostState, LinkState, NetworkSnapshot};

/// A table of a snapshot.
pub struct Table {
    /// Name: of the parameter, and of the field.
    pub name: &'static str,
    /// Columns.
    pub columns: &'static [Column],
    /// Number of rows, which are the same for every snapshot of a cluster.
    pub rows: fn(&Fabric) -> usize,
}

/// A column of a table.
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Source of its values.
    pub values: Values,
}

/// Values of a column, by row.
#[derive(Clone, Copy)]
pub enum Values {
    /// Names, which stay the same for a cluster.
    Names(fn(&Fabric, usize) -> Option<String>),
    /// Numbers.
    Numbers(Read),
    /// True or false: 1 or 0.
    Flags(Read),
    /// Times, in nanoseconds of the service's clock.
    Times(Read),
}

/// Value of a row; `None` if unknown.
pub type Read = fn(&Source<'_>, usize) -> Option<i64>;

/// A snapshot to read values from.
pub struct Source<'a> {
    /// The snapshot.
    pub snapshot: &'a NetworkSnapshot,
    /// Length of a step, as a share of the capacity.
    pub resolution: f64,
}

impl Source<'_> {
    fn link(&self, row: usize) -> Option<&LinkState> {
        self.snapshot.links.get(row)
    }

    fn host(&self, row: usize) -> Option<&HostState> {
        self.snapshot.hosts.get(row)
    }

    fn device(&self, row: usize) -> Option<&DeviceState> {
        self.snapshot.device(device_of(&self.snapshot.fabric, row))
    }

    fn hosts_of(&self, row: usize) -> &[HostState] {
        self.snapshot.hosts_of(DomainId(row as u32))
    }

    /// A share in whole steps.
    fn steps(&self, share: f64) -> Option<i64> {
        share.is_finite().then(|| (share / self.resolution).round() as i64)
    }

    /// A rate on a link in whole steps; `None` for an unknown rate or a link without capacity.
    fn rate_steps(&self, link: &LinkState, rate: Option<Load>) -> Option<i64> {
        let rate = rate.filter(|_| link.capacity > Load(0))?;
        self.steps(rate.0 as f64 / link.capacity.0 as f64)
    }

    /// Start of the hot period of a link.
    fn hot_since(&self, link: Option<ResourceId>) -> Option<i64> {
        time(self.snapshot.link(link?)?.hot_since)
    }

    /// Measured load of a link in whole steps.
    fn measured_steps(&self, link: Option<ResourceId>) -> Option<i64> {
        let link = self.snapshot.link(link?)?;
        self.rate_steps(link, link.measured)
    }
}

fn device_of(fabric: &Fabric, row: usize) -> ResourceId {
    ResourceId((fabric.link_count() + row) as u32)
}

fn time(at: Option<Nanos>) -> Option<i64> {
    at.map(|at| at.0 as i64)
}

fn whole(value: Option<f64>) -> Option<i64> {
    value.filter(|value| value.is_finite()).map(|value| value.round() as i64)
}

const fn names(name: &'static str, read: fn(&Fabric, usize) -> Option<String>) -> Column {
    Column { name, values: Values::Names(read) }
}

const fn numbers(name: &'static str, read: Read) -> Column {
    Column { name, values: Values::Numbers(read) }
}

const fn flags(name: &'static str, read: Read) -> Column {
    Column { name, values: Values::Flags(read) }
}

const fn times(name: &'static str, read: Read) -> Column {
    Column { name, values: Values::Times(read) }
}

/// Number of tables.
pub const COUNT: usize = 4;

/// All tables.
pub static TABLES: [Table; COUNT] = [
    Table {
        name: "links",
        rows: Fabric::link_count,
        columns: &[
            names("link", |fabric, row| Some(fabric.resource_name(ResourceId(row as u32)))),
            numbers("capacity_bps", |source, row| Some(source.link(row)?.capacity.0)),
            numbers("measured_bps", |source, row| Some(source.link(row)?.measured?.0)),
            times("until", |source, row| time(source.link(row)?.until)),
            times("from", |source, row| time(source.link(row)?.latest.map(|(from, _)| from))),
            numbers("latest_bps", |source, row| Some(source.link(row)?.latest?.1.0)),
            flags("derived", |source, row| Some(source.link(row)?.derived.into())),
            numbers("pending_bps", |source, row| Some(source.link(row)?.pending.0)),
            numbers("reserved_bps", |source, row| Some(source.link(row)?.reserved.0)),
            numbers("residual_bps", |source, row| Some(source.link(row)?.residual.0)),
            numbers("expected_capacity_bps", |source, row| Some(source.link(row)?.expected?.0)),
            times("hot_since", |source, row| time(source.link(row)?.hot_since)),
            numbers("full_bps", |source, row| Some(source.link(row)?.full?.0)),
            numbers("speed_bps", |source, row| Some(source.link(row)?.speed?.0)),
            numbers("queue_bytes", |source, row| whole(source.link(row)?.queue)),
            numbers("measured_steps", |source, row| {
                source.link(row).and_then(|link| source.rate_steps(link, link.measured))
            }),
            numbers("pending_steps", |source, row| {
                source.link(row).and_then(|link| source.rate_steps(link, Some(link.pending)))
            }),
            numbers("reserved_steps", |source, row| {
                source.link(row).and_then(|link| source.rate_steps(link, Some(link.reserved)))
            }),
            numbers("residual_steps", |source, row| {
                source.link(row).and_then(|link| source.rate_steps(link, Some(link.residual)))
            }),
            numbers("expected_capacity_steps", |source, row| {
                source.link(row).and_then(|link| source.rate_steps(link, link.expected))
            }),
        ],
    },
    Table {
        name: "racks",
        rows: Fabric::rack_count,
        columns: &[
            names("rack", |fabric, row| Some(fabric.domain_name(DomainId(row as u32)).to_owned())),
            names("pod", |fabric, row| {
                Some(fabric.domain_name(fabric.parent(DomainId(row as u32))?).to_owned())
            }),
            names("uplink", |fabric, row| {
                Some(fabric.resource_name(fabric.out_of_domain(DomainId(row as u32))?))
            }),
            names("downlink", |fabric, row| {
                Some(fabric.resource_name(fabric.into_domain(DomainId(row as u32))?))
            }),
            numbers("hosts", |source, row| i64::try_from(source.hosts_of(row).len()).ok()),
            numbers("tasks", |source, row| {
                Some(source.hosts_of(row).iter().map(|host| i64::from(host.tasks)).sum())
            }),
            numbers("replicas", |source, row| {
                Some(source.hosts_of(row).iter().map(|host| i64::from(host.replicas)).sum())
            }),
            numbers("up_steps", |source, row| {
                source.measured_steps(source.snapshot.fabric.out_of_domain(DomainId(row as u32)))
            }),
            numbers("down_steps", |source, row| {
                source.measured_steps(source.snapshot.fabric.into_domain(DomainId(row as u32)))
            }),
            times("up_hot_since", |source, row| {
                source.hot_since(source.snapshot.fabric.out_of_domain(DomainId(row as u32)))
            }),
            times("down_hot_since", |source, row| {
                source.hot_since(source.snapshot.fabric.into_domain(DomainId(row as u32)))
            }),
        ],
    },
    Table {
        name: "hosts",
        rows: Fabric::host_count,
        columns: &[
            names("host", |fabric, row| Some(fabric.host_name(HostId(row as u32)).to_owned())),
            names("rack", |fabric, row| {
                Some(fabric.domain_name(fabric.rack_of(HostId(row as u32))).to_owned())
            }),
            flags("up", |source, row| Some(source.host(row)?.up.into())),
            flags("draining", |source, row| Some(source.host(row)?.draining.into())),
            numbers("stored_bytes", |source, row| i64::try_from(source.host(row)?.stored.0).ok()),
            numbers("tasks", |source, row| Some(source.host(row)?.tasks.into())),
            numbers("replicas", |source, row| Some(source.host(row)?.replicas.into())),
            numbers("egress_steps", |source, row| {
                source.measured_steps(source.snapshot.fabric.egress(HostId(row as u32)))
            }),
            numbers("ingress_steps", |source, row| {
                source.measured_steps(source.snapshot.fabric.ingress(HostId(row as u32)))
            }),
        ],
    },
    Table {
        name: "devices",
        rows: |fabric| fabric.resource_count() - fabric.link_count(),
        columns: &[
            names("device", |fabric, row| Some(fabric.resource_name(device_of(fabric, row)))),
            times("until", |source, row| time(source.device(row)?.until)),
            times("hot_since", |source, row| time(source.device(row)?.hot_since)),
            numbers("busy_steps", |source, row| source.steps(source.device(row)?.busy?)),
            numbers("reserved_steps", |source, row| source.steps(source.device(row)?.reserved)),
            numbers("residual_steps", |source, row| source.steps(source.device(row)?.residual)),
            numbers("read_bps", |source, row| whole(source.device(row)?.reading?.requests?.read_bps)),
            numbers("write_bps", |source, row| whole(source.device(row)?.reading?.requests?.write_bps)),
            numbers("in_flight", |source, row| {
                i64::try_from(source.device(row)?.reading?.requests?.in_flight?).ok()
            }),
        ],
    },
];
