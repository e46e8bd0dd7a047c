//! Settings of the generated hour.

use std::num::NonZeroU8;

use leeward_fabric::Bytes;
use leeward_fabric::input::InputError;
use leeward_placement::replicas::Coding;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::phases::Phases;
use crate::settings::{Factor, Share, default_block, default_replicas, positive};

/// Hosts of the paper's cluster; rates below refer to this number.
pub(super) const HOSTS: f64 = 3000.0;
/// Seconds generated before the run begins, so that it begins in a steady state.
pub(super) const WARM_UP: f64 = 3600.0;

/// A generated workload that resembles the hours of Facebook's cluster. It may have any length.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Facebook {
    /// Factor on all arrivals: both writes and background (Sinbad figure 11 has 0.5, 1 and 2).
    pub load: Factor,
    /// Full blocks written per second on 3000 hosts (Sinbad section 7.2: about 4).
    pub full_blocks: Factor,
    /// Jobs that write, per week on 3000 hosts (Sinbad table 1: 175,000).
    pub jobs: Factor,
    /// Squared coefficient of variation of the gaps between jobs, 1 for a Poisson process. The value 2 is the
    /// burstiness of the public coflow trace of the same cluster.
    pub burstiness: Factor,
    /// Block size.
    #[serde(deserialize_with = "positive")]
    pub block: Bytes,
    /// Copies of each block.
    pub replicas: NonZeroU8,
    /// An erasure code instead of copies, such as `6+3`.
    pub coding: Option<Coding>,
    /// Times and pace of a job's writers.
    pub writers: Writers,
    /// Composition of cross-rack bytes. It determines the size of the background.
    pub shares: Shares,
    /// Mean number of times that a block crosses racks, for `shares`: one for copies in two racks (the paper's text),
    /// two for copies in three racks.
    pub crossings: NonZeroU8,
    /// Form of the background.
    pub background: Background,
    /// Largest share of a link for the background. At 0.95, one more flow gets as much as beside 19 other flows, about
    /// one per host of the rack.
    pub ceiling: Share,
    /// Shuffle phases of jobs of kinds 1 to 4 before their writes; no phases if absent. These shuffles replace the
    /// shuffles of the background.
    pub phases: Option<Phases>,
    /// Share of racks that were down while the workload was recorded (Sinbad section 7.4): no task runs there, and no
    /// background enters or leaves. Placement may choose them.
    pub down: Share,
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

/// Times and pace of a job's writers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Writers {
    /// Writers start in waves, and each writes as fast as disks and links allow. A full block then takes about 5 s, as
    /// Sinbad assumes (section 7.2).
    #[default]
    Waves,
    /// Each block has a writer of its own. The writers of a job start together, and each produces its block at an even
    /// pace over the job's write time, which has the paper's mean of 291 s (section 7.1).
    Paced,
    /// No files: the background alone, as it is beside the files of the other values.
    None,
}

/// Form of the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Background {
    /// Rates on the links of racks (of hosts, on a hose mesh) that do not share their capacity. The paper's simulation
    /// replays the rates of the trace in this way.
    #[default]
    Rates,
    /// Flows between racks that share links with the writes, so they slow down where replicas are placed. Reads and
    /// wide shuffles come in small pieces at the pace of tasks; hot shuffles come at once.
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
            block: default_block(),
            replicas: default_replicas(),
            coding: None,
            writers: Writers::Waves,
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
            down: share(0.0),
            flexible: false,
        }
    }
}

impl Facebook {
    pub(super) fn check(&self, horizon: f64) -> Result<(), InputError> {
        let Shares { reads, shuffle, output, other } = self.shares;
        let sum: f64 = [reads, shuffle, output, other].into_iter().map(Share::get).sum();
        if !(horizon.is_finite() && horizon >= 0.0) {
            return Err(invalid("horizon", format!("{horizon} s: must be finite and not negative")));
        }
        if (sum - 1.0).abs() > 1e-6 || output.get() + other.get() == 0.0 {
            return Err(invalid(
                "shares",
                format!("they add up to {sum:.3}; expected 1, with some writes among them"),
            ));
        }
        if !(0.01..=100.0).contains(&self.burstiness.get()) {
            return Err(invalid("burstiness", format!("{}: expected 0.01 to 100", self.burstiness.get())));
        }
        if self.writers == Writers::None && self.phases.is_some() {
            return Err(invalid("phases", "with `writers: none` no job shuffles; leave one of them out"));
        }
        if self.writers == Writers::None && self.background == Background::None {
            return Err(invalid("writers", "`none` beside `background: none`: nothing is left to generate"));
        }
        if !(0.05..=0.99).contains(&self.ceiling.get()) {
            return Err(invalid("ceiling", format!("{}: expected 0.05 to 0.99", self.ceiling.get())));
        }
        Ok(())
    }
}

/// Creates an error about the settings of this source.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("facebook", message).in_field(field)
}
