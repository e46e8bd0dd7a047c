//! The ledger against a plain model of its semantics. Random histories have reports, commits, starts, releases,
//! capacity changes and outages on a tree with pods. Every number of every resource is compared with a recomputation
//! from the log.

use leeward_calculus::TokenBucket;
use leeward_fabric::{Bytes, DomainId, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{
    Demand, Entry, EntryId, Fade, Initial, Ledger, LedgerSettings, Missing, Owner, OwnerKind, Sample,
    Scratch, Sign, Transaction,
};
use leeward_testing::clusters::{cluster, ledger_with};
use proptest::prelude::*;

use crate::model::{Event, Model, Numbers, Place};
use crate::support::{MBPS, SECOND, TREE};

const STEP: u64 = SECOND / 20;

/// One move of a history: its kind, the time since the last move, and some numbers to choose with.
type Move = (u8, u64, [u32; 4]);

fn settings() -> impl Strategy<Value = LedgerSettings> {
    let missing = prop_oneof![Just(Missing::Strict), Just(Missing::Sinbad)];
    let initial = prop_oneof![Just(Initial::First), Just(Initial::Zero)];
    (missing, initial, 0.05f64..=1.0, 1.0f64..4.0, 6u64..40).prop_map(
        |(missing, initial, alpha, unknown_after, grace)| {
            let grace = Some(Nanos(grace * STEP));
            LedgerSettings {
                missing,
                initial,
                alpha,
                unknown_after,
                grace,
                limit: 0.9,
                reservable: 0.8,
                ..Default::default()
            }
        },
    )
}

/// A history under construction: the ledger, the model, and the state that the next move needs.
struct History {
    ledger: Ledger,
    model: Model,
    ids: Vec<Option<EntryId>>,
    now: u64,
    /// End of the last window reported, by resource.
    until: Vec<u64>,
    classes: bool,
}

impl History {
    fn new(settings: &LedgerSettings, classes: bool) -> History {
        let cluster = cluster(TREE);
        let model = Model {
            fabric: cluster.fabric.clone(),
            capacities: cluster.capacities.clone(),
            settings: settings.clone(),
            log: Vec::new(),
            faces: Vec::new(),
        };
        let until = vec![0; cluster.fabric.resource_count()];
        History { ledger: ledger_with(&cluster, settings), model, ids: Vec::new(), now: 0, until, classes }
    }

    fn apply(&mut self, (kind, wait, chosen): Move) {
        self.now += wait * STEP;
        let now = Nanos(self.now);
        let event = match kind {
            0..=5 => self.report(chosen),
            6..=9 => {
                let entry = self.entry(chosen);
                let face = self.face(&entry);
                let transaction = Transaction { add: vec![entry.clone()], ..Transaction::default() };
                let id = self.ledger.commit(transaction, now).expect("hops of the fabric")[0];
                return self.log(Event::Commit(entry), Some(id), face);
            }
            10 | 11 => match self.chosen_entry(chosen[0]) {
                Some((number, id)) => {
                    // A late message may concern any earlier window.
                    let start = (self.now + u64::from(chosen[1] % 64) * STEP).saturating_sub(58 * STEP);
                    self.ledger.advance(now);
                    self.ledger.mark_started(id, Nanos(start));
                    Event::Started(number, start)
                }
                None => return,
            },
            12 => match self.chosen_entry(chosen[0]) {
                Some((number, id)) => {
                    self.ledger.release(&[id], now);
                    Event::Release(number)
                }
                None => return,
            },
            13 => {
                let resource = ResourceId(chosen[0] % self.until.len() as u32);
                let capacity = i64::from(chosen[1] % 2000) * MBPS as i64;
                self.ledger.set_capacity(resource, Load(capacity), now);
                Event::SetCapacity(resource, capacity)
            }
            14 => {
                let (host, up) = (HostId(chosen[0] % 8), chosen[1] % 2 == 0);
                self.ledger.set_health(host, up, now);
                Event::Health(host, up)
            }
            _ => {
                self.ledger.advance(now);
                return;
            }
        };
        self.log(event, None, 0.0);
    }

    fn log(&mut self, event: Event, id: Option<EntryId>, face: f64) {
        self.model.log.push((self.now, event));
        self.model.faces.push(face);
        self.ids.push(id);
    }

    fn chosen_entry(&self, chosen: u32) -> Option<(usize, EntryId)> {
        let entries: Vec<_> = self.ids.iter().enumerate().filter_map(|(n, id)| Some((n, (*id)?))).collect();
        (!entries.is_empty()).then(|| entries[chosen as usize % entries.len()])
    }

    /// A report of some hosts, or of one link or device, over a window that ends now or a little earlier. The window
    /// begins at, after, or a little before the end of the last one.
    fn report(&mut self, chosen: [u32; 4]) -> Event {
        let until = self.now.saturating_sub(u64::from(chosen[0] % 4) * STEP).max(STEP);
        let fabric = self.model.fabric.clone();
        let resources: Vec<ResourceId> = match chosen[1] % 8 {
            0 => vec![ResourceId(chosen[2] % self.until.len() as u32)],
            1 => vec![fabric.into_domain(DomainId(0)).expect("a tree")],
            _ => fabric
                .all_hosts()
                .filter(|host| chosen[2] >> host.0 & 1 == 0 || chosen[1] % 8 > 4)
                .flat_map(|host| [fabric.egress(host), fabric.ingress(host)])
                .flatten()
                .collect(),
        };
        let lengths = [20, 20, 20, 15, 30, 40, 3];
        let length = lengths[chosen[3] as usize % lengths.len()] * STEP;
        let samples: Vec<Sample> = resources
            .into_iter()
            .map(|resource| {
                let earliest = self.until[resource.index()].saturating_sub(6 * STEP);
                let from = until.saturating_sub(length).max(earliest).min(until - STEP);
                let load = i64::from((chosen[2] ^ resource.0.wrapping_mul(0x9E37_79B9)) % 1000) * MBPS as i64;
                let guaranteed = self.classes.then_some(Load(load / i64::from(chosen[3] % 5 + 1)));
                Sample { resource, window: (Nanos(from), Nanos(until)), load: Load(load), guaranteed }
            })
            .collect();
        for sample in &samples {
            let last = &mut self.until[sample.resource.index()];
            *last = (*last).max(until);
        }
        self.ledger.report(&samples, Nanos(self.now));
        Event::Report(samples)
    }

    fn entry(&self, chosen: [u32; 4]) -> Entry {
        let fabric = &self.model.fabric;
        let (from, to) = (HostId(chosen[0] % 8), HostId(chosen[1] % 8));
        let mut hops: Vec<Hop> = Vec::new();
        let write = leeward_fabric::Endpoint::DeviceWrite(to, 0);
        fabric.path(&[leeward_fabric::Endpoint::Host(from), write], &mut hops);
        let rate = u64::from(chosen[2] % 400) * MBPS;
        let bucket = TokenBucket::new(1e6, 1e6).expect("positive");
        let demand = match chosen[3] % 5 {
            0 | 1 => Demand::Elastic {
                bytes: Bytes(u64::from(chosen[2] % 300) << 20),
                flows: chosen[2] % 3,
                cap_bps: chosen[2].is_multiple_of(2).then_some(rate),
            },
            2 | 3 => Demand::Stream { mean_bps: rate / 2, peak_bps: rate },
            _ => {
                Demand::Envelope { mean_bps: rate / 4, rate_bps: rate, buckets: [bucket].into(), priority: 1 }
            }
        };
        let fades = [
            Fade::AtNextWindow,
            Fade::WithEstimator,
            Fade::WithEstimator,
            Fade::After(Nanos(15 * STEP)),
            Fade::Held,
        ];
        Entry {
            owner: Owner { kind: OwnerKind::Job, id: u64::from(chosen[0] % 3) },
            hops,
            demand,
            sign: if (chosen[3] / 5).is_multiple_of(6) { Sign::Relieves } else { Sign::Adds },
            fade: fades[(chosen[3] / 30) as usize % fades.len()],
            starts: (chosen[3] / 150)
                .is_multiple_of(2)
                .then(|| Nanos(self.now + u64::from(chosen[3] / 300 % 12) * STEP)),
        }
    }

    fn place(&self) -> Place {
        Place { events: self.model.log.len(), time: self.now }
    }

    fn face(&self, entry: &Entry) -> f64 {
        match entry.demand {
            Demand::Stream { peak_bps, .. } => peak_bps as f64 / 8.0,
            Demand::Envelope { mean_bps, .. } => mean_bps as f64 / 8.0,
            Demand::Elastic { flows, cap_bps, .. } => {
                let share =
                    |hop: &Hop| self.model.numbers(hop.resource, self.place(), flows.max(1)).share / hop.work;
                let share = entry.hops.iter().map(share).fold(f64::INFINITY, f64::min);
                share.min(cap_bps.map_or(f64::INFINITY, |cap| cap as f64 / 8.0))
            }
        }
    }

    fn compare(&mut self) {
        self.ledger.advance(Nanos(self.now));
        let mut scratch = Scratch::default();
        let view = self.ledger.view(Nanos(self.now), &mut scratch);
        for resource in (0..self.until.len() as u32).map(ResourceId) {
            let expected = self.model.numbers(resource, self.place(), 2);
            let capacity = view.capacity(resource).0 as f64;
            let found = Numbers {
                measured: view.measured(resource).map(|load| load.0 as f64),
                derived: view.is_derived(resource),
                load: view
                    .utilization_with(resource, Load(0))
                    .map(|u| u * capacity)
                    .filter(|l| l.is_finite()),
                residual: view.residual(resource).0 as f64,
                expected_capacity: view.expected_capacity(resource).map(|load| load.0 as f64),
                share: view.share(resource, 2).0 as f64,
                unreserved: view.unreserved(resource).map_or(f64::NAN, |load| load.0 as f64),
                hot_since: view.hot_since(resource).map(|at| at.0),
            };
            let near = |a: f64, b: f64| (a - b).abs() <= 2.0 + 1e-9 * a.abs();
            let both = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => near(a, b),
                (a, b) => a.is_none() == b.is_none(),
            };
            let same = both(expected.measured, found.measured)
                && (both(expected.load, found.load) || capacity == 0.0)
                && both(expected.expected_capacity, found.expected_capacity)
                && near(expected.residual, found.residual)
                && near(expected.share, found.share)
                && near(expected.unreserved, found.unreserved)
                && (expected.derived, expected.hot_since) == (found.derived, found.hot_since);
            let log = || self.model.log.iter().map(|event| format!("{event:?}\n")).collect::<String>();
            assert!(
                same,
                "{resource:?} at {}\nexpected {expected:?}\n   found {found:?}\n{}",
                self.now,
                log()
            );
        }
    }
}

proptest! {
    #[test]
    fn the_ledger_matches_a_recomputation_from_its_log(
        settings in settings(),
        classes in any::<bool>(),
        moves in prop::collection::vec((0u8..17, 0u64..30, any::<[u32; 4]>()), 1..40),
    ) {
        let mut history = History::new(&settings, classes);
        let last = moves.len() - 1;
        for (index, &step) in moves.iter().enumerate() {
            history.apply(step);
            if index % 8 == 7 || index == last {
                history.compare();
            }
        }
    }
}
