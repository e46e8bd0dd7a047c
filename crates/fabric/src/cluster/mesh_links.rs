//! Pairs and shared links of a mesh, from a cluster file.

use std::collections::BTreeSet;

use super::errors::Errors;
use super::file::SharedLinkFile;
use super::values::Name;
use crate::input::{InputError, Place, Spanned};
use crate::mesh_links::{Members, MeshLinks, Path};
use crate::{Fabric, HostId, Load, Shape};

/// Reads the pairs of a hose and the shared links of a mesh. `fabric` has the hosts and racks of the file.
pub(super) fn build(errors: Errors<'_>, fabric: &Fabric) -> Result<MeshLinks, InputError> {
    let file = errors.file;
    let (mut pairs, mut same_machine) = (BTreeSet::new(), BTreeSet::new());
    for (i, item) in file.pairs.iter().enumerate() {
        let path =
            ends(errors, fabric, item.place, &format!("pairs[{i}]"), &item.value.from, &item.value.to)?;
        if item.value.same_machine {
            same_machine.insert(path);
        }
        if fabric.shape() == Shape::Hose && !pairs.insert(path) {
            let message = format!("{} > {}: this pair is listed twice", item.value.from.0, item.value.to.0);
            return Err(errors.at(item.place, format!("pairs[{i}]"), message));
        }
    }
    for (i, item) in file.pairs.iter().enumerate().filter(|(_, item)| item.value.same_machine) {
        let (Name(from), Name(to)) = (&item.value.from, &item.value.to);
        let back = fabric.host(to).zip(fabric.host(from));
        if back.is_none_or(|back| !same_machine.contains(&back)) {
            let message =
                format!("{from} and {to} are on one machine: list {to} > {from} with `same_machine` too");
            return Err(errors.at(item.place, format!("pairs[{i}].same_machine"), message));
        }
    }
    let mut shared = Vec::new();
    let mut names = BTreeSet::new();
    for (i, item) in file.shared_links.iter().enumerate() {
        let field = format!("shared_links[{i}]");
        let name = &item.value.name.0;
        let taken = match fabric.host(name) {
            Some(_) => Some("a host"),
            None => (!names.insert(name.as_str())).then_some("another shared link"),
        };
        if let Some(owner) = taken {
            let message = format!("`{name}`: {owner} has this name");
            return Err(errors.at(item.place, format!("{field}.name"), message));
        }
        shared.push((name.as_str().into(), members(errors, fabric, &field, item)?));
    }
    let (pairs, same_machine) = (pairs.into_iter().collect(), same_machine.into_iter().collect());
    Ok(MeshLinks::new(fabric.host_count(), pairs, same_machine, shared))
}

/// Sets the capacities of pairs and shared links.
pub(super) fn capacities(
    errors: Errors<'_>,
    fabric: &Fabric,
    capacity: &mut [Load],
) -> Result<(), InputError> {
    let file = errors.file;
    let pipe_pairs = match fabric.shape() {
        Shape::Pipe => fabric.host_count() * (fabric.host_count() - 1),
        Shape::Tree | Shape::Hose => 0,
    };
    capacity[..pipe_pairs].fill(file.pair.as_ref().map_or(Load(0), |pair| pair.value.0.as_load()));
    for item in &file.pairs {
        let host = |name: &Name| fabric.host(&name.0);
        let pair =
            host(&item.value.from).zip(host(&item.value.to)).and_then(|(from, to)| fabric.pair(from, to));
        if let Some(pair) = pair {
            capacity[pair.index()] = item.value.rate.0.as_load();
        }
    }
    for item in &file.shared_links {
        if let Some(link) = fabric.shared_link(&item.value.name.0) {
            capacity[link.index()] = item.value.rate.0.as_load();
        }
    }
    let unset = fabric.all_resources().take(pipe_pairs).find(|pair| capacity[pair.index()] == Load(0));
    match unset {
        Some(pair) => {
            let name = fabric.resource_name(pair);
            let message = format!("no rate for {name}; list this pair, or give a default: `pair: 1Gbps`");
            Err(errors.about(message).in_field("pairs"))
        }
        None => Ok(()),
    }
}

/// The hosts at the ends of a path.
fn ends(
    errors: Errors<'_>,
    fabric: &Fabric,
    at: Place,
    field: &str,
    from: &Name,
    to: &Name,
) -> Result<Path, InputError> {
    let invalid = |end: &str, message: String| errors.at(at, format!("{field}.{end}"), message);
    let host = |end: &str, name: &Name| {
        fabric.host(&name.0).ok_or_else(|| invalid(end, format!("`{}`: no such host", name.0)))
    };
    let path = (host("from", from)?, host("to", to)?);
    if path.0 == path.1 {
        return Err(invalid("to", format!("`{}`: a host needs no link to itself", to.0)));
    }
    Ok(path)
}

/// The paths that cross a shared link.
fn members(
    errors: Errors<'_>,
    fabric: &Fabric,
    field: &str,
    item: &Spanned<SharedLinkFile>,
) -> Result<Members, InputError> {
    let SharedLinkFile { out_of, into, paths, .. } = &item.value;
    let no_path = |key: &str| errors.at(item.place, format!("{field}.{key}"), "no path crosses the link");
    match (out_of, into, paths) {
        (Some(names), None, None) => {
            group(errors, fabric, field, "out_of", names, item.place).map(Members::OutOf)
        }
        (None, Some(names), None) => {
            group(errors, fabric, field, "into", names, item.place).map(Members::Into)
        }
        (None, None, Some(paths)) => {
            let mut crossing = BTreeSet::new();
            for (j, path) in paths.iter().enumerate() {
                let field = format!("{field}.paths[{j}]");
                if !crossing.insert(ends(errors, fabric, item.place, &field, &path.from, &path.to)?) {
                    let message = format!("{} > {}: this path is listed twice", path.from.0, path.to.0);
                    return Err(errors.at(item.place, field, message));
                }
            }
            if crossing.is_empty() {
                return Err(no_path("paths"));
            }
            Ok(Members::Paths(crossing.into_iter().collect()))
        }
        _ => {
            let message =
                format!("`{}`: expected exactly one of `out_of`, `into` and `paths`", item.value.name.0);
            Err(errors.at(item.place, field, message))
        }
    }
}

/// The hosts of a list of hosts and racks.
fn group(
    errors: Errors<'_>,
    fabric: &Fabric,
    field: &str,
    key: &str,
    names: &[Name],
    at: Place,
) -> Result<Vec<HostId>, InputError> {
    let invalid = |message: String| errors.at(at, format!("{field}.{key}"), message);
    let mut hosts = BTreeSet::new();
    for Name(name) in names {
        let of_rack = fabric.domain(name).map(|rack| fabric.hosts(rack));
        let of_host = fabric.host(name).map(|host| host.0..host.0 + 1);
        let range = match (of_host, of_rack) {
            (Some(host), Some(rack)) if host != rack => {
                return Err(invalid(format!("`{name}`: a host and another rack have this name; rename one")));
            }
            (Some(range), _) | (None, Some(range)) => range,
            (None, None) => return Err(invalid(format!("`{name}`: no such host or rack"))),
        };
        for host in range.map(HostId) {
            if !hosts.insert(host) {
                return Err(invalid(format!("`{}`: this host is listed twice", fabric.host_name(host))));
            }
        }
    }
    if hosts.is_empty() || hosts.len() == fabric.host_count() {
        return Err(invalid("no path crosses the link; list some of the hosts, but not all".to_owned()));
    }
    Ok(hosts.into_iter().collect())
}
