//! Models and curves as records. The record of a model is complete: reading it gives the written model, bit by bit.

use leeward_calculus::mmpp::{Mmpp, ModelError, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Model of a stage, with the curve of the same trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelRecord {
    /// Name of the stage.
    pub stage: String,
    /// Length of a step, in seconds.
    pub step_s: f64,
    /// Value used for sigma.
    #[serde(default)]
    pub sigma: SigmaName,
    /// The states.
    pub states: Vec<StateRecord>,
    /// Transition probabilities per step, one row for each source state.
    pub transitions: Vec<Vec<f64>>,
    /// Work of the largest request, if the curve is known.
    #[serde(default)]
    pub largest: Option<f64>,
    /// Arrival curve, if known: bursts in bytes or seconds of service, and rates per second.
    #[serde(default)]
    pub buckets: Option<Vec<BucketRecord>>,
    /// Requests that the device has at once, as its profile states; for the storage stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
}

/// Value used for sigma; see [`Sigma`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SigmaName {
    /// The safe value.
    #[default]
    Stationary,
    /// Zero, as published.
    Zero,
}

/// A state of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StateRecord {
    /// Share of time in this state, for readers only; `None` for a chain that is not connected.
    #[serde(default)]
    pub share: Option<f64>,
    /// Requests per second, for readers only.
    #[serde(default)]
    pub requests_per_s: Option<f64>,
    /// Average work of a request, for readers only.
    #[serde(default)]
    pub mean_work: Option<f64>,
    /// Requests per step: the mean of a Poisson distribution, or the probability of one request.
    pub requests_per_step: f64,
    /// Distribution of the number of requests.
    pub requests: RequestsName,
    /// Distribution of a request's work.
    pub sizes: SizesRecord,
}

/// Distribution of the number of requests per step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestsName {
    /// One or none.
    Bernoulli,
    /// Poisson.
    Poisson,
}

/// Distribution of the work of a request: exactly one of the three fields.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SizesRecord {
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<f64>,
    /// Probability of the first branch, and the means of both branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperexponential: Option<[f64; 3]>,
    /// Pairs of a probability and its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empirical: Option<Vec<[f64; 2]>>,
}

/// A token bucket in the work unit of its stage.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BucketRecord {
    /// Rate: work per second.
    pub rate: f64,
    /// Burst: work at once.
    pub burst: f64,
}

impl BucketRecord {
    /// Buckets of a curve.
    pub fn of(curve: &ArrivalCurve) -> Vec<BucketRecord> {
        let record = |bucket: &TokenBucket| BucketRecord { rate: bucket.rate(), burst: bucket.burst() };
        curve.buckets().iter().map(record).collect()
    }
}

impl ModelRecord {
    /// Complete record of a model.
    pub fn of(stage: Stage, model: &Mmpp, sigma: Sigma) -> ModelRecord {
        let states = model.states().iter().enumerate().map(|(at, state)| StateRecord {
            share: model.stationary().get(at).copied(),
            requests_per_s: Some(state.requests.mean() / model.step()),
            mean_work: Some(state.sizes.mean()),
            requests_per_step: state.requests.mean(),
            requests: match state.requests {
                Requests::Bernoulli(_) => RequestsName::Bernoulli,
                Requests::Poisson(_) => RequestsName::Poisson,
            },
            sizes: SizesRecord::of(&state.sizes),
        });
        let states: Vec<StateRecord> = states.collect();
        let row = |from: usize| (0..states.len()).map(|to| model.transition(from, to)).collect();
        ModelRecord {
            stage: stage.name().to_owned(),
            step_s: model.step(),
            sigma: match sigma {
                Sigma::Stationary => SigmaName::Stationary,
                Sigma::Zero => SigmaName::Zero,
            },
            transitions: (0..states.len()).map(row).collect(),
            states,
            largest: None,
            buckets: None,
            outstanding: None,
        }
    }

    /// Adds the curve of the same trace.
    pub fn with_curve(mut self, curve: &ArrivalCurve, largest: f64) -> ModelRecord {
        self.largest = Some(largest);
        self.buckets = Some(BucketRecord::of(curve));
        self
    }

    /// The model.
    ///
    /// # Errors
    /// [`ModelError`] for numbers that are not a valid model.
    pub fn model(&self) -> Result<Mmpp, ModelError> {
        let states: Result<Vec<State>, ModelError> = (self.states.iter().enumerate())
            .map(|(state, record)| {
                let mean = record.requests_per_step;
                let requests = match record.requests {
                    RequestsName::Bernoulli => Requests::Bernoulli(mean),
                    RequestsName::Poisson => Requests::Poisson(mean),
                };
                let fault = || "expected one of exponential, hyperexponential and empirical".to_owned();
                let sizes =
                    record.sizes.sizes().ok_or_else(|| ModelError::Sizes { state, fault: fault() })?;
                Ok(State { requests, sizes })
            })
            .collect();
        let sigma = match self.sigma {
            SigmaName::Stationary => Sigma::Stationary,
            SigmaName::Zero => Sigma::Zero,
        };
        Mmpp::new(self.step_s, states?, &self.transitions, sigma)
    }
}

impl SizesRecord {
    fn of(sizes: &Sizes) -> SizesRecord {
        let none = SizesRecord::default();
        match sizes {
            Sizes::Exponential { mean } => SizesRecord { exponential: Some(*mean), ..none },
            Sizes::Hyperexponential { first, means } => {
                SizesRecord { hyperexponential: Some([*first, means.0, means.1]), ..none }
            }
            Sizes::Empirical { atoms } => {
                let atoms = atoms.iter().map(|&(share, work)| [share, work]);
                SizesRecord { empirical: Some(atoms.collect()), ..none }
            }
        }
    }

    fn sizes(&self) -> Option<Sizes> {
        match (self.exponential, self.hyperexponential, &self.empirical) {
            (Some(mean), None, None) => Some(Sizes::Exponential { mean }),
            (None, Some([first, one, other]), None) => {
                Some(Sizes::Hyperexponential { first, means: (one, other) })
            }
            (None, None, Some(atoms)) => {
                Some(Sizes::Empirical { atoms: atoms.iter().map(|&[share, work]| (share, work)).collect() })
            }
            _ => None,
        }
    }
}
