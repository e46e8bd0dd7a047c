//! The built-in workload: an hour like those of the Facebook cluster in Sinbad.
//!
//! The trace is not public; this model is fitted to the data in the paper (Sinbad sections 4 and 7.1). All
//! arrivals scale with the number of hosts relative to the paper's 3000, and with `load`.
//!
//! The model has two parts, each with its assumptions: `writes` (jobs, their writers, their files) and
//! `background` (reads and shuffles, as rates on links or as flows). The size of the background follows from
//! that of the writes by the paper's shares of cross-rack bytes, with each block crossing racks `crossings`
//! times.
//!
//! Fitted values, on the paper's cluster (150 racks of 20 hosts, 10:1): full blocks per second, their share
//! of blocks and of bytes; jobs per week, the share and bytes of each kind of job, the mean write time of a
//! job; the shares of cross-rack bytes; the frequency of Cv > 1 over the downlinks' 10 s means, and of a 95th
//! percentile over links above 75 %; the time for which a link's background stays within 5 %. The test
//! `workload_facebook` prints each beside the paper's value.
//!
//! By default the background is independent of jobs, as in the paper's simulation; the imbalance of section
//! 4.3 is fitted with it. With `phases` the shuffles belong to the jobs that write, and nothing is fitted to
//! them.
//!
//! Not modeled: tasks that write nothing, and the 63 writers per job that the paper's counts imply (4 full
//! blocks per second give 29); bytes by kind of job, where tables 2 and 3 disagree (table 2 is followed);
//! failed racks; a pattern over the day; uplinks as uneven as downlinks *with* the writes on them (at a
//! disk's rate, 4 blocks per second are some 25 writers at a time, few for 150 uplinks); the stability of
//! links with the writes on them, which 4 blocks per second alone make less than the paper's; stability with
//! `background: flows`.

mod background;
mod writes;

use std::num::NonZeroU8;

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Coding, Factor, Share, amount, positive};
use super::source::Loaded;
use super::{Phases, Workload, swim};

/// Hosts of the paper's cluster; rates below refer to this number.
const HOSTS: f64 = 3000.0;
/// Seconds generated before the run begins, so that it begins in a steady state.
const WARM_UP: f64 = 3600.0;

/// A generated hour like those of Facebook's cluster (of any length; the name is the paper's).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Facebook {
    /// Factor on all arrivals, writes and background alike (Sinbad figure 11 has 0.5, 1 and 2).
    pub load: Factor,
    /// Full blocks written per second on 3000 hosts (Sinbad section 7.2: about 4).
    pub full_blocks: Factor,
    /// Jobs that write, per week on 3000 hosts (Sinbad table 1: 175,000).
    pub jobs: Factor,
    /// Squared coefficient of variation of the gaps between jobs, 1 for a Poisson process. 2 is that of the public
    /// coflow trace of the same cluster.
    pub burstiness: Factor,
    /// Block size.
    #[serde(deserialize_with = "positive")]
    pub block: Bytes,
    /// Copies of each block.
    pub replicas: NonZeroU8,
    /// An erasure code instead of copies, such as `6+3`.
    pub coding: Option<Coding>,
    /// Composition of cross-rack bytes; determines the size of the background.
    pub shares: Shares,
    /// Mean number of times that a block crosses racks, for `shares`: once with copies in two racks (the
    /// paper's text), twice with copies in three.
    pub crossings: NonZeroU8,
    /// Form of the background.
    pub background: Background,
    /// Largest share of a link for the background. At 0.95 one more flow gets as much as beside 19 others,
    /// about one per host of the rack.
    pub ceiling: Share,
    /// Shuffle phases of jobs of kinds 1 to 4 before their writes; none if not given. These shuffles replace
    /// those of the background.
    pub phases: Option<Phases>,
    /// If true, writers could be anywhere (Sinbad section 7.2): their own outbound links never delay a block.
    pub flexible: bool,
}

/// Shares of cross-rack bytes by source; they add up to 1. The default is Facebook's (Sinbad table 2).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Input read from another rack.
    pub reads: Share,
    /// Shuffles.
    pub shuffle: Share,
    /// Output of jobs with a shuffle.
    pub output: Share,
    /// Other writes: ingestion and preprocessing, jobs without a shuffle.
    pub other: Share,
}

/// Form of the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// Rates on the racks' links (on a hose mesh, the hosts') that do not share their capacity: the paper's
    /// simulation, which replays the trace's.
    #[default]
    Rates,
    /// Flows between racks that share links with the writes: they slow down where replicas are placed. Reads
    /// and wide shuffles come in small pieces at the pace of tasks, hot shuffles at once.
    Flows,
    /// No background.
    None,
}

impl Default for Facebook {
    fn default() -> Self {
        let factor = |number| Factor::new(number).expect("a default in range");
        let share = |number| Share::new(number).expect("a default in range");
        Facebook {
            load: Factor::ONE,
            full_blocks: factor(4.0),
            jobs: factor(175_000.0),
            burstiness: factor(2.0),
            block: swim::block(),
            replicas: swim::replicas(),
            coding: None,
            shares: Shares {
                reads: share(0.14),
                shuffle: share(0.46),
                output: share(0.10),
                other: share(0.30),
            },
            crossings: NonZeroU8::MIN,
            background: Background::Rates,
            ceiling: share(0.95),
            phases: None,
            flexible: false,
        }
    }
}

impl Facebook {
    /// Generates `horizon` seconds for `cluster`.
    ///
    /// # Errors
    /// Returns an error for invalid settings, or more records than a source may have.
    pub fn generate(&self, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        self.check(horizon)?;
        let writes = writes::Writes::new(self, cluster)?;
        let mut workload = writes.generate(cluster, seed, horizon)?;
        let written: u128 = workload.files.iter().map(|file| u128::from(file.bytes.0)).sum();
        let mut provenance = format!(
            "facebook, generated: {} jobs write {} in {} files; ",
            workload.jobs.len(),
            amount(written),
            workload.files.len()
        );
        if self.phases.is_some() {
            let fetches = || workload.files.iter().flat_map(|file| &file.fetches);
            let bytes = fetches().map(|fetch| u128::from(fetch.bytes.0)).sum();
            provenance += &format!("{} shuffled in {} fetches; ", amount(bytes), fetches().count());
        }
        let (background, words) =
            background::generate(self, cluster, writes.bytes_per_second(), seed, horizon)?;
        let Workload { flows, rates, .. } = background;
        (workload.flows, workload.rates) = (flows, rates);
        provenance += &words;
        Ok(Loaded { workload, provenance })
    }

    fn check(&self, horizon: f64) -> Result<(), InputError> {
        let Shares { reads, shuffle, output, other } = self.shares;
        let sum: f64 = [reads, shuffle, output, other].into_iter().map(Share::get).sum();
        if !(horizon.is_finite() && horizon >= 0.0) {
            return Err(wrong("horizon", format!("{horizon} s: must be finite and not negative")));
        }
        if (sum - 1.0).abs() > 1e-6 || output.get() + other.get() == 0.0 {
            return Err(wrong(
                "shares",
                format!("they add up to {sum:.3}; expected 1, with some writes among them"),
            ));
        }
        if !(0.01..=100.0).contains(&self.burstiness.get()) {
            return Err(wrong("burstiness", format!("{}: expected 0.01 to 100", self.burstiness.get())));
        }
        if !(0.05..=0.99).contains(&self.ceiling.get()) {
            return Err(wrong("ceiling", format!("{}: expected 0.05 to 0.99", self.ceiling.get())));
        }
        Ok(())
    }
}

/// Creates an error about the settings of this source.
fn wrong(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("facebook", message).in_field(field)
}
