//! A controller: an engine with the ledger of its part of the network, which is one cell or all of them.

use leeward_engine::{Decider, Engine, Input, Output, Policies, ReplicasAnswer, Ruling};
use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, DomainId, HostId, Load, Nanos};
use leeward_ledger::{EntryId, Ledger, Sample, Scratch};
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Explain};

use crate::arrivals::Arrival;
use crate::digest::{Digest, PodRoom};
use crate::geometry::{Direction, Geometry};
use crate::network;
use crate::plan::Plan;
use crate::truth::Means;

/// Policy of clients without a controller.
const WITHOUT_CONTROLLER: &str = "uniform";

/// Presence of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    Present,
    Away,
    /// It runs again, and waits for its first report: without one it sees no link.
    Starting,
}

/// A controller and its part of the network.
pub(crate) struct Controller {
    engine: Engine,
    geometry: Geometry,
    /// First cell of its part, and number of cells.
    part: (u32, u32),
    /// The host that stands for everything outside.
    outside: HostId,
    presence: Presence,
    /// Entries of work that ended while it was away.
    missed: Vec<EntryId>,
    outputs: Vec<Output>,
    samples: Vec<Sample>,
}

impl Controller {
    /// Creates a controller for the cells of `part`, whose network is `cluster`.
    ///
    /// # Errors
    /// Returns an error for an invalid policy, or for invalid settings of the ledger.
    pub fn new(plan: &Plan, cluster: &Cluster, part: (u32, u32)) -> Result<Controller, InputError> {
        let invalid = |field: &str, error: String| InputError::new("cells", error).in_field(field);
        let make = |name: &str, settings: &str| {
            let made = replicas::REGISTRY.make(name, settings);
            made.map_err(|error| invalid("policy", error.to_string()))
        };
        let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, plan.ledger.clone())
            .map_err(|error| invalid("ledger", error.to_string()))?;
        let policies = Policies {
            replicas: Some(make(&plan.policy.name, &plan.policy.settings)?),
            default_replicas: Some(make(WITHOUT_CONTROLLER, "")?),
            ..Policies::default()
        };
        let mut controller = Controller {
            engine: Engine::new(ledger, policies, plan.seed, Explain::Off),
            geometry: plan.geometry,
            part,
            outside: network::outside(cluster),
            presence: Presence::Present,
            missed: Vec::new(),
            outputs: Vec::new(),
            samples: Vec::new(),
        };
        controller.handle(Nanos(0), Input::Drain(controller.outside, true));
        Ok(controller)
    }

    /// True if it decides, and hears messages and reports.
    pub fn is_present(&self) -> bool {
        self.presence == Presence::Present
    }

    /// The controller goes away.
    pub fn leave(&mut self) {
        self.presence = Presence::Away;
    }

    /// The controller runs again. It comes back with its first report.
    pub fn start_again(&mut self) {
        self.presence = Presence::Starting;
    }

    /// True if it waits for its first report.
    pub fn starts_again(&self) -> bool {
        self.presence == Presence::Starting
    }

    /// The controller is back, and hears of the work that ended meanwhile.
    pub fn come_back(&mut self, now: Nanos) {
        self.presence = Presence::Present;
        let missed = std::mem::take(&mut self.missed);
        self.release(now, missed);
    }

    fn handle(&mut self, now: Nanos, input: Input<'_>) {
        self.engine.handle(now, input, &mut self.outputs);
        self.outputs.clear();
    }

    /// Number of racks of its part.
    fn racks(&self) -> u32 {
        self.part.1 * self.geometry.racks_of_cell()
    }

    /// The domain of a pod of its part.
    fn pod(&self, pod: u32) -> DomainId {
        // The rack for everything outside is the last one.
        DomainId(self.racks() + 1 + pod)
    }

    /// Number of a host in its part, from the one in the whole network.
    fn local(&self, host: HostId) -> HostId {
        HostId(host.0 - self.part.0 * self.geometry.hosts_of_cell())
    }

    /// Number of a host in the whole network, from the one in its part.
    pub fn global(&self, host: HostId) -> HostId {
        HostId(host.0 + self.part.0 * self.geometry.hosts_of_cell())
    }

    /// Takes in the reports of all links of racks and pods.
    pub fn report(&mut self, window: (Nanos, Nanos), means: &[Means]) {
        let (racks, pods) = (self.racks(), self.part.1 * self.geometry.pods);
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        let fabric = self.engine.ledger().fabric();
        let mut add = |domain: DomainId, loads: [i64; 2]| {
            let links = [fabric.out_of_domain(domain), fabric.into_domain(domain)];
            samples.extend(links.into_iter().zip(loads).filter_map(|(link, load)| {
                link.map(|resource| Sample { resource, window, load: Load(load), guaranteed: None })
            }));
        };
        let carried = |up: usize| [means[up].carried, means[up + 1].carried];
        let (first_rack, first_pod) =
            (self.part.0 * self.geometry.racks_of_cell(), self.part.0 * self.geometry.pods);
        for rack in 0..racks {
            add(DomainId(rack), carried(self.geometry.rack_link(first_rack + rack, Direction::Up)));
        }
        add(DomainId(racks), [0; 2]);
        for pod in 0..pods {
            add(self.pod(pod), carried(self.geometry.pod_link(first_pod + pod, Direction::Up)));
        }
        add(self.pod(pods), [0; 2]);
        self.engine.report(window.1, &samples, &mut self.outputs);
        self.outputs.clear();
        self.samples = samples;
    }

    /// State of its links from the core.
    pub fn digest(&mut self, now: Nanos) -> Digest {
        let pods = 0..self.part.1 * self.geometry.pods;
        let links = pods.filter_map(|pod| self.engine.ledger().fabric().into_domain(self.pod(pod)));
        let links: Vec<_> = links.collect();
        let room =
            |link| PodRoom { capacity: self.engine.capacity(link), left: self.engine.residual(now, link) };
        Digest { at: now, pods: links.into_iter().map(room).collect() }
    }

    /// Places the copies of a block of its part on hosts of its part, but on none of the pods of the cells in `except`.
    pub fn place(&mut self, now: Nanos, id: u64, arrival: &Arrival, except: &[u32]) -> ReplicasAnswer {
        let pods = self.geometry.pods;
        let of_cell = |&cell: &u32| {
            let first = (cell - self.part.0) * pods;
            first..first + pods
        };
        let excluded = except.iter().flat_map(of_cell).map(|pod| self.pod(pod)).collect();
        let request = request(id, arrival, self.local(arrival.writer), excluded);
        let answer = self.engine.place_batch(now, vec![request], &mut self.outputs).remove(0);
        self.outputs.clear();
        answer
    }

    /// Places copies of a block that comes from outside.
    pub fn place_inbound(&mut self, now: Nanos, id: u64, arrival: &Arrival) -> ReplicasAnswer {
        let request = request(id, arrival, self.outside, Vec::new());
        let answer = self.engine.place_inbound(now, &request, &mut self.outputs);
        self.outputs.clear();
        answer
    }

    /// Commits the load of a block of its part on its way out of it.
    pub fn commit_outbound(&mut self, now: Nanos, id: u64, arrival: &Arrival) -> Vec<EntryId> {
        let request = request(id, arrival, self.local(arrival.writer), Vec::new());
        let entries = self.engine.commit_outbound(now, &request, self.outside, &mut self.outputs);
        self.outputs.clear();
        entries
    }

    /// Places the copies of a block as its writer does without a controller. The controller learns nothing of it.
    pub fn place_without(&mut self, now: Nanos, id: u64, arrival: &Arrival) -> Option<Vec<HostId>> {
        let request = request(id, arrival, self.local(arrival.writer), Vec::new());
        let ruling = Ruling { by: Decider::Default, compare: false };
        let answer = self.engine.place_replicas(now, id, request, ruling, &mut self.outputs);
        self.outputs.clear();
        let placed = answer?.ok()?;
        self.handle(now, Input::Release(&placed.entries));
        self.discard(now, &placed.decision.choice, arrival);
        Some(placed.decision.choice)
    }

    /// The copies of a block are not stored.
    pub fn discard(&mut self, now: Nanos, hosts: &[HostId], arrival: &Arrival) {
        hosts.iter().for_each(|&host| self.handle(now, Input::Unstored(host, arrival.bytes)));
    }

    /// Releases entries of work that ended, at once or when the controller is back.
    pub fn release(&mut self, now: Nanos, entries: Vec<EntryId>) {
        if self.is_present() {
            self.handle(now, Input::Release(&entries));
        } else {
            self.missed.extend(entries);
        }
    }

    /// Number of flows in the ledger, summed over all links.
    pub fn flows(&self, now: Nanos) -> f64 {
        let (ledger, mut scratch) = (self.engine.ledger(), Scratch::default());
        let view = ledger.view(now, &mut scratch);
        let links = ledger.fabric().all_resources().take(ledger.fabric().link_count());
        links.map(|link| view.flows(link)).sum()
    }
}

/// The request for the copies of a block besides the writer's, which exists.
fn request(id: u64, arrival: &Arrival, writer: HostId, excluded_domains: Vec<DomainId>) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: arrival.file,
        writer: Some(writer),
        size: arrival.bytes,
        replicas: arrival.copies,
        layout: Layout::Chain,
        fault_domains: 1,
        blocks_left: u64::from(arrival.blocks_left),
        job: None,
        constraints: Constraints { existing: vec![writer], excluded_domains, ..Constraints::default() },
    }
}
