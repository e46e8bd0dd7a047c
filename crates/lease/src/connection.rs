//! The driver of a lease: a thread sends its requests, so that the enforcer's own loop never waits for a controller.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use leeward_capture::places::Prefix;
use leeward_client::{Client, Clock, Rejection, random};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_promises::bodies::{
    AcknowledgedBody, AcknowledgementBody, MAX_ADDRESSES, MAX_DETAIL, MAX_WORKLOADS,
};
use leeward_promises::document::EnforcerPromises;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::IgnoredAny;

use crate::addresses::Addresses;
use crate::lease::{Action, Lease, Reply, Request, Version};
use crate::settings::ControllerSettings;

/// Time limit for the removal of an enforcer that ends.
const REMOVAL: Duration = Duration::from_secs(2);

/// State of an enforcer for an acknowledgement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Addresses of its host.
    pub addresses: Vec<IpAddr>,
    /// Workloads that it applies, each once.
    pub workloads: Vec<AcknowledgedBody>,
}

/// Change that the enforcer has to make.
#[derive(Clone, PartialEq, Debug)]
pub enum Update {
    /// Apply these promises in place of all earlier ones, and call [`Connection::applied`].
    Apply(Box<Received>),
    /// The lease is over: remove all promises.
    Release,
}

/// Promises of a controller, and the addresses that they need.
#[derive(Clone, PartialEq, Debug)]
pub struct Received {
    /// The promises.
    pub promises: EnforcerPromises,
    /// Addresses of the file, which come before those that enforcers have stated.
    pub file: Addresses,
    /// Addresses of the hosts in the promises.
    hosts: BTreeMap<String, Result<Vec<Prefix>, String>>,
}

impl Received {
    /// Promises with addresses of a file, of other enforcers, and of the resolver, in this order.
    pub fn new(promises: EnforcerPromises, file: Addresses) -> Received {
        let net = promises.net.iter().map(|promise| (&promise.peer, &promise.peer_addresses));
        let nfs = promises.nfs.iter().map(|promise| (&promise.client, &promise.client_addresses));
        let mut hosts: BTreeMap<String, Result<Vec<Prefix>, String>> = BTreeMap::new();
        for (host, stated) in net.chain(nfs) {
            if hosts.contains_key(host) {
                continue;
            }
            let stated: Vec<Prefix> =
                stated.iter().filter_map(|text| text.parse().ok()).map(Prefix::whole).collect();
            let addresses = if file.listed(host).is_none() && !stated.is_empty() {
                Ok(stated)
            } else {
                file.of_host(host)
            };
            hosts.insert(host.clone(), addresses);
        }
        Received { promises, file, hosts }
    }

    /// Addresses of a host in the promises.
    ///
    /// # Errors
    /// A message if there is no address.
    pub fn of_host(&self, host: &str) -> Result<Vec<Prefix>, String> {
        self.hosts.get(host).cloned().unwrap_or_else(|| self.file.of_host(host))
    }

    /// Addresses of the client of a workload: those of the workload's name in the file, or else those of the host.
    ///
    /// # Errors
    /// As [`Received::of_host`].
    pub fn of_client(&self, workload: &str, host: &str) -> Result<Vec<Prefix>, String> {
        self.file.listed(workload).map_or_else(|| self.of_host(host), |listed| Ok(listed.to_vec()))
    }

    /// True if all hosts have addresses.
    pub fn is_complete(&self) -> bool {
        self.hosts.values().all(Result::is_ok)
    }

    /// The same promises with the addresses of an earlier reading for hosts whose names do not resolve now.
    fn with_earlier(mut self, earlier: &Received) -> Received {
        for (host, addresses) in self.hosts.iter_mut().filter(|(_, addresses)| addresses.is_err()) {
            if let Some(Ok(known)) = earlier.hosts.get(host) {
                *addresses = Ok(known.clone());
            }
        }
        self
    }

    /// True if addresses differ, and not only the reasons why there are none.
    fn has_moved(&self, earlier: &Received) -> bool {
        let known = |received: &Received| -> BTreeMap<String, Vec<Prefix>> {
            let known = received
                .hosts
                .iter()
                .filter_map(|(host, addresses)| Some((host.clone(), addresses.as_ref().ok()?.clone())));
            known.collect()
        };
        self.file != earlier.file || known(self) != known(earlier)
    }
}

/// A request for the thread.
struct Job {
    controller: usize,
    request: Request,
    /// Body of an acknowledgement.
    body: String,
    timeout: Duration,
}

/// A reply, and promises with their addresses.
type Response = Result<(Reply, Option<Box<Received>>), Rejection>;

/// A lease with its controllers.
pub struct Connection {
    lease: Lease,
    clock: Clock,
    settings: ControllerSettings,
    clients: Arc<Vec<Client>>,
    jobs: Sender<Job>,
    responses: Receiver<Response>,
    /// Last promises with their addresses.
    received: Option<Box<Received>>,
    /// Promises with their addresses that the enforcer applied last.
    applied: Option<Box<Received>>,
    /// Time by which the last acknowledgement has its response, or its request has ended.
    acknowledges_until: Nanos,
    /// Numbers of workloads and of addresses of the last acknowledgement that left some out.
    cut: (usize, usize),
    lines: Vec<String>,
}

impl Connection {
    /// Starts the thread for requests; nothing is sent before the first [`Connection::poll`]. `program` is the name of the
    /// program with its version.
    ///
    /// # Errors
    /// An [`InputError`] with the invalid file, or if the thread does not start.
    pub fn start(settings: ControllerSettings, program: &str) -> Result<Connection, InputError> {
        let clients = Arc::new(clients(&settings, program)?);
        let (jobs, work) = channel();
        let (results, responses) = channel();
        let thread = Requests {
            clients: clients.clone(),
            path: path_of(&settings.name),
            addresses: settings.addresses.clone(),
        };
        let builder = thread::Builder::new().name("leeward-lease".to_owned());
        let spawned = builder.spawn(move || thread.run(&work, &results));
        spawned.map_err(|error| InputError::new("--controller", error))?;
        let clock = Clock::start();
        let lease = Lease::new(settings.lease, clients.len(), clock.now());
        Ok(Connection {
            lease,
            clock,
            settings,
            clients,
            jobs,
            responses,
            received: None,
            applied: None,
            acknowledges_until: Nanos(0),
            cut: (0, 0),
            lines: Vec::new(),
        })
    }

    /// Takes responses, and sends the next request. Returns a change that the enforcer has to make; then call again.
    /// `report` is called for an acknowledgement. Call this every tenth of a second.
    pub fn poll(&mut self, mut report: impl FnMut() -> Report) -> Option<Update> {
        loop {
            match self.responses.try_recv() {
                Ok(Ok((reply, received))) => self.take(reply, received),
                Ok(Err(rejection)) => self.lease.failed(self.clock.now(), rejection, random()),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.fail_without_thread(),
            }
            let action = self.lease.poll(self.clock.now());
            let urls = &self.settings.access.controllers;
            self.lines.extend(self.lease.take_events().iter().map(|event| event.line(urls)));
            match action? {
                Action::Send { controller, request, timeout } => {
                    let body = match &request {
                        Request::Acknowledge(version) => {
                            self.acknowledges_until = self.clock.now().plus(timeout);
                            self.body(version.as_ref(), report())
                        }
                        Request::Read { .. } => String::new(),
                    };
                    let timeout = Duration::from_nanos(timeout.0);
                    if self.jobs.send(Job { controller, request, body, timeout }).is_err() {
                        self.fail_without_thread();
                    }
                }
                Action::Apply(promises) => {
                    let received = self.received.take().filter(|received| received.promises == *promises);
                    // The thread adds the addresses to each reading.
                    let received =
                        received.unwrap_or_else(|| Box::new(Received::new(*promises, Addresses::default())));
                    self.applied = Some(received.clone());
                    return Some(Update::Apply(received));
                }
                Action::Release => {
                    self.applied = None;
                    return Some(Update::Release);
                }
            }
        }
    }

    /// Takes a response. Promises of the version in force are applied again if addresses have changed.
    fn take(&mut self, reply: Reply, received: Option<Box<Received>>) {
        let now = self.clock.now();
        if let (Some(received), Some(applied)) = (&received, &self.applied)
            && received.promises == applied.promises
        {
            let received = Received::clone(received).with_earlier(applied);
            let has_moved = received.has_moved(applied);
            self.received = Some(Box::new(received));
            self.lease.replied(now, reply, random());
            if has_moved {
                self.lease.apply_again(applied.promises.clone());
            }
            return;
        }
        self.received = received.or(self.received.take());
        self.lease.replied(now, reply, random());
    }

    /// The enforcer has applied the promises; `is_complete` is false if some of them could not be applied for a reason that
    /// may pass.
    pub fn applied(&mut self, is_complete: bool) {
        self.lease.applied(self.clock.now(), is_complete);
    }

    /// Version in force.
    pub fn version(&self) -> Option<&Version> {
        self.lease.version()
    }

    /// State of the lease in a few words.
    pub fn status(&self) -> String {
        match (self.lease.version(), self.lease.holds()) {
            (Some(version), _) => format!("promises of version {}", version.number),
            (None, true) => "no promises yet".to_owned(),
            (None, false) => "no controller answers".to_owned(),
        }
    }

    /// Lines for the log since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Removes the enforcer from the controller, which then expects nothing of it. An enforcer that was killed, or that no
    /// controller hears, expires instead. Another one of this name stays.
    ///
    /// # Errors
    /// The reason of the last controller.
    pub fn remove(self) -> Result<(), Rejection> {
        if self.lease.acknowledges() {
            // After the removal, it would register the enforcer again. Its request ends in time.
            let left = self.acknowledges_until.since(self.clock.now());
            drop(self.responses.recv_timeout(Duration::from_nanos(left.0)));
        }
        let count = self.clients.len();
        let mut result = Err(Rejection::new("no controller"));
        let path = path_of(&self.settings.name);
        let path = format!("{path}?instance={}", encoded(&self.settings.instance));
        for at in 0..count {
            let client = &self.clients[(self.lease.controller() + at) % count];
            result = client.delete::<IgnoredAny>(&path, REMOVAL).map(drop);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Fails the open request, if there is one: the lease then ends, as without a controller.
    fn fail_without_thread(&mut self) {
        let rejection = Rejection::new("the thread for requests has ended");
        self.lease.failed(self.clock.now(), rejection, random());
    }

    /// Body of an acknowledgement.
    fn body(&mut self, version: Option<&Version>, report: Report) -> String {
        let Report { mut addresses, mut workloads } = report;
        let mut names = BTreeSet::new();
        workloads.retain(|workload| names.insert(workload.workload.clone()));
        let counts = (workloads.len(), addresses.len());
        if std::mem::replace(&mut self.cut, counts) != counts {
            self.lines.extend(cut_lines(counts));
        }
        let ControllerSettings { kind, host, device, instance, lease, .. } = &self.settings;
        workloads.truncate(MAX_WORKLOADS);
        for workload in &mut workloads {
            if let Some((end, _)) =
                workload.detail.as_ref().and_then(|text| text.char_indices().nth(MAX_DETAIL))
            {
                workload.detail.iter_mut().for_each(|text| text.truncate(end));
            }
        }
        addresses.truncate(MAX_ADDRESSES);
        let body = AcknowledgementBody {
            kind: *kind,
            host: host.clone(),
            device: device.clone(),
            instance: Some(instance.clone()),
            addresses: addresses.iter().map(IpAddr::to_string).collect(),
            lease: Some(*lease),
            set: version.map(|version| version.set.clone()),
            version: version.map(|version| version.number),
            workloads,
        };
        // Numbers, texts and lists only: nothing that JSON cannot have.
        serde_json::to_string(&body).unwrap_or_default()
    }
}

/// Lines about workloads and addresses that an acknowledgement leaves out.
fn cut_lines((workloads, addresses): (usize, usize)) -> Vec<String> {
    let mut lines = Vec::new();
    if workloads > MAX_WORKLOADS {
        lines.push(format!(
            "{workloads} workloads: an acknowledgement has at most {MAX_WORKLOADS}, so the others count as pending"
        ));
    }
    if addresses > MAX_ADDRESSES {
        lines.push(format!(
            "{addresses} addresses: an acknowledgement has at most {MAX_ADDRESSES}, so packets to the others are best \
             effort; --addresses names those that count"
        ));
    }
    lines
}

/// The thread for requests.
struct Requests {
    clients: Arc<Vec<Client>>,
    path: String,
    addresses: Option<String>,
}

impl Requests {
    fn run(&self, jobs: &Receiver<Job>, results: &Sender<Response>) {
        // Until the connection is dropped.
        while let Ok(job) = jobs.recv() {
            if results.send(self.send(job)).is_err() {
                return;
            }
        }
    }

    fn send(&self, job: Job) -> Response {
        let client = &self.clients[job.controller];
        let (since, wait) = match job.request {
            Request::Acknowledge(_) => {
                let accepted = client.put::<IgnoredAny>(&self.path, job.body, job.timeout);
                return accepted.map(|_| (Reply::Acknowledged, None));
            }
            Request::Read { since, wait } => (since, wait),
        };
        let query = since.map(|since| format!("?since={since}&wait={}ms", wait.0 / 1_000_000));
        let path = format!("{}/promises{}", self.path, query.unwrap_or_default());
        let promises: EnforcerPromises = client.get(&path, job.timeout)?;
        // Names are resolved here, because a resolver may take seconds.
        let file = Addresses::read(self.addresses.as_deref());
        let file = file.map_err(|error| Rejection::new(error.to_string()))?;
        let received = Box::new(Received::new(promises.clone(), file));
        Ok((Reply::Promises(Box::new(promises)), Some(received)))
    }
}

fn clients(settings: &ControllerSettings, program: &str) -> Result<Vec<Client>, InputError> {
    let urls = &settings.access.controllers;
    urls.iter().map(|url| Client::new(&settings.access, url, program)).collect()
}

fn path_of(name: &str) -> String {
    format!("/v1/enforcers/{}", encoded(name))
}

fn encoded(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

/// Reads the promises of an enforcer once, without registering it: for dry runs, and to compare.
///
/// # Errors
/// An [`InputError`] with the invalid file, or with the controller that does not answer.
pub fn read_promises(settings: &ControllerSettings, program: &str) -> Result<Received, InputError> {
    let ControllerSettings { name, kind, host, device, .. } = settings;
    let device = device.as_deref().map(|device| format!("&device={}", encoded(device)));
    let query = format!("kind={}&host={}{}", kind.name(), encoded(host), device.unwrap_or_default());
    let path = format!("{}/promises?{query}", path_of(name));
    let file = Addresses::read(settings.addresses.as_deref())?;
    let mut failure = InputError::new("--controller", "no controller");
    for client in clients(settings, program)? {
        match client.get::<EnforcerPromises>(&path, Client::TIMEOUT) {
            Ok(promises) => return Ok(Received::new(promises, file)),
            Err(Rejection { why, .. }) => {
                failure = InputError::new("--controller", format!("{}: {why}", client.url()));
            }
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use leeward_promises::document::NetPromise;
    use leeward_records::EnforcerKind;

    use super::*;
    use crate::addresses::singles;

    fn promises(peers: &[(&str, &[&str])]) -> EnforcerPromises {
        let promise = |(workload, (peer, addresses)): (usize, &(&str, &[&str]))| NetPromise {
            workload: workload.to_string(),
            stage: "network-in".to_owned(),
            peer: (*peer).to_owned(),
            peer_addresses: addresses.iter().map(|&text| text.to_owned()).collect(),
            priority: 0,
            limits: Vec::new(),
        };
        EnforcerPromises {
            enforcer: "net@c0".to_owned(),
            kind: EnforcerKind::Net,
            host: "c0".to_owned(),
            set: "1".to_owned(),
            version: 1,
            lease_s: 15.0,
            net: peers.iter().enumerate().map(promise).collect(),
            nfs: Vec::new(),
        }
    }

    #[test]
    fn the_file_comes_before_stated_addresses_and_these_before_the_resolver() {
        let file = Addresses::of("hosts", "10.0.0.1 s0\n10.0.0.9 mail\n").expect("a valid file");
        let received = Received::new(
            promises(&[
                ("s0", &["10.9.9.9"]),
                ("s1", &["10.0.1.1", "broken", "fd00::1"]),
                ("localhost", &[]),
            ]),
            file,
        );
        let prefixes = |texts: &[&str]| -> Vec<Prefix> {
            texts.iter().map(|text| text.parse().expect("valid")).collect()
        };
        assert_eq!(received.of_host("s0"), Ok(prefixes(&["10.0.0.1"])));
        assert_eq!(received.of_host("s1"), Ok(prefixes(&["10.0.1.1", "fd00::1"])));
        assert!(received.of_host("localhost").is_err() && !received.is_complete());
        assert_eq!(received.of_client("mail", "s1"), Ok(prefixes(&["10.0.0.9"])));
        assert_eq!(received.of_client("web", "s0"), Ok(prefixes(&["10.0.0.1"])));
    }

    #[test]
    fn a_host_that_moves_is_a_change_and_a_name_that_does_not_resolve_is_none() {
        let of = |hosts: &[(&str, Result<&str, &str>)]| {
            let mut received = Received::new(promises(&[]), Addresses::default());
            received.hosts = hosts
                .iter()
                .map(|(host, address)| {
                    let address = address.map(|text| vec![text.parse().expect("valid")]);
                    ((*host).to_owned(), address.map_err(str::to_owned))
                })
                .collect();
            received
        };
        let before = of(&[("s0", Ok("10.0.0.1")), ("s1", Err("no address"))]);
        let moved = |now: Received| {
            let now = now.with_earlier(&before);
            (now.has_moved(&before), singles(&now.of_host("s0").expect("known"))[0].to_string())
        };
        assert_eq!(moved(of(&[("s0", Ok("10.0.0.1")), ("s1", Err("timeout"))])), (false, "10.0.0.1".into()));
        assert_eq!(moved(of(&[("s0", Err("timeout")), ("s1", Err("timeout"))])), (false, "10.0.0.1".into()));
        assert_eq!(moved(of(&[("s0", Ok("10.0.0.7")), ("s1", Err("timeout"))])), (true, "10.0.0.7".into()));
        assert_eq!(moved(of(&[("s0", Ok("10.0.0.1")), ("s1", Ok("10.0.0.9"))])), (true, "10.0.0.1".into()));
    }

    #[test]
    fn an_acknowledgement_that_leaves_something_out_says_so() {
        assert_eq!(cut_lines((MAX_WORKLOADS, MAX_ADDRESSES)), [""; 0]);
        let lines = cut_lines((MAX_WORKLOADS + 1, MAX_ADDRESSES + 1));
        assert!(lines[0].starts_with("10001 workloads: an acknowledgement has at most 10000"), "{lines:?}");
        assert!(lines[1].starts_with("65 addresses: an acknowledgement has at most 64"), "{lines:?}");
    }

    #[test]
    fn names_are_one_segment_of_a_path() {
        assert_eq!(path_of("nfs@s0:a/b"), "/v1/enforcers/nfs%40s0%3Aa%2Fb");
    }
}
