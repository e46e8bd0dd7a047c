//! The state machine of an enforcer with a lease. It does no input or output; times and random numbers are arguments.
//!
//! A turn is: acknowledge what is applied, which renews the lease; read the promises, and wait for others until the next
//! acknowledgement is due; apply them. At most one request is open. The lease counts from the time at which an acknowledgement
//! was sent, so it ends here before it ends at the controller.

use leeward_client::{Backoff, Rejection};
use leeward_fabric::Nanos;
use leeward_promises::document::EnforcerPromises;

use crate::event::Event;

/// Acknowledgements in the length of a lease. One or two of them may be lost.
const RENEWALS: u64 = 3;
/// Share of the time between two acknowledgements that is random, so that enforcers of many hosts do not send at once.
const JITTER: f64 = 0.1;
/// First delay after a failure, and shortest time for a response.
const FIRST: Nanos = Nanos(500_000_000);
/// Longest time for a response, besides a wait for other promises.
const LONGEST: Nanos = Nanos(10 * Nanos::SECOND.0);
/// Longest wait for other promises that a controller permits.
const LONGEST_WAIT: Nanos = Nanos(55 * Nanos::SECOND.0);
/// Time after which promises are read again, if some could not be applied for a reason that may pass.
const AGAIN: Nanos = Nanos(30 * Nanos::SECOND.0);
/// Largest number of reasons of failures that are reported in a row.
const MOST_REASONS: usize = 8;
/// Status of a response: there is no such enforcer; and of another one: the acknowledged version does not fit.
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

/// Version of the promises of an enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Version {
    /// Identifies the set of promises.
    pub set: String,
    /// Number of the version.
    pub number: u64,
}

impl Version {
    /// Version of promises.
    pub fn of(promises: &EnforcerPromises) -> Version {
        Version { set: promises.set.clone(), number: promises.version }
    }
}

/// A request to a controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Says what is applied; `None` for nothing. It registers the enforcer, and renews its lease.
    Acknowledge(Option<Version>),
    /// Reads the promises. With `since`, the response waits for another version than this one, up to a time.
    Read {
        /// Number of the version.
        since: Option<u64>,
        /// Longest wait.
        wait: Nanos,
    },
}

/// Response to a request.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The acknowledgement was accepted.
    Acknowledged,
    /// The present promises.
    Promises(Box<EnforcerPromises>),
}

/// Next step of the driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Send a request, and call [`Lease::replied`] or [`Lease::failed`].
    Send {
        /// Number of the controller.
        controller: usize,
        /// The request.
        request: Request,
        /// Time within which the response must come.
        timeout: Nanos,
    },
    /// Apply these promises in place of all earlier ones, and call [`Lease::applied`].
    Apply(Box<EnforcerPromises>),
    /// The lease is over: remove all promises, so that everything is best effort.
    Release,
}

/// A request without a response.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Open {
    request: Request,
    sent: Nanos,
    /// Number of releases before it.
    releases: u64,
}

/// The lease of an enforcer.
#[derive(Clone, Debug)]
pub struct Lease {
    ttl: Nanos,
    controllers: usize,
    /// Number of the controller in use.
    controller: usize,
    /// Failures in a row, each of another controller.
    failures: usize,
    backoff: Backoff,
    /// Earliest time of the next request.
    quiet_until: Nanos,
    open: Option<Open>,
    /// True if a controller knows this enforcer, and what it has applied.
    is_registered: bool,
    /// End of the lease, or of that of an earlier enforcer which may have left promises in force.
    ends: Option<Nanos>,
    /// Time of the next acknowledgement.
    renews: Nanos,
    /// Version in force.
    applied: Option<Version>,
    is_acknowledged: bool,
    /// True if the present promises are unknown.
    needs_read: bool,
    /// Time at which promises are read again.
    reads_again: Option<Nanos>,
    /// Promises to apply.
    unapplied: Option<Box<EnforcerPromises>>,
    /// Version that the driver applies now.
    applying: Option<Version>,
    releases: u64,
    events: Vec<Event>,
    /// Reasons of failures since the last response, so that each is reported once.
    troubles: Vec<String>,
}

impl Lease {
    /// A lease of this length with a number of controllers, at least one. An earlier enforcer may have left promises in
    /// force: without a controller, they are removed after the length of a lease.
    pub fn new(ttl: Nanos, controllers: usize, now: Nanos) -> Lease {
        Lease {
            ttl,
            controllers: controllers.max(1),
            controller: 0,
            failures: 0,
            backoff: Backoff::new(FIRST, Nanos(ttl.0 / RENEWALS)),
            quiet_until: now,
            open: None,
            is_registered: false,
            ends: Some(now.plus(ttl)),
            renews: now,
            applied: None,
            is_acknowledged: false,
            needs_read: true,
            reads_again: None,
            unapplied: None,
            applying: None,
            releases: 0,
            events: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// The next step at the time `now`; `None` if there is nothing to do now. The driver calls again after each step, and
    /// every tenth of a second.
    pub fn poll(&mut self, now: Nanos) -> Option<Action> {
        if self.ends.is_some_and(|ends| now >= ends) {
            self.release();
            return Some(Action::Release);
        }
        if let Some(promises) = self.unapplied.take() {
            self.applying = Some(Version::of(&promises));
            return Some(Action::Apply(promises));
        }
        if self.open.is_some() || self.applying.is_some() || now < self.quiet_until {
            return None;
        }
        let request = self.request(now);
        let own = Nanos((self.ttl.0 / RENEWALS).clamp(FIRST.0, LONGEST.0));
        let timeout = match request {
            Request::Acknowledge(_) => own,
            Request::Read { wait, .. } => own.plus(wait),
        };
        self.open = Some(Open { request: request.clone(), sent: now, releases: self.releases });
        Some(Action::Send { controller: self.controller, request, timeout })
    }

    fn request(&mut self, now: Nanos) -> Request {
        if !self.is_registered {
            // What is applied may be of another set, and is applied again.
            self.needs_read = true;
            return Request::Acknowledge(None);
        }
        let applied = match &self.applied {
            Some(applied) if !self.needs_read => applied,
            _ if now >= self.renews => return Request::Acknowledge(None),
            _ => return Request::Read { since: None, wait: Nanos(0) },
        };
        if !self.is_acknowledged || now >= self.renews {
            return Request::Acknowledge(Some(applied.clone()));
        }
        let since = Some(applied.number);
        match self.reads_again {
            Some(again) if now >= again => Request::Read { since: None, wait: Nanos(0) },
            again => {
                let until = again.map_or(self.renews, |again| again.min(self.renews));
                Request::Read { since, wait: until.since(now).min(LONGEST_WAIT) }
            }
        }
    }

    /// Applies the promises in force again, because the addresses that they need have changed.
    pub fn apply_again(&mut self, promises: EnforcerPromises) {
        if self.unapplied.is_none() && self.applied.as_ref() == Some(&Version::of(&promises)) {
            self.unapplied = Some(Box::new(promises));
        }
    }

    /// Number of the controller in use.
    pub fn controller(&self) -> usize {
        self.controller
    }

    /// Version in force.
    pub fn version(&self) -> Option<&Version> {
        self.applied.as_ref()
    }

    /// True while a lease holds.
    pub fn holds(&self) -> bool {
        self.ends.is_some() && self.is_registered
    }

    /// True while an acknowledgement has no response: a controller may still receive it.
    pub fn acknowledges(&self) -> bool {
        matches!(&self.open, Some(Open { request: Request::Acknowledge(_), .. }))
    }

    /// Takes the response to the open request; `random` is in [0, 1).
    pub fn replied(&mut self, now: Nanos, reply: Reply, random: f64) {
        let Some(Open { request, sent, releases }) = self.open.take() else { return };
        self.backoff.succeeded();
        self.failures = 0;
        self.quiet_until = now;
        if !std::mem::take(&mut self.troubles).is_empty() {
            self.events.push(Event::Answers);
        }
        if releases != self.releases {
            // The controller believes what is no longer true: the next request says so.
            self.is_registered = false;
            return;
        }
        match (request, reply) {
            (Request::Acknowledge(version), Reply::Acknowledged) => {
                self.is_registered = true;
                self.ends = Some(sent.plus(self.ttl));
                let pause = (self.ttl.0 / RENEWALS) as f64 * (1.0 - JITTER * random);
                self.renews = sent.plus(Nanos(pause as u64));
                self.is_acknowledged = version.is_some() && version == self.applied;
            }
            (Request::Read { since, wait }, Reply::Promises(promises)) => {
                let is_other = self.applied.as_ref() != Some(&Version::of(&promises));
                if is_other || since.is_none() || self.needs_read {
                    self.unapplied = Some(promises);
                } else {
                    // A controller that does not wait is not asked again at once.
                    self.quiet_until = now.max(sent.plus(wait.min(FIRST)));
                }
                self.reads_again = self.reads_again.filter(|_| since.is_some());
            }
            // A driver never mixes them up.
            (Request::Acknowledge(_), Reply::Promises(_)) | (Request::Read { .. }, Reply::Acknowledged) => {}
        }
    }

    /// Takes the failure of the open request; `random` is in [0, 1). Another controller is tried at once, and after all of
    /// them there is a pause.
    pub fn failed(&mut self, now: Nanos, rejection: Rejection, random: f64) {
        let Some(Open { request, releases, .. }) = self.open.take() else { return };
        match (&request, rejection.status) {
            (Request::Read { .. }, Some(NOT_FOUND)) => self.is_registered = false,
            (Request::Acknowledge(Some(_)), Some(CONFLICT)) => self.is_registered = false,
            _ if releases != self.releases => self.is_registered = false,
            _ => {}
        }
        let failed = self.controller;
        self.failures += 1;
        self.controller = (self.controller + 1) % self.controllers;
        self.quiet_until = now;
        if self.failures.is_multiple_of(self.controllers) {
            self.quiet_until = now.plus(self.backoff.failed(rejection.after, random));
        }
        if self.troubles.len() < MOST_REASONS && !self.troubles.contains(&rejection.why) {
            let left = self.ends.filter(|_| self.applied.is_some()).map(|ends| ends.since(now));
            self.events.push(Event::Unavailable { controller: failed, why: rejection.why.clone(), left });
            self.troubles.push(rejection.why);
        }
    }

    /// The driver has applied the promises of [`Action::Apply`]. `is_complete` is false if some of them could not be applied
    /// for a reason that may pass, such as the name of a host that does not resolve.
    pub fn applied(&mut self, now: Nanos, is_complete: bool) {
        let Some(version) = self.applying.take() else { return };
        self.reads_again = (!is_complete).then(|| now.plus(AGAIN));
        self.applied = Some(version);
        self.is_acknowledged = false;
        self.needs_read = false;
    }

    /// Events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn release(&mut self) {
        self.events.push(Event::Over { held: self.applied.is_some() });
        self.releases += 1;
        self.is_registered = false;
        (self.ends, self.applied, self.unapplied, self.applying) = (None, None, None, None);
        (self.is_acknowledged, self.needs_read, self.reads_again) = (false, true, None);
    }
}
