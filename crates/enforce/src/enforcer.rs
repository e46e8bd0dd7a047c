//! The enforcer: turns that bring the interfaces to the promised state.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use leeward_client::Clock;
use leeward_fabric::input::InputError;
use leeward_lease::{Addresses, Received, singles};
use leeward_promises::bodies::AcknowledgedBody;

use crate::difference::{Program, difference};
use crate::drift::{Applied, drift_of, named};
use crate::error::{EnforceError, StartError};
use crate::event::Event;
use crate::facts;
use crate::interface::Interface;
use crate::nft::Hook;
use crate::plan::plan;
use crate::promises::{HostPromises, LeftOut};
use crate::received::host_promises;
use crate::report::{Drift, InterfaceState, Standing, affected, report};
use crate::settings::{PromisesSource, Settings};
use crate::sources::Sources;
use crate::state_file::StateFile;
use crate::tc::Root;
use crate::tree::{Marks, Wanted};
use crate::undo::{Failures, undo_all, undo_each};

/// An enforcer of the interfaces of a network namespace.
#[derive(Debug)]
pub struct Enforcer {
    settings: Settings,
    /// Files with the promises; `None` if a controller has them.
    sources: Option<Sources>,
    /// Promises to enforce; `None` before the first ones of a controller, and without a lease.
    promises: Option<HostPromises>,
    /// Workloads without addresses.
    unresolved: Vec<LeftOut>,
    /// True without a lease: nothing may be left in place.
    is_released: bool,
    /// Failures of the undo without a lease, which is tried again.
    failures: Failures,
    clock: Clock,
    state: StateFile,
    /// Hook that works here, once it is known.
    hook: Option<Hook>,
    interfaces: Vec<Managed>,
}

/// An interface, and its last turns.
#[derive(Debug)]
struct Managed {
    interface: Interface,
    /// Tree that this process programmed last.
    applied: Option<Applied>,
    /// Last condition that was reported, so that it is reported once.
    reported: String,
    /// Workloads left out and notes that were reported.
    told: (Vec<LeftOut>, Vec<String>),
    /// State for acknowledgements.
    acknowledged: InterfaceState,
}

/// Result of a turn on one interface.
enum Turn {
    /// Nothing to do.
    Same,
    /// It was programmed.
    Programmed { took: Duration },
    /// Changes by another hand.
    Drift { difference: String, is_mended: bool },
    /// There is no such interface.
    Gone,
    /// It has no carrier, and was not programmed before.
    NoCarrier,
}

impl Enforcer {
    /// Prepares an enforcer: takes the lock of this network namespace, and reads the files. Nothing is changed yet. Also
    /// returns the events of the files. Promises of a controller come by [`Enforcer::apply`].
    ///
    /// # Errors
    /// A [`StartError`].
    pub fn new(settings: Settings) -> Result<(Enforcer, Vec<Event>), StartError> {
        let state = StateFile::open(&settings.state)?;
        let mut sources = match &settings.promises {
            Some(PromisesSource::File(file)) => Some(Sources::new(file, &settings)),
            Some(PromisesSource::Controller(controller)) => {
                let file = controller.addresses.as_deref();
                Addresses::read(file)?.singles(file.unwrap_or_default())?;
                None
            }
            None => {
                return Err(
                    InputError::new("--workloads", "missing; expected the file of the promises").into()
                );
            }
        };
        let read = sources.as_mut().map(Sources::read).transpose()?.flatten();
        let names = facts::interfaces(&settings.interfaces)?;
        let managed = |name: &String| Managed {
            interface: Interface::new(name),
            applied: None,
            reported: String::new(),
            told: (Vec::new(), Vec::new()),
            acknowledged: InterfaceState::new(name),
        };
        let interfaces = names.iter().map(managed).collect();
        let mut enforcer = Enforcer {
            settings,
            sources,
            promises: None,
            unresolved: Vec::new(),
            is_released: false,
            failures: Failures::default(),
            clock: Clock::start(),
            state,
            hook: None,
            interfaces,
        };
        let events = read.map(|(promises, left_out)| enforcer.take(promises, left_out)).unwrap_or_default();
        Ok((enforcer, events))
    }

    /// Takes promises, and returns their events.
    fn take(&mut self, promises: HostPromises, left_out: Vec<LeftOut>) -> Vec<Event> {
        let events = read_events(&promises, left_out.clone());
        (self.promises, self.unresolved, self.is_released) = (Some(promises), left_out, false);
        events
    }

    /// Enforces the promises of a controller in place of all earlier ones.
    pub fn apply(&mut self, received: &Received) -> Vec<Event> {
        let (promises, left_out) = host_promises(received);
        let mut events = self.take(promises, left_out);
        events.extend(self.turn());
        events
    }

    /// Removes all promises, as at the end: every interface has its former state, and all packets are best effort.
    pub fn release(&mut self) -> Vec<Event> {
        (self.promises, self.unresolved, self.is_released) = (None, Vec::new(), true);
        self.interfaces.iter_mut().for_each(|managed| managed.applied = None);
        self.failures = Failures::default();
        self.undo_again()
    }

    /// Undoes everything. A failure that lasts is reported once.
    fn undo_again(&mut self) -> Vec<Event> {
        let events = self.undo();
        self.failures.unreported(events)
    }

    /// State of each workload of a controller, for an acknowledgement.
    pub fn report(&mut self) -> Vec<AcknowledgedBody> {
        let Some(promises) = &self.promises else { return Vec::new() };
        report(
            promises,
            &self.unresolved,
            self.interfaces.iter_mut().map(|managed| &mut managed.acknowledged),
        )
    }

    /// Addresses of this host for the filters of other hosts: those of the file of addresses, or else those of the
    /// interfaces.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let file = Addresses::read(self.settings.addresses.as_deref()).unwrap_or_default();
        if let Some(listed) = file.listed(&self.settings.host) {
            return singles(listed);
        }
        let own = |managed: &Managed| facts::addresses(managed.interface.name()).unwrap_or_default();
        self.interfaces.iter().flat_map(own).collect()
    }

    /// True if at least one interface is enforced.
    pub fn is_enforcing(&self) -> bool {
        self.interfaces.iter().any(|managed| managed.applied.is_some())
    }

    /// Names of the enforced interfaces.
    pub fn enforced(&self) -> Vec<&str> {
        let enforced = self.interfaces.iter().filter(|managed| managed.applied.is_some());
        enforced.map(|managed| managed.interface.name()).collect()
    }

    /// Reads files that changed, compares every interface with the promises, and programs those that differ. A problem of
    /// an interface does not affect the others.
    pub fn turn(&mut self) -> Vec<Event> {
        let mut events = match self.sources.as_mut().map(Sources::read).transpose().map(Option::flatten) {
            Ok(None) => Vec::new(),
            Ok(Some((promises, left_out))) => self.take(promises, left_out),
            Err(error) => vec![Event::Invalid(error)],
        };
        let Some(promises) = self.promises.clone() else {
            // What an undo could not remove is tried again.
            if self.is_released {
                events.extend(self.undo_again());
            }
            return events;
        };
        for at in 0..self.interfaces.len() {
            let result = self.turn_of(at, &promises, &mut events);
            self.interfaces[at].acknowledged.standing = match &result {
                Ok(Turn::Gone) => Standing::Gone,
                Ok(Turn::NoCarrier) => Standing::NoCarrier,
                Err(error) => Standing::Failed(error.to_string()),
                Ok(Turn::Same | Turn::Programmed { .. } | Turn::Drift { .. }) => Standing::Enforced,
            };
            self.log(at, result, &mut events);
        }
        events
    }

    /// Adds the events of a turn. A lasting condition is reported once.
    fn log(&mut self, at: usize, result: Result<Turn, EnforceError>, events: &mut Vec<Event>) {
        let managed = &mut self.interfaces[at];
        let interface = managed.interface.name().to_owned();
        let event = match result {
            Ok(Turn::Same) => {
                managed.reported.clear();
                return;
            }
            Ok(Turn::Programmed { took }) => {
                managed.reported.clear();
                let wanted = managed.applied.as_ref().map(|applied| &applied.wanted);
                let workloads = wanted.map_or(0, |wanted| wanted.workloads.len());
                let classes = wanted.map_or(0, |wanted| {
                    2 + wanted.workloads.iter().map(crate::tree::WantedWorkload::depth).sum::<usize>()
                });
                events.push(Event::Enforced { interface, workloads, classes, took });
                return;
            }
            Ok(Turn::Drift { difference, is_mended: true }) => {
                managed.reported.clear();
                events.push(Event::Drift { interface, difference, is_mended: true });
                return;
            }
            Ok(Turn::Drift { difference, is_mended }) => Event::Drift { interface, difference, is_mended },
            Ok(Turn::Gone) => {
                managed.applied = None;
                Event::Gone { interface }
            }
            Ok(Turn::NoCarrier) => Event::NoCarrier { interface },
            Err(error) => Event::Failed { error: error.to_string() },
        };
        let line = event.to_string();
        if managed.reported != line {
            managed.reported = line;
            events.push(event);
        }
    }

    fn turn_of(
        &mut self,
        at: usize,
        promises: &HostPromises,
        events: &mut Vec<Event>,
    ) -> Result<Turn, EnforceError> {
        let interface = self.interfaces[at].interface.clone();
        let name = interface.name();
        let taken = self.state.taken().get(name).copied();
        let Some(reading) = interface.read(taken)? else { return Ok(Turn::Gone) };
        let foreign = match &reading.root {
            Root::Foreign { qdisc } => Some(qdisc.clone()),
            // No enforcer of this namespace made it.
            Root::Own { .. } if taken.is_none() => Some(format!("htb {:x}:", crate::tree::HANDLE)),
            Root::Own { .. } | Root::Default => None,
        };
        if let Some(qdisc) = foreign {
            self.interfaces[at].applied = None;
            return Err(EnforceError::Foreign { interface: name.to_owned(), qdisc });
        }
        let applied = self.interfaces[at].applied.as_ref();
        let last = applied.map(|applied| applied.wanted.link).or(reading.link());
        let facts = match facts::read(name, self.settings.rate, last) {
            Err(EnforceError::NoCarrier(_)) => return Ok(Turn::NoCarrier),
            facts => facts?,
        };
        let planned = plan(promises, &facts);
        self.tell(at, &planned.left_out, &planned.notes, events);
        let applied = self.interfaces[at].applied.as_ref();
        let none = Marks::new();
        let program =
            difference(&reading.state, &planned.wanted, applied.map_or(&none, |applied| &applied.marks))?;
        let state = &mut self.interfaces[at].acknowledged;
        state.left_out.clone_from(&planned.left_out);
        state.count(promises, &planned, &program, &reading.counters);
        let wanted = planned.wanted;
        let applied = self.interfaces[at].applied.as_ref();
        let is_first = applied.is_none();
        let is_changed = applied.is_some_and(|applied| applied.wanted != wanted);
        let drift = applied.filter(|_| !is_changed).and_then(|applied| drift_of(applied, &reading, &program));
        let marks_anyway = applied.is_none_or(|applied| applied.rules != reading.rules);
        let seen =
            drift.clone().map(|difference| Drift::new(difference, affected(&program, &wanted, marks_anyway)));
        self.interfaces[at].acknowledged.see(seen);
        if let Some(difference) = drift.clone().filter(|_| !self.settings.mends) {
            return Ok(Turn::Drift { difference, is_mended: false });
        }
        if !is_first && !is_changed && drift.is_none() && program.after.is_empty() {
            return Ok(Turn::Same);
        }
        let hook = match taken.or(self.hook) {
            Some(hook) => hook,
            None => *self.hook.insert(interface.detect_hook()?),
        };
        let begin = self.clock.now();
        // The file names the interface before anything is changed.
        self.state.add(name, hook)?;
        match self.carry_out(&interface, &program, &wanted, hook, marks_anyway) {
            Ok(applied) => self.interfaces[at].applied = Some(applied),
            Err(error) => {
                self.revert(at, &interface, hook)?;
                return Err(error);
            }
        }
        Ok(match drift {
            Some(difference) => Turn::Drift { difference, is_mended: true },
            // Only former classes went.
            None if !is_first && !is_changed => Turn::Same,
            None => Turn::Programmed { took: Duration::from_nanos(self.clock.now().since(begin).0) },
        })
    }

    /// Runs a program, and compares the kernel with its goal.
    fn carry_out(
        &self,
        interface: &Interface,
        program: &Program,
        wanted: &Wanted,
        hook: Hook,
        marks_anyway: bool,
    ) -> Result<Applied, EnforceError> {
        interface.apply(program, hook, self.settings.clears, marks_anyway)?;
        let retired: BTreeSet<u16> = interface.retire(&program.after)?.into_iter().collect();
        let gone = || EnforceError::NoInterface(interface.name().to_owned());
        let reading = interface.read(Some(hook))?.ok_or_else(gone)?;
        let rest = difference(&reading.state, wanted, &program.goal.marks)?;
        if let Some(difference) = named(&rest, &retired) {
            return Err(EnforceError::ReadBack { interface: interface.name().to_owned(), difference });
        }
        let (wanted, marks) = (wanted.clone(), program.goal.marks.clone());
        Ok(Applied { wanted, marks, rules: reading.rules, retired })
    }

    /// Restores what was enforced before a program failed, or else undoes everything on the interface.
    fn revert(&mut self, at: usize, interface: &Interface, hook: Hook) -> Result<(), EnforceError> {
        if let Some(applied) = self.interfaces[at].applied.clone() {
            let restore = || -> Result<Option<Applied>, EnforceError> {
                let Some(reading) = interface.read(Some(hook))? else { return Ok(None) };
                let program = difference(&reading.state, &applied.wanted, &applied.marks)?;
                self.carry_out(interface, &program, &applied.wanted, hook, true).map(Some)
            };
            if let Ok(restored) = restore() {
                self.interfaces[at].applied = restored;
                return Ok(());
            }
        }
        self.interfaces[at].applied = None;
        interface.undo(hook)?;
        self.state.remove(interface.name())
    }

    /// Reports workloads that are left out and notes, when they change.
    fn tell(&mut self, at: usize, left_out: &[LeftOut], notes: &[String], events: &mut Vec<Event>) {
        let managed = &mut self.interfaces[at];
        let told = (left_out.to_vec(), notes.to_vec());
        if managed.told == told {
            return;
        }
        let name = managed.interface.name().to_owned();
        let left = told.0.iter().filter(|left_out| !managed.told.0.contains(left_out));
        events.extend(
            left.map(|left_out| Event::LeftOut { interface: Some(name.clone()), left_out: left_out.clone() }),
        );
        let new_notes = told.1.iter().filter(|note| !managed.told.1.contains(note));
        events.extend(new_notes.map(|note| Event::Note(format!("{name}: {note}"))));
        managed.told = told;
    }

    /// Undoes everything on interfaces of an earlier enforcer that this one does not program.
    pub fn undo_others(&mut self) -> Vec<Event> {
        let is_own = |name: &str| self.interfaces.iter().any(|managed| managed.interface.name() == name);
        let others: Vec<String> = self.state.taken().keys().filter(|name| !is_own(name)).cloned().collect();
        undo_each(&mut self.state, &others)
    }

    /// Undoes everything on all interfaces of the state file. Interfaces whose undo fails stay in the file.
    pub fn undo(&mut self) -> Vec<Event> {
        undo_all(&mut self.state)
    }

    /// True if the settings say to leave everything in place at the end.
    pub fn leaves(&self) -> bool {
        self.settings.leaves
    }
}

fn read_events(promises: &HostPromises, left_out: Vec<LeftOut>) -> Vec<Event> {
    let host = promises.host.clone();
    let workloads = promises.workloads.len() + left_out.len();
    let left_out = left_out.into_iter().map(|left_out| Event::LeftOut { interface: None, left_out });
    std::iter::once(Event::Promises { host, workloads }).chain(left_out).collect()
}
