//! Models and curves as files: what `leeward slo model -o json` and `leeward slo curve -o json` print.
//!
//! The record of a model is all that there is to it, so the model that is read is the one that was written, to the bit.

use leeward_calculus::mmpp::{Mmpp, ModelError, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::{InputError, excerpt, read_text, read_yaml, shown};
use leeward_traces::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Work of a bucket at most, and a second: sums of curves stay far from the end of numbers. In bytes it is an exabyte.
const MOST: f64 = 1e18;

/// A model at a stage, with the curve of the same trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The stage's name.
    pub stage: String,
    /// Seconds a step.
    pub step_s: f64,
    /// What is taken for sigma.
    #[serde(default)]
    pub sigma: SigmaName,
    /// The states.
    pub states: Vec<StateRecord>,
    /// Probabilities a step, a row for each state that is left.
    pub transitions: Vec<Vec<f64>>,
    /// The most work at one moment, where the curve is known.
    #[serde(default)]
    pub largest: Option<f64>,
    /// The arrival curve, where it is known: bytes and seconds of service, and these a second.
    #[serde(default)]
    pub buckets: Option<Vec<BucketRecord>>,
}

/// What is taken for sigma; see [`Sigma`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SigmaName {
    /// What is safe.
    #[default]
    Stationary,
    /// Zero, as published.
    Zero,
}

/// A state of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StateRecord {
    /// Of the time; for people, and None for a chain that falls apart.
    #[serde(default)]
    pub share: Option<f64>,
    /// For people.
    #[serde(default)]
    pub requests_per_s: Option<f64>,
    /// For people.
    #[serde(default)]
    pub mean_work: Option<f64>,
    /// How many come in a step: their number is Poisson, or one with this probability.
    pub requests_per_step: f64,
    /// Which.
    pub requests: RequestsName,
    /// The work of each.
    pub sizes: SizesRecord,
}

/// How the number of requests of a step is distributed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestsName {
    /// One or none.
    Bernoulli,
    /// Poisson.
    Poisson,
}

/// How the work of a request is distributed: one of the three.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SizesRecord {
    /// Exponential with this mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exponential: Option<f64>,
    /// The probability of the first branch, and the means of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperexponential: Option<[f64; 3]>,
    /// Probabilities, and the work they stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empirical: Option<Vec<[f64; 2]>>,
}

/// A token bucket in the work of its stage.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BucketRecord {
    /// Work a second.
    pub rate: f64,
    /// Work at once.
    pub burst: f64,
}

impl From<TokenBucket> for BucketRecord {
    fn from(bucket: TokenBucket) -> BucketRecord {
        BucketRecord { rate: bucket.rate(), burst: bucket.burst() }
    }
}

impl ModelRecord {
    /// All of a model.
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
        }
    }

    /// The same with the curve of the same trace.
    pub fn with_curve(mut self, curve: &ArrivalCurve, largest: f64) -> ModelRecord {
        self.largest = Some(largest);
        self.buckets = Some(curve.buckets().iter().copied().map(BucketRecord::from).collect());
        self
    }

    /// The model.
    ///
    /// # Errors
    /// Numbers that make none.
    pub fn model(&self) -> Result<Mmpp, ModelError> {
        let states: Result<Vec<State>, ModelError> = (self.states.iter().enumerate())
            .map(|(state, of)| {
                let mean = of.requests_per_step;
                let requests = match of.requests {
                    RequestsName::Bernoulli => Requests::Bernoulli(mean),
                    RequestsName::Poisson => Requests::Poisson(mean),
                };
                let fault = || "expected one of exponential, hyperexponential and empirical".to_owned();
                let sizes = of.sizes.sizes().ok_or_else(|| ModelError::Sizes { state, fault: fault() })?;
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

/// What a file says of a stage.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub stage: Stage,
    pub curve: Option<(ArrivalCurve, f64)>,
    pub model: Option<Mmpp>,
}

/// What a file of curves says.
#[derive(Debug)]
pub(super) struct ToldCurves {
    pub stages: Vec<Told>,
    /// Seconds that requests take without queueing, and the percentile of that.
    pub unloaded: Option<(f64, f64)>,
}

/// Reads the JSON of `leeward slo model`: a list, or one of its items.
pub(super) fn read_models(path: &str) -> Result<Vec<Told>, InputError> {
    let text = read_text(path)?;
    let list = text.trim_start().starts_with(['[', '-']);
    let records: Vec<ModelRecord> =
        if list { read_yaml(path, &text)? } else { vec![read_yaml(path, &text)?] };
    models(path, &records)
}

/// What records of models say; `path` names where they stand.
pub(super) fn models(path: &str, records: &[ModelRecord]) -> Result<Vec<Told>, InputError> {
    let mut told = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let wrong =
            |field: &str, message: String| InputError::new(path, message).in_field(format!("[{at}].{field}"));
        let stage = stage(&record.stage).map_err(|message| wrong("stage", message))?;
        let model = record.model().map_err(|error| wrong("states", error.to_string()))?;
        let curve = match &record.buckets {
            Some(buckets) => Some(curve(buckets, record.largest).map_err(|error| wrong("buckets", error))?),
            None => None,
        };
        told.push(Told { stage, curve, model: Some(model) });
    }
    once(path, told)
}

/// Reads the JSON of `leeward slo curve`.
pub(super) fn read_curves(path: &str) -> Result<ToldCurves, InputError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        trace: Trace,
        #[serde(default)]
        percentile: Option<f64>,
        curves: Vec<Curve>,
    }
    #[derive(Deserialize, Default)]
    struct Trace {
        #[serde(default)]
        unloaded_s: Option<f64>,
    }
    #[derive(Deserialize)]
    struct Curve {
        stage: String,
        #[serde(default)]
        largest: Option<f64>,
        buckets: Vec<BucketRecord>,
    }
    let file: File = read_yaml(path, &read_text(path)?)?;
    let mut told = Vec::new();
    for (at, of) in file.curves.iter().enumerate() {
        let wrong = |field: &str, message: String| {
            InputError::new(path, message).in_field(format!("curves[{at}].{field}"))
        };
        let stage = stage(&of.stage).map_err(|message| wrong("stage", message))?;
        let curve = curve(&of.buckets, of.largest).map_err(|error| wrong("buckets", error))?;
        told.push(Told { stage, curve: Some(curve), model: None });
    }
    let unloaded = file.trace.unloaded_s.zip(file.percentile);
    if let Some((seconds, _)) = unloaded.filter(|(seconds, _)| !(seconds.is_finite() && *seconds >= 0.0)) {
        let message = format!("{}: expected seconds, not negative", shown(seconds));
        return Err(InputError::new(path, message).in_field("trace.unloaded_s"));
    }
    Ok(ToldCurves { stages: once(path, told)?, unloaded })
}

fn once(path: &str, told: Vec<Told>) -> Result<Vec<Told>, InputError> {
    for (at, of) in told.iter().enumerate() {
        if told[..at].iter().any(|before| before.stage == of.stage) {
            return Err(InputError::new(path, format!("{} is there twice", of.stage)));
        }
    }
    Ok(told)
}

fn stage(name: &str) -> Result<Stage, String> {
    Stage::named(name).ok_or_else(|| {
        let known = Stage::ALL.map(Stage::name).join(", ");
        format!("`{}`: expected one of {known}", excerpt(name))
    })
}

/// A curve, and the largest work of a request: not above the burst.
fn curve(buckets: &[BucketRecord], largest: Option<f64>) -> Result<(ArrivalCurve, f64), String> {
    let numbers = buckets.iter().flat_map(|bucket| [("rate", bucket.rate), ("burst", bucket.burst)]);
    if let Some((name, value)) = numbers.into_iter().find(|(_, value)| *value > MOST) {
        return Err(format!("a {name} of {}: expected at most {}", shown(value), shown(MOST)));
    }
    let made: Result<Vec<TokenBucket>, _> =
        buckets.iter().map(|bucket| TokenBucket::new(bucket.rate, bucket.burst)).collect();
    let curve = ArrivalCurve::new(&made.map_err(|error| error.to_string())?);
    let curve = curve.ok_or("an empty list; expected at least one bucket")?;
    let largest = largest.unwrap_or(curve.burst());
    if !(0.0..=curve.burst()).contains(&largest) {
        let (largest, burst) = (shown(largest), shown(curve.burst()));
        return Err(format!("a largest request of {largest}, but the burst of the curve is {burst}"));
    }
    Ok((curve, largest))
}
