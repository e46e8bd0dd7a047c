//! Jobs with phases: map tasks, a shuffle, and tasks that write.
//!
//! A job runs its map tasks, each on a random host. The writing tasks fetch the output of the maps, in equal parts from
//! all of them. A task that has fetched its share writes its file, block after block. A job ends with its last task. (A
//! reducer's write phase lasts from the end of its shuffle to its own end: Sinbad section 4.2.) Fetches are flows like
//! other background traffic. A policy does not move them, but they share links with the blocks that it places. A slow
//! shuffle therefore delays writes, and copies behind a busy link delay shuffles.
//!
//! Maps take time but use no network, because nine in ten tasks read their input on their own machine (section 4.1). A
//! part on the host that needs it crosses no link, and is not fetched. The maps of a job run on at most `mappers` hosts.
//! The parts of a large job then come from fewer hosts, and are larger.

use std::num::NonZeroU16;

use leeward_fabric::{Bandwidth, Bytes, HostId};
use rand::seq::index::sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Fetch;
use crate::settings::{DISK, positive_rate};

/// Settings of jobs with phases.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Phases {
    /// Largest number of hosts for the map tasks of a job.
    pub mappers: NonZeroU16,
    /// Rate of an undisturbed task. It determines the read time of a map's input (`swim`) and the time by which a
    /// task's fetches begin before its write (`facebook`). The default is the rate of a disk (Sinbad section 7.1).
    #[serde(deserialize_with = "positive_rate")]
    pub rate: Bandwidth,
}

impl Default for Phases {
    fn default() -> Self {
        Phases { mappers: NonZeroU16::new(20).expect("twenty is not zero"), rate: DISK }
    }
}

impl Phases {
    /// Draws the hosts of the map tasks of a job with `maps` map tasks.
    pub(crate) fn mappers(&self, maps: u64, hosts: &[HostId], random: &mut impl rand::Rng) -> Vec<HostId> {
        let most = usize::from(self.mappers.get()).min(hosts.len());
        let count = usize::try_from(maps.max(1)).map_or(most, |maps| maps.min(most));
        sample(random, hosts.len(), count).iter().map(|at| hosts[at]).collect()
    }

    /// Time of `bytes` at the rate of an undisturbed task, in seconds.
    pub(crate) fn seconds(&self, bytes: f64) -> f64 {
        bytes / self.rate.bytes_per_second()
    }
}

/// Returns the parts of a task's share of `bytes`, equal ones from all mappers. Parts differ by at most one byte, and add up
/// to the whole.
pub(crate) fn fetches(mappers: &[HostId], bytes: u64) -> Vec<Fetch> {
    let parts = (mappers.len() as u64).max(1);
    let part = |(part, &from): (u64, &HostId)| {
        let bytes = Bytes(bytes / parts + u64::from(part < bytes % parts));
        (bytes.0 > 0).then_some(Fetch { from, bytes })
    };
    (0..).zip(mappers).filter_map(part).collect()
}
