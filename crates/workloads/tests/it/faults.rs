//! Stragglers and failures of tasks: their shares, and files that are the same without them.

use leeward_fabric::HostId;
use leeward_workloads::{Facebook, Factor, Faults, FileWrite, Share};
use proptest::prelude::*;

use crate::support::tree;

fn share(share: f64) -> Share {
    Share::new(share).expect("a share")
}

fn files(horizon: f64) -> Vec<FileWrite> {
    let settings = Facebook { load: Factor::new(20.0).expect("a factor"), ..Facebook::default() };
    settings.generate(&tree(6, 5), 3, horizon).expect("valid settings").workload.files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn faults_have_their_shares_and_leave_the_files_unchanged(
        stragglers in 0.0f64..=1.0, failures in 0.0f64..=1.0, slowdown in 1.0f64..100.0, seed in any::<u64>(),
    ) {
        let cluster = tree(6, 5);
        let slowdown_factor = Factor::new(slowdown);
        let faults = Faults {
            stragglers: share(stragglers), failures: share(failures), slowdown: slowdown_factor,
            ..Faults::default()
        };
        let hosts: Vec<HostId> = cluster.fabric.all_hosts().collect();
        let whole = files(3600.0);
        let mut drawn = whole.clone();
        faults.apply(&mut drawn, &hosts, seed);
        let (mut slow, mut failed) = (0, 0);
        for (file, before) in drawn.iter().zip(&whole) {
            prop_assert_eq!(&FileWrite { pace: before.pace, failure: None, ..file.clone() }, before);
            if file.pace.is_finite() {
                slow += 1;
                prop_assert!((file.pace * slowdown / 50e6 - 1.0).abs() < 1e-9, "{} B/s", file.pace);
            }
            if let Some(failure) = file.failure {
                failed += 1;
                prop_assert!((1..=file.bytes.0.div_ceil(file.block.0)).contains(&failure.blocks));
                prop_assert_ne!(failure.host, file.writer);
            }
        }
        let count = whole.len() as f64;
        // Four standard deviations of a share of this number of files.
        let near = |drawn: i32, share: f64| (f64::from(drawn) / count - share).abs() <= 2.0 / count.sqrt();
        prop_assert!(near(slow, stragglers) && near(failed, failures), "{slow} and {failed} of {count}");
        // A shorter run begins in the same way.
        let mut first = files(600.0);
        faults.apply(&mut first, &hosts, seed);
        let of = |files: &[FileWrite]| -> Vec<_> {
            files.iter().map(|file| (file.start, file.writer, file.bytes, file.pace, file.failure)).collect()
        };
        prop_assert_eq!(of(&drawn[..first.len()]), of(&first));
    }
}
