//! `rotorlb`: RotorLB, Valiant load balancing of what direct circuits leave.
//!
//! A circuit first takes what other racks have left at its source for its destination, then the source's own packets for it. What time
//! is left goes to the source's packets for other racks, as far as the rack at the other end offers room: for each rack what its
//! circuit there carries in a day, less what it has for that rack and was promised (RotorNet, SIGCOMM 2017, section 4). So what was
//! accepted drains on the next day, two circuits are the most, and new indirect packets never go before direct ones. RotorNet
//! settles offers once a slot; here they are looked at packet by packet, by the same sum.

use super::{Made, NoSettings, Registration, Routes, Routing, all_linked};
use crate::schedulers::settings;
use crate::{CircuitsError, Network, Schedule};

/// The routing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RotorLb;

const NAME: &str = "rotorlb";

pub(super) const REGISTRATION: Registration = Registration {
    name: NAME,
    summary: "what direct circuits leave goes by racks that offer room, over two circuits",
    source: "RotorNet (SIGCOMM 2017), section 4",
    schema: || schemars::schema_for!(NoSettings).to_value(),
    make,
};

fn make(text: &str) -> Made {
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
        // Of a pair with days of several lengths the shortest, so that it holds of whichever is next.
        let mut carries = vec![u64::MAX; racks * racks];
        for day in schedule.days() {
            for (source, destination) in day.matching.circuits() {
                let of = &mut carries[source * racks + destination];
                *of = (*of).min(network.carries(day.length));
            }
        }
        Ok(Routes::offered(schedule, carries))
    }
}
