//! Change of the settings of a ledger that has telemetry and entries.

use leeward_fabric::{Nanos, ResourceId};

use crate::Ledger;
use crate::ledger::Due;
use crate::settings::{LedgerSettings, Missing, SettingsError};

impl Ledger {
    /// Replaces the settings at the time `now`. Telemetry and entries stay. Estimates continue with the new weights;
    /// `hot` and `initial` apply from the next report of a resource, and `hold_peak` to entries committed later.
    ///
    /// # Errors
    ///
    /// Fails, without a change, if a setting is out of its range or if the interval differs: windows and deadlines
    /// depend on it.
    pub fn set_settings(&mut self, settings: LedgerSettings, now: Nanos) -> Result<(), SettingsError> {
        settings.check()?;
        if settings.interval != self.settings.interval {
            let (field, value) = ("interval", settings.interval.to_string());
            return Err(SettingsError {
                field,
                value,
                expected: "the interval at the start, which cannot change",
            });
        }
        self.advance(now);
        if settings == self.settings {
            return Ok(());
        }
        self.unknown_after = settings.known_for();
        self.settings = settings;
        self.await_windows();
        self.derive_all(now);
        self.epoch.0 += 1;
        Ok(())
    }

    /// Schedules the ends of pressure that waits for a report. Under `missing: strict` only a report ends it.
    fn await_windows(&mut self) {
        self.agenda.retain(|(_, due)| !matches!(due, Due::Window(_)));
        if self.settings.missing == Missing::Sinbad {
            let grace = self.settings.grace();
            for (index, commitments) in self.commitments.iter().enumerate() {
                let due = Due::Window(ResourceId(index as u32));
                let waiting = commitments.until_window.iter();
                self.agenda.extend(waiting.map(|item| (item.awaited.plus(grace), due)));
            }
        }
    }
}
