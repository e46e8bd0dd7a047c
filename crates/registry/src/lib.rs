//! Plug-ins by name and seeded random streams, for every crate with policies.
//!
//! ```text
//! "sinbad:remote_racks=2" --PolicySpec--> name + settings --Registry<dyn Policy<...>>--> Box<dyn Policy<...>>
//! ```
//!
//! Each kind of plug-in (policies, schedulers, routings, limits, admissions) has a [`Registry`] with one
//! [`Registration`] per plug-in, in the order in which the documentation lists them. A registration holds the name, a
//! summary, the source, the JSON schema of the settings and the constructor. [`splitmix`] is the hash that breaks ties.
//! [`random`] has one random stream for each entity that draws.

pub mod random;
mod registration;
mod settings;
mod spec;
mod splitmix;

pub use registration::{Registration, Registry, RegistryError};
pub use settings::{NoSettings, schema, setting_error, settings};
pub use spec::PolicySpec;
pub use splitmix::{SPLITMIX_STEP, splitmix};
