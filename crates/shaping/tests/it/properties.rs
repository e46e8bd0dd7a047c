//! Properties that users of the server rely on, seen from outside: limits, caps, order, and no idle server.

use std::collections::BTreeMap;

use leeward_fabric::Nanos;
use leeward_shaping::{Caps, Order, OverLimit, Request, Server, Start, Ticket, Workload, WorkloadId};
use leeward_testing::allocations::allocations;
use leeward_testing::numbers::Numbers;
use leeward_traces::Kind;
use proptest::prelude::*;

use crate::support::{caps, cases, limit, read, request, settings, workload, write};

/// Requests as (pause before it, workload, request).
fn arrivals() -> impl Strategy<Value = Vec<(u64, usize, Request)>> {
    prop::collection::vec((0u64..9, 0usize..4, request()), 1..80)
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Priority), Just(Order::Fifo), Just(Order::Shares)]
}

/// Adds workloads, and numbers requests by their order.
fn server(order: Order, caps: Caps, workloads: &[Workload]) -> (Server<usize>, Vec<WorkloadId>) {
    let mut server = Server::new(order, caps).unwrap();
    let ids = workloads.iter().map(|workload| server.add(workload).unwrap()).collect();
    (server, ids)
}

/// A request in service, as an observer of starts sees it.
struct Served {
    ticket: Ticket,
    request: Request,
    /// Priority, which is the last one if the request was over its limits.
    priority: u32,
    batch: usize,
    /// Starts and bytes up to this one.
    ever: (u64, u64),
}

/// Checks the caps at each start.
struct Checker {
    caps: Caps,
    served: Vec<Served>,
    batches: usize,
    ever: (u64, u64),
    batch_bytes: u64,
}

impl Checker {
    fn start(&mut self, start: &Start<usize>, request: Request, own: u32) -> Result<(), TestCaseError> {
        let caps = &self.caps;
        let of_kind = self.served.iter().filter(|served| served.request.kind == request.kind);
        let bytes: u64 = of_kind.clone().map(|served| served.request.size).sum();
        if start.joins {
            let batch = caps.batch.unwrap();
            self.batch_bytes += request.size;
            prop_assert!(self.batch_bytes <= batch.bytes);
            let last = self.served.last().unwrap().request;
            let end = last.offset.unwrap() + last.size;
            prop_assert!(request.offset.unwrap().abs_diff(end) <= batch.gap);
            prop_assert_eq!((last.kind, request.kind), (Kind::Write, Kind::Write));
        } else {
            let mut batches: Vec<usize> = self.served.iter().map(|served| served.batch).collect();
            batches.dedup();
            prop_assert!(batches.len() < caps.outstanding as usize);
            let (requests, most) = match request.kind {
                Kind::Read => (caps.reads, caps.read_bytes),
                Kind::Write => (caps.writes, caps.write_bytes),
            };
            prop_assert!(of_kind.count() < requests as usize);
            prop_assert!(bytes == 0 || bytes + request.size <= most);
            let oldest = self.served.iter().find(|served| served.priority < own);
            if let (Some(behind), Some(oldest)) = (caps.behind, oldest) {
                prop_assert!(self.ever.0 - oldest.ever.0 < u64::from(behind.requests));
                prop_assert!(self.ever.1 - oldest.ever.1 < behind.bytes);
            }
            (self.batches, self.batch_bytes) = (self.batches + 1, request.size);
        }
        self.ever = (self.ever.0 + 1, self.ever.1 + request.size);
        self.served.push(Served {
            ticket: start.ticket,
            request,
            priority: if start.was_over { u32::MAX } else { own },
            batch: self.batches,
            ever: self.ever,
        });
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn work_past_a_limit_conforms_over_every_interval(
        arrivals in arrivals(),
        settings in prop::collection::vec(settings(), 4),
        pauses in prop::collection::vec(0u64..25, 1..40),
    ) {
        // Rates and bursts that are not round numbers, and polls that are late.
        let settings: Vec<Workload> = settings.into_iter().map(|settings| Workload {
            limits: settings.limits.iter()
                .map(|bucket| limit(bucket.rate() / 3.3e9, bucket.burst() * 1.1)).collect(),
            over: OverLimit::Held,
            ..settings
        }).collect();
        let (mut server, ids) = server(Order::Priority, Caps::NONE, &settings);
        let mut passed: BTreeMap<usize, Vec<(u64, f64)>> = BTreeMap::new();
        let (mut now, mut pauses) = (0, pauses.into_iter().cycle());
        for (pause, of, request) in &arrivals {
            now += pause;
            let arrival = server.arrive(Nanos(now), ids[*of], *request, *of).unwrap();
            if !arrival.waits {
                passed.entry(*of).or_default().push((now, request.work));
            }
        }
        // Work of the waiting requests by workload, in order.
        let mut waiting: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut left: BTreeMap<usize, usize> =
            passed.iter().map(|(of, passed)| (*of, passed.len())).collect();
        for (_, of, request) in &arrivals {
            match left.get_mut(of).filter(|left| **left > 0) {
                // Requests of a workload pass in order, so the first ones are those that did not wait.
                Some(left) => *left -= 1,
                None => waiting.entry(*of).or_default().push(request.work),
            }
        }
        while let Some(next) = server.next_pass() {
            now = next.0.max(now) + pauses.next().unwrap_or(0);
            while let Some(of) = server.pass(Nanos(now)).copied() {
                let work = waiting.get_mut(&of).unwrap().remove(0);
                passed.entry(of).or_default().push((now, work));
            }
        }
        for (of, passed) in &passed {
            for bucket in &settings[*of].limits {
                // A request larger than the bucket passes when the bucket is empty.
                let largest = passed.iter().map(|(_, work)| *work).fold(0.0, f64::max);
                for (from, first) in passed.iter().enumerate() {
                    let mut work = 0.0;
                    for last in &passed[from..] {
                        work += last.1;
                        let may = bucket.burst().max(largest) + bucket.rate() * (last.0 - first.0) as f64 / 1e9;
                        prop_assert!(work <= may * (1.0 + 1e-8), "{} passed, at most {} may pass", work, may);
                    }
                }
            }
        }
    }

    #[test]
    fn caps_are_never_exceeded_and_only_caps_keep_a_server_idle(
        caps in caps(),
        settings in prop::collection::vec(settings(), 4),
        arrivals in arrivals(),
        completions in prop::collection::vec(any::<prop::sample::Index>(), 80),
    ) {
        let (mut server, ids) = server(Order::Priority, caps, &settings);
        let mut checker = Checker { caps, served: Vec::new(), batches: 0, ever: (0, 0), batch_bytes: 0 };
        let mut now = 0;
        for (number, (pause, of, request)) in arrivals.iter().enumerate() {
            now += pause;
            server.arrive(Nanos(now), ids[*of], *request, number).unwrap();
            while let Some(start) = server.poll(Nanos(now)) {
                let (_, of, request) = arrivals[start.payload];
                checker.start(&start, request, settings[of].priority)?;
            }
            prop_assert_eq!(server.in_service(), checker.served.len());
            // A server without requests has no cap in force.
            prop_assert!(!server.waits() || !checker.served.is_empty());
            if !checker.served.is_empty() && pause % 2 == 0 {
                let at = completions[number].index(checker.served.len());
                prop_assert!(server.complete(checker.served.remove(at).ticket));
            }
        }
    }

    #[test]
    fn without_caps_every_request_with_tokens_starts_at_once(
        order in order(),
        settings in prop::collection::vec(settings(), 4),
        arrivals in arrivals(),
    ) {
        let (mut server, ids) = server(order, Caps::NONE, &settings);
        let mut now = 0;
        for (number, (pause, of, request)) in arrivals.iter().enumerate() {
            now += pause;
            server.arrive(Nanos(now), ids[*of], *request, number).unwrap();
            while server.poll(Nanos(now)).is_some() {}
            prop_assert!(!server.waits());
            let held = server.len() - server.in_service();
            prop_assert_eq!(server.next_poll().is_some(), held > 0);
            prop_assert!(server.next_poll().is_none_or(|next| next.0 > now));
        }
    }

    #[test]
    fn requests_of_a_workload_start_in_order_and_each_once(
        order in order(),
        caps in caps(),
        settings in prop::collection::vec(settings(), 4),
        arrivals in arrivals(),
    ) {
        let (mut server, ids) = server(order, caps, &settings);
        let (mut now, mut last) = (0, BTreeMap::new());
        let mut in_service = Vec::new();
        let mut count = 0;
        let mut poll = |server: &mut Server<usize>, now: u64, in_service: &mut Vec<Ticket>| {
            while let Some(start) = server.poll(Nanos(now)) {
                let before = last.insert(start.workload, start.payload);
                prop_assert!(before.is_none_or(|before| before < start.payload));
                in_service.push(start.ticket);
                count += 1;
            }
            Ok(())
        };
        for (number, (pause, of, request)) in arrivals.iter().enumerate() {
            now += pause;
            let request = Request { number: number as u64, ..*request };
            server.arrive(Nanos(now), ids[*of], request, number).unwrap();
            poll(&mut server, now, &mut in_service)?;
            if number % 3 == 0
                && let Some(ticket) = in_service.pop()
            {
                server.complete(ticket);
            }
        }
        while !server.is_empty() {
            match in_service.pop() {
                Some(ticket) => prop_assert!(server.complete(ticket)),
                None => now = server.next_poll().map_or(now, |next| next.0.max(now)),
            }
            poll(&mut server, now, &mut in_service)?;
        }
        prop_assert_eq!(count, arrivals.len());
    }
}

/// A busy server with a thousand workloads, of which some are over their limits.
struct Busy {
    server: Server<u64>,
    ids: Vec<WorkloadId>,
    in_service: Vec<Ticket>,
    numbers: Numbers,
    now: u64,
}

impl Busy {
    fn new(caps: Caps) -> Busy {
        let mut server = Server::new(Order::Priority, caps).unwrap();
        let settings = |at: u32| Workload {
            limits: vec![limit(1e-4, 40_000.0), limit(1e-3, 9_000.0)],
            over: if at.is_multiple_of(2) { OverLimit::Held } else { OverLimit::Demoted },
            ..workload(at % 97)
        };
        let ids = (0..1000).map(|at| server.add(&settings(at)).unwrap()).collect();
        Busy { server, ids, in_service: Vec::with_capacity(1000), numbers: Numbers::new(7), now: 0 }
    }

    /// Some requests arrive, some end, and what may start does.
    fn turn(&mut self) {
        for _ in 0..4 {
            self.now += self.numbers.below(200_000) as u64;
            let (id, size) = (self.ids[self.numbers.below(1000)], 1 + self.numbers.below(8192) as u64);
            let request = if size % 2 == 0 { read(size) } else { write(size, 8192 * (size % 5)) };
            self.server.arrive(Nanos(self.now), id, request, size).unwrap();
        }
        while let Some(start) = self.server.poll(Nanos(self.now)) {
            self.in_service.push(start.ticket);
        }
        for _ in 0..6_usize.min(self.in_service.len()) {
            let at = self.numbers.below(self.in_service.len());
            assert!(self.server.complete(self.in_service.swap_remove(at)));
        }
    }
}

#[test]
fn a_warm_server_allocates_nothing() {
    use leeward_shaping::{Batch, StartCaps};
    let caps = Caps {
        outstanding: 64,
        write_bytes: 1 << 20,
        behind: Some(StartCaps { requests: 32, bytes: 1 << 20 }),
        batch: Some(Batch { bytes: 1 << 16, gap: 8192 }),
        ..Caps::NONE
    };
    let mut busy = Busy::new(caps);
    (0..20_000).for_each(|_| busy.turn());
    // Room for as many requests again, in case later turns have more of them.
    let tickets: Vec<_> = (0..4000)
        .map(|at| busy.server.arrive(Nanos(busy.now), busy.ids[at % 1000], read(1), 1).unwrap().ticket)
        .collect();
    for ticket in tickets {
        busy.server.cancel(Nanos(busy.now), ticket);
    }
    assert_eq!(allocations(|| (0..2000).for_each(|_| busy.turn())), 0);
}
