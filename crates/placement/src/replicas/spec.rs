//! A request with names instead of ids, as clients send it and the store keeps it.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, Fabric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Coding, Layout, ReplicaRequest};
use crate::{Constraints, LabelValues};

/// Largest number of hosts with existing copies, and of preferred hosts. A block has at most as many copies.
const MAX_HOSTS: usize = 255;

/// Placement of a block's copies, or of the chunks of its stripe.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReplicasWish")]
pub struct ReplicasSpec {
    /// Size of the block.
    pub size: Bytes,
    /// Host that writes the block; null if it is outside the cluster.
    pub writer: Option<String>,
    /// Number of copies, including the writer's; with `coding`, number of chunks to place.
    pub replicas: u8,
    /// Erasure code of the block; null for whole copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<Coding>,
    /// Fault domains besides the first copy's that must hold a copy, or, with `coding`, fault domains that may be lost; null
    /// for the policy's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domains: Option<u8>,
    /// Hosts, racks and pods to avoid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Tags that the hosts must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Hosts of related files: no other host is eligible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collocate: Vec<String>,
    /// Largest excess of a host's fill over the average of hosts, as a share of its storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_imbalance: Option<f64>,
    /// Hosts that have a copy or chunk already; `replicas` counts the new ones only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub existing: Vec<String>,
    /// Hosts to try first, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefer: Vec<String>,
    /// Labels that the hosts must have, each with one of the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: LabelValues,
    /// Type of storage that holds the copies, as `type` of devices in the cluster file; null for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// True if one of the lists of hosts had more than 32 names. Such a list is not stored.
    #[serde(rename = "forgotten", default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Number of blocks of the file still to write, including this one; 1 if left out. The number is not stored.
    #[serde(skip)]
    pub blocks_left: Option<u64>,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl ReplicasSpec {
    /// Three copies of a block of this size, anywhere.
    pub fn new(size: Bytes) -> ReplicasSpec {
        ReplicasSpec { size, replicas: 3, ..ReplicasSpec::default() }
    }

    /// The request with number `id`, for a file of one block.
    ///
    /// # Errors
    /// [`InputError`] with the invalid field.
    pub fn request(&self, fabric: &Fabric, id: u64) -> Result<ReplicaRequest, InputError> {
        if self.size == Bytes(0) {
            return Err(invalid("size", "0B: expected more than nothing"));
        }
        self.check_stripe()?;
        if self.replicas == 0 {
            return Err(invalid("replicas", "0: expected at least one copy"));
        }
        for (field, names) in [("existing", &self.existing), ("prefer", &self.prefer)] {
            if names.len() > MAX_HOSTS {
                return Err(invalid(field, format!("{} hosts: expected at most {MAX_HOSTS}", names.len())));
            }
        }
        let unknown = |name: &str| invalid("writer", fabric.no_host(name));
        let writer = self.writer.as_ref().map(|name| fabric.host(name).ok_or_else(|| unknown(name)));
        Ok(ReplicaRequest {
            id,
            file: id,
            writer: writer.transpose()?,
            size: self.piece(),
            replicas: self.replicas,
            layout: self.coding.map_or(Layout::Chain, Coding::layout),
            fault_domains: self.fault_domains.unwrap_or(self.default_fault_domains()),
            blocks_left: self.blocks_left.unwrap_or(1),
            job: None,
            constraints: self.constraints(fabric)?,
        })
    }

    /// Bytes that each host stores: the whole block, or a chunk.
    pub fn piece(&self) -> Bytes {
        self.coding.map_or(self.size, |coding| coding.chunk(self.size))
    }

    /// Checks the fields that a stripe limits.
    fn check_stripe(&self) -> Result<(), InputError> {
        let Some(coding) = self.coding else { return Ok(()) };
        let (existing, missing) = (self.existing.len(), coding.missing(self.existing.len()));
        if missing == 0 {
            let message = format!(
                "{existing} hosts: a stripe of {coding} has {} chunks, so none is missing",
                coding.chunks()
            );
            return Err(invalid("existing", message));
        }
        if existing > 0 && existing < usize::from(coding.data()) {
            let message = format!(
                "{existing} hosts: a stripe of {coding} needs {} chunks to be rebuilt",
                coding.data()
            );
            return Err(invalid("existing", message));
        }
        if existing > 0 && self.writer.is_some() {
            let message = "the host of the first missing chunk rebuilds a stripe; leave out the writer";
            return Err(invalid("writer", message));
        }
        if self.replicas != missing {
            let message = format!("{}: a stripe of {coding} has {missing} chunks to place", self.replicas);
            return Err(invalid("replicas", message));
        }
        Ok(())
    }

    /// Fault domains besides the first copy's that must hold a copy, if the request does not say: one if there are several
    /// copies. For a stripe, one fault domain may be lost.
    pub fn default_fault_domains(&self) -> u8 {
        u8::from(usize::from(self.replicas) + self.existing.len() > 1)
    }

    fn constraints(&self, fabric: &Fabric) -> Result<Constraints, InputError> {
        let mut constraints = Constraints::named(fabric, &self.exclude, &self.tags)?;
        for name in &self.collocate {
            let unknown = || invalid("collocate", fabric.no_host(name));
            constraints.collocated.push(fabric.host(name).ok_or_else(unknown)?);
        }
        for (field, names, hosts) in [
            ("existing", &self.existing, &mut constraints.existing),
            ("prefer", &self.prefer, &mut constraints.preferred),
        ] {
            for name in names {
                let host = fabric.host(name).ok_or_else(|| invalid(field, fabric.no_host(name)))?;
                if hosts.contains(&host) {
                    return Err(invalid(field, format!("`{}` is named twice", excerpt(name))));
                }
                hosts.push(host);
            }
        }
        constraints.require_labels(fabric, &self.labels)?;
        if let Some(storage) = &self.storage {
            if !fabric.has_storage_type(storage) {
                return Err(invalid("storage", format!("no device has the type `{}`", excerpt(storage))));
            }
            constraints.storage = Some(storage.as_str().into());
        }
        if let Some(limit) = self.max_imbalance {
            if !(0.0..=1.0).contains(&limit) {
                return Err(invalid("max_imbalance", format!("{limit}: expected a share from 0 to 1")));
            }
            constraints.max_imbalance = Some(limit);
        }
        // Removes duplicates, so no list is longer than the cluster's number of names.
        constraints.sort();
        Ok(constraints)
    }
}

fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("request", message).in_field(field)
}

#[cfg(test)]
mod tests {
    use leeward_fabric::HostId;
    use leeward_testing::clusters::cluster;

    use super::*;

    #[test]
    fn repeated_names_are_stored_once_and_lists_are_sorted() {
        let text = "racks: 5\nhosts_per_rack: 30\nnic: 1Gbps\noversubscription: 2\n";
        let cluster = cluster(text);
        let hosts = (0..100).rev().map(|host| format!("r{}h{}", host / 30, host % 30));
        let names: Vec<String> = hosts.cycle().take(10_000).collect();
        let racks = ["r4", "r1", "r4"].map(str::to_owned);
        let exclude: Vec<String> = racks.iter().chain(&names).cloned().collect();
        let spec = ReplicasSpec { exclude, collocate: names, ..ReplicasSpec::new(Bytes(1)) };
        let constraints = spec.request(&cluster.fabric, 0).expect("names of the cluster").constraints;
        assert_eq!(constraints.excluded_hosts, (0..100).map(HostId).collect::<Vec<_>>());
        assert_eq!(constraints.excluded_domains, [1, 4].map(leeward_fabric::DomainId));
        assert_eq!(constraints.collocated, constraints.excluded_hosts);
        assert!(constraints.excluded_hosts.capacity() <= 200, "{}", constraints.excluded_hosts.capacity());
    }
}
