//! Speed of decisions: requests per second of one core through a server with priorities, limits and caps, as a proxy
//! drives it. Times are processor seconds, so other load has little effect.
//!
//! Run by `cargo bench -p leeward-shaping --bench shaping`.

use std::hint::black_box;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_shaping::{
    Batch, Caps, Order, OverLimit, Request, Server, StartCaps, Ticket, Workload, WorkloadId,
};
use leeward_testing::bench::{record, repeats, seconds};
use leeward_testing::numbers::Numbers;
use leeward_traces::Kind;

const REQUESTS: u64 = 1_000_000;
/// Mean gap between requests, in nanoseconds: 50,000 requests a second.
const GAP: u64 = 20_000;

fn caps() -> Caps {
    Caps {
        outstanding: 32,
        read_bytes: 4 << 20,
        write_bytes: 4 << 20,
        behind: Some(StartCaps { requests: 16, bytes: 1 << 20 }),
        batch: Some(Batch { bytes: 256 << 10, gap: 64 << 10 }),
        ..Caps::NONE
    }
}

/// Workloads on 64 priorities, with two buckets each: the first has half of a workload's mean rate to spare.
fn workloads(server: &mut Server<u64>, count: u64) -> Vec<WorkloadId> {
    let rate = 4096e9 / (GAP * count) as f64;
    let settings = |at: u64| Workload {
        priority: (at % 64) as u32,
        weight: 1.0,
        limits: [(1.5, 50.0), (4.0, 10.0)]
            .map(|(r, b)| TokenBucket::new(r * rate, b * 4096.0).expect("a valid bucket"))
            .to_vec(),
        over: OverLimit::Demoted,
    };
    (0..count).map(|at| server.add(&settings(at)).expect("valid settings")).collect()
}

/// Sends requests to a server that ends the oldest request whenever `backlog` of them are in the server. Returns the
/// number of requests that were over their limits.
fn send(server: &mut Server<u64>, ids: &[WorkloadId], backlog: usize) -> u64 {
    let mut numbers = Numbers::new(11);
    let mut in_service: std::collections::VecDeque<Ticket> = std::collections::VecDeque::new();
    let (mut now, mut present, mut over) = (0, 0, 0);
    for number in 0..REQUESTS {
        let random = numbers.draw();
        now += random % (2 * GAP);
        let request = Request {
            kind: if random >> 63 == 0 { Kind::Read } else { Kind::Write },
            size: 4096,
            offset: Some(4096 * (random >> 32)),
            work: 4096.0,
            deadline: Nanos(now + 1_000_000),
            number,
        };
        let id = ids[(random >> 20) as usize % ids.len()];
        black_box(server.arrive(Nanos(now), id, request, number)).expect("the workload is there");
        present += 1;
        loop {
            while let Some(start) = server.poll(Nanos(now)) {
                over += u64::from(start.was_over);
                in_service.push_back(start.ticket);
            }
            if present <= backlog {
                break;
            }
            let Some(oldest) = in_service.pop_front() else { break };
            server.complete(oldest);
            present -= 1;
        }
    }
    over
}

fn main() {
    println!("workloads  waiting   requests/s   ns a request   over their limits");
    for (count, backlog) in [(10, 32), (100, 32), (1000, 32), (1000, 5000)] {
        let mut best = f64::INFINITY;
        let mut over = 0;
        for _ in 0..repeats(3) {
            let mut server = Server::new(Order::Priority, caps()).expect("valid caps");
            let ids = workloads(&mut server, count);
            let began = seconds();
            over = black_box(send(&mut server, &ids, backlog));
            best = best.min(seconds() - began);
        }
        let speed = REQUESTS as f64 / best;
        record(&format!("shaping, {count} workloads, {backlog} present"), "requests/s", speed);
        println!("{count:>9}  {backlog:>7} {speed:>12.0} {:>14.0} {:>19}", 1e9 / speed, over);
    }
}
