//! Readers of snapshots beside the load, each with a connection of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// Content that the readers request.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Whole snapshots with the default columns, one after another.
    Whole,
    /// Differences in the loads of links, once a second.
    Differences,
}

/// Running readers.
pub struct Readers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(usize, usize)>>,
}

impl Readers {
    /// Starts `count` readers.
    pub fn start(address: SocketAddr, kind: Kind, count: usize) -> Readers {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let stop = stop.clone();
            std::thread::spawn(move || read(address, kind, &stop))
        };
        Readers { threads: (0..count).map(start).collect(), stop }
    }

    /// Stops the readers. Returns the number of their responses and of compressed bytes.
    pub fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let ends = self.threads.into_iter().map(|thread| thread.join().expect("the service answers"));
        ends.fold((0, 0), |(responses, bytes), (more, length)| (responses + more, bytes + length))
    }
}

/// Reads until the stop. Returns the number of responses and of compressed bytes.
fn read(address: SocketAddr, kind: Kind, stop: &AtomicBool) -> (usize, usize) {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60))).build().into();
    let (mut responses, mut bytes, mut since) = (0, 0, String::new());
    while !stop.load(Ordering::Relaxed) {
        let path = match kind {
            Kind::Whole => "/v1/snapshot".to_owned(),
            Kind::Differences => {
                format!("/v1/snapshot?links=measured_steps,pending_steps&interval=1s&wait=1s{since}")
            }
        };
        let request = agent.get(format!("http://{address}{path}")).header("accept-encoding", "zstd");
        let mut response = request.call().expect("the service answers");
        let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().expect("a body");
        (responses, bytes) = (responses + 1, bytes + body.len());
        if matches!(kind, Kind::Differences) {
            let body = zstd::stream::decode_all(&body[..]).expect("zstd");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            since = format!("&since={}", body["id"].as_str().expect("an id"));
        }
    }
    (responses, bytes)
}
