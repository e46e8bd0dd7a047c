//! Stragglers, and tasks that fail.
//!
//! Sinbad's simulation has both, from its trace (section 7.1), without numbers. So their shares are settings without
//! defaults. A straggler produces its output at a fraction of the pace of others. A task that fails has written some of its
//! blocks; these are deleted, and the task runs again, from the beginning and on another host.

use leeward_fabric::{Bandwidth, HostId};
use leeward_registry::random::{Kind, stream};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Failure, FileWrite};
use crate::settings::{DISK, Factor, Share, draw_host, positive_rate};

const FAULTS: Kind = Kind::named("faults");

/// Shares of tasks that are stragglers, and that fail.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Share of tasks that are stragglers. Default 0.
    pub stragglers: Share,
    /// Factor from 1 by which a straggler is slower than `rate`, or than its own pace if that is lower. Required with
    /// `stragglers`.
    pub slowdown: Option<Factor>,
    /// Rate of an undisturbed task. Default 50MB/s, a disk's (Sinbad section 7.1).
    #[serde(deserialize_with = "positive_rate")]
    pub rate: Bandwidth,
    /// Share of tasks that fail once, at the end of one of their blocks. Default 0.
    pub failures: Share,
}

impl Default for Faults {
    fn default() -> Self {
        let none = Share::new(0.0).expect("zero is a share");
        Faults { stragglers: none, slowdown: None, rate: DISK, failures: none }
    }
}

impl Faults {
    /// Checks the settings. On failure, returns the field and the expected value.
    ///
    /// # Errors
    /// Returns an error for settings without effect, and for a slowdown that is missing or below 1.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let has_stragglers = self.stragglers.get() > 0.0;
        match self.slowdown.map(Factor::get) {
            _ if !has_stragglers && self.failures.get() == 0.0 => {
                Err(("", "no stragglers and no failures; leave it out".to_owned()))
            }
            None if has_stragglers => {
                Err(("slowdown", "missing; expected a factor from 1 for the `stragglers`".to_owned()))
            }
            Some(_) if !has_stragglers => {
                Err(("slowdown", "no effect without `stragglers`; leave it out".to_owned()))
            }
            Some(slowdown) if slowdown < 1.0 => {
                Err(("slowdown", format!("{slowdown}: expected a factor from 1")))
            }
            _ => Ok(()),
        }
    }

    /// Draws the stragglers and failures among the files of a source whose tasks run on `hosts`, and returns a note for its
    /// provenance. The draws of a file depend on the seed and its position alone.
    pub fn apply(&self, files: &mut [FileWrite], hosts: &[HostId], seed: u64) -> String {
        let slowdown = self.slowdown.map_or(1.0, Factor::get);
        let (mut stragglers, mut failures) = (0_u64, 0_u64);
        for (index, file) in (0..).zip(files) {
            let mut random = stream(seed, FAULTS, index);
            let [straggles, fails, progress] = [0; 3].map(|_| random.random::<f64>());
            if straggles < self.stragglers.get() {
                stragglers += 1;
                file.pace = file.pace.min(self.rate.bytes_per_second()) / slowdown;
            }
            if fails < self.failures.get() {
                failures += 1;
                let blocks = file.bytes.0.div_ceil(file.block.0.max(1)).max(1);
                let blocks = 1 + ((progress * blocks as f64) as u64).min(blocks - 1);
                let mut host = draw_host(hosts, &mut random);
                while host == file.writer && hosts.len() > 1 {
                    host = draw_host(hosts, &mut random);
                }
                file.failure = Some(Failure { blocks, host });
            }
        }
        format!("{stragglers} stragglers, {failures} tasks fail once")
    }
}
