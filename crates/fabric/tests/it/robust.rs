//! No text makes the reader panic, and every accepted text is a complete network. Random texts seldom get far, so
//! most cases are the example files with random changes.

use leeward_fabric::Cluster;
use proptest::prelude::*;
use proptest::sample::Index;

const EXAMPLES: [&str; 5] = ["reference", "irregular", "pods", "pipe", "hose"];

/// Fragments that mean something in a cluster file, mostly in the wrong place.
const FRAGMENTS: [&str; 36] = [
    "racks", "hosts", "pods", "nic", "link", "pair", "count", "name", "shape", "devices", "tags", ": ", "- ",
    "[", "]", "{", "}", ", ", "\n", "  ", "\t", "#", "&a ", "*a", "<<: *a", "\"", "'", "|\n", "? ", "~", "0",
    "-1", "1e9", ".nan", "10Gbps", "é\u{0}",
];

#[derive(Clone, Debug)]
enum Edit {
    Delete(Index, usize),
    Repeat(Index, usize),
    Insert(Index, usize),
    Move(Index, usize, Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<Index>(), 1usize..60).prop_map(|(at, length)| Edit::Delete(at, length)),
        (any::<Index>(), 1usize..60).prop_map(|(at, length)| Edit::Repeat(at, length)),
        (any::<Index>(), 0..FRAGMENTS.len()).prop_map(|(at, which)| Edit::Insert(at, which)),
        (any::<Index>(), 1usize..60, any::<Index>()).prop_map(|(at, length, to)| Edit::Move(at, length, to)),
    ]
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut text: Vec<char> = text.chars().collect();
    let place = |index: &Index, text: &[char]| index.index(text.len() + 1);
    match edit {
        Edit::Delete(at, length) => {
            let at = place(at, &text);
            text.drain(at..(at + length).min(text.len()));
        }
        Edit::Repeat(at, length) => {
            let at = place(at, &text);
            let part = text[at..(at + length).min(text.len())].to_vec();
            text.splice(at..at, part);
        }
        Edit::Insert(at, which) => {
            let at = place(at, &text);
            text.splice(at..at, FRAGMENTS[*which].chars());
        }
        Edit::Move(at, length, to) => {
            let at = place(at, &text);
            let part: Vec<char> = text.drain(at..(at + length).min(text.len())).collect();
            let to = place(to, &text);
            text.splice(to..to, part);
        }
    }
    text.into_iter().collect()
}

/// An example without its comments, which are most of its text. Changes to comments test nothing.
fn example(name: &str) -> String {
    let path = format!("{}/../../examples/clusters/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the examples are in the repository");
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n")
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match Cluster::from_text("c.yaml", text) {
        Ok(cluster) => {
            let capacities = cluster.capacities.as_slice();
            prop_assert_eq!(capacities.len(), cluster.fabric.resource_count());
            prop_assert!(capacities.iter().all(|capacity| capacity.0 > 0));
            prop_assert!(cluster.fabric.host_count() > 0);
        }
        Err(error) => {
            let text = error.to_string();
            prop_assert_eq!(text.lines().count(), 1, "{:?}", text);
            prop_assert!(!error.message.is_empty() && text.starts_with("c.yaml:"), "{}", text);
            // Words of Rust and of the YAML library, which the author of a cluster file does not know.
            for word in [
                "DuplicateKey",
                "Options",
                "usize",
                "u32",
                "u64",
                "f64",
                "struct",
                "variant",
                "scalar",
                "mapping",
                "event",
            ] {
                prop_assert!(!error.message.contains(word) || error.message.contains("not YAML"), "{}", text);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_example_loads_as_a_whole_or_gives_one_line(
        which in 0..EXAMPLES.len(),
        edits in prop::collection::vec(edit(), 1..5),
    ) {
        let text = edits.iter().fold(example(EXAMPLES[which]), |text, edit| apply(&text, edit));
        check(&text)?;
    }

    #[test]
    fn random_fragments_load_or_give_one_line(picks in prop::collection::vec(0..FRAGMENTS.len(), 0..40)) {
        check(&picks.into_iter().map(|pick| FRAGMENTS[pick]).collect::<String>())?;
    }

    #[test]
    fn any_text_loads_or_gives_one_line(text in "\\PC{0,60}|(?s).{0,60}") {
        check(&text)?;
    }
}

#[test]
fn a_truncated_example_loads_or_gives_one_line() {
    for name in EXAMPLES {
        let text = example(name);
        for (end, _) in text.char_indices() {
            check(&text[..end]).unwrap_or_else(|error| panic!("{name} cut at {end}: {error}"));
        }
    }
}
