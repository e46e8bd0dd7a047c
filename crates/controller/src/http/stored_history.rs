//! History of links beyond the last hour, from the means that the store has: of ten minutes for two days, and of hours
//! for 31 days.

use std::collections::{BTreeMap, HashMap};

use axum::Json;
use axum::response::IntoResponse;
use leeward_fabric::Nanos;
use leeward_records::{ClusterVersion, Period, PeriodLength};
use leeward_store::{Reader, StoreError, TimeRange};

use super::series::{History, LONGEST_HISTORY, Series, Steps};
use super::state::{ApiResult, AppState};
use leeward_problems::{IntoProblem, Problem};

/// Longest step in seconds: a day.
pub const LONGEST_STEP: u64 = 24 * 3_600;
const HOUR: Nanos = Nanos(3_600 * Nanos::SECOND.0);

/// A range of the stored history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredRange {
    range: TimeRange,
    length: PeriodLength,
    /// Length of a step of the response.
    step: Nanos,
}

impl StoredRange {
    /// The range of a query; `None` if the query asks for the last hour, or for shorter steps than stored ones.
    ///
    /// # Errors
    /// [`Problem`] if the step is too long.
    pub fn of(now: Nanos, since: Option<Nanos>, step_s: Option<u64>) -> Result<Option<StoredRange>, Problem> {
        let Some(since) = since.filter(|&since| now.since(since) > HOUR) else { return Ok(None) };
        let ten_minutes = PeriodLength::TenMinutes.length();
        if let Some(step) = step_s.filter(|&step| step > LONGEST_STEP) {
            return Err(Problem::field("step_s", format!("{step}: expected at most {LONGEST_STEP}")));
        }
        let step = step_s.map(|step| Nanos(step.saturating_mul(Nanos::SECOND.0)));
        if step.is_some_and(|step| step < ten_minutes) {
            return Ok(None);
        }
        let since = since.max(now.since(PeriodLength::Hour.kept()));
        let recent = now.since(since) <= PeriodLength::TenMinutes.kept();
        let length = if recent { PeriodLength::TenMinutes } else { PeriodLength::Hour };
        // The step of the response is a multiple of the stored ones.
        let stored = length.length().0;
        let step = Nanos(step.unwrap_or(length.length()).0.div_ceil(stored) * stored);
        Ok(Some(StoredRange { range: TimeRange { since, until: now }, length, step }))
    }

    /// Number of steps.
    fn count(&self) -> usize {
        let first = self.range.since.0 / self.step.0;
        (self.range.until.0.div_ceil(self.step.0) - first) as usize
    }

    /// History of links by name.
    pub async fn response(self, app: &AppState, names: Vec<String>) -> ApiResult {
        if self.count().saturating_mul(names.len()) > LONGEST_HISTORY {
            let detail = format!(
                "{} links in {} steps each: expected at most {LONGEST_HISTORY} numbers; request longer steps, or a \
                 shorter range with `since`",
                names.len(),
                self.count()
            );
            return Err(Problem::field("step_s", detail));
        }
        let read = app.handle.read(move |store| self.series(store, names)).await;
        let series = read.map_err(|error| error.problem(&app.clock))?;
        let from = Nanos(self.range.since.0 / self.step.0 * self.step.0);
        let is_empty = series.iter().all(|series| series.utilization.iter().all(Option::is_none));
        let steps =
            Steps { from: (!is_empty).then(|| app.clock.text(from)), step_s: self.step.0 / Nanos::SECOND.0 };
        Ok(Json(History { steps, series }).into_response())
    }

    /// Means of links by name, in each step.
    fn series(&self, store: &mut Reader, names: Vec<String>) -> Result<Vec<Series>, StoreError> {
        let mut positions = BTreeMap::<ClusterVersion, Vec<Option<usize>>>::new();
        for cluster in store.versions(self.length, self.range)? {
            let known = store.link_names(cluster)?;
            let known: HashMap<&str, usize> =
                known.iter().enumerate().map(|(position, name)| (name.as_str(), position)).collect();
            positions.insert(cluster, names.iter().map(|name| known.get(name.as_str()).copied()).collect());
        }
        let first = self.range.since.0 / self.step.0;
        let mut sums = vec![vec![(0.0_f64, 0.0_f64); self.count()]; names.len()];
        store.each_period(self.length, self.range, |Period { ends, cluster, links, hot, .. }| {
            let step = ((ends.0 - 1) / self.step.0).checked_sub(first).map(|step| step as usize);
            let positions = positions.get(&cluster).into_iter().flatten();
            for (sums, position) in sums.iter_mut().zip(positions) {
                let mean = position.and_then(|position| links.get(position)?.get());
                if let (Some(mean), Some((sum, seconds))) = (mean, step.and_then(|step| sums.get_mut(step))) {
                    // A part of a period counts by the time that it covers.
                    (*sum, *seconds) = (*sum + f64::from(mean) * hot.observed, *seconds + hot.observed);
                }
            }
        })?;
        let mean = |(sum, seconds): (f64, f64)| (seconds > 0.0).then(|| (sum / seconds) as f32);
        let series = names.into_iter().zip(sums);
        let series =
            series.map(|(link, sums)| Series { link, utilization: sums.into_iter().map(mean).collect() });
        Ok(series.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_range_decides_what_answers_it() {
        let (now, seconds) =
            (Nanos(100 * 24 * 3_600 * Nanos::SECOND.0), |count: u64| Nanos(count * Nanos::SECOND.0));
        let of = |ago: u64, step| StoredRange::of(now, Some(now.since(seconds(ago))), step);
        let step = |range: Result<Option<StoredRange>, Problem>| {
            range.ok().flatten().map(|range| (range.length, range.step.0 / Nanos::SECOND.0))
        };
        assert_eq!(step(of(3_600, None)), None);
        assert_eq!(step(of(3_601, None)), Some((PeriodLength::TenMinutes, 600)));
        assert_eq!(step(of(3_601, Some(10))), None);
        assert_eq!(step(of(3_601, Some(1_200))), Some((PeriodLength::TenMinutes, 1_200)));
        assert_eq!(step(of(3 * 24 * 3_600, None)), Some((PeriodLength::Hour, 3_600)));
        assert_eq!(step(of(3 * 24 * 3_600, Some(610))), Some((PeriodLength::Hour, 3_600)));
        assert_eq!(step(of(7_200, Some(610))), Some((PeriodLength::TenMinutes, 1_200)));
        assert!(of(7_200, Some(172_800)).is_err());
        // A range before the stored ones begins with them.
        let all = of(99 * 24 * 3_600, None).ok().flatten().map(|range| range.count());
        assert_eq!(all, Some(31 * 24));
    }
}
