//! Round-trip times of a cluster file.

use std::collections::BTreeMap;

use super::errors::Errors;
use crate::input::InputError;
use crate::round_trips::RoundTrips;
use crate::{Fabric, HostId, Nanos};

/// Longest round-trip time. A longer one is a typing error.
const MOST: Nanos = Nanos(100 * Nanos::SECOND.0);

/// Reads the round-trip times. `fabric` has the hosts of the file; the ends of its pairs have been checked.
pub(super) fn build(errors: Errors<'_>, fabric: &Fabric) -> Result<RoundTrips, InputError> {
    let mut times = RoundTrips::default();
    if let Some(rtt) = &errors.file.rtt {
        let file = rtt.value;
        for (field, time) in [("rack", file.rack), ("pod", file.pod), ("network", file.network)] {
            if let Some(message) = time.and_then(objection) {
                return Err(errors.at(rtt.place, format!("rtt.{field}"), message));
            }
        }
        (times.rack, times.pod, times.network) = (file.rack, file.pod, file.network);
    }
    let mut pairs = BTreeMap::<(HostId, HostId), Nanos>::new();
    for (i, item) in errors.file.pairs.iter().enumerate() {
        let ends = fabric.host(&item.value.from.0).zip(fabric.host(&item.value.to.0));
        let (Some(time), Some((from, to))) = (item.value.rtt, ends) else { continue };
        if let Some(message) = objection(time) {
            return Err(errors.at(item.place, format!("pairs[{i}].rtt"), message));
        }
        let known = pairs.entry((from.min(to), from.max(to))).or_default();
        *known = time.max(*known);
    }
    times.pairs = pairs.into_iter().collect();
    Ok(times)
}

fn objection(time: Nanos) -> Option<String> {
    (time > MOST).then(|| format!("{time}: expected at most {MOST}"))
}
