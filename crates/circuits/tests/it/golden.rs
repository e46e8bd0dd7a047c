//! `solstice-etalon` against results of the solver released with Etalon (`golden/circuits`).
//!
//! The files hold 27 demands each for 4, 8 and 16 racks. For each demand the tests compare the bytes that the days of a
//! plain and of a shuffled run carry. They also compare the days, if no shuffle has an effect, and the cut demand with
//! its units (in the crate's own tests). They also check that our result lies within the range of a thousand shuffled
//! runs. The tests do not imitate shuffles, so they do not compare shuffled days one by one.

use leeward_circuits::schedulers::REGISTRY;
use leeward_circuits::{Day, DemandMatrix, Matching, Network, Schedule, check, evaluate};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_testing::golden::{documents, square};
use serde_json::Value;

fn network(params: &Value) -> Network {
    let us = |name: &str| Nanos(params[name].as_u64().unwrap() * 1000);
    let rate = |name: &str| Bandwidth(params[name].as_u64().unwrap() * 8_000_000);
    let [circuit, packet] = ["link_bytes_per_us", "packet_bytes_per_us"].map(rate);
    Network::new(circuit, packet, us("night_us"), us("week_us"), us("min_day_us")).unwrap()
}

fn demand(instance: &Value) -> DemandMatrix {
    matrix(&instance["demand_bytes"])
}

fn matrix(rows: &Value) -> DemandMatrix {
    DemandMatrix::new(rows.as_array().unwrap().len(), square(rows)).unwrap()
}

/// Days in the reference's form: time that circuits are up, and the source of each destination.
fn days(schedule: &Schedule) -> Vec<(u64, Vec<u64>)> {
    let sources =
        |day: &leeward_circuits::Day| day.matching.circuits().map(|(from, _)| from as u64).collect();
    schedule.days().iter().map(|day| (day.length.0 / 1000, sources(day))).collect()
}

/// Days of a reference run, in the form of [`days`].
fn reference_days(run: &Value) -> Vec<(u64, Vec<u64>)> {
    let days = run["days"].as_array().unwrap().iter().map(|day| {
        let sources = day["src_of_dst"].as_array().unwrap();
        (day["up_us"].as_u64().unwrap(), sources.iter().map(|source| source.as_u64().unwrap()).collect())
    });
    days.collect()
}

/// Schedule of `solstice-etalon` for an instance's demand, with the instance's preparation.
fn compute_schedule(instance: &Value, network: &Network) -> Schedule {
    let mode = instance["mode"].as_str().unwrap();
    let prepare = if mode == "elem" { "element" } else { mode };
    let scheduler = REGISTRY.make("solstice-etalon", &format!("prepare: {prepare}")).unwrap();
    scheduler.schedule(&demand(instance), network).unwrap()
}

/// Instances of all files, with a label.
fn instances() -> Vec<(String, Network, Value)> {
    let all = documents("circuits", |name| name.starts_with("solstice_")).into_iter().flat_map(
        |(file, content)| {
            let network = network(&content["params"]);
            let instances = content["instances"].as_array().unwrap().clone();
            instances.into_iter().map(move |instance| {
                let name = format!("{file}: {} {}", instance["name"], instance["mode"]);
                (name, network, instance)
            })
        },
    );
    all.collect()
}

#[test]
fn days_of_etalons_solstice_match_the_released_solver() {
    let all = instances();
    let differ: Vec<&String> = all
        .iter()
        .filter(|(_, network, instance)| {
            days(&compute_schedule(instance, network)) != reference_days(&instance["rand_zero"])
        })
        .map(|(name, ..)| name)
        .collect();
    println!("{} schedules compared", all.len());
    assert!(all.len() >= 81 || std::env::var_os("LEEWARD_SHARED").is_none());
    assert!(differ.is_empty(), "{} of {} differ: {differ:#?}", differ.len(), all.len());
}

#[test]
fn days_of_the_released_solver_carry_its_own_count() {
    for (name, network, instance) in instances() {
        let request = matrix(&instance["rng_invariant"]["request"]);
        for run in ["rand_zero", "glibc_srand1"].map(|run| &instance[run]) {
            let day = |(up, sources): (u64, Vec<u64>)| Day {
                matching: Matching::new(sources.into_iter().map(|source| Some(source as u32)).collect())
                    .unwrap_or_else(|error| panic!("{name}: {error}")),
                length: Nanos(up * 1000),
            };
            let days = reference_days(run).into_iter().map(day).collect();
            let schedule = Schedule::new(request.racks(), network.night(), days).unwrap();
            assert_eq!(schedule.length(), network.week(), "{name}");
            let served = evaluate(&schedule, &request, &network).unwrap().served;
            assert_eq!(Some(served), run["circuit_servable_bytes"].as_u64(), "{name}");
        }
    }
}

#[test]
fn schedules_lie_within_the_shuffled_runs_of_the_released_solver() {
    for (name, network, instance) in instances() {
        let request = matrix(&instance["rng_invariant"]["request"]);
        let schedule = compute_schedule(&instance, &network);
        let served = evaluate(&schedule, &request, &network).unwrap().served;
        let stat = |name: &str| instance["seed_stats"][name].as_u64().unwrap();
        let (count, runs) = (schedule.days().len() as u64, stat("seeds"));
        assert!((stat("nday_min")..=stat("nday_max")).contains(&count), "{name}: {count} days, {runs} runs");
        let range = stat("servable_min")..=stat("servable_max");
        assert!(range.contains(&served), "{name}: {served} bytes, {runs} runs had {range:?}");
    }
}

#[test]
fn eclipse_serves_at_least_99_percent_of_its_reference() {
    for (file, content) in documents("circuits", |name| name.starts_with("eclipse_ref_")) {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let name = instance["name"].as_str().unwrap();
            let demand = demand(instance);
            let scheduler = REGISTRY.make("eclipse", "").unwrap();
            let schedule = scheduler.schedule(&demand, &network).unwrap();
            check(&schedule, demand.racks(), &network, scheduler.guarantees()).unwrap();
            let served = evaluate(&schedule, &demand, &network).unwrap().served;
            let expected = instance["eclipse"]["served_bytes"].as_u64().unwrap();
            println!("{file} {name}: {served} of {expected}, {} days", schedule.days().len());
            assert!(served as f64 >= 0.99 * expected as f64, "{file} {name}: {served}, expected {expected}");
        }
    }
}

#[test]
fn the_published_solstice_takes_at_most_a_tenth_longer_than_its_reference() {
    let (mut total, mut expected_total) = (0.0, 0.0);
    for (file, content) in documents("circuits", |name| name.starts_with("eclipse_ref_")) {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let name = instance["name"].as_str().unwrap();
            let demand = demand(instance);
            let schedule = REGISTRY.make("solstice-paper", "").unwrap().schedule(&demand, &network).unwrap();
            let result = evaluate(&schedule, &demand, &network).unwrap();
            let expected = &instance["solstice_paper_unbounded"];
            let (length, expected_length) =
                (schedule.length().0 as f64 / 1e3, expected["makespan_us"].as_f64().unwrap());
            let expected_bytes = expected["circuit_bytes"].as_f64().unwrap();
            println!(
                "{file} {name}: {length} us of {expected_length}, {} bytes of {expected_bytes}",
                result.served
            );
            assert!(
                length <= 1.1 * expected_length,
                "{file} {name}: {length} us, expected {expected_length}"
            );
            assert!(
                result.served as f64 >= 0.9 * expected_bytes,
                "{file} {name}: {}, expected {expected_bytes}",
                result.served
            );
            total += length;
            expected_total += expected_length;
        }
    }
    assert!(total <= 1.01 * expected_total, "{total} us in sum, expected {expected_total}");
}

#[test]
fn partial_matchings_serve_at_least_as_much_as_perfect_ones() {
    let (mut solstice_sum, mut etalon_sum, mut eclipse_sum) = (0.0, 0.0, 0.0);
    for (file, content) in documents("circuits", |name| name.starts_with("eclipse_ref_")) {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let demand = demand(instance);
            let served = |name: &str, settings: &str| {
                let schedule = REGISTRY.make(name, settings).unwrap().schedule(&demand, &network).unwrap();
                evaluate(&schedule, &demand, &network).unwrap().served as f64 / demand.total().max(1) as f64
            };
            let [solstice, etalon] = ["solstice", "solstice-etalon"].map(|name| served(name, ""));
            let name = instance["name"].as_str().unwrap();
            assert!(solstice >= 0.93 * etalon, "{file} {name}: {solstice}, perfect matchings {etalon}");
            solstice_sum += solstice;
            etalon_sum += etalon;
            eclipse_sum += served("eclipse", "keep_min_day: true");
        }
    }
    println!("sums of shares: solstice {solstice_sum}, solstice-etalon {etalon_sum}, eclipse {eclipse_sum}");
    assert!(solstice_sum >= etalon_sum && solstice_sum >= 0.97 * eclipse_sum);
}
