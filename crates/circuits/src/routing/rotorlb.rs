//! `rotorlb`: RotorLB, Valiant load balancing with the capacity that direct circuits leave.
//!
//! A circuit first carries packets that other racks left at its source for its destination, then the source's own
//! packets for it. The remaining time goes to the source's packets for other racks, as far as the rack at the circuit's
//! end offers to take them. For each destination, a rack offers the bytes that its circuit to the destination carries
//! in a day, minus its own queue for the destination and the bytes already accepted from others (RotorNet, SIGCOMM
//! 2017, section 4). Accepted packets therefore drain on the next day, a path has at most two circuits, and new
//! indirect packets never precede direct ones.
//!
//! RotorNet settles offers once per slot. This implementation evaluates the same condition for each packet.

use leeward_fabric::input::InputError;
use leeward_registry::{NoSettings, Registration, schema, settings};

use super::{Routes, Routing, all_linked};
use crate::{CircuitsError, Network, Schedule};

/// The `rotorlb` routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RotorLb;

const NAME: &str = "rotorlb";

pub(super) const REGISTRATION: Registration<dyn Routing> = Registration {
    name: NAME,
    aliases: &[],
    summary: "direct circuits first; spare capacity carries packets through racks that offer room",
    source: "RotorNet (SIGCOMM 2017), section 4",
    schema: schema::<NoSettings>,
    make,
};

fn make(text: &str) -> Result<Box<dyn Routing>, InputError> {
    let NoSettings {} = settings(NAME, text)?;
    Ok(Box::new(RotorLb))
}

impl Routing for RotorLb {
    fn name(&self) -> &str {
        NAME
    }

    fn routes(&self, schedule: &Schedule, network: &Network) -> Result<Routes, CircuitsError> {
        all_linked(NAME, schedule)?;
        let racks = schedule.racks();
        // For pairs with days of several lengths, the shortest day counts, so that the offer holds for any next day.
        let mut carries = vec![u64::MAX; racks * racks];
        for day in schedule.days() {
            for (source, destination) in day.matching.circuits() {
                let entry = &mut carries[source * racks + destination];
                *entry = (*entry).min(network.carries(day.length));
            }
        }
        Ok(Routes::offered(schedule, carries))
    }
}
