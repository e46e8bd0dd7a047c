//! A clock of the service that moves only when its caller advances it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_records::Clock;
use pyo3::prelude::*;

use crate::errors::PyInputError;

/// Zero of the clock: that of the machine's clock, so that hours and days begin at the same times.
const ORIGIN: &str = "2020-01-01T00:00:00Z";
/// Longest time of one call, in seconds: a year.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

/// A clock that shows the same time until it is advanced. Timers of the service sleep in real time: what was due meanwhile
/// happens with the next request.
#[pyclass(frozen, module = "leeward._native")]
pub struct SimulatedClock {
    now: Arc<AtomicU64>,
    clock: Clock,
}

impl SimulatedClock {
    /// The clock as the service takes it.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }
}

#[pymethods]
impl SimulatedClock {
    /// Starts at a time.
    #[new]
    fn new(start: &str) -> Result<SimulatedClock, PyInputError> {
        let origin: Timestamp = ORIGIN.parse().expect("a time");
        let now = Arc::new(AtomicU64::new(0));
        let shown = now.clone();
        let clock = Clock::new(origin, move || Nanos(shown.load(Ordering::SeqCst)));
        let start = clock.parse(start).map_err(|message| InputError::new("start", message))?;
        now.store(start.0, Ordering::SeqCst);
        Ok(SimulatedClock { now, clock })
    }

    /// Advances by a time of at most a year.
    fn advance(&self, seconds: f64) -> Result<(), PyInputError> {
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            let message = format!("{seconds}: expected seconds from 0 to {MAX_SECONDS}");
            return Err(InputError::new("seconds", message).into());
        }
        self.now.fetch_add((seconds * Nanos::SECOND.0 as f64).round() as u64, Ordering::SeqCst);
        Ok(())
    }

    /// Current time.
    fn now(&self) -> String {
        self.clock.text(self.clock.now())
    }
}
