//! `solstice-etalon` against what the solver released with Etalon gave (`golden/circuits`).

use std::io::Read;
use std::path::PathBuf;

use leeward_circuits::schedulers::make;
use leeward_circuits::{DemandMatrix, Network, Schedule, check, evaluate};
use leeward_fabric::{Bandwidth, Nanos};
use serde_json::Value;

/// Reference files whose name begins so, in order of name, or none, with a word why.
fn files(beginning: &str) -> Vec<(String, Value)> {
    let Some(shared) = std::env::var_os("LEEWARD_SHARED") else {
        eprintln!("skipped: LEEWARD_SHARED is not set, so there is nothing to compare with");
        return Vec::new();
    };
    let folder = PathBuf::from(shared).join("golden/circuits");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(beginning)).collect();
    names.sort();
    assert!(!names.is_empty(), "{}: no {beginning}*", folder.display());
    names.into_iter().map(|name| (name.clone(), read(&folder.join(name)))).collect()
}

fn read(path: &std::path::Path) -> Value {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap(),
        false => std::io::BufReader::new(file).read_to_string(&mut text).unwrap(),
    };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn network(params: &Value) -> Network {
    let us = |name: &str| Nanos(params[name].as_u64().unwrap() * 1000);
    let rate = |name: &str| Bandwidth(params[name].as_u64().unwrap() * 8_000_000);
    let [circuit, packet] = ["link_bytes_per_us", "packet_bytes_per_us"].map(rate);
    Network::new(circuit, packet, us("night_us"), us("week_us"), us("min_day_us")).unwrap()
}

fn demand(instance: &Value) -> DemandMatrix {
    let rows = instance["demand_bytes"].as_array().unwrap();
    let bytes = rows.iter().flat_map(|row| row.as_array().unwrap()).map(|entry| entry.as_u64().unwrap());
    DemandMatrix::new(rows.len(), bytes.collect()).unwrap()
}

/// Days as the reference writes them: how long circuits are up, and the source of each destination.
fn days(schedule: &Schedule) -> Vec<(u64, Vec<u64>)> {
    let sources = |day: &leeward_circuits::Day| {
        (0..schedule.racks()).map(|to| day.matching.source_of(to).unwrap() as u64).collect()
    };
    schedule.days().iter().map(|day| (day.length.0 / 1000, sources(day))).collect()
}

#[test]
fn days_of_etalons_solstice_are_those_of_the_released_solver() {
    let mut compared = 0;
    let mut differ = Vec::new();
    for (file, content) in files("solstice_") {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let (name, mode) = (instance["name"].as_str().unwrap(), instance["mode"].as_str().unwrap());
            let prepare = if mode == "elem" { "element" } else { mode };
            let scheduler = make("solstice-etalon", &format!("prepare: {prepare}")).unwrap();
            let schedule = scheduler.schedule(&demand(instance), &network).unwrap();
            let expected: Vec<(u64, Vec<u64>)> = instance["rand_zero"]["days"]
                .as_array()
                .unwrap()
                .iter()
                .map(|day| {
                    let sources = day["src_of_dst"].as_array().unwrap();
                    let sources = sources.iter().map(|source| source.as_u64().unwrap()).collect();
                    (day["up_us"].as_u64().unwrap(), sources)
                })
                .collect();
            if days(&schedule) != expected {
                differ.push(format!("{file}: {name} {mode}"));
            }
            compared += 1;
        }
    }
    println!("{compared} schedules compared");
    assert!(compared >= 81 || std::env::var_os("LEEWARD_SHARED").is_none());
    assert!(differ.is_empty(), "{} of {compared} differ: {differ:#?}", differ.len());
}

#[test]
fn eclipse_serves_what_the_reference_of_its_algorithm_does() {
    for (file, content) in files("eclipse_ref_") {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let name = instance["name"].as_str().unwrap();
            let demand = demand(instance);
            let scheduler = make("eclipse", "").unwrap();
            let schedule = scheduler.schedule(&demand, &network).unwrap();
            check(&schedule, demand.racks(), &network, scheduler.promises()).unwrap();
            let served = evaluate(&schedule, &demand, &network).unwrap().served;
            let expected = instance["eclipse"]["served_bytes"].as_u64().unwrap();
            println!("{file} {name}: {served} of {expected}, {} days", schedule.days().len());
            assert!(served as f64 >= 0.99 * expected as f64, "{file} {name}: {served}, expected {expected}");
        }
    }
}

#[test]
fn the_published_solstice_takes_about_as_long_as_its_reference() {
    let (mut all, mut of_all) = (0.0, 0.0);
    for (file, content) in files("eclipse_ref_") {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let name = instance["name"].as_str().unwrap();
            let demand = demand(instance);
            let schedule = make("solstice-paper", "").unwrap().schedule(&demand, &network).unwrap();
            let result = evaluate(&schedule, &demand, &network).unwrap();
            let expected = &instance["solstice_paper_unbounded"];
            let (took, takes) = (schedule.length().0 as f64 / 1e3, expected["makespan_us"].as_f64().unwrap());
            let carries = expected["circuit_bytes"].as_f64().unwrap();
            println!("{file} {name}: {took} us of {takes}, {} bytes of {carries}", result.served);
            assert!(took <= 1.1 * takes, "{file} {name}: {took} us, expected {takes}");
            assert!(
                result.served as f64 >= 0.9 * carries,
                "{file} {name}: {}, expected {carries}",
                result.served
            );
            all += took;
            of_all += takes;
        }
    }
    assert!(all <= 1.01 * of_all, "{all} us in sum, expected {of_all}");
}

#[test]
fn partial_matchings_serve_what_perfect_ones_do_or_more() {
    let (mut ours, mut etalons, mut eclipses) = (0.0, 0.0, 0.0);
    for (file, content) in files("eclipse_ref_") {
        let network = network(&content["params"]);
        for instance in content["instances"].as_array().unwrap() {
            let demand = demand(instance);
            let served = |name: &str, settings: &str| {
                let schedule = make(name, settings).unwrap().schedule(&demand, &network).unwrap();
                evaluate(&schedule, &demand, &network).unwrap().served as f64 / demand.total().max(1) as f64
            };
            let [our, etalon] = ["solstice", "solstice-etalon"].map(|name| served(name, ""));
            let name = instance["name"].as_str().unwrap();
            assert!(our >= 0.93 * etalon, "{file} {name}: {our}, perfect ones {etalon}");
            ours += our;
            etalons += etalon;
            eclipses += served("eclipse", "keep_min_day: true");
        }
    }
    println!("shares of demand: {ours} ours, {etalons} Etalon's, {eclipses} Eclipse's");
    assert!(ours >= etalons && ours >= 0.97 * eclipses);
}
