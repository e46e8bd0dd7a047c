//! An NFS server in memory, clients, and proxies between them, with the protocol's real bytes.

pub mod client;
pub mod memory_server;
pub mod program;
pub mod proxies;

use std::time::Duration;

use tokio::runtime::Builder;

/// Longest time of a test.
const LONGEST: Duration = Duration::from_secs(60);

/// Runs a test on one thread.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(LONGEST, test).await.expect("the test ends in time") })
}

/// Bytes that depend on their position and on a seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| ((at + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}
