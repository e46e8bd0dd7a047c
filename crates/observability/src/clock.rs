//! Detects steps of the machine's clock while the service runs. The service's time does not change, but reports by the
//! earlier clock no longer fit, and telemetry is old until reports by the new clock arrive.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_records::{Clock, ClockStep};
use leeward_service::{Handle, NetworkSnapshot};

use super::Metrics;

/// Check interval.
const TICK: Duration = Duration::from_secs(1);
/// Largest age of telemetry before a step for which the step is the reason that no more has arrived.
const RECENT: Nanos = Nanos(60 * Nanos::SECOND.0);

/// Logs each step of the machine's clock, and the arrival of telemetry by the new clock.
pub async fn watch_clock(clock: &Clock, handle: &Handle, metrics: &Arc<Metrics>) -> Infallible {
    let (mut count, mut waits) = (clock.step_count(), false);
    loop {
        tokio::time::sleep(TICK).await;
        clock.now();
        if clock.step_count() != count
            && let Some(step) = clock.last_step()
        {
            metrics.clock_steps(clock.step_count() - count);
            count = clock.step_count();
            tracing::warn!(
                "the machine's clock was set {}; decisions keep their time, and reports count by the new clock",
                direction(&step)
            );
        }
        let waited = std::mem::replace(&mut waits, unsettled_step(clock, &handle.last_snapshot()).is_some());
        if waited && !waits {
            tracing::info!("telemetry by the new clock arrives");
        }
    }
}

/// The last step of the clock, if the telemetry that arrived before it has not continued since.
pub fn unsettled_step(clock: &Clock, snapshot: &NetworkSnapshot) -> Option<ClockStep> {
    let step = clock.last_step()?;
    let newest = snapshot.links.iter().filter_map(|link| link.until).max()?;
    (newest < step.at && step.at.since(newest) <= RECENT).then_some(step)
}

/// The step in words: `forward by 3600.0 s`.
pub fn direction(step: &ClockStep) -> String {
    let word = if step.by > 0 { "forward" } else { "back" };
    format!("{word} by {:.1} s", step.by.unsigned_abs() as f64 / 1e9)
}
