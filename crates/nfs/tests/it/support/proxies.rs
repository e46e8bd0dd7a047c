//! Proxies in the process of a test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use leeward_calculus::TokenBucket;
use leeward_nfs::clock::Clock;
use leeward_nfs::event::{Event, Events};
use leeward_nfs::outgoing::Source;
use leeward_nfs::proxy::{Export, Handle, Limits, Proxy, ProxySettings};
use leeward_nfs::server::Server;
use leeward_nfs::workloads::{Entry, Workload, Workloads};
use leeward_shaping::{Caps, Order, OverLimit};
use leeward_traces::device::Device;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A device that serves 1,000 requests a second.
const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 1000}]}"#;

pub struct TestProxy {
    pub address: SocketAddr,
    pub handle: Handle,
    events: Receiver<Event>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

/// Settings of a proxy in front of a server, without workloads and caps.
pub fn settings(server: SocketAddr) -> ProxySettings {
    let export = "127.0.0.1:/vol".parse().expect("an export");
    let server = Server { export, nfs: server, mount: server };
    ProxySettings {
        exports: vec![Export { server, listen: "127.0.0.1:0".parse().expect("an address") }],
        limits: Limits::default(),
        source: Source::Any,
        allowed: None,
        reserved_clients: false,
        caps: Caps::NONE,
        order: Order::default(),
        device: Some(Arc::new(Device::from_text("ssd.json", DEVICE).expect("a device"))),
        workloads: Workloads::none(1),
        recorder: None,
    }
}

/// Name and priority of a workload, address of its client, and rates and bursts of its limits.
pub type Row<'a> = (&'a str, u32, &'a str, &'a [(f64, f64)]);

/// Workloads that are demoted beyond their limits.
pub fn workloads(rows: &[Row]) -> Workloads {
    let entry = |&(name, priority, client, limits): &Row| Entry {
        workload: Workload {
            name: name.to_owned(),
            priority,
            limits: limits.iter().map(|&(r, b)| TokenBucket::new(r, b).expect("a bucket")).collect(),
            over: OverLimit::Demoted,
            slo: None,
        },
        clients: vec![client.parse().expect("an address")],
        export: None,
    };
    Workloads::new(1, rows.iter().map(entry).collect()).expect("different clients")
}

impl TestProxy {
    pub fn start(settings: ProxySettings) -> TestProxy {
        let (events, receiver) = Events::channel();
        let proxy = Proxy::bind(settings, Clock::start(), events).expect("a proxy");
        let (address, handle) = (proxy.addresses()[0], proxy.handle());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(proxy.run(async move {
            let _ = stopped.await;
        }));
        TestProxy { address, handle, events: receiver, stop, task }
    }

    /// Log lines so far.
    pub fn log(&self) -> Vec<String> {
        self.events.try_iter().map(|event| event.to_string()).collect()
    }

    pub async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.expect("no panic").expect("no error");
    }
}
