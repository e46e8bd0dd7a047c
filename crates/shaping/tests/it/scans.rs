//! The server compared with the model, decision by decision.

use leeward_fabric::Nanos;
use leeward_shaping::{Caps, Order, Request, Server, Start, Ticket, Workload, WorkloadId};
use proptest::prelude::*;

use crate::support::model::Model;
use crate::support::{caps, cases, request, settings};

/// A step of a run. Numbers choose among what is there.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    Add(Workload),
    Change(usize, Workload),
    Suspend(usize),
    Remove(usize),
    Arrive(usize, Request),
    ArriveDemoted(usize, Request),
    Poll,
    Complete(usize),
    PutBack(usize, u32),
    Cancel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..8).prop_map(Step::Wait),
        1 => settings().prop_map(Step::Add),
        1 => (any::<usize>(), settings()).prop_map(|(at, settings)| Step::Change(at, settings)),
        1 => any::<usize>().prop_map(Step::Suspend),
        1 => any::<usize>().prop_map(Step::Remove),
        10 => (any::<usize>(), request()).prop_map(|(at, request)| Step::Arrive(at, request)),
        1 => (any::<usize>(), request()).prop_map(|(at, request)| Step::ArriveDemoted(at, request)),
        8 => Just(Step::Poll),
        8 => any::<usize>().prop_map(Step::Complete),
        1 => (any::<usize>(), 1u32..13).prop_map(|(at, work)| Step::PutBack(at, work)),
        2 => any::<usize>().prop_map(Step::Cancel),
    ]
}

/// Server and model side by side. A payload is the number of its request.
struct Pair {
    server: Server<u64>,
    model: Model,
    now: u64,
    numbers: u64,
    /// Workloads of both.
    workloads: Vec<(WorkloadId, usize)>,
    waiting: Vec<(Ticket, u64)>,
    started: Vec<(Ticket, u64)>,
}

impl Pair {
    fn new(order: Order, caps: Caps, workloads: &[Workload]) -> Pair {
        let mut pair = Pair {
            server: Server::new(order, caps).unwrap(),
            model: Model::new(order, caps),
            now: 0,
            numbers: 0,
            workloads: Vec::new(),
            waiting: Vec::new(),
            started: Vec::new(),
        };
        workloads.iter().for_each(|workload| pair.add(workload));
        pair
    }

    fn add(&mut self, workload: &Workload) {
        let id = self.server.add(workload).unwrap();
        self.workloads.push((id, self.model.add(workload)));
    }

    /// The next request: its number decides ties.
    fn numbered(&mut self, request: Request) -> Request {
        self.numbers += 1;
        Request { number: self.numbers, ..request }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = Nanos(self.now);
        match step {
            Step::Wait(time) => self.now += time,
            Step::Add(workload) => self.add(&workload),
            Step::Change(at, workload) if !self.workloads.is_empty() => {
                let (id, of_model) = self.workloads[at % self.workloads.len()];
                prop_assert_eq!(self.server.change(now, id, &workload), Ok(()));
                self.model.change(self.now, of_model, &workload);
            }
            Step::Suspend(at) if !self.workloads.is_empty() => {
                let (id, of_model) = self.workloads[at % self.workloads.len()];
                prop_assert!(self.server.suspend(now, id));
                self.model.suspend(self.now, of_model);
            }
            Step::Remove(at) if !self.workloads.is_empty() => {
                let (id, of_model) = self.workloads.swap_remove(at % self.workloads.len());
                prop_assert!(self.server.remove(id));
                self.model.remove(of_model);
            }
            Step::Arrive(at, request) if !self.workloads.is_empty() => {
                let (id, of_model) = self.workloads[at % self.workloads.len()];
                let request = self.numbered(request);
                let arrival = self.server.arrive(now, id, request, self.numbers).unwrap();
                prop_assert_eq!(arrival.waits, self.model.arrive(self.now, of_model, request, self.numbers));
                self.waiting.push((arrival.ticket, self.numbers));
            }
            Step::ArriveDemoted(at, request) if !self.workloads.is_empty() => {
                let (id, of_model) = self.workloads[at % self.workloads.len()];
                let request = self.numbered(request);
                let ticket = self.server.arrive_demoted(now, id, request, self.numbers).unwrap();
                self.model.arrive_demoted(self.now, of_model, request, self.numbers);
                self.waiting.push((ticket, self.numbers));
            }
            Step::Poll => while self.poll()? {},
            Step::Complete(at) if !self.started.is_empty() => {
                let (ticket, payload) = self.started.swap_remove(at % self.started.len());
                prop_assert!(self.server.complete(ticket));
                prop_assert!(!self.server.complete(ticket));
                self.model.complete(payload);
            }
            Step::PutBack(at, work) if !self.started.is_empty() => {
                let (ticket, payload) = self.started.swap_remove(at % self.started.len());
                prop_assert_eq!(self.server.put_back(ticket, f64::from(work), payload), Ok(()));
                self.model.put_back(payload, f64::from(work));
                self.waiting.push((ticket, payload));
            }
            Step::Cancel(at) if !self.waiting.is_empty() => {
                let (ticket, payload) = self.waiting.swap_remove(at % self.waiting.len());
                prop_assert_eq!(self.server.cancel(now, ticket), Some(payload));
                prop_assert_eq!(self.server.cancel(now, ticket), None);
                self.model.cancel(self.now, payload);
            }
            _ => {}
        }
        prop_assert_eq!(self.server.next_poll().map(|time| time.0), self.model.next_poll());
        prop_assert_eq!(self.server.in_service(), self.started.len());
        Ok(())
    }

    /// Starts the next request, if there is one.
    fn poll(&mut self) -> Result<bool, TestCaseError> {
        let start = self.server.poll(Nanos(self.now));
        let expected = self.model.poll(self.now);
        let Some(Start { ticket, workload, payload, was_over, joins }) = start else {
            prop_assert_eq!(None, expected);
            return Ok(false);
        };
        let Some((number, of_model, over, joined)) = expected else {
            return Err(TestCaseError::fail(format!("{payload} starts, none in the model")));
        };
        prop_assert_eq!((payload, was_over, joins), (number, over, joined));
        // A workload that was removed is in neither list.
        let known = self.workloads.iter().find(|(id, _)| *id == workload);
        prop_assert!(known.is_none_or(|(_, other)| *other == of_model));
        let at = self.waiting.iter().position(|(_, waiting)| *waiting == payload).unwrap();
        self.waiting.swap_remove(at);
        self.started.push((ticket, payload));
        Ok(true)
    }

    /// Serves everything that is left.
    fn drain(&mut self) -> Result<(), TestCaseError> {
        while !self.server.is_empty() {
            self.step(Step::Poll)?;
            if self.started.is_empty() {
                let next = self.server.next_poll();
                prop_assert!(next.is_some(), "{} requests wait for nothing", self.server.len());
                self.now = self.now.max(next.unwrap_or_default().0);
            } else {
                self.step(Step::Complete(0))?;
            }
        }
        prop_assert!(self.waiting.is_empty() && self.started.is_empty());
        Ok(())
    }
}

fn run(order: Order, caps: Caps, workloads: &[Workload], steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(order, caps, workloads);
    for step in steps {
        pair.step(step)?;
    }
    pair.drain()
}

fn workloads() -> impl Strategy<Value = Vec<Workload>> {
    prop::collection::vec(settings(), 1..5)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 0..120)
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn priorities_match_the_model(caps in caps(), workloads in workloads(), steps in steps()) {
        run(Order::Priority, caps, &workloads, steps)?;
    }

    #[test]
    fn other_orders_match_the_model(
        order in prop_oneof![Just(Order::Fifo), Just(Order::Shares), Just(Order::Deadline)],
        caps in caps(),
        workloads in workloads(),
        steps in steps(),
    ) {
        run(order, caps, &workloads, steps)?;
    }
}
