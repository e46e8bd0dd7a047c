//! Models and their bounds, compared with the results of the authors' released code (`golden/qos/mmbp`).

use crate::support::{model, trace};
use leeward_calculus::fit::{FitSettings, fit};
use leeward_calculus::mmpp::{Sigma, Sizes};
use leeward_testing::golden;

fn close(ours: f64, theirs: f64, tolerance: f64, label: &str) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{label}: {ours} against {theirs}");
}

#[test]
fn fits_of_the_traces_match_the_published_ones() {
    let Some(folder) = golden::folder("qos/mmbp") else { return };
    for path in golden::files(&folder, |name| name.ends_with(".json")) {
        let theirs = golden::json(&path);
        let incoming = theirs["estimator"]["type"] == "networkIn";
        let packed =
            folder.with_file_name("traces").join(format!("{}.gz", theirs["trace"].as_str().unwrap()));
        let ours = fit(&trace(&packed, incoming), &FitSettings::published()).unwrap().model;
        let info = &theirs["arrivalInfo"];
        let mgfs = info["MGFs"].as_array().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(ours.states().len(), mgfs.len(), "{name}");
        for (from, (state, mgf)) in ours.states().iter().zip(mgfs).enumerate() {
            close(state.requests.mean(), mgf["p"].as_f64().unwrap(), 1e-12, name);
            let Sizes::Exponential { mean } = state.sizes else { panic!("{name}: not exponential") };
            if mgf["count"] != 0 {
                close(mean, mgf["lambda"].as_f64().unwrap().recip(), 1e-12, name);
            }
            for to in 0..mgfs.len() {
                let theirs = info["transitionMatrix"][from][to].as_f64().unwrap();
                close(ours.transition(from, to), theirs, 1e-12, name);
            }
        }
    }
}

#[test]
fn bounds_of_the_published_models_match_the_published_ones() {
    let Some(folder) = golden::folder("qos/mmbp") else { return };
    for path in golden::files(&folder, |name| name.ends_with(".json")) {
        let theirs = golden::json(&path);
        let ours = model(&theirs["arrivalInfo"], Sigma::Zero);
        for bound in theirs["bounds"].as_array().unwrap() {
            let theta = bound["theta"].as_f64().unwrap();
            let actual = ours.bound(theta);
            match bound["rho_bytes_per_step"].as_f64() {
                Some(rho) => close(actual.unwrap().rho, rho, 1e-6, &format!("{} {theta}", path.display())),
                None => assert_eq!(actual, None, "{} {theta}", path.display()),
            }
        }
    }
}
