//! Files of workloads with SLOs, and the system of one.
#![no_main]

use leeward_fabric::input::{Files, Text};
use leeward_placement::volumes::bound::{Method, bounds};
use leeward_placement::volumes::file::Workloads;
use libfuzzer_sys::fuzz_target;

const TRACE: &str = "seconds,kind,size\n0.1,read,4096\n0.2,write,8192\n0.3,read,4096\n";

fuzz_target!(|text: &str| {
    let open = |name: &str| Text::from_bytes(name, TRACE);
    let cluster = &*leeward_fuzz::CLUSTER;
    let read = Workloads::from_text("slo", text, cluster, &Files::default(), &open, None);
    match read.and_then(|workloads| Ok((workloads.system(cluster)?, workloads.bounds))) {
        Ok((placed, settings)) => {
            for bound in bounds(&placed.system, Method::Best, settings).into_iter().flatten() {
                assert!(bound.seconds.is_finite() && bound.seconds >= 0.0);
            }
        }
        Err(error) => leeward_fuzz::one_line(&error),
    }
});
