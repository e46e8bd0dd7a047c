//! Media and kinds of operations of a scenario.

use std::collections::BTreeSet;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bandwidth, Bytes, Cluster};

use super::{check_count, invalid};
use crate::file::{DirectionFile, OperationsFile};
use crate::media::Medium;
use crate::plan::{Direction, Operation, Servers};

const MOST_OPERATIONS: usize = 1000;
const MOST_PARALLEL: u32 = 1000;
/// Largest operation.
const MOST_BYTES: Bytes = Bytes(1 << 40);

/// Media, by number.
pub(super) fn media(file: &OperationsFile) -> Result<Vec<Medium>, InputError> {
    let mut names = BTreeSet::new();
    let mut media = Vec::with_capacity(file.media.len());
    for (number, medium) in file.media.iter().enumerate() {
        let error = |field: &str, message: String| invalid(&format!("media[{number}].{field}"), message);
        if medium.name.is_empty() || !names.insert(&medium.name) {
            return Err(error(
                "name",
                format!("`{}`: expected a name, and each once", excerpt(&medium.name)),
            ));
        }
        let rates = [("read", Some(medium.read)), ("write", Some(medium.write))];
        for (field, rate) in rates.into_iter().chain([("processing_rate", medium.processing_rate)]) {
            if rate == Some(Bandwidth(0)) {
                return Err(error(field, "0bps: must be above 0".to_owned()));
            }
        }
        if !(1..=MOST_PARALLEL).contains(&medium.parallel) {
            let message = format!("{}: expected 1 to {MOST_PARALLEL}", medium.parallel);
            return Err(error("parallel", message));
        }
        media.push(Medium {
            name: medium.name.clone(),
            read: medium.read.ns_per_byte(),
            write: medium.write.ns_per_byte(),
            access: medium.access.0,
            parallel: medium.parallel as usize,
            processing: medium.processing.0,
            processing_per_byte: medium.processing_rate.map_or(0.0, Bandwidth::ns_per_byte),
            cache: medium.cache.map(|bytes| bytes.0),
        });
    }
    Ok(media)
}

/// Kinds of operations, by number.
pub(super) fn of(
    file: &OperationsFile,
    cluster: &Cluster,
    classes: &[String],
) -> Result<Vec<Operation>, InputError> {
    check_count("operations", file.operations.len(), MOST_OPERATIONS)?;
    let mut names = BTreeSet::new();
    let mut operations = Vec::with_capacity(file.operations.len());
    for (number, operation) in file.operations.iter().enumerate() {
        let error = |field: &str, message: String| invalid(&format!("operations[{number}].{field}"), message);
        if operation.name.is_empty() || !names.insert(&operation.name) {
            let message = format!("`{}`: expected a name, and each once", excerpt(&operation.name));
            return Err(error("name", message));
        }
        let unknown = |field: &str, name: &str, of: &str| {
            error(field, format!("`{}`: no such name in `{of}`", excerpt(name)))
        };
        let medium = file.media.iter().position(|medium| medium.name == operation.medium);
        let medium = medium.ok_or_else(|| unknown("medium", &operation.medium, "media"))?;
        let class = match &operation.class {
            None => 0,
            Some(name) => classes
                .iter()
                .position(|class| class == name)
                .filter(|_| !file.classes.is_empty())
                .ok_or_else(|| unknown("class", name, "classes"))?,
        };
        let (least, most) = (operation.size.least, operation.size.most);
        if least == Bytes(0) || most < least || most > MOST_BYTES {
            let message =
                format!("{least} to {most}: expected sizes in order, above 0B and up to {MOST_BYTES}");
            return Err(error("size", message));
        }
        let servers = match &operation.servers {
            Some(readers) => {
                let hosts = readers.hosts(cluster).map_err(|message| error("servers", message))?;
                if hosts.is_empty() {
                    return Err(error("servers", "no host has these names".to_owned()));
                }
                Servers::Hosts(hosts.to_vec())
            }
            None if file.chunks.is_some() => Servers::Chunks,
            None => {
                return Err(error("servers", "missing: expected hosts, or `chunks` in the scenario".into()));
            }
        };
        let is_of_chunks = servers == Servers::Chunks && operation.kind == DirectionFile::Read;
        if operation.degraded.is_some_and(|degraded| degraded.after.0 == 0) {
            return Err(error("degraded.after", "0s: must be above 0".to_owned()));
        }
        if operation.degraded.is_some() && !is_of_chunks {
            return Err(error("degraded", "applies to reads of chunks only".to_owned()));
        }
        operations.push(Operation {
            name: operation.name.clone(),
            direction: match operation.kind {
                DirectionFile::Read => Direction::Read,
                DirectionFile::Write => Direction::Write,
            },
            medium,
            sizes: (least.0, most.0),
            class: class as u8,
            servers,
            degraded_after: operation.degraded.map(|degraded| degraded.after),
        });
    }
    Ok(operations)
}
