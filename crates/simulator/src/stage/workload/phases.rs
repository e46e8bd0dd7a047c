//! Jobs with phases: map tasks, a shuffle, and tasks that write.
//!
//! A job runs its map tasks, each on a host drawn for it; what they leave is fetched by the tasks that write, in equal
//! parts from all of them; a task that has fetched its share writes its file, block after block, and a job ends with
//! its last task (Sinbad section 4.2: a reducer's write phase is from the end of its shuffle to its own end). Fetches
//! are flows like any background: a policy does not move them, but they share links with what it does move, so a slow
//! shuffle delays writes, and copies put behind a busy link delay shuffles.
//!
//! Maps take time and no network, since nine in ten tasks read their input on their own machine (section 4.1). A part
//! that lies on the host that wants it crosses no link and is left out. How many hosts a job's maps are spread over
//! is cut at `mappers`: the parts of a large job then come from fewer hosts, and are larger.

use std::num::NonZeroU16;

use leeward_fabric::{Bandwidth, Bytes, HostId};
use rand::seq::index::sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Fetch;
use super::settings::positive_rate;

/// Settings of jobs with phases.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Phases {
    /// Hosts at most over which the map tasks of a job are spread.
    pub mappers: NonZeroU16,
    /// What a task reaches on its own: it says how long a map reads its input (`swim`), and how long before its write a
    /// task begins to fetch (`facebook`). The default is a disk's (Sinbad section 7.1).
    #[serde(deserialize_with = "positive_rate")]
    pub rate: Bandwidth,
}

impl Default for Phases {
    fn default() -> Self {
        Phases { mappers: NonZeroU16::new(20).expect("twenty is not zero"), rate: Bandwidth(400_000_000) }
    }
}

impl Phases {
    /// The hosts of the map tasks of a job that has `maps` of them.
    pub(super) fn mappers(&self, maps: u64, hosts: &[HostId], random: &mut impl rand::Rng) -> Vec<HostId> {
        let most = usize::from(self.mappers.get()).min(hosts.len());
        let count = usize::try_from(maps.max(1)).map_or(most, |maps| maps.min(most));
        sample(random, hosts.len(), count).iter().map(|at| hosts[at]).collect()
    }

    /// How long `bytes` take at the rate of a task on its own, in seconds.
    pub(super) fn seconds(&self, bytes: f64) -> f64 {
        bytes * 8.0 / self.rate.0 as f64
    }
}

/// What a task on `host` fetches of `bytes`: equal parts from all mappers, which differ by a byte at most and, with
/// the part that is there already, add up to the whole.
pub(super) fn fetches(mappers: &[HostId], host: HostId, bytes: u64) -> Vec<Fetch> {
    let parts = (mappers.len() as u64).max(1);
    let part = |(part, &from): (u64, &HostId)| {
        let bytes = Bytes(bytes / parts + u64::from(part < bytes % parts));
        (from != host && bytes.0 > 0).then_some(Fetch { from, bytes })
    };
    (0..).zip(mappers).filter_map(part).collect()
}
