//! The public traces of Facebook's clusters, in the folder of LEEWARD_DATA.

use std::path::PathBuf;

use leeward_fabric::input::Files;
use leeward_testing::trace_folder;
use leeward_workloads::{Inputs, Workload};

use crate::support::{check, sinbad, source, tree};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;

/// Returns the folder of traces, or prints the reason for a skip.
fn files() -> Option<Inputs> {
    trace_folder("")
        .map(|data| Inputs { files: Files { base: PathBuf::new(), data: Some(data) }, tables: None })
}

fn output(workload: &Workload) -> f64 {
    workload.files.iter().map(|file| file.bytes.0 as f64).sum()
}

#[test]
fn the_coflow_hour_has_its_526_coflows_and_701486_flows_between_racks() {
    let Some(files) = files() else { return };
    let cluster = sinbad();
    for spread in ["racks", "hosts"] {
        let settings =
            format!("{{coflow: {{file: 'data:fb2010-coflow/FB2010-1Hr-150-0.txt', spread: {spread}}}}}");
        let loaded = source(&settings).load(&cluster, &files, 1, 2.0 * HOUR).unwrap();
        println!("{}", loaded.provenance);
        check(&loaded.workload, &cluster, 2.0 * HOUR);
        assert_eq!(loaded.workload.flows.len(), 701_486);
        assert!(loaded.provenance.contains("526 of 526 coflows"), "{}", loaded.provenance);
        // 706,397 pairs in total.
        assert!(loaded.provenance.contains("; 4911 pairs within a rack dropped"), "{}", loaded.provenance);
        let bytes: f64 = loaded.workload.flows.iter().map(|flow| flow.bytes.0 as f64).sum();
        assert!((37.0e12..37.1e12).contains(&bytes), "{bytes}");
    }
}

#[test]
fn the_coflow_hour_is_rejected_on_a_smaller_cluster_unless_folded() {
    let Some(files) = files() else { return };
    let cluster = tree(20, 5);
    let load = |fold| {
        let settings = format!(
            "{{coflow: {{file: 'data:fb2010-coflow/FB2010-1Hr-150-0.txt', fold: {fold}, duration: 10min}}}}"
        );
        source(&settings).load(&cluster, &files, 1, HOUR)
    };
    let refused = load(false).unwrap_err().to_string();
    assert!(refused.contains(":1: racks: 150 racks, but the cluster has 20"), "{refused}");
    check(&load(true).unwrap().workload, &cluster, 600.0);
}

#[test]
fn the_swim_traces_have_the_published_jobs_and_bytes() {
    let Some(files) = files() else { return };
    let cluster = sinbad();
    // Numbers of jobs, and terabytes of output.
    for (name, jobs, terabytes) in [
        ("FB-2009_samples_24_times_1hr_0.tsv.gz", 5_894, 6.9),
        ("FB-2009_samples_24_times_1hr_1.tsv.gz", 6_638, 9.2),
        ("FB-2010_samples_24_times_1hr_0.tsv.gz", 24_442, 339.0),
        ("FB-2010_withInputPaths_h00-11.tsv.gz", 13_483, 131.0),
    ] {
        let swim = source(&format!("{{swim: {{file: 'data:swim-facebook/{name}'}}}}"));
        let loaded = swim.load(&cluster, &files, 1, 2.0 * DAY).unwrap();
        println!("{}", loaded.provenance);
        check(&loaded.workload, &cluster, 2.0 * DAY);
        assert!(loaded.provenance.contains(&format!(": {jobs} of {jobs} jobs")), "{}", loaded.provenance);
        let found = output(&loaded.workload) / 1e12;
        assert!((found - terabytes).abs() < 0.02 * terabytes.max(5.0), "{name}: {found} TB");
    }
}

#[test]
fn an_hour_of_the_larger_trace_fits_a_cluster_of_its_size() {
    let Some(files) = files() else { return };
    let cluster = sinbad();
    let swim = source("{swim: {file: 'data:swim-facebook/FB-2010_withInputPaths_h00-11.tsv.gz', from: 2h}}");
    let loaded = swim.load(&cluster, &files, 1, HOUR).unwrap();
    println!("{}", loaded.provenance);
    check(&loaded.workload, &cluster, HOUR);
    // Three copies of all output, relative to the bytes that 3000 disks write at 50 MB/s.
    let share = 3.0 * output(&loaded.workload) / (3000.0 * 50e6 * HOUR);
    assert!((0.001..0.5).contains(&share), "{share}");
}

#[test]
fn matrices_of_programs_and_racks_have_the_published_bytes() {
    let Some(files) = files() else { return };
    let cluster = tree(400, 2);
    // Gigabytes between ranks, or the configured total.
    for (settings, gigabytes, ranks) in [
        ("file: 'data:mpi-comm-matrices/amg-64.size.csv'", 5.4, 64),
        ("file: 'data:mpi-comm-matrices/lulesh-64.size.csv'", 20.2, 64),
        ("file: 'data:ml-hpc-matrices/dnn-hybrid-parallelism.csv', total: 1TB, numbers: racks", 1e3, 16),
        ("file: 'data:facebook-tm-parsimon/cluster_a.csv.gz', total: 1TB, numbers: racks", 1e3, 155),
        ("file: 'data:facebook-tm-parsimon/cluster_c.csv.gz', total: 1TB, numbers: racks", 1e3, 365),
        (
            "file: 'data:projector-tor-matrix/projector_tors_128_probabilities.txt', total: 1TB, numbers: racks, \
             pairs: [src, dst, pdf_num_bytes]",
            1e3,
            121,
        ),
    ] {
        let loaded = source(&format!("{{matrix: {{{settings}}}}}")).load(&cluster, &files, 1, HOUR).unwrap();
        println!("{}", loaded.provenance);
        check(&loaded.workload, &cluster, HOUR);
        let bytes: f64 = loaded.workload.flows.iter().map(|flow| flow.bytes.0 as f64).sum();
        assert!((bytes / 1e9 - gigabytes).abs() < 0.01 * gigabytes, "{settings}: {bytes}");
        let mut ends: Vec<String> = loaded
            .workload
            .flows
            .iter()
            .flat_map(|f| [format!("{:?}", f.from), format!("{:?}", f.to)])
            .collect();
        ends.sort();
        ends.dedup();
        assert!(ends.len() <= ranks && ends.len() * 10 > ranks * 9, "{settings}: {} ends", ends.len());
    }
}
