//! Limits `average`: a multiple k of the average rate, with the burst that the r-b curve has at this rate (SLO section
//! 5.3.1).

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::{InputError, format_number};
use leeward_registry::{Registration, schema, setting_error, settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limiting, NoLimits, Problem, each};

/// Settings of `average`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AverageSettings {
    /// Multiple of the average rate. The thesis shows 1.5 and 2, and tried 1.25 to 20.
    #[schemars(range(min = 1.0))]
    pub multiple: f64,
}

impl Default for AverageSettings {
    fn default() -> Self {
        AverageSettings { multiple: 2.0 }
    }
}

/// Limits at a multiple of the average rate.
#[derive(Clone, Debug)]
pub struct Average {
    multiple: f64,
}

pub(super) const REGISTRATION: Registration<dyn Limiting> = Registration {
    name: "average",
    aliases: &[],
    summary: "for each workload a multiple of its mean rate, with the burst of its r-b curve there",
    source: "SLO section 5.3.1",
    schema: schema::<AverageSettings>,
    make: |text| Average::new(&settings("average", text)?).map(|way| Box::new(way) as Box<dyn Limiting>),
};

impl Average {
    /// Creates the algorithm from settings.
    ///
    /// # Errors
    /// [`InputError`] for a multiple below 1 or not finite.
    pub fn new(settings: &AverageSettings) -> Result<Average, InputError> {
        let multiple = settings.multiple;
        if multiple.is_finite() && multiple >= 1.0 {
            return Ok(Average { multiple });
        }
        Err(setting_error(
            "average",
            "multiple",
            format!("{}: expected a number of at least 1", format_number(multiple)),
        ))
    }
}

impl Limiting for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
        each(problem, |free| {
            let limit = |demand: &super::super::workload::Demand| {
                // The last bucket has the average rate; no lower rate is used.
                let rate = self.multiple * demand.arrivals.rate();
                let bucket = demand.arrivals.burst_at(rate).and_then(|b| TokenBucket::new(rate, b).ok());
                let reason = || {
                    format!(
                        "{} times its mean rate at {} is not a valid rate",
                        format_number(self.multiple),
                        demand.stage
                    )
                };
                let none = || NoLimits::Alone { workload: free.workload.name.clone(), why: reason() };
                bucket.map(ArrivalCurve::from).ok_or_else(none)
            };
            free.workload.demands.iter().map(limit).collect()
        })
    }

    fn is_joint(&self) -> bool {
        false
    }
}
