//! Device files, and the work and latencies that follow from them.

use leeward_fabric::Nanos;
use leeward_testing::rows::{check_rows, equal};
use leeward_traces::device::{
    Behind, Device, Disk, Head, Latency, Rates, Seek, Service, TableError, Unloaded, WriteBatch,
};
use leeward_traces::{Kind, NetworkWork, Request, Stage, Tail, Work, WorkError};
use proptest::prelude::*;

const SSD: &str = r#"{
  "name": "an SSD",
  "table": [
    {"size_bytes": 1000, "read_iops": 10000, "write_bytes_per_second": 1e6},
    {"size_bytes": 3000, "read_bytes_per_second": 30e6, "write_iops": 1000}
  ],
  "unloaded": [
    {"kind": "read", "size_bytes": 1000, "percentile": 99, "seconds": 0.001},
    {"kind": "read", "size_bytes": 3000, "percentile": 99, "seconds": 0.003},
    {"kind": "read", "size_bytes": 1000, "percentile": 99.9, "seconds": 0.01},
    {"kind": "write", "size_bytes": 1000, "percentile": 99.9, "seconds": 0.02}
  ],
  "outstanding_reads": 48
}"#;

const DISK: &str = "
disk:
  seek:
    - {distance_bytes: 0, seconds: 0.001}
    - {distance_bytes: 1000, seconds: 0.005}
    - {distance_bytes: 100000, seconds: 0.010}
  read_bytes_per_second: 1e6
  write_bytes_per_second: 5e5
  history: 2
";

fn device(text: &str) -> Device {
    Device::from_text("d.json", text).unwrap()
}

fn error_of(text: &str) -> String {
    Device::from_text("d.json", text).map_or_else(|error| error.to_string(), |_| "no error".to_owned())
}

fn request(kind: Kind, size: u64, offset: Option<u64>) -> Request {
    Request { at: Nanos(1_500_000_000), kind, size, offset }
}

fn seconds(device: &Device, head: &mut Head, kind: Kind, size: u64, offset: u64) -> f64 {
    device.seconds(head, &request(kind, size, Some(offset))).unwrap()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found}, expected {expected}");
}

#[test]
fn payload_travels_in_with_a_write_and_out_with_a_read() {
    let network = NetworkWork::default();
    let (read, write) = (request(Kind::Read, 1000, None), request(Kind::Write, 1000, None));
    close(network.bytes_in(&read), 225.0);
    close(network.bytes_out(&read), 1300.0);
    close(network.bytes_in(&write), 1300.0);
    close(network.bytes_out(&write), 225.0);
    let bare = NetworkWork::new(0.0, 1.0, 0.0).unwrap();
    close(bare.bytes_in(&write), 1000.0);
    assert_eq!(
        NetworkWork::new(-1.0, 1.0, 0.0).unwrap_err().to_string(),
        "overhead -1: expected a number from 0 to 1e9"
    );
    assert!(NetworkWork::new(0.0, f64::NAN, 0.0).is_err());
}

#[test]
fn work_at_an_ssd_is_the_size_over_the_bandwidth_between_the_rows() {
    let ssd = device(SSD);
    let head = &mut Head::default();
    close(seconds(&ssd, head, Kind::Read, 1000, 0), 1e-4);
    close(seconds(&ssd, head, Kind::Read, 3000, 0), 1e-4);
    // A size in the middle between the sizes with 10 and 30 MB/s.
    close(seconds(&ssd, head, Kind::Read, 2000, 0), 2000.0 / 20e6);
    close(seconds(&ssd, head, Kind::Write, 3000, 0), 1e-3);
    close(seconds(&ssd, head, Kind::Read, 1, 0), 1e-4);
    close(seconds(&ssd, head, Kind::Read, 6000, 0), 2e-4);
    assert_eq!((ssd.outstanding.reads, ssd.outstanding.writes), (Some(48), None));
    assert_eq!(ssd.name.as_deref(), Some("an SSD"));
}

#[test]
fn latency_without_queueing_is_taken_from_the_next_measured_percentile() {
    let ssd = device(SSD);
    close(ssd.unloaded(Kind::Read, 2000, 99.0).unwrap().unwrap(), 0.002);
    close(ssd.unloaded(Kind::Read, 2000, 50.0).unwrap().unwrap(), 0.002);
    close(ssd.unloaded(Kind::Read, 1000, 99.5).unwrap().unwrap(), 0.01);
    close(ssd.unloaded(Kind::Read, 1, 99.0).unwrap().unwrap(), 0.001);
    // Write sizes of 1000 only, and reads of 3000 only up to 99 %.
    check_rows(
        [
            (
                (Kind::Read, 6000, 99.0),
                "percentile 99: no latency without queueing was measured for reads of 6kB at it, only 1kB to 3kB: profile",
            ),
            (
                (Kind::Read, 3000, 99.9),
                "percentile 99.9: no latency without queueing was measured for reads of 3kB at it, only up to 99: profile",
            ),
            (
                (Kind::Read, 1001, 99.5),
                "percentile 99.5: no latency without queueing was measured for reads of 1.001kB at it, only up to 99: profile",
            ),
            (
                (Kind::Write, 3000, 50.0),
                "percentile 50: no latency without queueing was measured for writes of 3kB at it, only 1kB: profile",
            ),
        ],
        |((kind, size, percentile), expected)| {
            let error = ssd.unloaded(kind, size, percentile).unwrap_err().to_string();
            if error.starts_with(expected) { Ok(()) } else { Err(error) }
        },
    );
    assert_eq!(
        ssd.unloaded(Kind::Read, 1, 99.99).unwrap_err().to_string(),
        "percentile 99.99: the profile's latencies without queueing go up to 99.9; expected one within, or a longer profile"
    );
    for percentile in [0.0, 100.0, -1.0, f64::NAN] {
        assert!(ssd.unloaded(Kind::Read, 1, percentile).is_err());
    }
    assert_eq!(device(DISK).unloaded(Kind::Read, 1, 99.0), Ok(None));

    let mut tail = Tail::new(&ssd, 99.9);
    assert_eq!(tail.seconds(), None);
    for (kind, size) in [(Kind::Write, 100), (Kind::Read, 1000)] {
        tail.push(&request(kind, size, None)).unwrap();
    }
    assert_eq!(tail.seconds(), Some(0.02));
}

#[test]
fn a_disk_seeks_by_distance_and_not_within_a_stream() {
    let (disk, head) = (device(DISK), &mut Head::default());
    let read = |head: &mut Head, size, offset| seconds(&disk, head, Kind::Read, size, offset);
    // The first seek takes the time of the table's largest distance.
    close(read(head, 1000, 0), 0.010 + 0.001);
    close(read(head, 1000, 1000), 0.001);
    // The first request of another stream, at a distance of 500.
    close(read(head, 1000, 1500), 0.003 + 0.001);
    // Both streams continue, one request each.
    close(read(head, 1000, 2000), 0.001);
    close(read(head, 1000, 2500), 0.001);
    close(seconds(&disk, head, Kind::Write, 1000, 3000), 0.002);
    // A distance beyond the table.
    close(read(head, 1000, 1 << 40), 0.010 + 0.001);
    close(read(head, 1000, 1 << 20), 0.010 + 0.001);
    // The history has two requests, so the first streams are forgotten.
    assert!(read(head, 1000, 3500) > 0.001);
    assert_eq!(
        disk.seconds(&mut Head::default(), &request(Kind::Read, 1, None)),
        Err(WorkError::NoOffset { at: 1.5 })
    );
}

#[test]
fn a_constant_seek_needs_no_offset_and_ignores_streams() {
    let Service::Disk(disk) = device(DISK).service else { panic!("a disk") };
    let constant = disk.with_constant_seek(0.004).unwrap();
    for _ in 0..2 {
        close(constant.seconds(&mut Head::default(), &request(Kind::Read, 1000, None)).unwrap(), 0.005);
    }
    let file = "disk: {seek_seconds: 0.004, read_bytes_per_second: 1e6, write_bytes_per_second: 1e6}";
    close(seconds(&device(file), &mut Head::default(), Kind::Write, 1000, 0), 0.005);
}

#[test]
fn work_is_given_for_each_stage_and_none_for_storage_without_a_device() {
    let ssd = device(SSD);
    let (mut with, mut without) =
        (Work::new(NetworkWork::default(), Some(&ssd)), Work::new(NetworkWork::default(), None));
    let read = request(Kind::Read, 1000, None);
    let work = with.of(&read).unwrap();
    assert_eq!(Stage::ALL.map(|stage| work.at(stage)), [Some(225.0), Some(1e-4), Some(1300.0)]);
    assert_eq!(without.of(&read).unwrap().at(Stage::Storage), None);
}

#[test]
fn each_mistake_in_a_device_file_is_reported_with_its_place() {
    let unloaded =
        |rows: &str| format!("table: [{{size_bytes: 1, read_iops: 1, write_iops: 1}}]\nunloaded: [{rows}]");
    let row = "{kind: read, size_bytes: 1, percentile: 99, seconds: 1}";
    let write_row = "{kind: write, size_bytes: 1, percentile: 99, seconds: 1}";
    let table = [
        ("{}".to_owned(), "d.json: table: missing; expected one of `table` and `disk`"),
        ("table: []".into(), "d.json: table: the table is empty; expected at least one row"),
        ("table: [{size_bytes: 1, read_iops: 1}]".into(), "d.json:1:9: table[0].write_iops: missing; expected it, or a rate in bytes a second"),
        ("table: [{size_bytes: 1, read_iops: 0, write_iops: 1}]".into(), "d.json:1:9: table[0].read_iops: expected a number above 0"),
        ("table: [{size_bytes: 1, read_iops: 1, write_bytes_per_second: -1}]".into(), "d.json:1:9: table[0].write_bytes_per_second: -1: expected a rate from 1 to 1e18 bytes a second"),
        ("table: [{size_bytes: 0, read_bytes_per_second: 1, write_bytes_per_second: 1}]".into(), "d.json:1:9: table[0].size_bytes: 0 bytes; expected a size of at least one byte"),
        ("table: [{size_bytes: 2, read_iops: 1, write_iops: 1},{size_bytes: 2, read_iops: 1, write_iops: 1}]".into(), "d.json:1:54: table[1].size_bytes: 2 after 2: expected more than in the previous row"),
        ("disk: {read_bytes_per_second: 1, write_bytes_per_second: 1}".into(), "d.json: disk.seek: expected one of `seek`, a table, and `seek_seconds`"),
        ("disk: {seek: [], read_bytes_per_second: 1, write_bytes_per_second: 1}".into(), "d.json: disk.seek: the table is empty; expected at least one row"),
        ("disk: {seek_seconds: 1, read_bytes_per_second: 1, write_bytes_per_second: 0}".into(), "d.json: disk.write_bytes_per_second: 0: expected a rate from 1 to 1e18 bytes a second"),
        ("disk: {seek_seconds: -1, read_bytes_per_second: 1, write_bytes_per_second: 1}".into(), "d.json: disk.seek_seconds: -1: expected seconds from 0 to 1e6"),
        ("{table: [{size_bytes: 1, read_iops: 1, write_iops: 1}], outstanding: 0}".into(), "d.json: outstanding: 0: expected 1 to 1000000"),
        ("{table: [{size_bytes: 1, read_iops: 1, write_iops: 1}], outstanding_reads: 0}".into(), "d.json: outstanding_reads: 0: expected 1 to 1000000"),
        ("{table: [{size_bytes: 1, read_iops: 1, write_iops: 1}], outstanding_writes: 18446744073709551615}".into(), "d.json: outstanding_writes: 18446744073709551615: expected 1 to 1000000"),
        ("{table: [{size_bytes: 1, read_iops: 1, write_iops: 1}], outstanding_read_bytes: 0}".into(), "d.json: outstanding_read_bytes: 0: expected 1 to 1000000000000000"),
        (unloaded(row), "d.json: unloaded: no latencies of writes, only of the other kind: expected both"),
        (unloaded(&format!("{row},{row},{write_row}")), "d.json:2:68: unloaded[1].seconds: a second row of this kind, size and percentile"),
        (unloaded(&row.replace("99", "0")), "d.json:2:12: unloaded[0].percentile: percentile 0: expected one above 0 and at most 100"),
        (unloaded(&format!("{row},{}", row.replace("99, seconds: 1", "99.9, seconds: 0.5"))), "d.json:2:68: unloaded[1].seconds: 0.5 s at a percentile of 99.9, but 1 s at 99"),
    ];
    check_rows(table, |(text, expected)| equal(&error_of(&text), expected));
}

#[test]
fn a_device_needs_as_many_requests_at_once_as_its_rates_and_latencies_imply() {
    // 10,000 reads per second that take 0.2 ms each are two at once.
    let text = |outstanding: &str| {
        let row = |kind: &str, seconds: f64| {
            format!("{{kind: {kind}, size_bytes: 4096, percentile: 50, seconds: {seconds}}}")
        };
        format!(
            "{{table: [{{size_bytes: 4096, read_iops: 10000, write_iops: 10000}}],\nunloaded: [{}, {}]{outstanding}}}",
            row("read", 0.0002),
            row("write", 0.00001)
        )
    };
    let message = "0.0002 s, but the table has 10000 of these requests per second, which takes at least 2 at once, and \
        the device has 1: expected `outstanding` to be the number of requests at once for which the table holds";
    assert_eq!(error_of(&text("")), format!("d.json:2:12: unloaded[0].seconds: {message}"));
    assert_eq!(device(&text(", outstanding_reads: 2")).outstanding.requests(), Some(2));
    assert_eq!(
        device(&text(", outstanding_reads: 2, outstanding_writes: 3")).outstanding.requests(),
        Some(5)
    );
    assert_eq!(device(&text(", outstanding: 2")).outstanding.requests(), Some(2));
    let all = ", outstanding: 2, outstanding_reads: 2, outstanding_writes: 2";
    assert_eq!(device(&text(all)).outstanding.requests(), Some(2));
    let few = ", outstanding: 1, outstanding_reads: 8, outstanding_writes: 8";
    assert_eq!(error_of(&text(few)), format!("d.json:2:12: unloaded[0].seconds: {message}"));
    assert!(
        error_of(&text(", outstanding_reads: 1, outstanding_writes: 8")).contains("takes at least 2 at once")
    );
}

#[test]
fn caps_of_a_device_file_are_read_and_checked() {
    let text = |caps: &str| format!("{{table: [{{size_bytes: 1, read_iops: 1, write_iops: 1}}], {caps}}}");
    let none = u64::MAX;
    let behind =
        [("{requests: 8, bytes: 65536}", 8, 65536), ("{requests: 0}", 0, none), ("{bytes: 0}", none, 0)];
    check_rows(behind, |(caps, requests, bytes)| {
        let read = device(&text(&format!("behind: {caps}"))).outstanding;
        equal(&read.behind, &Some(Behind { requests, bytes }))
    });
    let batches = [("{bytes: 4096}", 4096, 0), ("{bytes: 1, gap_bytes: 65536}", 1, 65536)];
    check_rows(batches, |(caps, bytes, gap)| {
        let read = device(&text(&format!("write_batch: {caps}"))).outstanding;
        equal(&read.write_batch, &Some(WriteBatch { bytes, gap }))
    });
    let bare = device(&text("outstanding: 4")).outstanding;
    assert_eq!((bare.behind, bare.write_batch, bare.requests()), (None, None, Some(4)));
    let errors = [
        ("behind: {}", "behind.requests: missing; expected it, `bytes` or both"),
        ("behind: {requests: 1000001}", "behind.requests: 1000001: expected 0 to 1000000"),
        (
            "behind: {bytes: 18446744073709551615}",
            "behind.bytes: 18446744073709551615: expected 0 to 1000000000000000",
        ),
        ("write_batch: {bytes: 0}", "write_batch.bytes: 0: expected 1 to 1000000000000000"),
        (
            "write_batch: {bytes: 1, gap_bytes: 1000000000000001}",
            "write_batch.gap_bytes: 1000000000000001: expected 0 to 1000000000000000",
        ),
    ];
    check_rows(errors, |(caps, error)| {
        let text = text(caps);
        // Place of the value of the field, from 1.
        let column = text.find(caps).unwrap_or(0) + caps.find('{').unwrap_or(0) + 1;
        equal(&error_of(&text), &format!("d.json:1:{column}: {error}"))
    });
    for unknown in ["behind: {request: 1}", "write_batch: {bytes: 1, gap: 1}"] {
        assert!(error_of(&text(unknown)).contains("unknown field"), "{unknown}");
    }
}

#[test]
fn invalid_tables_are_rejected_with_a_reason() {
    assert_eq!(Rates::new(vec![]), Err(TableError::Empty));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Rates::new(vec![(1, rate)]).is_err());
    }
    assert!(Disk::new(Seek::Table(vec![(5, 1.0), (4, 1.0)]), 1.0, 1.0, 8).is_err());
    assert!(Disk::new(Seek::Constant(f64::NAN), 1.0, 1.0, 8).is_err());
}

proptest! {
    #[test]
    fn work_is_positive_and_never_beyond_the_slowest_and_fastest_row(
        sizes in proptest::collection::btree_set(1..1_u64 << 40, 1..20),
        rates in proptest::collection::vec(1.0..1e12, 20),
        size in 1..1_u64 << 42,
    ) {
        let rows: Vec<(u64, f64)> = sizes.into_iter().zip(rates).collect();
        let seconds = Rates::new(rows.clone()).unwrap().seconds(size);
        let size = size.max(rows[0].0) as f64;
        let rates = rows.iter().map(|row| row.1);
        let (slow, fast) = (rates.clone().fold(f64::MAX, f64::min), rates.fold(0.0, f64::max));
        prop_assert!(seconds <= size / slow * (1.0 + 1e-9) && seconds >= size / fast * (1.0 - 1e-9));
    }

    #[test]
    fn a_latency_never_falls_with_the_percentile_of_rows_of_the_same_sizes(
        times in proptest::collection::vec(0.001..1.0, 6),
        size in 1..3000_u64,
        (low, high) in (1.0..99.0_f64, 1.0..99.0_f64),
    ) {
        let mut times = times;
        times.sort_by(f64::total_cmp);
        let rows: Vec<Latency> = [(1000, 50.0, 0), (3000, 50.0, 1), (1000, 90.0, 2), (3000, 90.0, 3), (1000, 99.0, 4), (3000, 99.0, 5)]
            .into_iter()
            .flat_map(|(size, percentile, at)| {
                [Kind::Read, Kind::Write].map(|kind| Latency { kind, size, percentile, seconds: times[at] })
            })
            .collect();
        let unloaded = Unloaded::new(&rows).unwrap();
        let latency = |percentile| unloaded.seconds(Kind::Read, size, percentile).unwrap().unwrap();
        prop_assert!(latency(low.min(high)) <= latency(low.max(high)));
    }

    #[test]
    fn no_text_makes_the_reader_of_device_files_panic(text in "[-{}\\[\\]:,. 0-9a-z_\"\n]{0,80}") {
        let _ = Device::from_text("d.json", &text);
        let _ = Device::from_text("d.json", &SSD.replace("1000", &text));
        let _ = Device::from_text("d.json", &DISK.replace("0.005", &text));
    }

    /// Rows of random sizes at three percentiles. A latency stands between the latencies that were measured at or above
    /// the percentile, or there is none: never one in proportion to another size.
    #[test]
    fn a_latency_is_between_measured_ones_or_is_an_error(
        rows in proptest::collection::btree_map((0..3_usize, 1..12_u64), 1..1000_u32, 1..20),
        size in 1..8192_u64,
        percentile in 1.0..99.9_f64,
    ) {
        const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];
        let mut rows: Vec<(usize, u64, f64)> =
            rows.into_iter().map(|((at, power), micros)| (at, 1 << power, 1e-6 * f64::from(micros))).collect();
        // Latencies rise with the percentile of a size.
        for index in 0..rows.len() {
            let (at, size, _) = rows[index];
            let below = rows.iter().filter(|row| row.0 < at && row.1 == size).map(|row| row.2).fold(0.0, f64::max);
            rows[index].2 = rows[index].2.max(below);
        }
        let both = rows.iter().flat_map(|&(at, size, seconds)| {
            [Kind::Read, Kind::Write].map(|kind| Latency { kind, size, percentile: PERCENTILES[at], seconds })
        });
        let unloaded = Unloaded::new(&both.collect::<Vec<_>>()).unwrap();
        let least = rows.iter().map(|row| row.1).min().unwrap();
        let covered = |at: usize| {
            let sizes = || rows.iter().filter(|row| row.0 == at).map(|row| row.1);
            sizes().min().is_some_and(|first| first <= size.max(least)) && sizes().max().is_some_and(|last| size <= last)
        };
        let enough = (0..3).filter(|&at| PERCENTILES[at] >= percentile);
        match unloaded.seconds(Kind::Read, size, percentile) {
            Ok(seconds) => {
                let seconds = seconds.unwrap();
                prop_assert!(enough.clone().any(covered));
                let known = rows.iter().map(|row| row.2);
                prop_assert!(seconds <= known.clone().fold(0.0, f64::max) && seconds >= known.fold(1.0, f64::min));
                let higher = unloaded.seconds(Kind::Read, size, 99.9);
                prop_assert!(higher.is_err() || higher.unwrap().unwrap() >= seconds);
            }
            Err(_) => prop_assert!(!enough.clone().any(covered)),
        }
    }
}
