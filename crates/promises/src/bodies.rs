//! The body of an acknowledgement. Enforcers write the same types.

use std::collections::BTreeSet;
use std::net::IpAddr;

use leeward_fabric::Nanos;
use leeward_fabric::input::{excerpt, format_number};
use leeward_records::schema::{Id, Name};
use leeward_records::{AppliedState, EnforcerKind, PromisesVersion};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::acknowledgement::{AcknowledgedWorkload, Acknowledgement};
use crate::seen::{Latency, RequestCounters};

/// Default length of a lease.
pub const LEASE: Nanos = Nanos(15 * Nanos::SECOND.0);
/// Shortest and longest lease.
pub const LEASES: [Nanos; 2] = [Nanos(Nanos::SECOND.0), Nanos(3_600 * Nanos::SECOND.0)];
/// Largest number of workloads of an acknowledgement.
pub const MAX_WORKLOADS: usize = 10_000;
/// Largest number of addresses of a host.
pub const MAX_ADDRESSES: usize = 64;
/// Largest number of latencies of a workload.
const MAX_LATENCIES: usize = 16;
/// Largest number of characters of a reason or difference.
pub const MAX_DETAIL: usize = 1_000;

/// An invalid field of a body, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidField {
    /// Path of the field.
    pub field: String,
    /// Expected value.
    pub detail: String,
}

impl InvalidField {
    fn new(field: impl Into<String>, detail: impl Into<String>) -> InvalidField {
        InvalidField { field: field.into(), detail: detail.into() }
    }
}

/// The body of `PUT /v1/enforcers/{enforcer}`: what the enforcer has applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgementBody {
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves, such as `r1h1:ssd`; by default all of the host. Only for the kind `nfs`.
    #[serde(default)]
    pub device: Option<String>,
    /// Tells this enforcer from others of its name, and is the same after a restart of the program. While the lease of
    /// another instance holds, the acknowledgement is rejected.
    #[serde(default)]
    #[schemars(with = "Option<Name>")]
    pub instance: Option<String>,
    /// Addresses of the host, for the filters of enforcers at other hosts.
    #[serde(default)]
    #[schemars(schema_with = "addresses")]
    pub addresses: Vec<String>,
    /// Length of the lease; default 15s.
    #[serde(default)]
    pub lease: Option<Nanos>,
    /// `set` of the applied promises; required with `version`.
    #[serde(default)]
    #[schemars(with = "Option<Id>")]
    pub set: Option<String>,
    /// `version` of the applied promises; omitted if the enforcer has applied none since it began.
    #[serde(default)]
    pub version: Option<u64>,
    /// Workloads that it applies.
    #[serde(default)]
    #[schemars(length(max = MAX_WORKLOADS))]
    pub workloads: Vec<AcknowledgedBody>,
}

/// A workload of an acknowledgement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcknowledgedBody {
    /// Name of the workload.
    #[schemars(with = "Name")]
    pub workload: String,
    /// State of its priorities and limits.
    pub state: AppliedWord,
    /// Reason of a refusal, or the difference of a drift; required for these.
    #[serde(default)]
    #[schemars(length(max = MAX_DETAIL))]
    pub detail: Option<String>,
    /// Counters since the enforcer began; they never fall while it runs.
    #[serde(default)]
    pub counters: RequestCounters,
    /// Latencies of the requests that ended recently, as the enforcer saw them.
    #[serde(default)]
    #[schemars(length(max = MAX_LATENCIES))]
    pub latencies: Vec<Latency>,
}

/// Schema of a list of addresses.
fn addresses(_: &mut SchemaGenerator) -> Schema {
    let address = json!({ "anyOf": [
        { "type": "string", "format": "ipv4" },
        { "type": "string", "format": "ipv6" },
    ] });
    json_schema!({ "type": "array", "maxItems": MAX_ADDRESSES, "items": address })
}

/// State of a promise at an enforcer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AppliedWord {
    /// Priorities and limits are in force.
    Applied,
    /// The enforcer cannot apply them.
    Refused,
    /// Another program has changed them.
    Drifted,
}

impl AcknowledgementBody {
    /// The acknowledgement of the enforcer of this name.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn acknowledgement(&self, name: &str) -> Result<Acknowledgement, InvalidField> {
        if !Name::fits(name) {
            return Err(InvalidField::new("enforcer", expected_name()));
        }
        if self.device.is_some() && self.kind != EnforcerKind::Nfs {
            return Err(InvalidField::new(
                "device",
                "expected none: only an enforcer of kind nfs serves a device",
            ));
        }
        if self.instance.as_ref().is_some_and(|instance| !Name::fits(instance)) {
            return Err(InvalidField::new("instance", expected_name()));
        }
        let ttl = self.lease.unwrap_or(LEASE);
        if !(LEASES[0]..=LEASES[1]).contains(&ttl) {
            return Err(InvalidField::new(
                "lease",
                format!("{ttl}: expected {} to {}", LEASES[0], LEASES[1]),
            ));
        }
        for (field, count, most) in [
            ("addresses", self.addresses.len(), MAX_ADDRESSES),
            ("workloads", self.workloads.len(), MAX_WORKLOADS),
        ] {
            if count > most {
                return Err(InvalidField::new(field, format!("{count}: expected at most {most}")));
            }
        }
        let address = |(at, text): (usize, &String)| {
            let wrong = |_| {
                InvalidField::new(
                    format!("addresses[{at}]"),
                    format!("`{}`: expected an address", excerpt(text)),
                )
            };
            text.parse::<IpAddr>().map_err(wrong)
        };
        let addresses = self.addresses.iter().enumerate().map(address);
        let addresses = addresses.collect::<Result<Vec<_>, InvalidField>>()?;
        let mut names = BTreeSet::new();
        let mut workloads = Vec::with_capacity(self.workloads.len());
        for (at, body) in self.workloads.iter().enumerate() {
            let workload = body.read().map_err(|InvalidField { field, detail }| {
                InvalidField::new(format!("workloads[{at}].{field}"), detail)
            })?;
            if !names.insert(body.workload.clone()) {
                let detail = "this entry is a duplicate; an acknowledgement may list each workload only once";
                return Err(InvalidField::new(format!("workloads[{at}].workload"), detail));
            }
            workloads.push(workload);
        }
        Ok(Acknowledgement {
            name: name.to_owned(),
            kind: self.kind,
            host: self.host.clone(),
            device: self.device.clone(),
            instance: self.instance.clone(),
            addresses,
            ttl,
            applied: self.applied()?,
            workloads,
        })
    }

    fn applied(&self) -> Result<Option<PromisesVersion>, InvalidField> {
        match (&self.set, self.version) {
            (None, None) => Ok(None),
            (Some(set), Some(number)) => match Id::read(set) {
                Some(set) => Ok(Some(PromisesVersion { set, number })),
                None => Err(InvalidField::new(
                    "set",
                    format!("`{}`: expected the `set` of promises", excerpt(set)),
                )),
            },
            (None, Some(_)) => {
                Err(InvalidField::new("set", "missing; `version` needs one: the `set` of the promises"))
            }
            (Some(_), None) => {
                Err(InvalidField::new("version", "missing; `set` needs one: the `version` of the promises"))
            }
        }
    }
}

impl AcknowledgedBody {
    fn read(&self) -> Result<AcknowledgedWorkload, InvalidField> {
        if !Name::fits(&self.workload) {
            return Err(InvalidField::new("workload", expected_name()));
        }
        let detail = self.detail.clone();
        if detail.as_ref().is_some_and(|detail| detail.chars().count() > MAX_DETAIL) {
            return Err(InvalidField::new("detail", format!("expected at most {MAX_DETAIL} characters")));
        }
        let missing = || InvalidField::new("detail", "missing; expected the reason or the difference");
        let state = match (self.state, detail) {
            (AppliedWord::Applied, None) => AppliedState::Applied,
            (AppliedWord::Applied, Some(_)) => {
                let detail = "expected none: only a refusal has a reason, and a drift a difference";
                return Err(InvalidField::new("detail", detail));
            }
            (AppliedWord::Refused, reason) => AppliedState::Refused(reason.ok_or_else(missing)?),
            (AppliedWord::Drifted, difference) => AppliedState::Drifted(difference.ok_or_else(missing)?),
        };
        if self.latencies.len() > MAX_LATENCIES {
            let detail = format!("{}: expected at most {MAX_LATENCIES}", self.latencies.len());
            return Err(InvalidField::new("latencies", detail));
        }
        for (at, Latency { percentile, seconds }) in self.latencies.iter().enumerate() {
            // NaN is in no range.
            if !(0.0..=100.0).contains(percentile) {
                let detail = format!("{}: expected a percentile from 0 to 100", format_number(*percentile));
                return Err(InvalidField::new(format!("latencies[{at}].percentile"), detail));
            }
            if !(0.0..=f64::MAX).contains(seconds) {
                let detail = format!("{}: expected seconds from 0", format_number(*seconds));
                return Err(InvalidField::new(format!("latencies[{at}].seconds"), detail));
            }
        }
        let (name, counters, latencies) = (self.workload.clone(), self.counters, self.latencies.clone());
        Ok(AcknowledgedWorkload { name, state, counters, latencies })
    }
}

fn expected_name() -> String {
    format!("expected a name of 1 to {} characters, none of them a control character", Name::LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn field(change: impl FnOnce(&mut Value)) -> Result<(), String> {
        let mut body = json!({
            "kind": "nfs", "host": "r0h0", "device": "r0h0:ssd", "addresses": ["10.0.0.1", "fd00::1"],
            "lease": "15s", "set": "7", "version": 3, "workloads": [
                { "workload": "a", "state": "applied", "counters": { "requests": 5 },
                  "latencies": [{ "percentile": 99.9, "seconds": 0.01 }] },
                { "workload": "b", "state": "drifted", "detail": "rate 1mbit" },
            ],
        });
        change(&mut body);
        let body: AcknowledgementBody = serde_json::from_value(body).map_err(|error| error.to_string())?;
        body.acknowledgement("nfs@r0h0").map(drop).map_err(|invalid| invalid.field)
    }

    type Change = fn(&mut Value);

    #[test]
    fn invalid_acknowledgements_name_their_field() {
        assert_eq!(field(|_| {}), Ok(()));
        let cases: [(Change, &str); 15] = [
            (|body| body["instance"] = json!(""), "instance"),
            (|body| body["lease"] = json!("0s"), "lease"),
            (|body| body["lease"] = json!("2h"), "lease"),
            (|body| body["kind"] = json!("net"), "device"),
            (|body| body["addresses"] = json!(["10.0.0.256"]), "addresses[0]"),
            (|body| body["addresses"] = json!(vec!["::1"; 65]), "addresses"),
            (|body| body["set"] = json!("-1"), "set"),
            (|body| body["set"] = Value::Null, "set"),
            (|body| body["version"] = Value::Null, "version"),
            (|body| body["workloads"][0]["workload"] = json!("b"), "workloads[1].workload"),
            (|body| body["workloads"][0]["workload"] = json!("\n"), "workloads[0].workload"),
            (|body| body["workloads"][0]["detail"] = json!("why"), "workloads[0].detail"),
            (|body| body["workloads"][1]["detail"] = Value::Null, "workloads[1].detail"),
            (
                |body| body["workloads"][0]["latencies"][0]["percentile"] = json!(101),
                "workloads[0].latencies[0].percentile",
            ),
            (
                |body| body["workloads"][0]["latencies"][0]["seconds"] = json!(-1e-9),
                "workloads[0].latencies[0].seconds",
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(field(change), Err(expected.to_owned()));
        }
        for text in ["-1", "1.5", "null"] {
            let counter: Value = serde_json::from_str(text).expect("JSON");
            let result = field(|body| body["workloads"][0]["counters"]["late"] = counter);
            assert!(result.is_err(), "{text} is no counter");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_rejected() {
        for latency in [
            Latency { percentile: f64::NAN, seconds: 0.0 },
            Latency { percentile: 99.0, seconds: f64::NAN },
            Latency { percentile: 99.0, seconds: f64::INFINITY },
        ] {
            let (workload, state, detail) = ("a".to_owned(), AppliedWord::Applied, None);
            let (counters, latencies) = (RequestCounters::default(), vec![latency]);
            let body = AcknowledgedBody { workload, state, detail, counters, latencies };
            assert!(body.read().is_err(), "{latency:?}");
        }
    }
}
