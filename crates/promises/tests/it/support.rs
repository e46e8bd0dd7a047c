//! Grants and enforcers that these tests share.

use leeward_agreements::{Grant, GrantedSlo, GrantedStage};
use leeward_models::BucketRecord;
use leeward_promises::{AcknowledgedWorkload, Acknowledgement, RequestCounters};
use leeward_records::{AppliedState, EnforcerKind, PromisesVersion};

use leeward_fabric::Nanos;

/// A promise of 99 % within 50 ms, whose stages have one queue each and these priorities.
pub fn grant(workload: &str, client: &str, server: &str, priorities: [u32; 3]) -> Grant {
    let stage = |(stage, priority): (&str, u32)| GrantedStage {
        stage: stage.to_owned(),
        queues: vec![format!("{client}-{server}:{stage}")],
        priority,
        limits: vec![BucketRecord { rate: 4e6, burst: 65_536.0 }],
        own_curve: true,
        bound_s: Some(0.001),
        over: None,
        outstanding: None,
    };
    Grant {
        workload: workload.to_owned(),
        client: client.to_owned(),
        server: server.to_owned(),
        volume: format!("{server}:ssd"),
        slo: GrantedSlo { percentile: 99.0, latency_s: 0.05 },
        bound_s: Some(0.04),
        by: Some("dnc".to_owned()),
        stages: ["network-in", "storage", "network-out"].into_iter().zip(priorities).map(stage).collect(),
    }
}

/// An acknowledgement by an enforcer named after its kind and host.
pub fn acknowledgement(
    kind: EnforcerKind,
    host: &str,
    ttl: Nanos,
    applied: Option<PromisesVersion>,
    workloads: &[(&str, RequestCounters)],
) -> Acknowledgement {
    let workload = |&(name, counters): &(&str, RequestCounters)| AcknowledgedWorkload {
        name: name.to_owned(),
        state: AppliedState::Applied,
        counters,
        latencies: Vec::new(),
    };
    Acknowledgement {
        name: format!("{}@{host}", kind.name()),
        kind,
        host: host.to_owned(),
        device: None,
        instance: None,
        addresses: Vec::new(),
        ttl,
        applied,
        workloads: workloads.iter().map(workload).collect(),
    }
}
