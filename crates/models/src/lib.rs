//! Models and curves of workloads as files: the output of `leeward slo model -o json` and `leeward slo curve -o json`,
//! which SLO files name or contain; and the token buckets that SLO files state by stage.

mod by_stage;
mod read;
mod record;

pub use by_stage::{BucketsFile, ByStage, DeviceBucket, LinkBucket, Share};
pub use read::{CurveFile, StageInput, models, read_curves, read_models};
pub use record::{BucketRecord, ModelRecord, RequestsName, SigmaName, SizesRecord, StateRecord};
