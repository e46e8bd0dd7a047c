//! Every fuzz target has a binary and seeds in `fuzz/`, and passes over its seeds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use leeward_fuzzing::TARGETS;

fn fuzz(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(path)
}

/// Names of the entries of a folder, without extensions.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz(folder)).expect("a folder");
    let stem = |path: PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(entry.expect("an entry").path())).collect()
}

#[test]
fn each_binary_runs_the_target_of_its_name() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), targets);
    let manifest = fs::read_to_string(fuzz("Cargo.toml")).expect("a manifest");
    assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
    for name in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name} is no binary");
        let code = fs::read_to_string(fuzz(&format!("fuzz_targets/{name}.rs"))).expect("a binary");
        let call = format!("libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::{name}(bytes));");
        assert!(code.contains(&call), "{name} does not call its target");
    }
}

#[test]
fn each_target_accepts_its_seeds() {
    for (name, target) in TARGETS {
        let seeds: Vec<PathBuf> = fs::read_dir(fuzz("seeds").join(name))
            .unwrap_or_else(|error| panic!("no seeds for {name}: {error}"))
            .map(|entry| entry.expect("an entry").path())
            .collect();
        assert!(!seeds.is_empty(), "no seeds for {name}");
        for seed in seeds {
            println!("{}", seed.display());
            target(&fs::read(&seed).expect("a seed"));
        }
    }
}
