//! The built-in workload: an hour that resembles the hours of the Facebook cluster in Sinbad.
//!
//! The trace is not public; this model is fitted to the data in the paper (Sinbad sections 4 and 7.1). All
//! arrivals scale with the number of hosts relative to the paper's 3000, and with `load`.
//!
//! The model has two parts, each with its assumptions: `writes` (jobs, their writers, their files) and `background`
//! (reads and shuffles, as rates on links or as flows). The size of the background follows from the size of the writes
//! and the paper's shares of cross-rack bytes. Each block counts `crossings` times.
//!
//! Fitted values, on the paper's cluster (150 racks of 20 hosts, 10:1):
//!
//! * full blocks per second, and their share of blocks and of bytes;
//! * jobs per week, the share and bytes of each kind of job, and the mean write time of a job;
//! * the shares of cross-rack bytes;
//! * the frequency of Cv > 1 over the downlinks' 10 s means, and of a 95th percentile over links above 75 %;
//! * the time for which a link's background stays within 5 %.
//!
//! The test `facebook` prints each value beside the paper's.
//!
//! The paper's trace is a log of tasks. Two of its statements on links hold here for the background alone, if writers
//! write at the rate of disks: the stability of links, and an imbalance of uplinks like that of downlinks (section 4.3).
//! A block then changes a link by a fifth of its capacity for five seconds. With `writers: paced`, a task writes a block
//! over minutes. Uplinks *with* the writes are then as even as downlinks, and links are more stable. They are still less
//! stable than the paper's, because 4 full blocks per second start or end one on each link every 19 s. The default
//! follows the paper's simulation (section 7.2).
//!
//! By default the background is independent of jobs, as in the paper's simulation. The model fits the imbalance of
//! section 4.3 with this default. With `phases`, the shuffles belong to the jobs that write, and no value is fitted.
//!
//! Not modeled:
//!
//! * tasks that write nothing, and the 63 writers per job that the paper's counts imply (4 full blocks per second give
//!   29);
//! * bytes by kind of job, where tables 2 and 3 disagree (the model follows table 2);
//! * racks that fail and recover (`down` has racks that are down for the whole run), and a pattern over the day;
//! * equal imbalance of uplinks and downlinks with such writes: 4 blocks per second are some 25 simultaneous writers, few
//!   for 150 uplinks;
//! * the stability of links with writes at the rate of disks: 4 blocks per second alone make it lower than in the paper;
//! * stability with `background: flows`.

mod background;
mod settings;
mod writes;

use std::collections::BTreeSet;

use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, DomainId, HostId, Shape};
use leeward_registry::random::{Kind, stream};
use rand::seq::index::sample;

use crate::model::{Loaded, Workload};
use crate::settings::{amount, task_hosts};
use settings::invalid;
pub use settings::{Background, Facebook, Shares, Writers};

const DOWN: Kind = Kind::named("facebook.down");

impl Facebook {
    /// Generates `horizon` seconds for `cluster`.
    ///
    /// # Errors
    /// Returns an error for invalid settings, or more records than a source may have.
    pub fn generate(&self, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        self.check(horizon)?;
        let down = self.racks_down(cluster, seed)?;
        let hosts = self.hosts_outside(cluster, &down)?;
        let writes = writes::Writes::new(self, cluster)?;
        let mut workload = match self.writers {
            Writers::None => Workload::default(),
            Writers::Waves | Writers::Paced => writes.generate(&hosts, seed, horizon)?,
        };
        let written: u128 = workload.files.iter().map(|file| u128::from(file.bytes.0)).sum();
        let mut provenance = match self.writers {
            Writers::None => "facebook, generated: no files; ".to_owned(),
            Writers::Waves | Writers::Paced => format!(
                "facebook, generated: {} jobs write {} in {} files; ",
                workload.jobs.len(),
                amount(written),
                workload.files.len()
            ),
        };
        if self.phases.is_some() {
            let fetches = || workload.files.iter().flat_map(|file| file.remote_fetches(file.writer));
            let bytes = fetches().map(|fetch| u128::from(fetch.bytes.0)).sum();
            provenance += &format!("{} shuffled in {} fetches; ", amount(bytes), fetches().count());
        }
        if !down.is_empty() {
            provenance += &format!("{} racks down; ", down.len());
        }
        let (background, note) =
            background::generate(self, cluster, &down, writes.bytes_per_second(), seed, horizon)?;
        let Workload { flows, rates, .. } = background;
        (workload.flows, workload.rates) = (flows, rates);
        provenance += &note;
        Ok(Loaded { workload, provenance })
    }

    /// Returns the hosts that tasks run on: none in the racks that are down.
    pub(crate) fn task_hosts(&self, cluster: &Cluster, seed: u64) -> Result<Vec<HostId>, InputError> {
        self.hosts_outside(cluster, &self.racks_down(cluster, seed)?)
    }

    fn hosts_outside(&self, cluster: &Cluster, down: &BTreeSet<DomainId>) -> Result<Vec<HostId>, InputError> {
        let mut hosts = task_hosts(cluster);
        hosts.retain(|&host| !down.contains(&cluster.fabric.rack_of(host)));
        if hosts.is_empty() {
            return Err(invalid("down", format!("{}: no rack with tasks is left", self.down.get())));
        }
        Ok(hosts)
    }

    /// Draws the racks that were down while the workload was recorded.
    fn racks_down(&self, cluster: &Cluster, seed: u64) -> Result<BTreeSet<DomainId>, InputError> {
        let (fabric, share) = (&cluster.fabric, self.down.get());
        if share == 0.0 {
            return Ok(BTreeSet::new());
        }
        if fabric.shape() != Shape::Tree {
            return Err(invalid("down", "a mesh has no racks"));
        }
        let (racks, count) = (fabric.rack_count(), (share * fabric.rack_count() as f64).round() as usize);
        if count >= racks {
            return Err(invalid("down", format!("{share}: no rack of {racks} is left")));
        }
        if count == 0 {
            return Err(invalid("down", format!("{share}: less than half a rack of {racks}; leave it out")));
        }
        let drawn = sample(&mut stream(seed, DOWN, 0), racks, count);
        Ok(drawn.into_iter().map(|rack| DomainId(rack as u32)).collect())
    }
}
