//! Checks that each field of a cluster file applies to its shape. A field without effect is an error, because the
//! author of the file expects an effect.

use super::errors::Errors;
use super::file::{HostFile, RackFile};
use super::values::Listing;
use crate::Shape;
use crate::input::{InputError, Place, Spanned};

const TREE: &[Shape] = &[Shape::Tree];
const PIPE: &[Shape] = &[Shape::Pipe];
const MESH: &[Shape] = &[Shape::Pipe, Shape::Hose];
/// Shapes in which a host has a link of its own.
const NICS: &[Shape] = &[Shape::Tree, Shape::Hose];

/// Rejects fields that do not apply to the shape.
pub(super) fn check(errors: Errors<'_>) -> Result<(), InputError> {
    let file = errors.file;
    let fields = [
        ("hosts", place(&file.hosts), MESH),
        ("nic", place(&file.nic), NICS),
        ("oversubscription", place(&file.oversubscription), TREE),
        ("rack_link", place(&file.rack_link), TREE),
        ("pods", place(&file.pods), TREE),
        ("pod_oversubscription", place(&file.pod_oversubscription), TREE),
        ("pod_link", place(&file.pod_link), TREE),
        ("pair", place(&file.pair), PIPE),
        ("pairs", file.pairs.first().map(|pair| pair.place), MESH),
        ("shared_links", file.shared_links.first().map(|link| link.place), MESH),
    ];
    for (field, written, shapes) in fields {
        if let Some(at) = written {
            check_shape(errors, shapes, at, field)?;
        }
    }
    let needs = [
        ("hosts_per_rack", place(&file.hosts_per_rack), "racks", file.racks.is_some()),
        ("pod_oversubscription", place(&file.pod_oversubscription), "pods", file.pods.is_some()),
        ("pod_link", place(&file.pod_link), "pods", file.pods.is_some()),
    ];
    for (field, written, needed, given) in needs {
        if let (Some(at), false) = (written, given) {
            return Err(errors.at(at, field, format!("has no effect without `{needed}`")));
        }
    }
    if let Some(rtt) = &file.rtt {
        let effect = [
            ("rack", rtt.value.rack.is_some(), file.racks.is_some(), "racks"),
            ("pod", rtt.value.pod.is_some(), file.pods.is_some(), "pods"),
        ];
        let without = effect.into_iter().find(|&(_, written, has, _)| written && !has);
        if let Some((field, _, _, needed)) = without {
            let message = format!("has no effect without `{needed}`");
            return Err(errors.at(rtt.place, format!("rtt.{field}"), message));
        }
    }
    for (i, pair) in file.pairs.iter().enumerate() {
        if pair.value.same_machine && file.shape == Shape::Pipe && file.shared_links.is_empty() {
            let message = "has no effect with `shape: pipe` and without `shared_links`";
            return Err(errors.at(pair.place, format!("pairs[{i}].same_machine"), message));
        }
    }
    if file.shape == Shape::Tree {
        // All fields of racks and hosts apply to a tree.
        return Ok(());
    }
    if let Some(racks) = &file.racks {
        each(&racks.value, |i, rack| check_rack(errors, &format!("racks[{i}]"), rack))?;
    }
    match &file.hosts {
        Some(hosts) => check_hosts(errors, "hosts", &hosts.value),
        None => Ok(()),
    }
}

fn check_rack(errors: Errors<'_>, rack_field: &str, rack: &Spanned<RackFile>) -> Result<(), InputError> {
    let RackFile { pod, nic, link, oversubscription, hosts, .. } = &rack.value;
    let fields = [
        ("pod", pod.is_some(), TREE),
        ("nic", nic.is_some(), NICS),
        ("link", link.is_some(), TREE),
        ("oversubscription", oversubscription.is_some(), TREE),
    ];
    for (field, _, shapes) in fields.into_iter().filter(|field| field.1) {
        check_shape(errors, shapes, rack.place, &format!("{rack_field}.{field}"))?;
    }
    match hosts {
        Some(hosts) => check_hosts(errors, &format!("{rack_field}.hosts"), hosts),
        None => Ok(()),
    }
}

fn check_hosts(errors: Errors<'_>, list: &str, hosts: &Listing<HostFile>) -> Result<(), InputError> {
    each(hosts, |i, host| match host.value.nic {
        Some(_) => check_shape(errors, NICS, host.place, &format!("{list}[{i}].nic")),
        None => Ok(()),
    })
}

/// Rejects a field unless the file's shape is one of `shapes`.
fn check_shape(errors: Errors<'_>, shapes: &[Shape], at: Place, field: &str) -> Result<(), InputError> {
    let shape = errors.file.shape;
    if shapes.contains(&shape) {
        return Ok(());
    }
    let expected: Vec<String> = shapes.iter().map(|shape| format!("`shape: {shape}`")).collect();
    let message = format!("has no effect with `shape: {shape}`; it applies to {}", expected.join(" and "));
    Err(errors.at(at, field, message))
}

fn each<T>(
    listing: &Listing<T>,
    check: impl Fn(usize, &Spanned<T>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    match listing {
        Listing::Each(each) => each.iter().enumerate().try_for_each(|(i, item)| check(i, item)),
        Listing::Count(_) => Ok(()),
    }
}

fn place<T>(field: &Option<Spanned<T>>) -> Option<Place> {
    field.as_ref().map(|spanned| spanned.place)
}
