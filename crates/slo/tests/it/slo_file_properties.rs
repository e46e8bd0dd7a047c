//! Workload files: models round-trip, and no text panics the reader.

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_fabric::input::read_yaml;
use leeward_models::ModelRecord;
use leeward_slo::bound::{Method, bounds};
use leeward_testing::clusters::cluster;
use leeward_traces::Stage;
use proptest::prelude::*;

use crate::support::workload_file::{CLUSTER, GOOD, error_of, one, read_on};

/// States of all kinds.
fn states() -> impl Strategy<Value = Vec<State>> {
    let share = 1e-6..1.0_f64;
    let sizes = prop_oneof![
        (1e-9..1e9_f64).prop_map(|mean| Sizes::Exponential { mean }),
        (share.clone(), 1e-9..1e9_f64, 1e-9..1e9_f64)
            .prop_map(|(first, one, other)| Sizes::Hyperexponential { first, means: (one, other) }),
        (share.clone(), 0.0..1e9_f64, 0.0..1e9_f64).prop_map(|(first, one, other)| Sizes::Empirical {
            atoms: vec![(first, one), (1.0 - first, other)]
        }),
    ];
    let requests = (share, any::<bool>()).prop_map(|(mean, poisson)| {
        if poisson { Requests::Poisson(mean) } else { Requests::Bernoulli(mean) }
    });
    prop::collection::vec((requests, sizes).prop_map(|(requests, sizes)| State { requests, sizes }), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_model_round_trips_to_the_bit(
        states in states(), step in 1e-7..1.0_f64, stay in 0.0..1.0_f64, zero in any::<bool>(),
    ) {
        let count = states.len();
        let leave = (1.0 - stay) / count as f64;
        let row = |from: usize| (0..count).map(|to| if to == from { stay + leave } else { leave }).collect();
        let rows: Vec<Vec<f64>> = (0..count).map(row).collect();
        let sigma = if zero { Sigma::Zero } else { Sigma::Stationary };
        let model = Mmpp::new(step, states, &rows, sigma).unwrap();
        let text = serde_json::to_string(&ModelRecord::of(Stage::Storage, &model, sigma)).unwrap();
        let read: ModelRecord = read_yaml("m.json", &text).unwrap();
        prop_assert_eq!(read.model().unwrap(), model);
    }

    #[test]
    fn no_text_panics_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let found = error_of(&text);
        prop_assert!(!found.contains('\n'), "{}", found);
    }

    #[test]
    fn no_single_edit_panics_the_reader(
        at in 0_usize..1000, cut in 0_usize..6,
        put in prop_oneof![
            prop::sample::select(vec!["", "-1", "1e999", ".inf", "{", "]", "\t", "\n- ", "0", "1e308%", "~", "&a", "*a", "99999999999999999999"])
                .prop_map(str::to_owned),
            ".{0,4}",
        ],
    ) {
        let good = format!(
            "margin: 10%\ncongestion: hosts\nlatency: {{links: 5us, queues: {{r0h0:egress: 1us}}}}\nbuckets: 4\nfit: {{states: 3}}\nbounds: {{unit: fluid}}\n{}  \
             - {{name: b, client: r0h1, server: r1h1, slo: {{percentile: 99, latency: 1s}}, depends_on: [a],\n     \
             curves: {{storage: [{{rate: 5%, burst: 8ms}}]}}, limits: {{storage: [{{rate: 9%, burst: 8ms}}]}}}}\n",
            one(GOOD)
        );
        prop_assert_eq!(error_of(&good), "nothing is wrong");
        let letters: Vec<char> = good.chars().collect();
        let from = at % letters.len();
        let rest = letters[(from + cut).min(letters.len())..].iter();
        let text: String = letters[..from].iter().copied().chain(put.chars()).chain(rest.copied()).collect();
        let cluster = cluster(CLUSTER);
        let placed = read_on(&cluster, &text).and_then(|workloads| Ok((workloads.system(&cluster)?, workloads.bounds)));
        match placed {
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
            Ok((placed, settings)) => {
                for bound in bounds(&placed.system, Method::Best, settings).into_iter().flatten() {
                    prop_assert!(bound.seconds.is_finite() && bound.seconds >= 0.0);
                }
            }
        }
    }
}
