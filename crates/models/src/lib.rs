//! Models and curves of workloads as files: the output of `leeward slo model -o json` and `leeward slo curve -o json`,
//! which SLO files name or contain.

mod read;
mod record;

pub use read::{CurveFile, StageInput, models, read_curves, read_models};
pub use record::{BucketRecord, ModelRecord, RequestsName, SigmaName, SizesRecord, StateRecord};
