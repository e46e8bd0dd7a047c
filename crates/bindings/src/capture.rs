//! `leeward.matrix.capture`: captures of packets and flow exports as tables.

use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_capture::places::{Mapping, PlaceKind};
use leeward_capture::{
    Capture, Classes, Content, Direction, LinkLoad, Matrix, Places, Settings, Size, Tunnels,
};
use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{DomainId, Fabric};
use pyo3::prelude::*;

use crate::arrow_table::table;
use crate::cluster::Cluster;
use crate::errors::PyInputError;

/// Number of records between two checks for a user's interrupt.
const RECORDS: u64 = 1 << 16;
const NANOS: i64 = 1_000_000_000;

type Tables = [PyArrowType<Table>; 5];

/// Level of a matrix whose cells are loads of links by class of service.
const CLASS: &str = "class";

/// Reads captures into one matrix: tables of cells, sources, unknown addresses, discards and interface counters.
/// `progress` receives the number of bytes read since the last call. By class, the cells are loads of links; `classes`
/// has the code points of each class, and without it each code point is a class.
#[pyfunction]
#[pyo3(signature = (files, *, by, interval_s, mapping = None, cluster = None, size = "frame", content = "auto",
    ports = Vec::new(), sampling = None, counters = false, direction = "both", tunnels = "outer", classes = None,
    progress = None))]
#[expect(clippy::too_many_arguments, reason = "settings by keyword")]
pub fn read_capture(
    py: Python<'_>,
    files: Vec<String>,
    by: &str,
    interval_s: u32,
    mapping: Option<&str>,
    cluster: Option<&Bound<'_, Cluster>>,
    size: &str,
    content: &str,
    ports: Vec<u16>,
    sampling: Option<u32>,
    counters: bool,
    direction: &str,
    tunnels: &str,
    classes: Option<Vec<(String, Vec<String>)>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Tables> {
    let by_class = by == CLASS;
    let kind = PlaceKind::from_name(by).or(by_class.then_some(PlaceKind::Host));
    let known = PlaceKind::ALL.map(PlaceKind::name).join(", ");
    let by = parse_choice(kind, "by", by, format!("{known}, {CLASS}"))?;
    let size = parse_choice(Size::from_name(size), "size", size, Size::ALL.map(Size::name).join(", "))?;
    let content = parse_choice(
        Content::from_name(content),
        "content",
        content,
        Content::ALL.map(Content::name).join(", "),
    )?;
    let direction = parse_choice(
        Direction::from_name(direction),
        "direction",
        direction,
        Direction::ALL.map(Direction::name).join(", "),
    )?;
    let tunnels = parse_choice(
        Tunnels::from_name(tunnels),
        "tunnels",
        tunnels,
        Tunnels::ALL.map(Tunnels::name).join(", "),
    )?;
    let mapping = mapping.map(Mapping::read).transpose().map_err(PyInputError)?;
    let fabric = cluster.map(|cluster| &*cluster.get().inner.fabric);
    let places = if by_class {
        places_beside_links(mapping.as_ref(), fabric)?
    } else {
        places(by, mapping.as_ref(), fabric)?
    };
    let classes = match classes.filter(|_| by_class) {
        Some(classes) => Some(Classes::named(&classes).map_err(PyInputError)?),
        None => by_class.then(Classes::code_points),
    };
    let (matrix, loads) = py.detach(|| {
        let settings =
            Settings { interval_s, size, content, ports, sampling, counters, direction, tunnels, classes };
        let mut capture = Capture::new(settings, places);
        for file in &files {
            let mut open = capture.open(file, open_file(file)?).map_err(PyInputError)?;
            let mut reported = 0;
            loop {
                let more = capture.read(&mut open, RECORDS).map_err(PyInputError)?;
                let read = open.bytes_read();
                Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |tell| tell.call1(py, (read - reported,)).map(drop))
                })?;
                reported = read;
                if !more {
                    break;
                }
            }
        }
        let matrix = capture.finish();
        let loads = fabric.filter(|_| by_class).map(|fabric| matrix.link_loads(fabric)).transpose();
        let loads = loads.map_err(PyInputError)?;
        Ok::<_, PyErr>((matrix, loads))
    })?;
    let cells = match fabric.zip(loads) {
        Some((fabric, loads)) => load_table(&matrix, &loads, fabric)?,
        None => cell_table(&matrix)?,
    };
    tables(&matrix, cells)
}

fn parse_choice<T>(choice: Option<T>, name: &str, given: &str, known: String) -> Result<T, PyInputError> {
    let unknown = || InputError::new(name, format!("`{}`: expected one of {known}", excerpt(given)));
    choice.ok_or_else(|| PyInputError(unknown()))
}

fn open_file(path: &str) -> Result<File, PyInputError> {
    let invalid = |message: String| PyInputError(InputError::new(path, message));
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => invalid("no such file".into()),
        std::io::ErrorKind::PermissionDenied => invalid("permission denied".into()),
        _ => invalid(error.to_string()),
    })?;
    let is_directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    if is_directory { Err(invalid("is a directory; expected a file".into())) } else { Ok(file) }
}

/// Places of addresses, by the unit of the matrix.
fn places(by: PlaceKind, mapping: Option<&Mapping>, fabric: Option<&Fabric>) -> Result<Places, PyInputError> {
    let mapping = match (by, mapping) {
        (PlaceKind::Address, _) => return Ok(Places::addresses()),
        (_, Some(mapping)) => mapping,
        (_, None) => {
            let message =
                format!("required for a matrix by {}: a file with the owner of each address", by.name());
            return Err(PyInputError(InputError::new("mapping", message)));
        }
    };
    if let Some(fabric) = fabric {
        check_names(mapping, fabric)?;
        if by == PlaceKind::Host && !mapping.addresses().any(|(_, name)| fabric.host(name).is_some()) {
            let message = "it names racks but no hosts: use it for a matrix by rack";
            return Err(PyInputError(InputError::new(mapping.file(), message)));
        }
    }
    if by == PlaceKind::Service {
        if mapping.services().is_empty() {
            return Err(PyInputError(InputError::new(
                mapping.file(),
                "no services: a matrix by service needs at least one",
            )));
        }
        return Ok(Places::services(mapping));
    }
    Ok(Places::mapped(mapping, |name| match fabric {
        None => Some(name.to_owned()),
        Some(fabric) if by == PlaceKind::Host => {
            fabric.host(name).map(|host| fabric.host_name(host).to_owned())
        }
        Some(fabric) => {
            let rack = fabric.host(name).map(|host| fabric.rack_of(host));
            let rack = rack.or_else(|| fabric.domain(name).filter(|&domain| is_rack(fabric, domain)));
            rack.map(|rack| fabric.domain_name(rack).to_owned())
        }
    }))
}

/// Places beside the links of a cluster: the hosts and racks that the mapping names.
fn places_beside_links(mapping: Option<&Mapping>, fabric: Option<&Fabric>) -> Result<Places, PyInputError> {
    let missing = |name: &str, message: &str| {
        PyInputError(InputError::new(name, format!("required for a matrix by {CLASS}: {message}")))
    };
    let mapping = mapping.ok_or_else(|| missing("mapping", "a file with the owner of each address"))?;
    let fabric = fabric.ok_or_else(|| missing("cluster", "the cluster whose links carry the traffic"))?;
    check_names(mapping, fabric)?;
    Ok(Places::mapped(mapping, |name| {
        let rack = || fabric.domain(name).map(|rack| fabric.domain_name(rack).to_owned());
        fabric.host(name).map(|host| fabric.host_name(host).to_owned()).or_else(rack)
    }))
}

/// Checks that every name of a mapping is a host or rack of the cluster.
fn check_names(mapping: &Mapping, fabric: &Fabric) -> Result<(), PyInputError> {
    let checked = mapping.check(|name| {
        let rack = || fabric.domain(name).is_some_and(|domain| is_rack(fabric, domain));
        let known = fabric.host(name).is_some() || rack();
        let message = || format!("`{}`: no host or rack of the cluster has this name", excerpt(name));
        if known { Ok(()) } else { Err(message()) }
    });
    checked.map_err(PyInputError)
}

fn is_rack(fabric: &Fabric, domain: DomainId) -> bool {
    fabric.all_racks().any(|rack| rack == domain)
}

/// Cells of a matrix by interval and pair.
fn cell_table(matrix: &Matrix) -> PyResult<PyArrowType<Table>> {
    let pairs = &matrix.pairs;
    let names = |end: fn(&leeward_capture::Pair) -> u32| {
        texts(pairs.iter().map(move |pair| &matrix.places[end(pair) as usize]))
    };
    table([
        ("t_s", longs(pairs.iter().map(|pair| pair.start_s))),
        ("src", names(|pair| pair.source)),
        ("dst", names(|pair| pair.destination)),
        ("bytes", longs(pairs.iter().map(|pair| capped(pair.cell.bytes)))),
        ("packets", longs(pairs.iter().map(|pair| capped(pair.cell.packets)))),
        ("samples", longs(pairs.iter().map(|pair| capped(pair.cell.samples.into())))),
        (
            "stderr",
            Arc::new(pairs.iter().map(|pair| Some(pair.cell.standard_error())).collect::<Float64Array>()),
        ),
    ])
}

/// Loads of links by interval, link and class; the time is the end of the interval, as in telemetry.
fn load_table(matrix: &Matrix, loads: &[LinkLoad], fabric: &Fabric) -> PyResult<PyArrowType<Table>> {
    let length_s = i64::from(matrix.interval_s);
    let rate = |load: &LinkLoad| Some(8.0 * load.cell.bytes as f64 / length_s as f64);
    table([
        ("t_s", longs(loads.iter().map(|load| load.start_s.saturating_add(length_s)))),
        ("link", texts(loads.iter().map(|load| fabric.resource_name(load.link)))),
        ("class", texts(loads.iter().map(|load| &matrix.classes[usize::from(load.class)]))),
        ("load_bps", Arc::new(loads.iter().map(rate).collect::<Float64Array>())),
        ("bytes", longs(loads.iter().map(|load| capped(load.cell.bytes)))),
        ("packets", longs(loads.iter().map(|load| capped(load.cell.packets)))),
        ("samples", longs(loads.iter().map(|load| capped(load.cell.samples.into())))),
        (
            "stderr",
            Arc::new(loads.iter().map(|load| Some(load.cell.standard_error())).collect::<Float64Array>()),
        ),
    ])
}

/// The tables of a capture, with that of its cells.
fn tables(matrix: &Matrix, cells: PyArrowType<Table>) -> PyResult<Tables> {
    let sources = table([
        ("protocol", texts(matrix.sources.iter().map(|source| source.protocol))),
        ("name", texts(matrix.sources.iter().map(|source| &source.name))),
        ("flows", longs(matrix.sources.iter().map(|source| capped(source.flows.into())))),
        ("bytes", longs(matrix.sources.iter().map(|source| capped(source.bytes)))),
    ])?;
    let unknown = table([
        ("address", texts(matrix.unknown.iter().map(|(address, _)| address.to_string()))),
        ("bytes", longs(matrix.unknown.iter().map(|&(_, bytes)| capped(bytes)))),
    ])?;
    let discards: Vec<_> = matrix.discards.iter().collect();
    let kept = discards.iter().map(|(reason, _, _)| Some(reason.kept()));
    let doubt = discards.iter().map(|(reason, _, _)| Some(reason.is_doubt()));
    let discards = table([
        ("reason", texts(discards.iter().map(|(reason, _, _)| reason.name()))),
        ("detail", texts(discards.iter().map(|(_, detail, _)| detail))),
        ("kept", Arc::new(kept.collect::<arrow_array::BooleanArray>())),
        ("doubt", Arc::new(doubt.collect::<arrow_array::BooleanArray>())),
        ("count", longs(discards.iter().map(|(_, _, discard)| capped(discard.count.into())))),
        ("bytes", longs(discards.iter().map(|(_, _, discard)| capped(discard.bytes.into())))),
        ("meaning", texts(discards.iter().map(|(reason, _, _)| reason.meaning()))),
        ("examples", texts(discards.iter().map(|(_, _, discard)| discard.examples.join("; ")))),
    ])?;
    let readings = &matrix.counters;
    let octets = |field: fn(&leeward_capture::Counter) -> u64| {
        longs(readings.iter().map(move |reading| i64::try_from(field(reading)).unwrap_or(i64::MAX)))
    };
    let counters = table([
        ("t_ms", longs(readings.iter().map(|reading| reading.time_ns.div_euclid(NANOS / 1000)))),
        ("device", texts(readings.iter().map(|reading| reading.agent.to_string()))),
        ("interface", texts(readings.iter().map(|reading| reading.interface.to_string()))),
        ("in_octets", octets(|reading| reading.in_octets)),
        ("out_octets", octets(|reading| reading.out_octets)),
        ("speed_bps", octets(|reading| reading.speed_bps)),
    ])?;
    Ok([cells, sources, unknown, discards, counters])
}

fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts<T: AsRef<str>>(values: impl Iterator<Item = T>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// A whole number as a column value, capped at the column's maximum. No cell reaches the maximum; sums of cells may.
fn capped(number: u128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
