//! r-b curves and arrival curves against values of the thesis' released code (`golden/qos/rb`).

use std::io::Read;
use std::path::Path;

use leeward_calculus::RbCurve;
use leeward_testing::golden;
use leeward_testing::golden::{array, buckets, close, number};
use serde_json::Value;

/// Work of a request, by resource: bytes into or out of a server, or seconds of an SSD (SLO section 2.3.2).
fn work(estimator: &str, ssd: &Value, size: f64, reads: bool) -> f64 {
    let (payload, other) = (200.0 + 1.1 * size, 200.0 + 0.025 * size);
    match estimator {
        "networkIn" => [payload, other][usize::from(reads)],
        "networkOut" => [other, payload][usize::from(reads)],
        _ => {
            let column = if reads { "readBandwidth" } else { "writeBandwidth" };
            let table: Vec<(f64, f64)> = array(&ssd["bandwidthTable"])
                .iter()
                .map(|row| (number(&row["requestSize"]), number(&row[column])))
                .collect();
            let pair = table.windows(2).find(|pair| size < pair[1].0);
            let bandwidth = pair.map_or(table[table.len() - 1].1, |pair| {
                let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
                y0 + (y1 - y0) * (size - x0) / (x1 - x0)
            });
            size / bandwidth
        }
    }
}

fn trace(folder: &Path, name: &str, estimator: &str, ssd: &Value) -> Vec<(u64, f64)> {
    let path = folder.join("traces").join(format!("{name}.gz"));
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let size = i64::from_str_radix(fields[1].trim_start_matches("0x"), 16).unwrap() as f64;
        let reads = fields[2].contains("Get") || fields[2].contains("Read");
        (fields[0].parse().unwrap(), work(estimator, ssd, size, reads))
    };
    text.lines().map(row).collect()
}

#[test]
fn curves_of_the_reference_traces_match_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    let ssd = golden::json(&folder.join("rb/profileSSD.json"));
    let mut points = 0;
    for path in golden::files(&folder.join("rb"), |name| name.ends_with("json")) {
        let (name, expected) = (golden::name(&path), golden::json(&path));
        if name == "profileSSD.json" {
            continue;
        }
        let estimator = expected["estimatorType"].as_str().unwrap();
        let arrivals = trace(&folder, expected["trace"].as_str().unwrap(), estimator, &ssd);
        let curve = RbCurve::from_nanos(arrivals).unwrap();
        close(curve.mean_rate().unwrap(), number(&expected["minRate"]), &format!("{name}: mean rate"));
        close(if estimator == "storageSSD" { 1.0 } else { 125e6 }, number(&expected["maxRate"]), &name);
        for point in array(&expected["rb_points"]) {
            let rate = number(&point["r"]);
            close(curve.burst(rate).unwrap(), number(&point["b"]), &format!("{name}: burst at {rate}"));
            points += 1;
        }
        let alpha = curve.arrival_curve();
        for bucket in buckets(&expected["arrival_curve_full"]) {
            close(curve.burst(bucket.rate()).unwrap(), bucket.burst(), &format!("{name}: {bucket:?}"));
        }
        for point in
            array(&expected["arrival_curve_full"]).iter().chain(array(&expected["arrival_curve_pruned12"]))
        {
            let (x, y) = (number(&point["x"]), number(&point["y"]));
            assert!(alpha.arrivals(x) <= y * (1.0 + 1e-9), "{name}: above a curve of fewer rates at {x}");
        }
    }
    println!("{points} points");
    assert!(points > 100);
}
