//! A user's table of flows: its columns, and the network work of each row.

use arrow_array::RecordBatch;
use arrow_buffer::ScalarBuffer;
use leeward_fabric::input::InputError;
use leeward_fabric::{BITS_PER_BYTE, DomainId, Endpoint, Fabric, Hop, HostId, ResourceId};

use crate::columns::{Column, Ids, Lists};
use crate::names::{self, Direction};

/// Flag bit in the codes of devices with the suffix `:read`; no cluster has enough resources for codes to collide.
const READ: u32 = 1 << 31;

/// Validated flows of one record batch: every value is in range and every name known.
pub struct Flows {
    arrivals: ScalarBuffer<f64>,
    sizes: ScalarBuffer<f64>,
    routes: Routes,
    weights: Option<ScalarBuffer<f64>>,
    caps_bps: Option<ScalarBuffer<f64>>,
}

/// Paths of flows.
enum Routes {
    /// From one endpoint to another; the numbers of hosts come first, then those of racks and pods.
    Pairs { sources: Ids, destinations: Ids },
    /// Over the listed resources.
    Lists { lists: Lists, resources: Ids, work: Option<ScalarBuffer<f64>> },
}

/// One flow, without its path.
pub struct Flow {
    pub arrival: f64,
    pub bytes: f64,
    pub weight: f64,
    /// Rate limit in bytes per second; infinite without a limit.
    pub cap: f64,
    /// Equal for flows that differ only in arrival and size, if this is easy to determine.
    pub class: Option<u64>,
}

impl Flows {
    /// Reads a batch whose first row is `first_row` of its table.
    pub fn read(fabric: &Fabric, batch: &RecordBatch, first_row: usize) -> Result<Flows, InputError> {
        let column = |name| Column::of("flows", batch, name, first_row);
        let required = |name| {
            column(name).ok_or_else(|| {
                let message =
                    "missing; expected columns t_arrival_s, size_bytes, and src and dst or resources";
                InputError::new("flows", message).in_field(name)
            })
        };
        let amount = |number: f64| (0.0..f64::INFINITY).contains(&number);
        let positive = |number: f64| number > 0.0 && number < f64::INFINITY;
        let arrivals = required("t_arrival_s")?.numbers(amount, "seconds, finite and not negative")?;
        let sizes = required("size_bytes")?.numbers(amount, "bytes, finite and not negative")?;
        let weights =
            column("weight").map(|weights| weights.numbers(positive, "a positive weight")).transpose()?;
        let cap = |cap: f64| cap > 0.0;
        let caps_bps = column("cap_bps")
            .map(|caps| caps.numbers_or(f64::INFINITY, cap, "a positive rate, or null for no cap"))
            .transpose()?;
        let routes = match column("resources") {
            Some(resources) => Routes::from_lists(fabric, &resources, column("work"))?,
            None => Routes::from_pairs(fabric, &required("src")?, &required("dst")?)?,
        };
        Ok(Flows { arrivals, sizes, routes, weights, caps_bps })
    }

    pub fn arrivals(&self) -> &[f64] {
        &self.arrivals
    }

    /// The `row`th flow of the batch; its path is written to `hops`.
    pub fn get(&self, fabric: &Fabric, row: usize, hops: &mut Vec<Hop>) -> Flow {
        hops.clear();
        self.routes.path(fabric, row, hops);
        Flow {
            arrival: self.arrivals[row],
            bytes: self.sizes[row],
            weight: self.weights.as_ref().map_or(1.0, |weights| weights[row]),
            cap: self.caps_bps.as_ref().map_or(f64::INFINITY, |caps| caps[row] / BITS_PER_BYTE),
            class: self.class(row),
        }
    }

    fn class(&self, row: usize) -> Option<u64> {
        match &self.routes {
            Routes::Pairs { sources, destinations } if self.weights.is_none() && self.caps_bps.is_none() => {
                Some(u64::from(sources.get(row)) << 32 | u64::from(destinations.get(row)))
            }
            _ => None,
        }
    }
}

impl Routes {
    fn from_pairs(fabric: &Fabric, sources: &Column, destinations: &Column) -> Result<Routes, InputError> {
        let hosts = fabric.host_count();
        let find = |name: &str| match names::endpoint(fabric, name)? {
            Endpoint::Host(host) => Some(host.0),
            Endpoint::Domain(domain) => Some(hosts as u32 + domain.0),
            Endpoint::DeviceWrite(..) | Endpoint::DeviceRead(..) => None,
        };
        let sources = sources.ids("host", hosts, find)?;
        let destinations = destinations.ids("host", hosts, find)?;
        Ok(Routes::Pairs { sources, destinations })
    }

    fn from_lists(fabric: &Fabric, column: &Column, work: Option<Column>) -> Result<Routes, InputError> {
        let lists = column.lists()?;
        let find = |name: &str| {
            let (resource, direction) = names::resource(fabric, name)?;
            Some(if direction == Direction::Read { resource.0 | READ } else { resource.0 })
        };
        let resources = column.elements(&lists).ids("resource", fabric.resource_count(), find)?;
        let work = match work {
            Some(column) => {
                let numbers = column.lists()?;
                let rows = 0..lists.rows();
                if let Some(row) =
                    rows.clone().find(|&row| lists.range(row).len() != numbers.range(row).len())
                {
                    let (given, expected) = (numbers.range(row).len(), lists.range(row).len());
                    return Err(column.refuse(row, format!("{given} numbers for {expected} resources")));
                }
                let amount = |work: f64| (0.0..f64::INFINITY).contains(&work);
                let expected = "work per byte, finite and not negative";
                Some(column.elements(&numbers).numbers(amount, expected)?)
            }
            None => None,
        };
        Ok(Routes::Lists { lists, resources, work })
    }

    fn path(&self, fabric: &Fabric, row: usize, hops: &mut Vec<Hop>) {
        match self {
            Routes::Pairs { sources, destinations } => {
                let hosts = fabric.host_count() as u32;
                let place = |code: u32| match code.checked_sub(hosts) {
                    None => Endpoint::Host(HostId(code)),
                    Some(domain) => Endpoint::Domain(DomainId(domain)),
                };
                fabric.path(&[place(sources.get(row)), place(destinations.get(row))], hops);
            }
            Routes::Lists { lists, resources, work } => {
                hops.extend(lists.range(row).map(|at| {
                    let code = resources.get(at);
                    let resource = ResourceId(code & !READ);
                    let work = match work {
                        Some(work) => work[at],
                        None => default_work(fabric, resource, code & READ != 0),
                    };
                    Hop { resource, work }
                }));
            }
        }
    }
}

/// Work of one byte that crosses a link once, or of one byte that is read from or written to a device.
fn default_work(fabric: &Fabric, resource: ResourceId, read: bool) -> f64 {
    match fabric.device_of(resource) {
        Some(device) if read => device.read_ns_per_byte,
        Some(device) => device.write_ns_per_byte,
        None => BITS_PER_BYTE,
    }
}
