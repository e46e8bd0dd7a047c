//! A model of controllers with a shared store, whose requests and responses are lost, late or rejected.

use leeward_client::Rejection;
use leeward_fabric::Nanos;
use leeward_lease::{Action, Lease, Reply, Request, Version};
use leeward_promises::document::EnforcerPromises;
use leeward_records::EnforcerKind;
use proptest::prelude::*;

const SECOND: u64 = Nanos::SECOND.0;
const TTL: Nanos = Nanos(15 * SECOND);
const MILLI: u64 = 1_000_000;
/// Time between two steps of a driver.
const LOOK: Nanos = Nanos(100 * MILLI);

/// Fate of a request.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    /// It does not reach a controller.
    Lost,
    /// A controller takes it, and its response is lost.
    ResponseLost,
    /// A follower rejects it.
    Rejected,
}

/// A change at the controllers.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Other promises.
    Version,
    /// The store was lost: another set begins.
    Set,
    /// The enforcer was removed.
    Removal,
    Nothing,
}

/// State of the controllers.
struct World {
    set: u64,
    version: u64,
    /// End of the enforcer's lease; `None` if it is not registered.
    ends: Option<Nanos>,
    acknowledged: Option<Version>,
}

impl World {
    fn promises(&self) -> EnforcerPromises {
        EnforcerPromises {
            enforcer: "nfs@s0".to_owned(),
            kind: EnforcerKind::Nfs,
            host: "s0".to_owned(),
            set: self.set.to_string(),
            version: self.version,
            lease_s: TTL.as_secs_f64(),
            net: Vec::new(),
            nfs: Vec::new(),
        }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Version => self.version += 1,
            Change::Set => {
                (self.set, self.version) = (self.set + 1, 1);
                (self.ends, self.acknowledged) = (None, None);
            }
            Change::Removal => (self.ends, self.acknowledged) = (None, None),
            Change::Nothing => {}
        }
    }

    fn take(&mut self, now: Nanos, request: &Request) -> Result<Reply, Rejection> {
        let rejected = |status: u16| Rejection { why: status.to_string(), after: None, status: Some(status) };
        match request {
            Request::Acknowledge(version) => {
                let fits =
                    |version: &Version| version.set == self.set.to_string() && version.number <= self.version;
                if version.as_ref().is_some_and(|version| !fits(version)) {
                    return Err(rejected(409));
                }
                self.ends = Some(now.plus(TTL));
                self.acknowledged.clone_from(version);
                Ok(Reply::Acknowledged)
            }
            Request::Read { .. } if self.ends.is_none() => Err(rejected(404)),
            Request::Read { .. } => Ok(Reply::Promises(Box::new(self.promises()))),
        }
    }
}

/// A request that is under way.
struct UnderWay {
    at: Nanos,
    sent: Nanos,
    request: Request,
    fate: Fate,
}

/// An enforcer with its lease, and the controllers.
struct Model {
    now: Nanos,
    lease: Lease,
    world: World,
    open: Option<UnderWay>,
    /// Version in force at the enforcer.
    in_force: Option<Version>,
    /// End of the lease by the last acknowledgement that was answered.
    granted: Nanos,
    requests: u64,
    fates: Vec<(Fate, f64)>,
    is_calm: bool,
}

impl Model {
    fn new(controllers: usize, fates: Vec<(Fate, f64)>) -> Model {
        let world = World { set: 1, version: 1, ends: None, acknowledged: None };
        let (now, lease) = (Nanos(0), Lease::new(TTL, controllers, Nanos(0)));
        let (open, in_force, granted, requests, is_calm) = (None, None, Nanos(0), 0, false);
        Model { now, lease, world, open, in_force, granted, requests, fates, is_calm }
    }

    /// All steps at the present time.
    fn settle(&mut self) {
        for step in 0.. {
            assert!(step < 100, "the lease is never content");
            let Some(action) = self.lease.poll(self.now) else { break };
            match action {
                Action::Send { request, timeout, .. } => self.send(request, timeout),
                Action::Apply(promises) => {
                    self.in_force = Some(Version::of(&promises));
                    self.lease.applied(self.now, true);
                }
                Action::Release => self.in_force = None,
            }
        }
        assert!(self.in_force.is_none() || self.now < self.granted, "in force beyond the lease");
        assert!(self.requests <= 40 + 25 * self.now.0 / SECOND, "{} requests", self.requests);
    }

    fn send(&mut self, request: Request, timeout: Nanos) {
        assert!(self.open.is_none(), "one request at a time");
        if let Request::Acknowledge(Some(version)) = &request {
            assert_eq!(Some(version), self.in_force.as_ref(), "only what is in force is acknowledged");
        }
        let (fate, share) = match self.is_calm {
            true => (Fate::Answered, 0.01),
            false => self.fates[self.requests as usize % self.fates.len()],
        };
        self.requests += 1;
        let longest = match (fate, &request) {
            // A controller responds to a change at once, or at the end of the wait.
            (Fate::Answered, Request::Read { wait, .. }) if self.is_calm => wait.0.min(200 * MILLI),
            _ => timeout.0,
        };
        let at = self.now.plus(Nanos((longest as f64 * share) as u64));
        self.open = Some(UnderWay { at, sent: self.now, request, fate });
    }

    fn respond(&mut self) {
        let UnderWay { sent, request, fate, .. } = self.open.take().expect("a request is under way");
        let failed = |why: &str| Err(Rejection::new(why));
        let response = match fate {
            Fate::Answered => self.world.take(self.now, &request),
            Fate::Lost => failed("connection refused"),
            Fate::ResponseLost => self.world.take(self.now, &request).and_then(|_| failed("timeout")),
            Fate::Rejected => {
                Err(Rejection { why: "follower".to_owned(), after: Some(Nanos::SECOND), status: Some(503) })
            }
        };
        match response {
            Ok(reply) => {
                let is_own = matches!(reply, Reply::Acknowledged);
                self.lease.replied(self.now, reply, 0.5);
                // The reply to a request from before a release renews nothing.
                if is_own && self.lease.holds() {
                    self.granted = self.granted.max(sent.plus(TTL));
                }
            }
            Err(rejection) => self.lease.failed(self.now, rejection, 0.5),
        }
    }

    /// Runs until a time.
    fn run_until(&mut self, end: Nanos) {
        self.settle();
        loop {
            let response = self.open.as_ref().map_or(Nanos(u64::MAX), |open| open.at);
            let next = self.now.plus(LOOK).min(response).max(self.now);
            if next > end {
                break;
            }
            self.now = next;
            if response <= next {
                self.respond();
            }
            self.settle();
        }
        self.now = self.now.max(end);
        self.settle();
    }
}

fn fate() -> impl Strategy<Value = (Fate, f64)> {
    let fates = prop_oneof![
        4 => Just(Fate::Answered),
        2 => Just(Fate::Lost),
        2 => Just(Fate::ResponseLost),
        1 => Just(Fate::Rejected),
    ];
    (fates, prop_oneof![Just(0.0), Just(1.0), 0.0..1.0])
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => Just(Change::Version),
        1 => Just(Change::Set),
        1 => Just(Change::Removal),
        2 => Just(Change::Nothing),
    ]
}

proptest! {
    /// Whatever is lost: nothing is in force beyond the lease, only what is in force is acknowledged, the lease sends few
    /// requests, and afterwards the present promises are in force, and the controllers know it.
    #[test]
    fn a_lease_survives_faults_and_follows_the_controllers(
        controllers in 1_usize..4,
        fates in prop::collection::vec(fate(), 1..40),
        changes in prop::collection::vec((0_u64..30_000, change()), 0..30),
    ) {
        let mut model = Model::new(controllers, fates);
        for (millis, change) in changes {
            let end = model.now.plus(Nanos(millis * MILLI));
            model.run_until(end);
            model.world.change(change);
        }
        model.is_calm = true;
        let end = model.now.plus(Nanos(120 * SECOND));
        model.run_until(end);
        let present = Version { set: model.world.set.to_string(), number: model.world.version };
        prop_assert_eq!(model.in_force.as_ref(), Some(&present));
        prop_assert_eq!(model.world.acknowledged.as_ref(), Some(&present));
        prop_assert!(model.world.ends > Some(model.now));
    }

    /// Without a controller from some time on, everything is released by the end of the lease, once, and never comes back.
    #[test]
    fn silence_ends_in_one_release(before in 0_u64..60_000, share in 0.0..1.0_f64) {
        let mut model = Model::new(1, vec![(Fate::Lost, share)]);
        model.is_calm = true;
        model.run_until(Nanos(before * MILLI));
        let was_in_force = model.in_force.is_some();
        prop_assert!(was_in_force || before < 1_000);
        model.is_calm = false;
        let end = model.now.plus(TTL);
        model.run_until(end);
        prop_assert_eq!(&model.in_force, &None);
        let requests = model.requests;
        let end = model.now.plus(Nanos(600 * SECOND));
        model.run_until(end);
        prop_assert_eq!(&model.in_force, &None);
        prop_assert!(model.requests > requests, "it tries again");
    }
}

/// Promises whose addresses have changed are applied again, and acknowledged again; others, and those before, are not.
#[test]
fn promises_are_applied_again_if_their_addresses_change() {
    let mut model = Model::new(1, vec![(Fate::Lost, 0.0)]);
    model.is_calm = true;
    let promises = model.world.promises();
    model.lease.apply_again(promises.clone());
    model.run_until(Nanos(20 * SECOND));
    let in_force = model.in_force.take();
    assert!(in_force.is_some(), "promises are in force");
    model.lease.apply_again(EnforcerPromises { version: 7, ..promises.clone() });
    model.settle();
    assert_eq!(model.in_force, None, "another version is read first");
    model.lease.apply_again(promises);
    model.settle();
    assert_eq!(model.in_force, in_force);
    model.world.acknowledged = None;
    model.run_until(Nanos(21 * SECOND));
    assert_eq!(model.world.acknowledged, in_force);
}

/// Steps of a lease with one controller, as a table: time in seconds, and what happens.
#[test]
fn a_restart_of_the_controller_disturbs_nothing_and_a_longer_silence_ends_in_best_effort() {
    let mut model = Model::new(1, vec![(Fate::Lost, 0.0)]);
    model.is_calm = true;
    model.run_until(Nanos(20 * SECOND));
    let before = model.in_force.clone().expect("promises are in force");
    // Ten seconds without a controller.
    model.is_calm = false;
    model.run_until(Nanos(30 * SECOND));
    assert_eq!(model.in_force, Some(before.clone()));
    model.is_calm = true;
    model.run_until(Nanos(40 * SECOND));
    assert_eq!(model.world.acknowledged, Some(before));
    let lines = |model: &mut Model| {
        let urls = ["http://a".to_owned()];
        model.lease.take_events().iter().map(|event| event.line(&urls)).collect::<Vec<_>>()
    };
    let shown = lines(&mut model);
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(
        shown[0].starts_with("http://a: connection refused; the promises stay in force until"),
        "{shown:?}"
    );
    assert_eq!(shown[1], "the controller answers again");
    // Twenty seconds.
    model.is_calm = false;
    model.run_until(Nanos(60 * SECOND));
    assert_eq!(model.in_force, None);
    model.is_calm = true;
    model.run_until(Nanos(70 * SECOND));
    assert!(model.in_force.is_some(), "the promises are read again");
    let shown = lines(&mut model);
    assert_eq!(
        shown[1], "lease expired: all promises are removed, and everything is best effort",
        "{shown:?}"
    );
}
