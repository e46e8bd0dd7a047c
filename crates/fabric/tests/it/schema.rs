//! The committed JSON schema of cluster files, for editors and other languages, matches the code.

use leeward_fabric::cluster::ClusterFile;

#[test]
fn the_schema_in_the_docs_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cluster.schema.json");
    let schema = serde_json::to_value(schemars::schema_for!(ClusterFile)).expect("a schema is JSON");
    if std::env::var_os("LEEWARD_UPDATE").is_some() {
        let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
        std::fs::write(path, text).expect("the docs can be written");
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    // A comparison of values, because the order of keys does not matter.
    let committed: serde_json::Value = serde_json::from_str(&committed).unwrap_or_default();
    let advice =
        "run `LEEWARD_UPDATE=1 cargo test --release -p leeward-fabric --test it schema` and commit the file";
    assert!(committed == schema, "docs/reference/cluster.schema.json is out of date: {advice}");
}
