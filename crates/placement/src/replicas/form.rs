//! A request as users and clients write it: a size, and hosts, racks and tags by name.

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Bytes, Fabric, HostId};

use super::{Layout, ReplicaRequest};
use crate::Constraints;

/// Input of a [`ReplicaRequest`].
#[derive(Clone, Copy, Debug)]
pub struct Form<'a> {
    /// Size of the block; above 0.
    pub size: Bytes,
    /// Name of the host that writes the block; `None` for a writer outside the cluster.
    pub writer: Option<&'a str>,
    /// r: number of copies, including the writer's own; above 0.
    pub replicas: u8,
    /// f: fault domains besides the first copy's that must hold a copy. Default 1, and 0 for a single copy.
    pub fault_domains: Option<u8>,
    /// Names of hosts, racks and pods to avoid.
    pub exclude: &'a [String],
    /// Tags that the hosts must have.
    pub tags: &'a [String],
    /// Names of the hosts of related files; if not empty, only these hosts are eligible.
    pub collocate: &'a [String],
    /// Largest excess of a host's fill over the cluster's average, as a share of its storage.
    pub max_imbalance: Option<f64>,
}

impl Form<'_> {
    /// Three copies of a block of this size, anywhere.
    pub fn of(size: Bytes) -> Form<'static> {
        Form {
            size,
            writer: None,
            replicas: 3,
            fault_domains: None,
            exclude: &[],
            tags: &[],
            collocate: &[],
            max_imbalance: None,
        }
    }

    /// The request with number `id`, for a file of one block.
    ///
    /// # Errors
    /// [`InputError`] with the invalid field.
    pub fn request(&self, fabric: &Fabric, id: u64) -> Result<ReplicaRequest, InputError> {
        if self.size == Bytes(0) {
            return Err(wrong("size", "0B: expected more than nothing"));
        }
        if self.replicas == 0 {
            return Err(wrong("replicas", "0: expected at least one copy"));
        }
        let unknown = |name| {
            let (name, example) = (excerpt(name), fabric.host_name(HostId(0)));
            wrong("writer", format!("unknown host `{name}`; hosts are named like {example}"))
        };
        let writer = self.writer.map(|name| fabric.host(name).ok_or_else(|| unknown(name))).transpose()?;
        Ok(ReplicaRequest {
            id,
            file: id,
            writer,
            size: self.size,
            replicas: self.replicas,
            layout: Layout::Chain,
            fault_domains: self.fault_domains.unwrap_or(1.min(self.replicas - 1)),
            blocks_left: 1,
            constraints: self.constraints(fabric)?,
        })
    }

    fn constraints(&self, fabric: &Fabric) -> Result<Constraints, InputError> {
        let mut constraints = Constraints::named(fabric, self.exclude, self.tags)?;
        for name in self.collocate {
            let unknown =
                || wrong("collocate", format!("`{}`: no host of the cluster has this name", excerpt(name)));
            constraints.collocated.push(fabric.host(name).ok_or_else(unknown)?);
        }
        if let Some(most) = self.max_imbalance {
            if !(0.0..=1.0).contains(&most) {
                return Err(wrong("max_imbalance", format!("{most}: expected a share from 0 to 1")));
            }
            constraints.max_imbalance = Some(most);
        }
        // Removes duplicates, so no list is longer than the cluster's number of names.
        constraints.sort();
        Ok(constraints)
    }
}

fn wrong(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("request", message).in_field(field)
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Cluster;

    use super::*;

    #[test]
    fn repeated_names_are_stored_once_and_lists_are_sorted() {
        let text = "racks: 5\nhosts_per_rack: 30\nnic: 1Gbps\noversubscription: 2\n";
        let cluster = Cluster::from_text("test", text).expect("the test writes a right cluster");
        let hosts = (0..100).rev().map(|host| format!("r{}h{}", host / 30, host % 30));
        let names: Vec<String> = hosts.cycle().take(10_000).collect();
        let racks = ["r4", "r1", "r4"].map(str::to_owned);
        let exclude: Vec<String> = racks.iter().chain(&names).cloned().collect();
        let form = Form { exclude: &exclude, collocate: &names, ..Form::of(Bytes(1)) };
        let constraints = form.request(&cluster.fabric, 0).expect("names of the cluster").constraints;
        assert_eq!(constraints.excluded_hosts, (0..100).map(HostId).collect::<Vec<_>>());
        assert_eq!(constraints.excluded_domains, [1, 4].map(leeward_fabric::DomainId));
        assert_eq!(constraints.collocated, constraints.excluded_hosts);
        assert!(constraints.excluded_hosts.capacity() <= 200, "{}", constraints.excluded_hosts.capacity());
    }
}
