//! Modes: the decider of the requests of each kind, Leeward's policies or the default policies.

use std::sync::Arc;

use leeward_engine::{Decider, Input, MoveRule, Ruling};
use leeward_fabric::Nanos;
use leeward_records::{
    Caller, Canary, CanaryBy, Change, DecisionDetails, DecisionId, Mode, Modes, ModesState, PlacementSpec,
};

use super::{Addresses, Coordinator, Placement};

/// Change of modes by a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeChange {
    /// New modes, by position in [`Modes::KINDS`]; `None` leaves a mode as it is.
    pub modes: [Option<Mode>; 5],
    /// Name of the caller.
    pub by: String,
    /// Reason, in the words of the caller.
    pub reason: Option<String>,
}

/// Modes as readers see them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModesView {
    /// Modes that were set, and their last change.
    pub set: ModesState,
    /// True while the off switch is on: every mode counts as off.
    pub switched_off: bool,
}

impl ModesView {
    /// Modes in force.
    pub fn in_force(&self) -> Modes {
        if self.switched_off { Modes::all(Mode::Off) } else { self.set.modes }
    }

    /// The modes after a change at the time `at`.
    pub fn after(self, change: &ModeChange, at: Nanos) -> ModesView {
        let current = self.set.modes.by_kind().map(|(_, mode)| mode);
        let [replicas, tasks, moves, workload, volumes] =
            std::array::from_fn(|kind| change.modes[kind].unwrap_or(current[kind]));
        let modes = Modes { replicas, tasks, moves, workload, volumes };
        let (file, by, reason) = (self.set.file, change.by.clone(), change.reason.clone());
        ModesView { set: ModesState { modes, file, at: at.0, by, reason }, switched_off: self.switched_off }
    }
}

impl<A: Addresses> Coordinator<A> {
    /// The same coordinator with the modes of the settings file, unless other modes are stored, and with the off switch
    /// on or off.
    pub fn with_modes(mut self, file: Modes, switched_off: bool) -> Coordinator<A> {
        self.modes = ModesState::of_file(file, self.now);
        self.switched_off = switched_off;
        self.apply_modes();
        self
    }

    /// Modes, and their last change.
    pub fn modes(&self) -> ModesView {
        ModesView { set: self.modes.clone(), switched_off: self.switched_off }
    }

    pub(super) fn modes_in_force(&self) -> Modes {
        if self.switched_off { Modes::all(Mode::Off) } else { self.modes.modes }
    }

    /// Changes modes on behalf of a caller.
    pub fn change_modes(&mut self, now: Nanos, change: ModeChange) -> ModesView {
        self.wake(now);
        self.set_modes(self.modes().after(&change, self.now).set);
        self.modes()
    }

    /// Takes on the modes of a settings file that was read again. If the file has the modes that it had before, modes
    /// that a caller set stay.
    pub fn set_file_modes(&mut self, now: Nanos, file: Modes) -> ModesView {
        self.wake(now);
        let state = self.modes.clone().with_file(file, self.now);
        if state != self.modes {
            self.set_modes(state);
        }
        self.modes()
    }

    /// Turns the off switch on or off: while it is on, every mode counts as off.
    pub fn set_off_switch(&mut self, now: Nanos, switched_off: bool) -> ModesView {
        self.wake(now);
        self.switched_off = switched_off;
        self.apply_modes();
        self.modes()
    }

    fn set_modes(&mut self, state: ModesState) {
        self.changes.push(Change::Modes(state.clone()));
        self.modes = state;
        self.apply_modes();
    }

    /// Takes on modes from the store. On a leader, modes of the settings file win if they are not those that the file had
    /// when the stored modes were set. A follower has the leader's modes, and stores nothing.
    pub(super) fn restore_modes(&mut self, stored: Option<ModesState>) {
        let Some(stored) = stored else { return };
        if self.is_follower() {
            return self.follow_modes(stored);
        }
        let state = stored.clone().with_file(self.modes.file, self.now);
        if state == stored {
            self.modes = state;
            self.apply_modes();
        } else {
            self.set_modes(state);
        }
    }

    /// Takes on modes of the leader, whatever the own settings file says.
    pub(super) fn follow_modes(&mut self, state: ModesState) {
        self.modes = ModesState { file: self.modes.file, ..state };
        self.apply_modes();
    }

    /// Gives the engine the rule for moves, and undoes advised moves if that rule forbids them.
    fn apply_modes(&mut self) {
        let rule = match self.modes_in_force().moves {
            Mode::Off => MoveRule::Off,
            Mode::Shadow => MoveRule::Shadow,
            Mode::Canary(Canary { share, .. }) => MoveRule::Canary(share),
            Mode::On => MoveRule::On,
        };
        self.apply(Input::MoveRule(rule));
        self.expire_migrations();
    }

    /// Mode of a request's kind, and how the request is decided. In every mode but `off` the other policy chooses too,
    /// so that the effect of a mode can be seen.
    pub(super) fn ruling(&self, id: DecisionId, placement: &Placement) -> (Mode, Ruling) {
        let modes = self.modes_in_force();
        let mode = match &placement.spec {
            PlacementSpec::Replicas(_) => modes.replicas,
            PlacementSpec::Tasks(_) => modes.tasks,
            PlacementSpec::Workload(_) => modes.workload,
            PlacementSpec::Volumes(_) => modes.volumes,
        };
        let by = match mode {
            Mode::Off | Mode::Shadow => Decider::Default,
            Mode::On => Decider::Own,
            Mode::Canary(canary) if self.takes(canary, id, placement) => Decider::Own,
            Mode::Canary(_) => Decider::Default,
        };
        // The default policies admit every workload, so their answer says nothing beside Leeward's.
        let is_telling = placement.spec.workload().is_none() || by == Decider::Default;
        (mode, Ruling { by, compare: mode != Mode::Off && is_telling })
    }

    /// Takes on the present mode for a waiting request whose decision begins now: the mode may have changed while it
    /// waited. Returns how it is decided.
    pub(super) fn renew_ruling(&mut self, id: DecisionId) -> Option<Ruling> {
        let waiting = self.waiting.get(&id)?;
        let (mode, ruling) = self.ruling(id, &waiting.placement);
        let policies = self.policy_labels(ruling.by, &waiting.placement.spec);
        let waiting = self.waiting.get_mut(&id)?;
        (waiting.mode, waiting.ruling, waiting.policies) = (mode, ruling, policies);
        Some(ruling)
    }

    /// Labels of the policy that decides a request, and of the other one.
    pub(super) fn policy_labels(&self, by: Decider, spec: &PlacementSpec) -> [Arc<str>; 2] {
        [self.policy_label(by, spec), self.policy_label(by.other(), spec)]
    }

    /// True if the request is in the canary.
    fn takes(&self, canary: Canary, id: DecisionId, placement: &Placement) -> bool {
        match canary.by {
            CanaryBy::Request => canary.takes(&id.0.to_le_bytes()),
            CanaryBy::Client => match &placement.caller {
                Some(Caller::Client { client, .. }) => canary.takes(client.as_bytes()),
                Some(Caller::Key(_)) | None => false,
            },
            CanaryBy::Rack => {
                let PlacementSpec::Replicas(spec) = &placement.spec else { return false };
                let fabric = self.engine.ledger().fabric();
                let writer = spec.writer.as_ref().and_then(|writer| fabric.host(writer));
                writer
                    .is_some_and(|writer| canary.takes(fabric.domain_name(fabric.rack_of(writer)).as_bytes()))
            }
        }
    }

    /// Label of a policy for a kind of request.
    pub(super) fn policy_label(&self, by: Decider, spec: &PlacementSpec) -> Arc<str> {
        let (labels, promises) = (&self.labels, &self.promises.policies);
        match (spec, by) {
            (PlacementSpec::Replicas(_), Decider::Own) => labels.replicas.clone(),
            (PlacementSpec::Replicas(_), Decider::Default) => {
                labels.default_replicas.clone().unwrap_or_default()
            }
            (PlacementSpec::Tasks(_), Decider::Own) => labels.tasks.clone(),
            (PlacementSpec::Tasks(_), Decider::Default) => labels.default_tasks.clone().unwrap_or_default(),
            _ => promises.of(spec, by).label.as_str().into(),
        }
    }

    /// Marks the details of a decision with its mode and its decider.
    pub(super) fn mark(details: &mut DecisionDetails, mode: Mode, by: Decider) {
        (details.mode, details.by_default) = (mode, by == Decider::Default);
    }
}
