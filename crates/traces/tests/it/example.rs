//! The example of the guide matches the output of its program.

use std::io::Read;

#[path = "../../examples/synthetic.rs"]
#[expect(dead_code, reason = "its main writes to stdout")]
mod synthetic;

#[test]
fn the_example_trace_matches_its_program() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slo/mail.csv.gz");
    let mut found = String::new();
    let packed = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut found).unwrap();
    let mut expected = Vec::new();
    synthetic::write(&mut expected).unwrap();
    assert!(
        found.as_bytes() == expected,
        "examples/slo/mail.csv.gz: outdated; run the example program again"
    );
}
