//! The promises of one enforcer: what `GET /v1/enforcers/{enforcer}/promises` returns, and what an enforcer applies.

use leeward_agreements::{Grant, GrantedSlo, GrantedStage};
use leeward_models::BucketRecord;
use leeward_records::{Enforcer, EnforcerKind};
use leeward_slo::file::OverName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Promises that an enforcer applies. Traffic and requests that no promise names are best effort.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnforcerPromises {
    /// Name of the enforcer.
    pub enforcer: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host of the enforcer.
    pub host: String,
    /// Identifies the set of promises; an acknowledgement repeats it.
    pub set: String,
    /// Number of the version of the last change of these promises; an acknowledgement repeats it.
    pub version: u64,
    /// Length of the lease, in seconds. Without a response to an acknowledgement for this time, the enforcer treats
    /// everything as best effort.
    pub lease_s: f64,
    /// Promises of an enforcer of kind `net`, by workload; empty for other kinds.
    pub net: Vec<NetPromise>,
    /// Promises of an enforcer of kind `nfs`, by workload; empty for other kinds.
    pub nfs: Vec<NfsPromise>,
}

/// Packets of a workload that leave the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NetPromise {
    /// Name of the workload.
    pub workload: String,
    /// Stage of the path: `network-in` for requests of a client on this host, `network-out` for replies of a server.
    pub stage: String,
    /// Host at the other end.
    pub peer: String,
    /// Addresses of that host, as its enforcers state them. Without one, the name of the host has to be resolved.
    pub peer_addresses: Vec<String>,
    /// Priority; 0 is served first. Its packets have the DSCP of class selector 7 for 0, down to 1 for 6 and later ones.
    pub priority: u32,
    /// Token buckets to enforce, all at once: bytes per second, and bytes.
    pub limits: Vec<BucketRecord>,
}

/// Requests of a workload to a volume of the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NfsPromise {
    /// Name of the workload.
    pub workload: String,
    /// Host that sends the requests.
    pub client: String,
    /// Addresses of that host, as its enforcers state them. Without one, the name of the host has to be resolved.
    pub client_addresses: Vec<String>,
    /// Priority; 0 is served first.
    pub priority: u32,
    /// Token buckets to enforce, all at once: seconds of service per second, and seconds of service.
    pub limits: Vec<BucketRecord>,
    /// The SLO. Requests with a longer latency count as late.
    pub slo: GrantedSlo,
    /// Handling of requests over a limit. An enforcer with another one refuses the promise. Absent if the workload does
    /// not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverName>,
    /// Requests that the device has at once, as the bound assumes. An enforcer with another number refuses the promise.
    /// Absent if no workload states a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
}

/// Promises of an enforcer among `grants`. `addresses` has the addresses of a host.
pub fn document<'a>(
    enforcer: &Enforcer,
    set: u64,
    version: u64,
    grants: impl Iterator<Item = &'a Grant>,
    addresses: impl Fn(&str) -> Vec<String>,
) -> EnforcerPromises {
    let (mut net, mut nfs) = (Vec::new(), Vec::new());
    for grant in grants {
        match enforcer.kind {
            EnforcerKind::Net => net.extend(net_promises(enforcer, grant, &addresses)),
            EnforcerKind::Nfs => nfs.extend(nfs_promise(enforcer, grant, &addresses)),
        }
    }
    net.sort_by(|a, b| (&a.workload, &a.stage).cmp(&(&b.workload, &b.stage)));
    nfs.sort_by(|a, b| a.workload.cmp(&b.workload));
    EnforcerPromises {
        enforcer: enforcer.name.clone(),
        kind: enforcer.kind,
        host: enforcer.host.clone(),
        set: set.to_string(),
        version,
        lease_s: enforcer.ttl.as_secs_f64(),
        net,
        nfs,
    }
}

/// Stage of a grant, if its requests cross a queue there.
fn stage<'a>(grant: &'a Grant, name: &str) -> Option<&'a GrantedStage> {
    grant.stages.iter().find(|stage| stage.stage == name && !stage.queues.is_empty())
}

fn net_promises(
    enforcer: &Enforcer,
    grant: &Grant,
    addresses: impl Fn(&str) -> Vec<String>,
) -> Vec<NetPromise> {
    let ends = [("network-in", &grant.client, &grant.server), ("network-out", &grant.server, &grant.client)];
    let own = ends.into_iter().filter(|(_, from, _)| **from == enforcer.host);
    let promise = |(name, _, peer): (&str, &String, &String)| {
        let stage = stage(grant, name)?;
        Some(NetPromise {
            workload: grant.workload.clone(),
            stage: stage.stage.clone(),
            peer: peer.clone(),
            peer_addresses: addresses(peer),
            priority: stage.priority,
            limits: stage.limits.clone(),
        })
    };
    own.filter_map(promise).collect()
}

fn nfs_promise(
    enforcer: &Enforcer,
    grant: &Grant,
    addresses: impl Fn(&str) -> Vec<String>,
) -> Option<NfsPromise> {
    let is_own = grant.server == enforcer.host
        && enforcer.device.as_ref().is_none_or(|device| *device == grant.volume);
    let stage = stage(grant, "storage").filter(|_| is_own)?;
    Some(NfsPromise {
        workload: grant.workload.clone(),
        client: grant.client.clone(),
        client_addresses: addresses(&grant.client),
        priority: stage.priority,
        limits: stage.limits.clone(),
        slo: grant.slo,
        over: stage.over,
        outstanding: stage.outstanding,
    })
}
