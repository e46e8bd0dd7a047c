//! Age check of a telemetry file. Loads measured hours ago say little about now, and a decision based on them places
//! work where the network used to be quiet. The check therefore judges each link by the time of its own last line, if
//! the file has times.

use std::collections::BTreeMap;

use leeward_fabric::input::InputError;
use leeward_fabric::{Fabric, ResourceId};

/// Tolerated difference between clocks, in seconds.
const MAX_CLOCK_SKEW: f64 = 60.0;

/// A wall-clock reading, and the maximum age of measurements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    /// Seconds since 1970.
    pub now: f64,
    /// Maximum age of the last line of a link, in seconds.
    pub max_age: f64,
}

impl Clock {
    /// Rejects links whose last line is too old or lies in the future.
    pub(crate) fn check(
        self,
        file: &str,
        fabric: &Fabric,
        measured: &BTreeMap<ResourceId, f64>,
    ) -> Result<(), InputError> {
        let invalid = |message: String| Err(InputError::new(file, message).in_field("t_s"));
        let order = |a: &(&ResourceId, &f64), b: &(&ResourceId, &f64)| a.1.total_cmp(b.1);
        // Among links measured at the same time, the error names the first.
        let Some((&oldest, &time)) = measured.iter().min_by(|a, b| order(a, b).then(a.0.cmp(b.0))) else {
            return Ok(());
        };
        if self.now - time > self.max_age {
            let stale = measured.values().filter(|&&time| self.now - time > self.max_age).count();
            return invalid(format!(
                "{stale} of {} links {} stale: {} was measured {} ago; at most {}",
                measured.len(),
                if stale == 1 { "is" } else { "are" },
                fabric.resource_name(oldest),
                in_words(self.now - time),
                in_words(self.max_age),
            ));
        }
        let Some((&newest, &time)) = measured.iter().max_by(|a, b| order(a, b).then(b.0.cmp(a.0))) else {
            return Ok(());
        };
        if time - self.now > MAX_CLOCK_SKEW {
            let (name, ahead) = (fabric.resource_name(newest), in_words(time - self.now));
            return invalid(format!(
                "{name} was measured {ahead} in the future; expected seconds since 1970"
            ));
        }
        Ok(())
    }
}

/// A duration in words: `1 h 5 min`, `40 s`. Rounded to minutes from ten minutes on, to days from two days on.
fn in_words(seconds: f64) -> String {
    if seconds >= 2.0 * 86_400.0 {
        return format!("{:.0} d", (seconds / 86_400.0).min(1e12));
    }
    let whole = if seconds < 600.0 { seconds.round() } else { 60.0 * (seconds / 60.0).round() } as u64;
    let parts = [(whole / 3600, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let nonzero = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}"));
    let words = nonzero.collect::<Vec<_>>().join(" ");
    if words.is_empty() { "0 s".into() } else { words }
}
