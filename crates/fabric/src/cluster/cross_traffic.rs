//! Cross traffic of a cluster file: connections of others on links.

use std::collections::BTreeMap;

use super::errors::Errors;
use crate::input::{InputError, excerpt};
use crate::{Fabric, ResourceId, ResourceKind};

/// Largest number of connections of others on a link. A larger number is a typing error.
const MOST_CONNECTIONS: f64 = 1e6;

/// Reads the cross traffic of each link that has any.
pub(super) fn build(errors: Errors<'_>, fabric: &Fabric) -> Result<Vec<(ResourceId, f64)>, InputError> {
    let mut connections = BTreeMap::new();
    for (i, item) in errors.file.cross_traffic.iter().enumerate() {
        let field = |name: &str| format!("cross_traffic[{i}].{name}");
        let (name, count) = (&item.value.link, item.value.connections);
        let link = fabric.resource(name).filter(|&link| fabric.kind(link) != ResourceKind::Device);
        let Some(link) = link else {
            let message = format!("`{}`: the cluster has no such link", excerpt(name));
            return Err(errors.at(item.place, field("link"), message));
        };
        if !(count > 0.0 && count <= MOST_CONNECTIONS) {
            let message = format!("{count}: expected a positive number of at most {MOST_CONNECTIONS}");
            return Err(errors.at(item.place, field("connections"), message));
        }
        if connections.insert(link, count).is_some() {
            let message = format!("`{}`: this link is listed twice", excerpt(name));
            return Err(errors.at(item.place, field("link"), message));
        }
    }
    Ok(connections.into_iter().collect())
}
