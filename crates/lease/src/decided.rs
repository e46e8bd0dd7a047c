//! Decided workloads of a file, as it states them: servers, priorities and limits. The file has one of two forms:
//!
//! * an SLO file with servers, priorities and limits, as `leeward slo pack --out` writes it. Traces and devices that it
//!   names are not read, and no cluster is needed, so an enforcer's host needs none of them;
//! * the JSON of `leeward slo pack -o json`, `prioritize -o json` and `admit -o json`. A workload that was refused is best
//!   effort.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use leeward_fabric::input::{InputError, Spanned, excerpt, read_yaml};
use leeward_slo::Slo;
use leeward_slo::file::{OverFile, OverName, PriorityFile, StageName, WorkloadFile, WorkloadsFile};
use leeward_traces::Stage;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Command that writes what a file lacks.
const REMEDY: &str = "`leeward slo pack --out` and `leeward slo prioritize -o json` write it";

/// Decided workloads of a file.
#[derive(Clone, Debug)]
pub struct DecidedFile {
    /// Path of the file.
    pub path: String,
    /// The workloads, in order.
    pub workloads: Vec<DecidedWorkload>,
    /// Device file of every server that `devices` does not name.
    device: Option<String>,
    /// Device files by server: a host, or `host:device`.
    devices: BTreeMap<String, String>,
}

/// A decided workload.
#[derive(Clone, Debug)]
pub struct DecidedWorkload {
    /// Name of the workload.
    pub name: String,
    /// Host that sends the requests.
    pub client: String,
    /// Host that has the volume, or its device (`host:device`); `None` if the file has none.
    pub server: Option<String>,
    /// Promised SLO; `None` for best effort.
    pub slo: Option<Slo>,
    /// Handling of requests over the limits at storage, if the file states it.
    pub over: Option<OverName>,
    /// True if the file demotes requests over the limits on a network, where enforcers hold packets.
    pub demoted_on_networks: bool,
    /// What the file states for each of [`Stage::ALL`]; `None` for a stage that the workload does not have.
    stages: [Option<Stated>; 3],
    /// Field of the workload in the file, with its place.
    field: Spanned<String>,
}

/// Priority and limits of a workload at a stage.
#[derive(Clone, PartialEq, Debug)]
pub struct DecidedStage {
    /// Priority, 0 first; `None` for best effort.
    pub priority: Option<u32>,
    /// Token buckets that hold at once, as rate and burst: in bytes on networks, in seconds of service at storage. Empty
    /// without a limit.
    pub limits: Vec<(f64, f64)>,
}

/// Priority and limits as a file states them.
#[derive(Clone, PartialEq, Debug)]
struct Stated {
    priority: Option<u32>,
    /// `None` for an empty list.
    limits: Option<Vec<(f64, f64)>>,
}

/// A workload with an SLO lacks its priority or its limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    field: Spanned<String>,
    name: &'static str,
    stage: Stage,
}

impl Missing {
    /// The error for the file with this path.
    pub fn in_file(self, path: &str) -> InputError {
        let Missing { field, name, stage } = self;
        let error = InputError::new(path, format!("missing for {stage}; {REMEDY}"));
        error.in_field(format!("{}.{name}", field.value)).at(&field)
    }
}

impl DecidedWorkload {
    /// Host of the server; `None` if the file has none.
    pub fn server_host(&self) -> Option<&str> {
        self.server.as_deref().map(host_of)
    }

    /// Priority and limits at a stage; `None` if the workload does not have it.
    ///
    /// # Errors
    /// [`Missing`], if it has an SLO without a priority or limits.
    pub fn at(&self, stage: Stage) -> Result<Option<DecidedStage>, Missing> {
        let Some(Stated { priority, limits }) = &self.stages[stage as usize] else { return Ok(None) };
        let missing = |name| Missing { field: self.field.clone(), name, stage };
        let needs = self.slo.is_some();
        if needs && priority.is_none() {
            return Err(missing("priority"));
        }
        let limits = limits.as_ref().filter(|limits| !needs || !limits.is_empty());
        let limits = limits.ok_or_else(|| missing("limits"))?;
        Ok(Some(DecidedStage { priority: *priority, limits: limits.clone() }))
    }
}

impl DecidedFile {
    /// Reads the text of a file with this path.
    ///
    /// # Errors
    /// An [`InputError`] with the line and the field.
    pub fn read(path: &str, text: &str) -> Result<DecidedFile, InputError> {
        let head: Head = read_yaml(path, text)?;
        let is_record = head.workloads.first().is_some_and(|first| first.workload.is_some());
        let file = if is_record { record(path, text)? } else { slo_file(path, text)? };
        let mut names = BTreeSet::new();
        if let Some(twice) = file.workloads.iter().find(|one| !names.insert(one.name.as_str())) {
            let message = format!("`{}`: another workload has this name", excerpt(&twice.name));
            return Err(InputError::new(path, message).in_field(twice.field.value.as_str()).at(&twice.field));
        }
        Ok(file)
    }

    /// Path of the device file of a server: a host, or `host:device`; `None` if the file names none. A relative path is
    /// relative to the folder of the file.
    pub fn device_of(&self, server: &str) -> Option<String> {
        let own = [server, host_of(server)].into_iter().find_map(|name| self.devices.get(name));
        let device = own.or(self.device.as_ref())?;
        let folder = Path::new(&self.path).parent().unwrap_or(Path::new(""));
        Some(folder.join(device).display().to_string())
    }
}

/// Host of a server, which may be named with its device.
pub fn host_of(server: &str) -> &str {
    server.split(':').next().unwrap_or(server)
}

/// Fields that distinguish the forms.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    workloads: Vec<HeadWorkload>,
}

#[derive(Deserialize)]
struct HeadWorkload {
    workload: Option<IgnoredAny>,
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
    slo: Option<RecordSlo>,
    /// True for a workload without a promise, also if it asked for an SLO.
    #[serde(default)]
    best_effort: bool,
    stages: Vec<RecordStage>,
}

#[derive(Clone, Copy, Deserialize)]
struct RecordSlo {
    percentile: f64,
    latency_s: f64,
}

#[derive(Deserialize)]
struct RecordStage {
    stage: StageName,
    priority: Option<u32>,
    #[serde(default)]
    limits: Vec<RecordBucket>,
    /// True if the limits are the workload's own curve, and not limits that a file states.
    own_curve: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
struct RecordBucket {
    rate: f64,
    burst: f64,
}

fn record(path: &str, text: &str) -> Result<DecidedFile, InputError> {
    let record: Record = read_yaml(path, text)?;
    let workload = |(number, item): (usize, &Spanned<RecordWorkload>)| {
        let fields = &item.value;
        let slo = fields.slo.filter(|_| !fields.best_effort);
        // A packing may leave out a stage.
        let stated = |stage: Stage| {
            let own = fields.stages.iter().find(|own| Stage::from(own.stage) == stage)?;
            // Best effort has the limits that its file states, as in an SLO file. Its own curve is no limit.
            let is_limited = slo.is_some() || own.own_curve == Some(false);
            let limits = if is_limited { own.limits.as_slice() } else { &[] };
            let limits = limits.iter().map(|&RecordBucket { rate, burst }| (rate, burst)).collect();
            Some(Stated { priority: own.priority, limits: Some(limits) })
        };
        DecidedWorkload {
            name: fields.workload.clone(),
            client: fields.client.clone(),
            server: fields.server.clone(),
            slo: slo.map(|slo| Slo { percentile: slo.percentile, latency: slo.latency_s }),
            over: None,
            demoted_on_networks: false,
            stages: Stage::ALL.map(stated),
            field: Spanned { value: format!("workloads[{number}]"), place: item.place },
        }
    };
    let workloads = record.workloads.iter().enumerate().map(workload).collect();
    Ok(DecidedFile { path: path.to_owned(), workloads, device: None, devices: BTreeMap::new() })
}

fn slo_file(path: &str, text: &str) -> Result<DecidedFile, InputError> {
    let file: WorkloadsFile = read_yaml(path, text)?;
    let over_at = |over: Option<OverFile>, stage: Stage| match over? {
        OverFile::One(name) => Some(name),
        OverFile::Each(each) => each.at(stage),
    };
    let workload = |(number, item): (usize, &Spanned<WorkloadFile>)| {
        let fields = &item.value;
        let stages = fields.stages.as_ref().or(file.stages.as_ref());
        let over = |stage: Stage| over_at(fields.over, stage).or(over_at(file.over, stage));
        let stated = |stage: Stage| {
            if stages.is_some_and(|stages| !stages.iter().any(|&own| Stage::from(own) == stage)) {
                return None;
            }
            let priority = match &fields.priority {
                None => None,
                Some(PriorityFile::One(priority)) => Some(*priority),
                // A workload of curves has the stages of its curves.
                Some(PriorityFile::Each(each)) => Some(each.at(stage)?),
            };
            Some(Stated { priority, limits: buckets(fields, stage) })
        };
        DecidedWorkload {
            name: fields.name.clone(),
            client: fields.client.clone(),
            server: fields.server.clone(),
            slo: fields.slo.map(|slo| Slo { percentile: slo.percentile, latency: slo.latency.as_secs_f64() }),
            over: over(Stage::Storage),
            demoted_on_networks: [Stage::NetworkIn, Stage::NetworkOut]
                .map(over)
                .contains(&Some(OverName::Demoted)),
            stages: Stage::ALL.map(stated),
            field: Spanned { value: format!("workloads[{number}]"), place: item.place },
        }
    };
    let workloads = file.workloads.iter().enumerate().map(workload).collect();
    Ok(DecidedFile {
        path: path.to_owned(),
        workloads,
        device: file.device.clone(),
        devices: file.devices.clone(),
    })
}

/// Buckets of a workload at a stage; empty without limits, `None` for an empty list.
fn buckets(fields: &WorkloadFile, stage: Stage) -> Option<Vec<(f64, f64)>> {
    let Some(limits) = &fields.limits else { return Some(Vec::new()) };
    let Some((_, curve)) = limits.curves().into_iter().find(|(own, _)| *own == stage) else {
        return Some(Vec::new());
    };
    curve.map(|curve| curve.buckets().iter().map(|bucket| (bucket.rate(), bucket.burst())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLO: &str = "device: ssd.json
devices: {s1: other.json}
over: {storage: held}
workloads:
  - {name: tight, client: c0, server: 's0:ssd', slo: {percentile: 99, latency: 60ms}, trace: mail.csv.gz,
     priority: {network-in: 0, storage: 1, network-out: 2}, limits: {network-in: [{rate: 1MB/s, burst: 64KiB}],
     storage: [{rate: 5%, burst: 8ms}], network-out: [{rate: 2MB/s, burst: 8KiB}, {rate: 1MB/s, burst: 64KiB}]}}
  - {name: open, client: c0, server: s1, slo: {percentile: 99, latency: 60ms}, trace: mail.csv.gz, priority: 3,
     over: demoted}
  - {name: backup, client: c1, server: s0, curves: {network-out: [{rate: 1MB/s, burst: 1B}]}}
";

    fn read(text: &str) -> DecidedFile {
        DecidedFile::read("folder/f.yaml", text).expect("a valid file")
    }

    #[test]
    fn an_slo_file_states_servers_priorities_and_limits_of_each_stage() {
        let file = read(SLO);
        let [tight, open, backup] = &file.workloads[..] else { panic!("three workloads") };
        let storage = tight.at(Stage::Storage).expect("stated");
        assert_eq!(storage, Some(DecidedStage { priority: Some(1), limits: vec![(0.05, 0.008)] }));
        assert_eq!(tight.at(Stage::NetworkOut).expect("stated").map(|stage| stage.limits.len()), Some(2));
        assert_eq!((tight.server_host(), tight.over), (Some("s0"), Some(OverName::Held)));
        assert_eq!(tight.slo, Some(Slo { percentile: 99.0, latency: 0.06 }));
        assert_eq!((open.over, backup.slo), (Some(OverName::Demoted), None));
        assert_eq!([tight, open, backup].map(|one| one.demoted_on_networks), [false, true, false]);
        let none = DecidedStage { priority: None, limits: Vec::new() };
        assert_eq!(backup.at(Stage::NetworkOut), Ok(Some(none)));
        let error = open.at(Stage::Storage).expect_err("no limits").in_file(&file.path).to_string();
        assert!(
            error.starts_with(
                "folder/f.yaml:8:5: workloads[1].limits: missing for storage; `leeward slo pack"
            ),
            "{error}"
        );
        for (server, device) in
            [("s0", "folder/ssd.json"), ("s0:ssd", "folder/ssd.json"), ("s1:d", "folder/other.json")]
        {
            assert_eq!(file.device_of(server).as_deref(), Some(device));
        }
    }

    #[test]
    fn records_of_commands_have_the_stages_that_they_list() {
        let record = r#"{"file": "w.yaml", "workloads": [
            {"workload": "tight", "client": "c0", "server": "s0:ssd", "slo": {"percentile": 99, "latency_s": 0.06}, "stages": [
                {"stage": "storage", "unit": "s", "priority": 0, "limits": [{"rate": 0.1, "burst": 0.002}]}]},
            {"workload": "backup", "client": "c1", "server": "s0", "slo": null, "stages": [
                {"stage": "storage", "priority": null, "limits": [{"rate": 5, "burst": 5}]}]}]}"#;
        let file = read(record);
        let [tight, backup] = &file.workloads[..] else { panic!("two workloads") };
        let stage = DecidedStage { priority: Some(0), limits: vec![(0.1, 0.002)] };
        assert_eq!(tight.at(Stage::Storage), Ok(Some(stage)));
        assert_eq!((tight.at(Stage::NetworkIn), file.device_of("s0")), (Ok(None), None));
        let none = DecidedStage { priority: None, limits: Vec::new() };
        assert_eq!(backup.at(Stage::Storage), Ok(Some(none)));
        let without = read(&record.replace("[{\"rate\": 0.1, \"burst\": 0.002}]", "[]"));
        assert!(without.workloads[0].at(Stage::Storage).is_err());
    }

    #[test]
    fn best_effort_has_the_limits_that_its_file_states_in_both_forms() {
        let stated = "limits: {storage: [{rate: 5%, burst: 8ms}]}";
        let text = format!(
            "workloads: [{{name: b, client: c, server: s, curves: {{storage: [{{rate: 1%, burst: 1ms}}]}}, {stated}}}]"
        );
        let limits = vec![(0.05, 0.008)];
        let of = |file: &DecidedFile| {
            file.workloads[0].at(Stage::Storage).expect("stated").map(|stage| stage.limits)
        };
        assert_eq!(of(&read(&text)), Some(limits.clone()));
        let record = |own: &str| {
            read(&format!(
                r#"{{"workloads": [{{"workload": "b", "client": "c", "server": "s", "slo": null, "stages": [
                {{"stage": "storage", "priority": null, "limits": [{{"rate": 0.05, "burst": 0.008}}]{own}}}]}}]}}"#
            ))
        };
        assert_eq!(of(&record(r#", "own_curve": false"#)), Some(limits));
        assert_eq!(of(&record(r#", "own_curve": true"#)), Some(Vec::new()));
        assert_eq!(of(&record("")), Some(Vec::new()));
    }

    #[test]
    fn a_workload_that_was_refused_is_best_effort() {
        let record = r#"{"admission": "snc", "workloads": [
            {"workload": "index", "client": "c", "server": "s:ssd", "best_effort": true,
             "slo": {"percentile": 99, "latency_s": 0.005}, "stages": [
                {"stage": "storage", "priority": null, "limits": [{"rate": 5, "burst": 5}], "own_curve": true}]}]}"#;
        let file = read(record);
        assert_eq!(file.workloads[0].slo, None);
        let none = DecidedStage { priority: None, limits: Vec::new() };
        assert_eq!(file.workloads[0].at(Stage::Storage), Ok(Some(none)));
    }

    #[test]
    fn two_workloads_of_one_name_are_an_error() {
        let error =
            DecidedFile::read("f.yaml", &SLO.replace("open", "tight")).expect_err("twice").to_string();
        assert_eq!(error, "f.yaml:8:5: workloads[1]: `tight`: another workload has this name");
    }
}
