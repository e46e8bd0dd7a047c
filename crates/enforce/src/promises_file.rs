//! Promises of a host from a file, in one of three forms, which differ in their first workload:
//!
//! * an SLO file with servers, priorities and limits, as `leeward slo pack --out` writes it. Traces and devices that it
//!   names are not read, so a host needs none of them;
//! * the JSON of `leeward slo pack -o json` and `prioritize -o json`;
//! * [`HostPromises`] as JSON or YAML.

use std::net::IpAddr;

use leeward_fabric::input::{InputError, Spanned, excerpt, read_yaml};
use leeward_slo::file::{PriorityFile, StageName, WorkloadFile, WorkloadsFile};
use leeward_traces::Stage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::addresses::Addresses;
use crate::promises::{Bucket, Direction, HostPromises, LeftOut, WorkloadPromise};

/// Command that writes what a file lacks.
const REMEDY: &str = "`leeward slo pack --out` and `leeward slo prioritize -o json` write it";

/// Fields that distinguish the forms.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    workloads: Vec<HeadWorkload>,
}

#[derive(Deserialize)]
struct HeadWorkload {
    workload: Option<IgnoredAny>,
    peers: Option<IgnoredAny>,
}

/// Fields of the JSON of `leeward slo pack` and `prioritize`.
#[derive(Deserialize)]
struct Record {
    workloads: Vec<Spanned<RecordWorkload>>,
}

#[derive(Deserialize)]
struct RecordWorkload {
    workload: String,
    client: String,
    server: Option<String>,
    slo: Option<IgnoredAny>,
    stages: Vec<RecordStage>,
}

#[derive(Deserialize)]
struct RecordStage {
    stage: StageName,
    priority: Option<u32>,
    #[serde(default)]
    limits: Vec<RecordBucket>,
}

#[derive(Clone, Copy, Deserialize)]
struct RecordBucket {
    rate: f64,
    burst: f64,
}

/// Reads the promises of a host from the text of a file, and the workloads that have no addresses.
///
/// # Errors
/// An [`InputError`] with the line and the field.
pub fn read_promises(
    path: &str,
    text: &str,
    host: &str,
    addresses: &Addresses,
) -> Result<(HostPromises, Vec<LeftOut>), InputError> {
    let head: Head = read_yaml(path, text)?;
    let mut reader = Reader { path, host, addresses, workloads: Vec::new(), left_out: Vec::new() };
    match head.workloads.first() {
        Some(first) if first.peers.is_some() => return reader.promises(text).map(|read| (read, Vec::new())),
        Some(first) if first.workload.is_some() => reader.record(text)?,
        _ => reader.slo_file(text)?,
    }
    let promises = HostPromises { host: host.to_owned(), version: None, workloads: reader.workloads };
    Ok((promises, reader.left_out))
}

struct Reader<'a> {
    path: &'a str,
    host: &'a str,
    addresses: &'a Addresses,
    workloads: Vec<WorkloadPromise>,
    left_out: Vec<LeftOut>,
}

impl Reader<'_> {
    fn promises(&self, text: &str) -> Result<HostPromises, InputError> {
        let read: HostPromises = read_yaml(self.path, text)?;
        if read.host != self.host {
            let message = format!("`{}`: these are not the promises of `{}`", excerpt(&read.host), self.host);
            return Err(InputError::new(self.path, message).in_field("host"));
        }
        Ok(read)
    }

    fn record(&mut self, text: &str) -> Result<(), InputError> {
        let record: Record = read_yaml(self.path, text)?;
        for (number, item) in record.workloads.iter().enumerate() {
            let fields = &item.value;
            for (direction, stage) in self.directions(&fields.client, fields.server.as_deref()) {
                // A packing may leave out a stage.
                let Some(own) = fields.stages.iter().find(|own| Stage::from(own.stage) == stage) else {
                    continue;
                };
                let needs = fields.slo.is_some();
                let invalid = |field: &str| self.missing(number, item, field, stage);
                if needs && own.priority.is_none() {
                    return Err(invalid("priority"));
                }
                if needs && own.limits.is_empty() {
                    return Err(invalid("limits"));
                }
                // The limits of best effort are its own curve, which nothing enforces.
                let limits = if needs { own.limits.as_slice() } else { &[] };
                let buckets =
                    limits.iter().map(|&RecordBucket { rate, burst }| Bucket { rate, burst }).collect();
                let server = fields.server.as_deref().unwrap_or_default();
                self.add(&fields.workload, direction, &fields.client, server, own.priority, buckets);
            }
        }
        Ok(())
    }

    fn slo_file(&mut self, text: &str) -> Result<(), InputError> {
        let file: WorkloadsFile = read_yaml(self.path, text)?;
        for (number, item) in file.workloads.iter().enumerate() {
            let fields = &item.value;
            for (direction, stage) in self.directions(&fields.client, fields.server.as_deref()) {
                let stages = fields.stages.as_ref().or(file.stages.as_ref());
                if stages.is_some_and(|stages| !stages.iter().any(|&own| Stage::from(own) == stage)) {
                    continue;
                }
                let needs = fields.slo.is_some();
                let priority = match &fields.priority {
                    None if needs => return Err(self.missing(number, item, "priority", stage)),
                    None => None,
                    Some(PriorityFile::One(priority)) => Some(*priority),
                    // A workload of curves has the stages of its curves.
                    Some(PriorityFile::Each(each)) => match each.at(stage) {
                        None => continue,
                        priority => priority,
                    },
                };
                let Some(buckets) = buckets(fields, stage) else {
                    return Err(self.missing(number, item, "limits", stage));
                };
                if needs && buckets.is_empty() {
                    return Err(self.missing(number, item, "limits", stage));
                }
                let server = fields.server.as_deref().unwrap_or_default();
                self.add(&fields.name, direction, &fields.client, server, priority, buckets);
            }
        }
        Ok(())
    }

    /// Directions in which packets of a workload leave this host. A client on its own server sends none.
    fn directions(&self, client: &str, server: Option<&str>) -> Vec<(Direction, Stage)> {
        let Some(server) = server.map(host_of).filter(|&server| server != client) else { return Vec::new() };
        let mut directions = Vec::new();
        if client == self.host {
            directions.push((Direction::ToServer, Stage::NetworkIn));
        }
        if server == self.host {
            directions.push((Direction::ToClient, Stage::NetworkOut));
        }
        directions
    }

    fn missing<T>(&self, number: usize, item: &Spanned<T>, field: &str, stage: Stage) -> InputError {
        let field = format!("workloads[{number}].{field}");
        InputError::new(self.path, format!("missing for {stage}; {REMEDY}")).in_field(field).at(item)
    }

    /// Adds a promise, or the reason why it has no addresses.
    fn add(
        &mut self,
        name: &str,
        direction: Direction,
        client: &str,
        server: &str,
        priority: Option<u32>,
        buckets: Vec<Bucket>,
    ) {
        // The client of a workload may be a virtual machine with an address of its own.
        let listed = self.addresses.listed(name);
        let of_client = || listed.map_or_else(|| self.addresses.of_host(client), |own| Ok(own.to_vec()));
        let (own, peers) = match direction {
            // The host's own addresses are those of its interfaces, unless the file lists them.
            Direction::ToServer => {
                (listed.or(self.addresses.listed(client)), self.addresses.of_host(host_of(server)))
            }
            Direction::ToClient => (self.addresses.listed(host_of(server)), of_client()),
        };
        let own: Vec<IpAddr> = own.unwrap_or_default().to_vec();
        let name = name.to_owned();
        match peers {
            Ok(peers) => {
                self.workloads.push(WorkloadPromise { name, direction, own, peers, priority, buckets });
            }
            Err(why) => self.left_out.push(LeftOut { workload: name, why }),
        }
    }
}

/// Host of a server, which may be named with its device.
fn host_of(server: &str) -> &str {
    server.split(':').next().unwrap_or(server)
}

/// Buckets of a workload at a stage of a network; empty without limits, `None` for an empty list.
fn buckets(fields: &WorkloadFile, stage: Stage) -> Option<Vec<Bucket>> {
    let Some(limits) = &fields.limits else { return Some(Vec::new()) };
    let Some((_, curve)) = limits.curves().into_iter().find(|(own, _)| *own == stage) else {
        return Some(Vec::new());
    };
    let bucket =
        |bucket: &leeward_calculus::TokenBucket| Bucket { rate: bucket.rate(), burst: bucket.burst() };
    curve.map(|curve| curve.buckets().iter().map(bucket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLO: &str = "device: ssd.json
workloads:
  - {name: tight, client: c0, server: 's0:ssd', slo: {percentile: 99, latency: 60ms}, trace: mail.csv.gz,
     priority: {network-in: 0, storage: 1, network-out: 2}, limits: {network-in: [{rate: 1MB/s, burst: 64KiB}],
     storage: [{rate: 5%, burst: 8ms}], network-out: [{rate: 2MB/s, burst: 8KiB}, {rate: 1MB/s, burst: 64KiB}]}}
  - {name: local, client: s0, server: s0, slo: {percentile: 99, latency: 60ms}, trace: mail.csv.gz}
  - {name: elsewhere, client: c0, server: s1, slo: {percentile: 99, latency: 60ms}, trace: mail.csv.gz, priority: 3}
  - {name: backup, client: c1, server: s0, curves: {network-out: [{rate: 1MB/s, burst: 1B}]}}
";
    const ADDRESSES: &str = "10.0.0.2 c0\n10.0.0.3 c1\n10.0.1.2 s0\n10.0.1.3 s1\n10.0.0.77 tight\n";

    fn read(text: &str, host: &str) -> Result<(HostPromises, Vec<LeftOut>), InputError> {
        let addresses = Addresses::read("hosts", ADDRESSES).expect("valid addresses");
        read_promises("f.yaml", text, host, &addresses)
    }

    fn shown(text: &str, host: &str) -> Vec<String> {
        let (promises, left_out) = read(text, host).expect("a valid file");
        assert_eq!(left_out, []);
        let shown = |promise: &WorkloadPromise| {
            let WorkloadPromise { name, direction, own, peers, priority, buckets } = promise;
            let buckets: Vec<_> = buckets.iter().map(|bucket| (bucket.rate, bucket.burst)).collect();
            format!("{name} {direction} {own:?} > {peers:?} {priority:?} {buckets:?}")
        };
        promises.workloads.iter().map(shown).collect()
    }

    #[test]
    fn a_host_has_the_directions_in_which_its_packets_leave() {
        assert_eq!(
            shown(SLO, "s0"),
            [
                "tight to-client [10.0.1.2] > [10.0.0.77] Some(2) [(2000000.0, 8192.0), (1000000.0, 65536.0)]",
                "backup to-client [10.0.1.2] > [10.0.0.3] None []",
            ]
        );
        assert_eq!(shown(SLO, "c1"), ["backup to-server [10.0.0.3] > [10.0.1.2] None []"]);
        assert_eq!(shown(SLO, "none"), [""; 0]);
    }

    #[test]
    fn a_missing_priority_or_limit_of_this_host_is_an_error_with_its_remedy() {
        let error = read(SLO, "c0").expect_err("no limits").to_string();
        assert_eq!(
            error,
            "f.yaml:7:5: workloads[2].limits: missing for network-in; `leeward slo pack --out` and `leeward slo \
             prioritize -o json` write it"
        );
        let text = SLO.replace(", priority: 3", "");
        let error = read(&text, "s1").expect_err("no priority").to_string();
        assert!(error.contains("workloads[2].priority: missing for network-out"), "{error}");
    }

    #[test]
    fn records_of_commands_are_read_without_a_cluster_and_without_traces() {
        let record = r#"{"file": "w.yaml", "margin": 0.1, "workloads": [
            {"workload": "tight", "client": "c0", "server": "s0:ssd", "priority": 0, "slo": {"percentile": 99, "latency_s": 0.06},
             "bound_s": 0.04, "stages": [
                {"stage": "network-in", "unit": "bytes", "priority": 1, "limits": [{"rate": 1000.5, "burst": 64.25}]},
                {"stage": "storage", "unit": "s", "priority": 0, "limits": [{"rate": 0.1, "burst": 0.002}]}]},
            {"workload": "backup", "client": "c1", "server": "s0", "slo": null, "best_effort": true, "stages": [
                {"stage": "network-in", "priority": null, "limits": [{"rate": 5, "burst": 5}]}]}]}"#;
        assert_eq!(
            shown(record, "c0"),
            ["tight to-server [10.0.0.77] > [10.0.1.2] Some(1) [(1000.5, 64.25)]"]
        );
        assert_eq!(shown(record, "c1"), ["backup to-server [10.0.0.3] > [10.0.1.2] None []"]);
        let error = read(&record.replace("[{\"rate\": 1000.5, \"burst\": 64.25}]", "[]"), "c0")
            .expect_err("no limits");
        assert!(error.to_string().contains("workloads[0].limits: missing for network-in"), "{error}");
    }

    #[test]
    fn promises_of_a_controller_are_a_plain_value() {
        let text = r#"{"host": "c0", "version": 7, "workloads": [
            {"name": "tight", "direction": "to-server", "peers": ["10.0.1.2", "fd00::9"], "priority": 0,
             "buckets": [{"rate": 1e6, "burst": 65536}]}]}"#;
        assert_eq!(
            shown(text, "c0"),
            ["tight to-server [] > [10.0.1.2, fd00::9] Some(0) [(1000000.0, 65536.0)]"]
        );
        assert_eq!(read(text, "c0").expect("a valid file").0.version, Some(7));
        let error = read(text, "c1").expect_err("another host").to_string();
        assert_eq!(error, "f.yaml: host: `c0`: these are not the promises of `c1`");
        let (promises, _) = read(text, "c0").expect("a valid file");
        let json = serde_json::to_string(&promises).expect("plain values");
        assert_eq!(read(&json, "c0").expect("the same value").0, promises);
    }

    #[test]
    fn a_workload_whose_peer_has_no_address_is_left_out() {
        let addresses = Addresses::read("hosts", "10.0.0.2 c0\n").expect("valid addresses");
        let text = SLO.replace("s0:ssd", "localhost:ssd");
        let text: String = text
            .lines()
            .filter(|line| !line.contains("elsewhere"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let (promises, left_out) = read_promises("f.yaml", &text, "c0", &addresses).expect("a valid file");
        assert_eq!(promises.workloads, []);
        assert_eq!(left_out.len(), 1);
        assert!(
            left_out[0].to_string().starts_with("tight is not enforced: host `localhost` has"),
            "{left_out:?}"
        );
    }
}
