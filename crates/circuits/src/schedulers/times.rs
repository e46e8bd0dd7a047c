//! Network times in whole units.

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_registry::setting_error;

use super::CircuitsError;
use crate::Network;

/// Network times in units, and the bytes that a circuit carries in one unit.
#[derive(Clone, Copy)]
pub(super) struct Times {
    unit: Nanos,
    /// Bytes that a circuit carries in one unit.
    pub(super) unit_bytes: u64,
    /// True if a unit carries a whole number of bytes exactly.
    is_whole: bool,
    pub(super) night: u64,
    pub(super) week: u64,
    pub(super) min_day: u64,
}

/// Default unit of day lengths, if the network's times allow it.
const UNIT: Nanos = Nanos(1000);

/// Checks the setting `unit`.
pub(super) fn check_unit(scheduler: &str, unit: Option<Nanos>) -> Result<(), InputError> {
    let zero = || setting_error(scheduler, "unit", "0s: expected a time above 0");
    if unit == Some(Nanos(0)) { Err(zero()) } else { Ok(()) }
}

impl Times {
    /// Converts the network's times to units of `unit`. Without this setting, the unit is 1 us divided by the smallest
    /// power of ten that makes all times whole.
    pub(super) fn of(
        scheduler: &str,
        network: &Network,
        unit: Option<Nanos>,
        racks: usize,
    ) -> Result<Times, CircuitsError> {
        let all = [("night", network.night()), ("week", network.week()), ("minimum day", network.min_day())];
        let whole = |unit: Nanos| all.iter().all(|(_, time)| time.0.is_multiple_of(unit.0));
        let tenths = std::iter::successors(Some(UNIT), |unit| Some(Nanos((unit.0 / 10).max(1))));
        let unit = unit.or_else(|| tenths.into_iter().find(|&unit| whole(unit))).unwrap_or(UNIT);
        let unfit = |problem| CircuitsError::Unfit { name: scheduler.to_owned(), problem };
        if let Some((name, time)) = all.iter().find(|(_, time)| !time.0.is_multiple_of(unit.0)) {
            let problem =
                format!("{name}: {time}: must be a whole number of units of {unit} (setting `unit`)");
            return Err(unfit(problem));
        }
        let [night, week, min_day] = all.map(|(_, time)| time.0 / unit.0);
        let unit_bytes = network.carries(unit);
        let bits_ns = u128::from(network.circuit().0) * u128::from(unit.0);
        let is_whole = bits_ns.is_multiple_of(8_000_000_000);
        let times = Times { unit, unit_bytes, is_whole, night, week, min_day };
        // Port shares are whole bytes, and a circuit carries whole bytes in every length.
        if times.unit_bytes == 0 || times.budget() < racks as u64 {
            let rate = network.circuit();
            let week = network.week();
            let problem = format!(
                "a circuit of {rate} carries {} bytes in a unit of {unit} and {} in a week of {week}: \
                 must be at least 1 and {racks}, as many as racks",
                times.unit_bytes,
                times.budget()
            );
            return Err(unfit(problem));
        }
        Ok(times)
    }

    /// Bytes that a port carries in a week.
    pub(super) fn budget(self) -> u64 {
        self.unit_bytes.saturating_mul(self.week)
    }

    /// Units that a circuit of the network needs for `bytes`.
    pub(super) fn units_for(self, network: &Network, bytes: u64) -> u64 {
        if self.is_whole {
            bytes.div_ceil(self.unit_bytes)
        } else {
            network.takes(bytes).0.div_ceil(self.unit.0)
        }
    }

    /// Time of `units` units.
    pub(super) fn nanos(self, units: u64) -> Nanos {
        Nanos(units * self.unit.0)
    }

    /// Smallest demand that gets a circuit: the minimum day or twice the night, whichever is longer.
    pub(super) fn base(self) -> u64 {
        self.min_day.max(2 * self.night).max(1)
    }

    /// First threshold: the base doubled until it reaches a quarter of the week.
    pub(super) fn first_threshold(self) -> u64 {
        let mut threshold = self.base();
        while threshold < self.week / 4 {
            threshold *= 2;
        }
        threshold
    }
}
