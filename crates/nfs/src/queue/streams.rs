//! Streams: requests that have counters and a trace of their own. A stream is that of a workload, also after the workload
//! has gone, or that of a client without one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use leeward_fabric::Nanos;
use leeward_shaping::{Server, ShapingError, WorkloadId};
use leeward_slo::Slo;

use super::{Counted, InvalidWorkload};
use crate::counters::{Counters, Summary};
use crate::recorder::Recorder;
use crate::workloads::{Workload, Workloads};

/// Clients without a workload that have counters and a trace of their own; all further ones share one.
pub(super) const MOST_CLIENTS: usize = 256;
/// Name of these further clients.
pub(super) const OTHERS: &str = "other clients";
/// Workloads of before that keep their counters and their buckets; the earliest are forgotten.
pub(super) const MOST_FORMER: usize = 256;
/// Last priority of a workload; a later one is reserved.
const LAST_PRIORITY: u32 = u32::MAX - 1;

/// All streams, by their numbers.
pub(super) struct Streams {
    list: Vec<Stream>,
    by_name: HashMap<String, u32>,
    /// Numbers of streams that are forgotten.
    free: Vec<u32>,
    /// Number of clients that have a stream.
    clients: usize,
    /// Streams of workloads that have gone, the earliest first, each with its departure.
    former: VecDeque<(u32, u64)>,
    /// Number of departures so far.
    departures: u64,
    /// Names of exports, for clients without a workload.
    exports: Vec<String>,
    best_effort: WorkloadId,
    recorder: Option<Recorder>,
}

/// Requests with counters and a trace of their own.
#[derive(Debug)]
pub(super) struct Stream {
    name: String,
    /// Current settings of the workload; `None` for best effort.
    workload: Option<Workload>,
    /// Workload of the requests at the device: that of best effort for a client without one.
    pub flow: WorkloadId,
    /// Departure of the workload, if it has gone.
    departure: Option<u64>,
    pub counters: Counters,
}

impl Stream {
    /// Promised SLO of the workload.
    pub fn slo(&self) -> Option<Slo> {
        self.workload.as_ref().and_then(|workload| workload.slo)
    }
}

impl Streams {
    /// No streams. `best_effort` is the workload of clients without one.
    pub fn new(best_effort: WorkloadId, exports: Vec<String>, recorder: Option<Recorder>) -> Streams {
        Streams {
            list: Vec::new(),
            by_name: HashMap::new(),
            free: Vec::new(),
            clients: 0,
            former: VecDeque::new(),
            departures: 0,
            exports,
            best_effort,
            recorder,
        }
    }

    /// A stream.
    pub fn at(&mut self, number: u32) -> &mut Stream {
        &mut self.list[number as usize]
    }

    /// The recording of traces, if there is one.
    pub fn recorder(&mut self) -> &mut Option<Recorder> {
        &mut self.recorder
    }

    /// Replaces the workloads at the server. Those that have gone are suspended: their requests are best effort, and they
    /// find their counters and buckets if they come back.
    ///
    /// # Errors
    /// Fails for invalid settings of a workload; nothing is changed then.
    pub fn replace<P>(
        &mut self,
        server: &mut Server<P>,
        now: Nanos,
        workloads: &Workloads,
    ) -> Result<(), InvalidWorkload> {
        let invalid =
            |workload: &Workload, error: ShapingError| InvalidWorkload { name: workload.name.clone(), error };
        for workload in workloads.list() {
            shaping(workload).check().map_err(|error| invalid(workload, error))?;
        }
        let stays: HashSet<&str> = workloads.list().iter().map(|workload| workload.name.as_str()).collect();
        for (number, stream) in (0..).zip(&mut self.list) {
            if stream.workload.take_if(|workload| !stays.contains(workload.name.as_str())).is_some() {
                server.suspend(now, stream.flow);
                self.departures += 1;
                stream.departure = Some(self.departures);
                self.former.push_back((number, self.departures));
            }
        }
        for workload in workloads.list() {
            let number = self.named(&workload.name);
            let (stream, settings) = (&mut self.list[number as usize], shaping(workload));
            let applied = if stream.flow == self.best_effort {
                server.add(&settings).map(|flow| stream.flow = flow)
            } else {
                server.change(now, stream.flow, &settings)
            };
            applied.map_err(|error| invalid(workload, error))?;
            (stream.workload, stream.departure) = (Some(workload.clone()), None);
        }
        self.forget_former(server);
        Ok(())
    }

    /// Forgets former workloads beyond a number, so that a proxy does not grow with their names. One with requests at the
    /// device stays until a later time.
    fn forget_former<P>(&mut self, server: &mut Server<P>) {
        let mut busy = VecDeque::new();
        while self.former.len() + busy.len() > MOST_FORMER {
            let Some((number, departure)) = self.former.pop_front() else { break };
            let stream = &mut self.list[number as usize];
            if stream.departure != Some(departure) {
                // It has come back, and may have gone again.
                continue;
            }
            if server.len_of(stream.flow) > 0 {
                busy.push_back((number, departure));
                continue;
            }
            server.remove(stream.flow);
            self.by_name.remove(&stream.name);
            *stream = empty(String::new(), self.best_effort);
            self.free.push(number);
            if let Some(recorder) = &mut self.recorder {
                recorder.end(number);
            }
        }
        busy.append(&mut self.former);
        self.former = busy;
    }

    /// Number of the stream of a client's requests to an export.
    pub fn of_client(&mut self, workloads: &Workloads, client: IpAddr, export: usize) -> u32 {
        let client = client.to_canonical();
        if let Some(index) = workloads.find(client, export) {
            return self.named(&workloads.list()[index].name);
        }
        let name = match &self.exports[..] {
            [_] => format!("client {client}"),
            exports => format!("client {client} {}", exports.get(export).map_or("", String::as_str)),
        };
        if self.by_name.contains_key(&name) {
            return self.named(&name);
        }
        if self.clients >= MOST_CLIENTS {
            return self.named(OTHERS);
        }
        self.clients += 1;
        self.named(&name)
    }

    /// Number of the stream with this name, which is made if it is not there.
    fn named(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.by_name.get(name) {
            return number;
        }
        let stream = empty(name.to_owned(), self.best_effort);
        let number = match self.free.pop() {
            Some(number) => {
                self.list[number as usize] = stream;
                number
            }
            None => {
                self.list.push(stream);
                (self.list.len() - 1) as u32
            }
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.name(number, name);
        }
        self.by_name.insert(name.to_owned(), number);
        number
    }

    /// Counters of all workloads, and of clients without one that have sent requests. A new interval begins.
    pub fn summaries(&mut self) -> Vec<Summary> {
        let shown = |stream: &&mut Stream| stream.workload.is_some() || stream.counters.requests() > 0;
        let summary = |stream: &mut Stream| {
            let priority = stream.workload.as_ref().map(|workload| workload.priority);
            let summary = stream.counters.summary(&stream.name, priority, stream.slo());
            stream.counters.begin_interval();
            summary
        };
        self.list.iter_mut().filter(shown).map(summary).collect()
    }

    /// Counters and recent latencies of all workloads.
    pub fn counted(&mut self, now: Nanos) -> Vec<Counted> {
        let own = self.list.iter_mut().filter_map(|stream| {
            let slo = stream.workload.as_ref()?.slo;
            let (counters, latencies) = stream.counters.counted(now, slo);
            Some(Counted { workload: stream.name.clone(), counters, latencies })
        });
        own.collect()
    }

    /// Number of streams that have a name or had one.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

/// A stream without requests.
fn empty(name: String, flow: WorkloadId) -> Stream {
    Stream { name, workload: None, flow, departure: None, counters: Counters::default() }
}

/// Settings of a workload at the device.
pub(crate) fn shaping(workload: &Workload) -> leeward_shaping::Workload {
    leeward_shaping::Workload {
        priority: workload.priority.min(LAST_PRIORITY),
        weight: 1.0,
        limits: workload.limits.clone(),
        over: workload.over,
    }
}
