//! Policies that admit workloads, by kind of request and by decider.

use leeward_engine::Decider;
use leeward_records::PlacementSpec;
use leeward_registry::PolicySpec;

/// Admission policies for workloads, with their settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmissionPolicies {
    /// Policy that admits a workload whose volume exists.
    pub admission: PolicySpec,
    /// Limit algorithm for the placement of new volumes.
    pub volumes: PolicySpec,
    /// Default policy for workloads whose volumes exist.
    pub default_admission: PolicySpec,
    /// Default limit algorithm for new volumes.
    pub default_volumes: PolicySpec,
}

impl AdmissionPolicies {
    /// Policy for a request.
    pub(super) fn of(&self, spec: &PlacementSpec, by: Decider) -> &PolicySpec {
        match (spec, by) {
            (PlacementSpec::Volumes(_), Decider::Own) => &self.volumes,
            (PlacementSpec::Volumes(_), Decider::Default) => &self.default_volumes,
            (_, Decider::Own) => &self.admission,
            (_, Decider::Default) => &self.default_admission,
        }
    }
}

impl Default for AdmissionPolicies {
    fn default() -> Self {
        AdmissionPolicies {
            admission: PolicySpec::named("dnc"),
            volumes: PolicySpec::named("compactor"),
            default_admission: PolicySpec::named("none"),
            default_volumes: PolicySpec::named("average"),
        }
    }
}
