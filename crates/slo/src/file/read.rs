//! Converts fields to workloads: looks up names, reads files, and reports errors.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{Files, InputError, Spanned, excerpt};
use leeward_fabric::{Cluster, Fabric, HostId, ResourceKind};
use leeward_models::{CurvesFile, ModelsFile, StageInput};
use leeward_shaping::OverLimit;
use leeward_traces::Stage;
use leeward_traces::device::Device;

use super::assumptions::dependent_pairs;
use super::checks::{check_names, check_priorities, settings, shared};
use super::form::{SloFile, WorkloadFile, WorkloadsFile};
use super::latencies::Latencies;
use super::over::OverFile;
use super::priority::PriorityFile;
use super::routes::Server;
use super::traces::{Load, Trace};
use super::{Entry, Open, Traced, Workloads};
use crate::bound::BoundSettings;
use crate::limits::with_margin;
use crate::priorities::LEVELS;
use crate::{Demand, Slo, Workload};

/// A workload before its trace is read.
pub(super) struct Draft<'f> {
    pub number: usize,
    pub item: &'f Spanned<WorkloadFile>,
    pub slo: Option<Slo>,
    pub client: HostId,
    pub server: Option<Server>,
    pub source: Source<'f>,
    /// Stages from the file; `None` for all stages of the source.
    pub stages: Option<Vec<Stage>>,
}

/// Source of demands.
pub(super) enum Source<'f> {
    /// A trace (name and volume), and the number of the device file for its requests.
    Trace((&'f str, Option<&'f str>), Option<usize>),
    /// Curves and models from files or fields.
    Curves(Curves),
}

/// Curves and models, and what is known of the device behind them.
pub(super) struct Curves {
    pub inputs: Vec<StageInput>,
    /// Unloaded latency in seconds.
    pub unloaded: Option<f64>,
    /// Requests that the device has at once.
    pub outstanding: Option<u32>,
}

pub(super) struct Reader<'a> {
    path: &'a str,
    cluster: &'a Cluster,
    files: &'a Files,
    /// Device files read so far, by name.
    profiles: BTreeMap<String, usize>,
    /// Device files by number: name and contents.
    pub devices: Vec<(String, Arc<Device>)>,
    pub notes: BTreeSet<String>,
    /// Highest promised percentile. Best effort counts its unloaded latency at this percentile.
    pub highest: Option<f64>,
}

pub(super) fn read(
    path: &str,
    file: WorkloadsFile,
    cluster: &Cluster,
    files: &Files,
    open: &Open<'_>,
    others: Option<&Workloads>,
) -> Result<Workloads, InputError> {
    let settings = settings(path, &file)?;
    check_names(path, &file, others)?;
    let congestion =
        shared(path, "congestion", file.congestion, others.map(|others| (others, others.congestion)))?;
    let counted = congestion.unwrap_or_default();
    let given = file.latency.as_ref().map(|given| Latencies::new(given, path, &cluster.fabric, counted));
    let existing = others.map(|others| (others, others.latencies.clone()));
    let latencies = shared(path, "latency", given.transpose()?, existing)?;
    let levels = shared(path, "levels", file.levels, others.map(|others| (others, others.levels)))?;
    let bounds = shared(path, "bounds", file.bounds, others.map(|others| (others, others.bounds)))?;
    let mut reader = Reader {
        path,
        cluster,
        files,
        profiles: BTreeMap::new(),
        devices: Vec::new(),
        notes: BTreeSet::new(),
        highest: None,
    };
    reader.check_servers(&file)?;
    let mut drafts = Vec::with_capacity(file.workloads.len());
    for (number, item) in file.workloads.iter().enumerate() {
        drafts.push(reader.draft(&file, number, item)?);
    }
    let promised = drafts.iter().map(|draft| draft.slo);
    let before = others.iter().flat_map(|others| others.entries.iter().map(|entry| entry.workload.slo));
    reader.highest = promised.chain(before).flatten().map(|slo| slo.percentile).max_by(f64::total_cmp);
    reader.check_outstanding(bounds.as_ref(), &drafts)?;
    let mut entries: Vec<Option<Entry>> = drafts.iter().map(|_| None).collect();
    let mut done = BTreeSet::new();
    for at in 0..drafts.len() {
        match &drafts[at].source {
            Source::Curves(curves) => {
                let demands = reader.demands(&drafts[at], curves)?;
                entries[at] = Some(reader.entry(&file, &drafts[at], demands, None)?);
            }
            Source::Trace(key, _) if done.insert(*key) => {
                // Read the trace for all workloads that share it, then free it.
                let draft = &drafts[at];
                let mut trace = Trace::read(key.0, key.1, &settings, open)
                    .map_err(|error| reader.inside((draft.number, draft.item), "trace", error))?;
                let load = trace.load();
                for (index, draft) in drafts.iter().enumerate() {
                    if let Source::Trace(other, device) = &draft.source
                        && other == key
                    {
                        let demands = reader
                            .trace_demands(draft, &mut trace, *device)
                            .map_err(|error| reader.inside((draft.number, draft.item), "trace", error))?;
                        entries[index] = Some(reader.entry(&file, draft, demands, Some(&load))?);
                    }
                }
            }
            Source::Trace(..) => {}
        }
    }
    let entries: Vec<Entry> = entries.into_iter().flatten().collect();
    check_priorities(path, &entries)?;
    let dependent = dependent_pairs(&entries, others);
    Ok(Workloads {
        path: path.to_owned(),
        name: file.name,
        entries,
        margin: file.margin.0,
        buckets: file.buckets,
        congestion: counted,
        latencies: latencies.unwrap_or_default(),
        levels: levels.unwrap_or(LEVELS),
        bounds: bounds.unwrap_or_default(),
        network: settings.network,
        sort: settings.sort,
        replay: file.replay,
        devices_differ: !file.devices.is_empty(),
        notes: reader.notes.into_iter().collect(),
        dependent,
    })
}

impl Reader<'_> {
    pub fn invalid(
        &self,
        draft: (usize, &Spanned<WorkloadFile>),
        field: &str,
        message: impl std::fmt::Display,
    ) -> InputError {
        let (number, item) = draft;
        InputError::new(self.path, message).in_field(format!("workloads[{number}].{field}")).at(item)
    }

    /// Error of a file that a workload names, with the position of that name; an error of the workload file
    /// keeps its own position.
    fn inside(&self, draft: (usize, &Spanned<WorkloadFile>), field: &str, error: InputError) -> InputError {
        if error.file == self.path { error } else { self.invalid(draft, field, error) }
    }

    /// Checks that the setting `outstanding` of bounds differs from no device file in use, and from no number of a workload.
    fn check_outstanding(
        &self,
        bounds: Option<&BoundSettings>,
        drafts: &[Draft<'_>],
    ) -> Result<(), InputError> {
        let Some(given) = bounds.and_then(|bounds| bounds.outstanding) else { return Ok(()) };
        for (name, device) in &self.devices {
            if let Some(profiled) = device.outstanding.requests().filter(|profiled| *profiled != given) {
                let message = format!(
                    "{given}, but {name} was measured with {profiled} requests at once: leave it out, or profile the \
                     device with {given}"
                );
                return Err(InputError::new(self.path, message).in_field("bounds.outstanding"));
            }
        }
        for draft in drafts {
            if let Source::Curves(Curves { outstanding: Some(other), .. }) = &draft.source
                && *other != given
            {
                let name = &draft.item.value.name;
                let message =
                    format!("{given}, but {name} has {other} requests at once: leave one of the two out");
                return Err(InputError::new(self.path, message).in_field("bounds.outstanding"));
            }
        }
        Ok(())
    }

    /// Checks that every name in `devices` is a server.
    fn check_servers(&self, file: &WorkloadsFile) -> Result<(), InputError> {
        for name in file.devices.keys() {
            server(&self.cluster.fabric, name).map_err(|message| {
                InputError::new(self.path, message).in_field(format!("devices.{}", excerpt(name)))
            })?;
        }
        Ok(())
    }

    fn draft<'f>(
        &mut self,
        file: &'f WorkloadsFile,
        number: usize,
        item: &'f Spanned<WorkloadFile>,
    ) -> Result<Draft<'f>, InputError> {
        let fields = &item.value;
        let fabric = &self.cluster.fabric;
        let slo = fields.slo.map(|slo| self.slo((number, item), slo)).transpose()?;
        let unknown = || format!("`{}`: the cluster has no such host", excerpt(&fields.client));
        let client = fabric.host(&fields.client);
        let client = client.ok_or_else(|| self.invalid((number, item), "client", unknown()))?;
        let place = fields.server.as_deref().map(|name| server(fabric, name)).transpose();
        let place = place.map_err(|message| self.invalid((number, item), "server", message))?;
        let stages = self.stages(file, number, item)?;
        let source = match (&fields.trace, &fields.curves, &fields.model) {
            (Some(_), ..) if fields.outstanding.is_some() => {
                let message = "expected none: the device file states it";
                return Err(self.invalid((number, item), "outstanding", message));
            }
            (Some(trace), None, None) => {
                let needs_device = stages.as_ref().is_none_or(|stages| stages.contains(&Stage::Storage));
                let device = if needs_device { Some(self.profile(file, number, item, place)?) } else { None };
                Source::Trace((trace, fields.volume.as_deref()), device)
            }
            (None, None, None) => {
                let message = "missing; expected one of `trace`, `curves` and `model`";
                return Err(self.invalid((number, item), "trace", message));
            }
            (Some(_), ..) => {
                let message = "expected a trace, or `curves` and `model`, not both";
                return Err(self.invalid((number, item), "trace", message));
            }
            (None, curves, model) => {
                if fields.volume.is_some() {
                    return Err(self.invalid(
                        (number, item),
                        "volume",
                        "goes with `trace`: it names a volume of the trace",
                    ));
                }
                self.source((number, item), curves.as_ref(), model.as_ref())?
            }
        };
        let needs_device = match (&stages, &source) {
            (Some(stages), _) => stages.contains(&Stage::Storage),
            (None, Source::Trace(..)) => true,
            (None, Source::Curves(curves)) => curves.inputs.iter().any(|input| input.stage == Stage::Storage),
        };
        if let Some(Server { host, device: None }) = place.filter(|_| needs_device) {
            let (name, devices) = (fabric.host_name(host), fabric.devices(host));
            let names: Vec<String> = devices.iter().map(|device| format!("{name}:{}", device.name)).collect();
            let message = match names.is_empty() {
                true => format!("`{name}`: the cluster file gives this host no device"),
                false => format!("`{name}`: it has several devices; expected one of {}", names.join(", ")),
            };
            return Err(self.invalid((number, item), "server", message));
        }
        Ok(Draft { number, item, slo, client, server: place, source, stages })
    }

    fn slo(&self, draft: (usize, &Spanned<WorkloadFile>), slo: SloFile) -> Result<Slo, InputError> {
        let SloFile { percentile, latency } = slo;
        if !(percentile > 0.0 && percentile < 100.0) {
            let percentile = leeward_fabric::input::format_number(percentile);
            let message = format!("{percentile}: expected a percentile above 0 and below 100");
            return Err(self.invalid(draft, "slo.percentile", message));
        }
        if latency.0 == 0 {
            return Err(self.invalid(draft, "slo.latency", "0s: expected a time above 0"));
        }
        Ok(Slo { percentile, latency: latency.as_secs_f64() })
    }

    fn stages(
        &self,
        file: &WorkloadsFile,
        number: usize,
        item: &Spanned<WorkloadFile>,
    ) -> Result<Option<Vec<Stage>>, InputError> {
        let own = item.value.stages.as_ref();
        let Some(names) = own.or(file.stages.as_ref()) else { return Ok(None) };
        let mut stages: Vec<Stage> = names.iter().map(|&name| Stage::from(name)).collect();
        stages.sort_unstable();
        let twice = stages.windows(2).any(|pair| pair[0] == pair[1]);
        if stages.is_empty() || twice {
            let message = "expected at least one stage, and each once";
            return Err(match own {
                Some(_) => self.invalid((number, item), "stages", message),
                None => InputError::new(self.path, message).in_field("stages"),
            });
        }
        Ok(Some(stages))
    }

    /// Number of the device file for a workload.
    fn profile(
        &mut self,
        file: &WorkloadsFile,
        number: usize,
        item: &Spanned<WorkloadFile>,
        server: Option<Server>,
    ) -> Result<usize, InputError> {
        let fabric = &self.cluster.fabric;
        let host = server.map(|server| fabric.host_name(server.host));
        let resource = server.and_then(|server| fabric.device(server.host, server.device?));
        let device = resource.map(|resource| fabric.resource_name(resource));
        let named =
            device.as_deref().into_iter().chain(host).find_map(|name| file.devices.get_key_value(name));
        let (field, name) = match (named, &file.device) {
            (Some((server, name)), _) => (format!("devices.{server}"), name),
            (None, Some(name)) => ("device".to_owned(), name),
            (None, None) => {
                let server = host.map_or_else(|| "a server".to_owned(), |host| format!("`{host}`"));
                let message = format!(
                    "{server} has no device file: give `device`, or one of `devices`, or leave storage out of `stages`"
                );
                return Err(self.invalid((number, item), "server", message));
            }
        };
        if let Some(&known) = self.profiles.get(name) {
            return Ok(known);
        }
        let inside = |error: InputError| InputError::new(self.path, error).in_field(&field);
        let path = self.files.path(name).map_err(inside)?;
        let device = Device::read(&path.to_string_lossy()).map_err(inside)?;
        self.devices.push((name.clone(), Arc::new(device)));
        self.profiles.insert(name.clone(), self.devices.len() - 1);
        Ok(self.devices.len() - 1)
    }

    /// Curves and models from files or fields.
    fn source<'f>(
        &self,
        draft: (usize, &Spanned<WorkloadFile>),
        curves: Option<&CurvesFile>,
        model: Option<&ModelsFile>,
    ) -> Result<Source<'f>, InputError> {
        let locate = |field: &str, name: &str| {
            let path = self.files.path(name).map_err(|error| self.inside(draft, field, error))?;
            Ok::<_, InputError>(path.to_string_lossy().into_owned())
        };
        let mut unloaded = draft.1.value.unloaded.map(|time| time.as_secs_f64());
        let stated = draft.1.value.outstanding.map(NonZeroU32::get);
        let mut inputs: Vec<StageInput> = match curves {
            None => Vec::new(),
            Some(CurvesFile::Named(name)) => {
                let file = leeward_models::read_curves(&locate("curves", name)?)
                    .map_err(|error| self.inside(draft, "curves", error))?;
                // A latency profiled at a lower percentile is no bound for a higher percentile.
                let percentile = draft.1.value.slo.map_or(0.0, |slo| slo.percentile);
                let enough =
                    file.unloaded.filter(|&(_, profiled)| profiled >= percentile).map(|(seconds, _)| seconds);
                unloaded = unloaded.or(enough);
                file.stages
            }
            Some(CurvesFile::Buckets(buckets)) => {
                let mut inputs = Vec::new();
                for (stage, curve) in buckets.curves() {
                    let field = format!("curves.{stage}");
                    let empty = || self.invalid(draft, &field, "an empty list; expected at least one bucket");
                    let curve = curve.ok_or_else(empty)?;
                    let largest = curve.burst();
                    inputs.push(StageInput {
                        stage,
                        curve: Some((curve, largest)),
                        model: None,
                        outstanding: None,
                    });
                }
                inputs
            }
        };
        let read = |models: &ModelsFile| match models {
            ModelsFile::Named(name) => leeward_models::read_models(&locate("model", name)?)
                .map_err(|error| self.inside(draft, "model", error)),
            ModelsFile::Records(records) => leeward_models::models(self.path, records).map_err(|error| {
                let field =
                    error.field.as_deref().map_or("model".to_owned(), |field| format!("model{field}"));
                self.invalid(draft, &field, error.message)
            }),
        };
        let models = model.map(read).transpose()?.unwrap_or_default();
        let profiled = inputs.iter().chain(&models).filter_map(|input| input.outstanding);
        let outstanding = stated.or(profiled.clone().next());
        for (profiled, stated) in profiled.zip(outstanding.iter().cycle()) {
            if profiled != *stated {
                let message = format!(
                    "{stated}, but its curve or model is of a device with {profiled} at once: leave it out, or use \
                     files of one device"
                );
                return Err(self.invalid(draft, "outstanding", message));
            }
        }
        for input in models {
            match inputs.iter_mut().find(|known| known.stage == input.stage) {
                Some(known) => known.model = input.model,
                None => inputs.push(input),
            }
        }
        if let Some(bare) = inputs.iter().find(|input| input.curve.is_none()) {
            let message = format!("it has a model of {} without a curve: give `curves` too", bare.stage);
            return Err(self.invalid(draft, "model", message));
        }
        if inputs.is_empty() {
            let field = if curves.is_some() { "curves" } else { "model" };
            return Err(self.invalid(draft, field, "no stage; expected at least one"));
        }
        inputs.sort_by_key(|input| input.stage);
        Ok(Source::Curves(Curves { inputs, unloaded, outstanding }))
    }

    fn entry(
        &self,
        file: &WorkloadsFile,
        draft: &Draft<'_>,
        demands: Vec<Demand>,
        load: Option<&Load>,
    ) -> Result<Entry, InputError> {
        let (number, item) = (draft.number, draft.item);
        let fields = &item.value;
        let stages: Vec<Stage> = demands.iter().map(|demand| demand.stage).collect();
        let (name, dependencies) = (fields.name.clone(), fields.depends_on.clone());
        let workload = Workload { name, slo: draft.slo, demands, dependencies };
        let workload = with_margin(&workload, file.margin.0)
            .map_err(|error| InputError::new(self.path, error).in_field("margin"))?;
        let priorities = match &fields.priority {
            None => None,
            Some(PriorityFile::One(priority)) => Some(vec![*priority; stages.len()]),
            Some(PriorityFile::Each(each)) => {
                let odd =
                    Stage::ALL.into_iter().find(|stage| each.at(*stage).is_some() != stages.contains(stage));
                if let Some(stage) = odd {
                    let message = match each.at(stage) {
                        Some(_) => "the workload has no such stage",
                        None => "missing; expected one for each stage, or one for all",
                    };
                    return Err(self.invalid((number, item), &format!("priority.{stage}"), message));
                }
                Some(stages.iter().filter_map(|&stage| each.at(stage)).collect())
            }
        };
        let mut limits: Vec<Option<ArrivalCurve>> = vec![None; stages.len()];
        for (stage, curve) in fields.limits.iter().flat_map(|limits| limits.curves()) {
            let invalid = |message: &str| self.invalid((number, item), &format!("limits.{stage}"), message);
            let at = stages.iter().position(|&own| own == stage);
            let at = at.ok_or_else(|| invalid("the workload has no such stage"))?;
            let curve = curve.ok_or_else(|| invalid("an empty list; expected at least one bucket"))?;
            if curve.rate() == 0.0 {
                return Err(invalid("a rate of 0: expected above 0, or nothing would pass in the long run"));
            }
            limits[at] = Some(curve);
        }
        let mut over = file.over.map_or([OverLimit::Held; 3], |over| over.resolve([OverLimit::Held; 3]));
        if let Some(own) = fields.over {
            if let Some(stage) =
                Stage::ALL.into_iter().find(|stage| own.names(*stage) && !stages.contains(stage))
            {
                return Err(self.invalid(
                    (number, item),
                    &format!("over.{stage}"),
                    "the workload has no such stage",
                ));
            }
            over = own.resolve(over);
        }
        let place = (number, Spanned { value: (), place: item.place });
        let (client, server) = (draft.client, draft.server);
        let traced = match (&draft.source, load) {
            (Source::Trace((trace, volume), device), Some(load)) => Some(Traced {
                trace: (*trace).to_owned(),
                volume: volume.map(str::to_owned),
                device: device.map(|number| self.devices[number].clone()),
                activity: load.activity.clone(),
                stationarity: load.stationarity,
            }),
            _ => None,
        };
        let states = |over: Option<OverFile>, stage| over.is_some_and(|over| over.states(stage));
        let over_stated = Stage::ALL.map(|stage| states(fields.over, stage) || states(file.over, stage));
        let workload = Arc::new(workload);
        Ok(Entry { workload, client, server, priorities, limits, over, over_stated, traced, place })
    }
}

/// A host, or a device of a host, by name.
fn server(fabric: &Fabric, name: &str) -> Result<Server, String> {
    if let Some(host) = fabric.host(name) {
        let only = fabric.devices(host).len() == 1;
        return Ok(Server { host, device: only.then_some(0) });
    }
    let unknown = || format!("`{}`: the cluster has no such host or device", excerpt(name));
    let device = fabric.resource(name).filter(|&resource| fabric.kind(resource) == ResourceKind::Device);
    device.and_then(|device| Server::of_device(fabric, device)).ok_or_else(unknown)
}
