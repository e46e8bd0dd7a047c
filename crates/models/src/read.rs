//! Models and curves from files.

use leeward_calculus::mmpp::Mmpp;
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::{InputError, excerpt, format_number, read_text, read_yaml};
use leeward_traces::Stage;
use serde::Deserialize;

use crate::record::{BucketRecord, ModelRecord};

/// Largest burst, and largest rate per second, of a bucket. Sums of curves stay far from the limits of floating-point
/// numbers. As bytes, the value is an exabyte.
const MOST: f64 = 1e18;

/// Curve and model of a stage from a file.
#[derive(Clone, Debug)]
pub struct StageInput {
    /// The stage.
    pub stage: Stage,
    /// Arrival curve, and the work of the largest request.
    pub curve: Option<(ArrivalCurve, f64)>,
    /// The model.
    pub model: Option<Mmpp>,
    /// Requests that the device has at once, as its profile states; for the storage stage.
    pub outstanding: Option<u32>,
}

/// Contents of a curve file.
#[derive(Debug)]
pub struct CurveFile {
    /// The curves, by stage.
    pub stages: Vec<StageInput>,
    /// Unloaded latency of requests in seconds, and its percentile.
    pub unloaded: Option<(f64, f64)>,
}

/// Reads the JSON of `leeward slo model`: a list, or one of its items.
///
/// # Errors
/// [`InputError`] with the field.
pub fn read_models(path: &str) -> Result<Vec<StageInput>, InputError> {
    let text = read_text(path)?;
    let list = text.trim_start().starts_with(['[', '-']);
    let records: Vec<ModelRecord> =
        if list { read_yaml(path, &text)? } else { vec![read_yaml(path, &text)?] };
    models(path, &records)
}

/// Converts records of models; `path` names their file in errors.
///
/// # Errors
/// [`InputError`] with the field.
pub fn models(path: &str, records: &[ModelRecord]) -> Result<Vec<StageInput>, InputError> {
    let mut inputs = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let invalid =
            |field: &str, message: String| InputError::new(path, message).in_field(format!("[{at}].{field}"));
        let stage = stage(&record.stage).map_err(|message| invalid("stage", message))?;
        let model = record.model().map_err(|error| invalid("states", error.to_string()))?;
        let curve = match &record.buckets {
            Some(buckets) => Some(curve(buckets, record.largest).map_err(|error| invalid("buckets", error))?),
            None => None,
        };
        if record.outstanding == Some(0) {
            return Err(invalid("outstanding", "0: expected at least 1".to_owned()));
        }
        let outstanding = record.outstanding.filter(|_| stage == Stage::Storage);
        inputs.push(StageInput { stage, curve, model: Some(model), outstanding });
    }
    unique_stages(path, inputs)
}

/// Reads the JSON of `leeward slo curve`.
///
/// # Errors
/// [`InputError`] with the field.
pub fn read_curves(path: &str) -> Result<CurveFile, InputError> {
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
        #[serde(default)]
        outstanding: Option<u32>,
    }
    #[derive(Deserialize)]
    struct Curve {
        stage: String,
        #[serde(default)]
        largest: Option<f64>,
        buckets: Vec<BucketRecord>,
    }
    let file: File = read_yaml(path, &read_text(path)?)?;
    let outstanding = file.trace.outstanding;
    if outstanding == Some(0) {
        return Err(InputError::new(path, "0: expected at least 1").in_field("trace.outstanding"));
    }
    let mut inputs = Vec::new();
    for (at, record) in file.curves.iter().enumerate() {
        let invalid = |field: &str, message: String| {
            InputError::new(path, message).in_field(format!("curves[{at}].{field}"))
        };
        let stage = stage(&record.stage).map_err(|message| invalid("stage", message))?;
        let curve = curve(&record.buckets, record.largest).map_err(|error| invalid("buckets", error))?;
        let outstanding = outstanding.filter(|_| stage == Stage::Storage);
        inputs.push(StageInput { stage, curve: Some(curve), model: None, outstanding });
    }
    let unloaded = file.trace.unloaded_s.zip(file.percentile);
    if let Some((seconds, _)) = unloaded.filter(|(seconds, _)| !(seconds.is_finite() && *seconds >= 0.0)) {
        let message = format!("{}: expected seconds, not negative", format_number(seconds));
        return Err(InputError::new(path, message).in_field("trace.unloaded_s"));
    }
    Ok(CurveFile { stages: unique_stages(path, inputs)?, unloaded })
}

/// Checks that no stage occurs twice.
fn unique_stages(path: &str, inputs: Vec<StageInput>) -> Result<Vec<StageInput>, InputError> {
    for (at, input) in inputs.iter().enumerate() {
        if inputs[..at].iter().any(|before| before.stage == input.stage) {
            return Err(InputError::new(path, format!("{} is given twice", input.stage)));
        }
    }
    Ok(inputs)
}

fn stage(name: &str) -> Result<Stage, String> {
    Stage::from_name(name).ok_or_else(|| {
        let known = Stage::ALL.map(Stage::name).join(", ");
        format!("`{}`: expected one of {known}", excerpt(name))
    })
}

/// A curve, and the largest work of a request, which is at most the burst.
fn curve(buckets: &[BucketRecord], largest: Option<f64>) -> Result<(ArrivalCurve, f64), String> {
    let numbers = buckets.iter().flat_map(|bucket| [("rate", bucket.rate), ("burst", bucket.burst)]);
    if let Some((name, value)) = numbers.into_iter().find(|(_, value)| *value > MOST) {
        return Err(format!(
            "a {name} of {}: expected at most {}",
            format_number(value),
            format_number(MOST)
        ));
    }
    let token_buckets: Result<Vec<TokenBucket>, _> =
        buckets.iter().map(|bucket| TokenBucket::new(bucket.rate, bucket.burst)).collect();
    let curve = ArrivalCurve::new(&token_buckets.map_err(|error| error.to_string())?);
    let curve = curve.ok_or("an empty list; expected at least one bucket")?;
    let largest = largest.unwrap_or(curve.burst());
    if !(0.0..=curve.burst()).contains(&largest) {
        let (largest, burst) = (format_number(largest), format_number(curve.burst()));
        return Err(format!("a largest request of {largest}, but the burst of the curve is {burst}"));
    }
    Ok((curve, largest))
}
