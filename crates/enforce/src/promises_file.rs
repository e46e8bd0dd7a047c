//! Promises of a host from a file, in one of three forms, which differ in their first workload:
//!
//! * [`HostPromises`] as JSON or YAML;
//! * those of [`DecidedFile`]: an SLO file with servers, priorities and limits, or the JSON of `leeward slo pack -o json`,
//!   `prioritize -o json` and `admit -o json`.

use leeward_fabric::input::{InputError, excerpt, read_yaml};
use leeward_lease::{Addresses, DecidedFile, DecidedStage, DecidedWorkload, singles};
use leeward_traces::Stage;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::promises::{Bucket, Direction, HostPromises, LeftOut, WorkloadPromise};

/// Field that distinguishes the forms.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    workloads: Vec<HeadWorkload>,
}

#[derive(Deserialize)]
struct HeadWorkload {
    peers: Option<IgnoredAny>,
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
    if head.workloads.first().is_some_and(|first| first.peers.is_some()) {
        return Ok((plain_promises(path, text, host)?, Vec::new()));
    }
    let file = DecidedFile::read(path, text)?;
    let (mut workloads, mut left_out, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for workload in &file.workloads {
        let directions = directions(workload, host);
        if workload.demoted_on_networks && !directions.is_empty() {
            let name = &workload.name;
            notes.push(format!(
                "{name}: `over: demoted` has no effect on networks: packets over the limits wait"
            ));
        }
        for (direction, stage) in directions {
            let stage = workload.at(stage).map_err(|missing| missing.in_file(path))?;
            let Some(stage) = stage else { continue };
            match promise(workload, direction, stage, addresses) {
                Ok(promise) => workloads.push(promise),
                Err(why) => left_out.push(LeftOut { workload: workload.name.clone(), why }),
            }
        }
    }
    Ok((HostPromises { host: host.to_owned(), version: None, workloads, notes }, left_out))
}

fn plain_promises(path: &str, text: &str, host: &str) -> Result<HostPromises, InputError> {
    let read: HostPromises = read_yaml(path, text)?;
    if read.host != host {
        let message = format!("`{}`: these are not the promises of `{host}`", excerpt(&read.host));
        return Err(InputError::new(path, message).in_field("host"));
    }
    Ok(read)
}

/// Directions in which packets of a workload leave a host. A client on its own server sends none.
fn directions(workload: &DecidedWorkload, host: &str) -> Vec<(Direction, Stage)> {
    let server = workload.server_host().filter(|&server| server != workload.client);
    let Some(server) = server else { return Vec::new() };
    let mut directions = Vec::new();
    if workload.client == host {
        directions.push((Direction::ToServer, Stage::NetworkIn));
    }
    if server == host {
        directions.push((Direction::ToClient, Stage::NetworkOut));
    }
    directions
}

/// The promise, or the reason why it has no addresses.
fn promise(
    workload: &DecidedWorkload,
    direction: Direction,
    stage: DecidedStage,
    addresses: &Addresses,
) -> Result<WorkloadPromise, String> {
    let DecidedWorkload { name, client, .. } = workload;
    let server = workload.server_host().unwrap_or_default();
    let (own, peers) = match direction {
        // The host's own addresses are those of its interfaces, unless the file lists them.
        Direction::ToServer => {
            (addresses.listed(name).or(addresses.listed(client)), addresses.of_host(server))
        }
        // The client of a workload may be a virtual machine with an address of its own.
        Direction::ToClient => (addresses.listed(server), addresses.of_client(name, client)),
    };
    Ok(WorkloadPromise {
        name: name.clone(),
        direction,
        own: own.map(singles).unwrap_or_default(),
        peers: singles(&peers?),
        priority: stage.priority,
        buckets: stage.limits.into_iter().map(|(rate, burst)| Bucket { rate, burst }).collect(),
    })
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
        let addresses = Addresses::of("hosts", ADDRESSES).expect("valid addresses");
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
    fn a_workload_whose_packets_the_file_demotes_is_a_note_at_its_hosts() {
        let text =
            SLO.replace("{name: tight,", "{name: tight, over: {network-out: demoted, storage: demoted},");
        let notes = |text: &str, host: &str| read(text, host).expect("a valid file").0.notes;
        assert_eq!(
            notes(&text, "s0"),
            ["tight: `over: demoted` has no effect on networks: packets over the limits wait"]
        );
        assert_eq!(notes(&text, "c1"), [""; 0]);
        let storage = SLO.replace("{name: tight,", "{name: tight, over: {storage: demoted},");
        assert_eq!(notes(&storage, "s0"), [""; 0]);
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
        let addresses = Addresses::of("hosts", "10.0.0.2 c0\n").expect("valid addresses");
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
