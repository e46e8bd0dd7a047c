//! The fluid network against solvers and results that are not its own.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use leeward_fabric::{BITS_PER_BYTE, Hop, ResourceId};
use leeward_simulator::fluid::{EntryId, Finished, FlowId, MaxMin, Network};
use proptest::prelude::*;

const TOLERANCE: f64 = 1e-9;

#[derive(Clone, Debug)]
struct Entry {
    hops: Vec<(u32, f64)>,
    weight: f64,
    cap: f64,
    flows: u32,
}

fn hops(entry: &Entry) -> Vec<Hop> {
    entry.hops.iter().map(|&(resource, work)| Hop { resource: ResourceId(resource), work }).collect()
}

/// Progressive filling, plainly: raise all levels together, freeze what a full resource or a cap stops.
fn naive(capacities: &[f64], entries: &[Entry]) -> Vec<f64> {
    let mut level = vec![None::<f64>; entries.len()];
    let mut left = capacities.to_vec();
    let cost = |entry: &Entry, r: usize| -> f64 {
        let work: f64 = entry.hops.iter().filter(|hop| hop.0 as usize == r).map(|hop| hop.1).sum();
        work * entry.weight * f64::from(entry.flows)
    };
    while level.iter().any(Option::is_none) {
        let open = |i: &usize| level[*i].is_none();
        let demand = |r: usize| (0..entries.len()).filter(open).map(|i| cost(&entries[i], r)).sum::<f64>();
        let at = |r: usize| if demand(r) > 0.0 { left[r] / demand(r) } else { f64::INFINITY };
        let full = (0..capacities.len()).map(at).fold(f64::INFINITY, f64::min);
        let capped = (0..entries.len()).filter(open).map(|i| entries[i].cap / entries[i].weight);
        let next = capped.fold(full, f64::min);
        let stopped: Vec<usize> = (0..entries.len())
            .filter(open)
            .filter(|&i| {
                let by_cap = entries[i].cap / entries[i].weight <= next;
                by_cap
                    || (0..capacities.len())
                        .any(|r| cost(&entries[i], r) > 0.0 && at(r) <= next * (1.0 + 1e-12))
            })
            .collect();
        assert!(!stopped.is_empty(), "every entry has a cap or crosses a resource");
        for i in stopped {
            level[i] = Some(next);
            for (r, left) in left.iter_mut().enumerate() {
                *left = (*left - next * cost(&entries[i], r)).max(0.0);
            }
        }
    }
    level.iter().zip(entries).map(|(level, entry)| level.unwrap_or(0.0) * entry.weight).collect()
}

fn entry(resources: u32) -> impl Strategy<Value = Entry> {
    let hop = (0..resources, prop_oneof![Just(8.0), 0.5f64..30.0]);
    let cap = prop_oneof![3 => Just(f64::INFINITY), 1 => 0.1f64..20.0];
    (prop::collection::vec(hop, 1..6), prop_oneof![Just(1.0), 0.2f64..5.0], cap, 1u32..4)
        .prop_map(|(hops, weight, cap, flows)| Entry { hops, weight, cap, flows })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1e-6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_history_ends_in_the_max_min_allocation(
        capacities in prop::collection::vec(prop_oneof![4 => 1f64..1000.0, 1 => Just(0.0)], 1..12),
        steps in prop::collection::vec((0u8..8, any::<prop::sample::Index>(), 0f64..500.0), 1..60),
        pool in prop::collection::vec(entry(12), 60),
    ) {
        let mut capacities = capacities;
        let count = capacities.len() as u32;
        let mut maxmin = MaxMin::new(&capacities).unwrap();
        let mut there: Vec<(EntryId, Entry)> = Vec::new();
        for ((what, which, value), mut new) in steps.into_iter().zip(pool) {
            new.hops.iter_mut().for_each(|hop| hop.0 %= count);
            match what {
                0..=4 => {
                    let id = maxmin.add(&hops(&new), new.weight, new.cap, new.flows).unwrap();
                    there.push((id, new));
                }
                5 if !there.is_empty() => {
                    let (id, _) = there.swap_remove(which.index(there.len()));
                    maxmin.remove(id).unwrap();
                }
                6 if !there.is_empty() => {
                    let at = which.index(there.len());
                    there[at].1.flows = new.flows;
                    maxmin.set_flows(there[at].0, new.flows).unwrap();
                }
                _ => {
                    let r = which.index(capacities.len());
                    capacities[r] = if value < 50.0 { 0.0 } else { value };
                    maxmin.set_capacity(ResourceId(r as u32), capacities[r]).unwrap();
                }
            }
            maxmin.solve();
            let entries: Vec<Entry> = there.iter().map(|(_, entry)| entry.clone()).collect();
            let wanted = naive(&capacities, &entries);
            let rates: Vec<f64> = there.iter().map(|(id, _)| maxmin.rate(*id).unwrap()).collect();
            for (rate, wanted) in rates.iter().zip(&wanted) {
                prop_assert!(close(*rate, *wanted), "{rate} and not {wanted}");
            }
            // Karush, Kuhn and Tucker: nothing over capacity, and each entry is at its cap or crosses a full resource
            // on which nobody has more for its weight.
            let work = |entry: &Entry, r: usize| -> f64 {
                entry.hops.iter().filter(|hop| hop.0 as usize == r).map(|hop| hop.1).sum()
            };
            let load = |r: usize| -> f64 {
                entries.iter().zip(&rates).map(|(e, x)| x * work(e, r) * f64::from(e.flows)).sum()
            };
            for (r, &capacity) in capacities.iter().enumerate() {
                prop_assert!(load(r) <= capacity * (1.0 + TOLERANCE) + 1e-9);
                prop_assert!(close(load(r), maxmin.load(ResourceId(r as u32))), "the load of {r} drifted");
            }
            for (i, entry) in entries.iter().enumerate() {
                let at_cap = close(rates[i], entry.cap);
                let stopped = (0..capacities.len()).filter(|&r| work(entry, r) > 0.0).any(|r| {
                    let full = load(r) >= capacities[r] * (1.0 - TOLERANCE) - 1e-9;
                    let own = rates[i] / entry.weight;
                    let most = entries.iter().zip(&rates).filter(|(e, _)| work(e, r) > 0.0);
                    full && most.map(|(e, x)| x / e.weight).all(|other| other <= own * (1.0 + 1e-8) + 1e-9)
                });
                prop_assert!(at_cap || stopped, "entry {i} could have more");
            }
        }
    }

    #[test]
    fn classes_orders_and_bytes_come_out_the_same(
        flows in prop::collection::vec((0u32..4, 0u32..4, 0u32..40, 1u32..2_000_000), 1..80),
    ) {
        let capacities = vec![8e6, 4e6, 6e6, 5e6, 7e6, 3e6, 8e6, 9e6];
        let path = |from: u32, to: u32| [(from, 8.0), (4 + to, 8.0)].map(|(r, work)| Hop { resource: ResourceId(r), work });
        let run = |classed: bool, reversed: bool| {
            let mut network = Network::new(&capacities).unwrap().observed();
            let mut order: Vec<usize> = (0..flows.len()).collect();
            if reversed {
                order.reverse();
            }
            order.sort_by_key(|&i| flows[i].2);
            let (mut ids, mut ends, mut finished) = (BTreeMap::new(), vec![0.0; flows.len()], Vec::new());
            let mut note = |finished: &mut Vec<Finished>, ids: &BTreeMap<FlowId, usize>| {
                finished.drain(..).for_each(|done| ends[ids[&done.flow]] = done.at);
            };
            for &i in &order {
                let (from, to, at, bytes) = flows[i];
                let at = f64::from(at) * 0.05;
                network.advance(at, &mut finished).unwrap();
                note(&mut finished, &ids);
                let class = classed.then_some(u64::from(from * 4 + to));
                let id = network.start(at, &path(from, to), f64::from(bytes), 1.0, f64::INFINITY, class).unwrap();
                ids.insert(id, i);
            }
            while let Some(at) = network.next_completion() {
                network.advance(at, &mut finished).unwrap();
                note(&mut finished, &ids);
            }
            let carried: Vec<f64> = (0..8).map(|r| network.carried(ResourceId(r), network.now())).collect();
            (ends, carried)
        };
        let (ends, carried) = run(false, false);
        for (classed, reversed) in [(true, false), (false, true), (true, true)] {
            let (others, _) = run(classed, reversed);
            for (a, b) in ends.iter().zip(&others) {
                prop_assert!(close(*a, *b), "{a} and {b}");
            }
        }
        for r in 0..8u32 {
            let sent = flows.iter().filter(|flow| flow.0 == r || 4 + flow.1 == r).map(|flow| f64::from(flow.3) * 8.0);
            prop_assert!(close(carried[r as usize], sent.sum()), "bytes got lost on {r}");
        }
    }
}

// ---- reference results --------------------------------------------------------------------------------------

fn golden(name: &str) -> Option<String> {
    let Ok(folder) = std::env::var("LEEWARD_SHARED") else {
        eprintln!("skipped: {name}: LEEWARD_SHARED is not set: no reference results to compare with");
        return None;
    };
    let path = Path::new(&folder).join("golden/fluid").join(name);
    let mut text = String::new();
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    GzDecoder::new(file).read_to_string(&mut text).expect("a gzip text");
    Some(text)
}

const HOST: f64 = 125e6 * 8.0;
const RACK: f64 = 250e6 * 8.0;

/// Resources of a reference cluster: host up and down, rack up and down, disks.
struct Layout {
    hosts: u32,
    racks: u32,
}

impl Layout {
    fn capacities(&self) -> Vec<f64> {
        let (hosts, racks) = (self.hosts as usize, self.racks as usize);
        [vec![HOST; 2 * hosts], vec![RACK; 2 * racks], vec![1e9; hosts]].concat()
    }

    fn leg(&self, from: u32, to: u32, hops: &mut Vec<Hop>) {
        let mut link = |r: u32| hops.push(Hop { resource: ResourceId(r), work: BITS_PER_BYTE });
        link(2 * from);
        if from / 20 != to / 20 {
            link(2 * self.hosts + 2 * (from / 20));
            link(2 * self.hosts + 2 * (to / 20) + 1);
        }
        link(2 * to + 1);
    }

    fn disk(&self, host: u32, hops: &mut Vec<Hop>) {
        let resource = ResourceId(2 * self.hosts + 2 * self.racks + host);
        hops.push(Hop { resource, work: 20.0 });
    }
}

fn check(name: &str, layout: &Layout) {
    let Some(arrivals) = golden(&format!("{name}.arrivals.csv.gz")) else { return };
    let results = golden(&format!("{name}.fct.csv.gz")).expect("it is beside the arrivals");
    let rows = |text: &'_ str| -> Vec<Vec<String>> {
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let number = |text: &String| text.parse::<f64>().expect("a number");
    let wanted: Vec<f64> = rows(&results).iter().map(|row| number(&row[2])).collect();
    let mut network = Network::new(&layout.capacities()).unwrap();
    let (mut ids, mut finished) = (BTreeMap::new(), Vec::new());
    let mut took = vec![f64::NAN; wanted.len()];
    for (i, row) in rows(&arrivals).iter().enumerate() {
        let at = number(&row[1]);
        let mut hops = Vec::new();
        let bytes = if row.len() == 5 {
            layout.leg(number(&row[2]) as u32, number(&row[3]) as u32, &mut hops);
            number(&row[4])
        } else {
            let (source, first) = (number(&row[3]) as u32, number(&row[4]) as u32);
            layout.leg(source, first, &mut hops);
            if row[2] == "write" {
                let second = number(&row[5]) as u32;
                layout.disk(first, &mut hops);
                layout.leg(first, second, &mut hops);
                layout.disk(second, &mut hops);
            }
            number(&row[6])
        };
        network.advance(at, &mut finished).unwrap();
        let id = network.start(at, &hops, bytes, 1.0, f64::INFINITY, None).unwrap();
        finished.drain(..).for_each(|done: Finished| {
            let (flow, arrived): (usize, f64) = ids[&done.flow];
            took[flow] = done.at - arrived;
        });
        ids.insert(id, (i, at));
    }
    while let Some(at) = network.next_completion() {
        network.advance(at, &mut finished).unwrap();
        for done in finished.drain(..) {
            let (flow, arrived) = ids[&done.flow];
            took[flow] = done.at - arrived;
        }
    }
    let mut worst = 0.0_f64;
    for (i, (ours, wanted)) in took.iter().zip(&wanted).enumerate() {
        let off = (ours - wanted).abs() / (2e-9 + 1e-9 * wanted);
        assert!(off <= 1.0, "flow {i} of {name}: {ours} s and not {wanted} s");
        worst = worst.max(off);
    }
    println!("{name}: {} flows, the worst at {worst:.3} of the tolerance", wanted.len());
}

#[test]
fn reference_results_on_a_tree_are_met() {
    for name in ["S_ws", "S_blk"] {
        check(name, &Layout { hosts: 400, racks: 20 });
    }
}

#[test]
fn reference_results_of_chain_writes_are_met() {
    check("D_chain", &Layout { hosts: 3000, racks: 150 });
}
