//! Models and curves of workloads as files: the output of `leeward slo model -o json` and `leeward slo curve -o json`,
//! which SLO files name or contain; and the fields of SLO files for them.

mod by_stage;
mod named;
mod read;
mod record;

pub use by_stage::{BucketsFile, ByStage, DeviceBucket, LinkBucket, Share};
pub use named::{CurvesFile, ModelsFile};
pub use read::{CurveFile, StageInput, models, read_curves, read_models};
pub use record::{BucketRecord, ModelRecord, RequestsName, SigmaName, SizesRecord, StateRecord};
