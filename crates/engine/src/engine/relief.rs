//! Reasons for which no task moves off a hot link, for operators.

use leeward_fabric::{DomainId, ResourceId, ResourceKind};
use leeward_moves::{HotLoad, Running};

use super::Engine;
use crate::message::{MoveRule, NoMove, is_in_share};

impl Engine {
    /// Reason for which no task moves off a hot link now. Assumes that no advised move off the link waits.
    pub fn no_move(&mut self, link: ResourceId) -> NoMove {
        let fabric = self.pool.fabric().clone();
        match self.move_rule {
            _ if self.policies.moves.is_none() => return NoMove::Off,
            MoveRule::Off => return NoMove::Off,
            MoveRule::Shadow => return NoMove::Shadow,
            MoveRule::Canary(_) | MoveRule::On => {}
        }
        let rate: fn(&Running) -> u64 = match fabric.kind(link) {
            ResourceKind::RackUplink => |task| task.egress_bps,
            ResourceKind::RackDownlink => |task| task.ingress_bps,
            _ => return NoMove::OtherLink,
        };
        let Some(rack) = fabric.domain_of_link(link) else { return NoMove::OtherLink };
        if let MoveRule::Canary(share) = self.move_rule
            && !is_in_share(fabric.domain_name(rack).as_bytes(), share)
        {
            return NoMove::Canary;
        }
        let test = self.policies.hot_test;
        let mut view = self.ledger.view(self.now, &mut self.scratch);
        if test.load == HotLoad::Window {
            self.open_moves.add_to(&fabric, &mut view);
        }
        if !test.exceeds(&view, link) {
            return NoMove::Cooling;
        }
        if !test.is_hot(&view, link) {
            return NoMove::Recent;
        }
        self.no_move_of_tasks(rack, rate)
    }

    /// As [`Engine::no_move`], for the tasks of a rack that send traffic over the link.
    fn no_move_of_tasks(&self, rack: DomainId, rate: fn(&Running) -> u64) -> NoMove {
        let mut reason = NoMove::Others;
        for (task, stays) in self.cell.reasons_in(rack, self.policies.cooldown, self.now) {
            match (rate(&task) > 0, stays) {
                (true, None) => return NoMove::NoTarget,
                (true, Some(_)) => reason = NoMove::Fixed,
                (false, _) => {}
            }
        }
        reason
    }
}
