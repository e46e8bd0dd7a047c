//! Work of the reference traces, compared with the results of the released code (`golden/qos`), and the released
//! traces.

use std::path::PathBuf;

use leeward_calculus::RbCurve;
use leeward_fabric::input::Files;
use leeward_testing::{golden, trace_folder};
use leeward_traces::device::Device;
use leeward_traces::read::{Dialect, ReadSettings, Requests};
use leeward_traces::{NetworkWork, Request, Stage, Work};
use serde_json::Value;

fn read(path: &str) -> Vec<Request> {
    let text = Files::default().open(path).unwrap();
    let requests = Requests::open(text, &ReadSettings::default()).unwrap();
    assert_eq!(requests.dialect(), Dialect::Compactor);
    requests.collect::<Result<_, _>>().unwrap()
}

#[test]
fn curves_of_the_reference_traces_match_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    let device = Device::read(folder.join("rb/profileSSD.json").to_str().unwrap()).unwrap();
    assert_eq!((device.outstanding.reads, device.outstanding.writes), (Some(48), Some(96)));
    let mut points = 0;
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder.join("rb")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| !path.ends_with("profileSSD.json")) {
        let expected: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let stage = match expected["estimatorType"].as_str().unwrap() {
            "networkIn" => Stage::NetworkIn,
            "networkOut" => Stage::NetworkOut,
            _ => Stage::Storage,
        };
        let trace = folder.join("traces").join(format!("{}.gz", expected["trace"].as_str().unwrap()));
        let mut work = Work::new(NetworkWork::default(), Some(&device));
        let arrivals = read(trace.to_str().unwrap())
            .into_iter()
            .map(|request| (request.at.0, work.of(&request).unwrap().at(stage).unwrap()));
        let curve = RbCurve::from_nanos(arrivals).unwrap();
        for point in expected["rb_points"].as_array().unwrap() {
            let (rate, burst) = (point["r"].as_f64().unwrap(), point["b"].as_f64().unwrap());
            let found = curve.burst(rate).unwrap();
            assert!((found - burst).abs() <= 1e-6 * burst, "{}: {found}, expected {burst}", path.display());
            points += 1;
        }
    }
    println!("{points} points");
    assert!(points > 100);
}

#[test]
fn every_released_trace_is_read_to_its_end() {
    let Some(folder) = trace_folder("zhu-workloadcompactor") else { return };
    let device = Device::read(folder.join("profileSSD.txt").to_str().unwrap()).unwrap();
    let mut requests = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "gz") {
            let mut work = Work::new(NetworkWork::default(), Some(&device));
            for request in read(path.to_str().unwrap()) {
                let seconds = work.of(&request).unwrap().storage.unwrap();
                assert!(seconds > 0.0 && seconds < 0.1, "{}: {request:?}", path.display());
                requests += 1;
            }
        }
    }
    // The description of the data states this number.
    assert_eq!(requests, 772_831);
}
