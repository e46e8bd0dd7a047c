//! What the targets share: a small cluster, and what must hold of anything that a reader accepts or refuses.

use std::io::Cursor;
use std::sync::LazyLock;

use leeward_capture::{Capture, Places, Settings};
use leeward_fabric::Cluster;
use leeward_fabric::input::{InputError, Text, read_yaml};
use leeward_simulator::stage::workload::{Loaded, Source};

/// Seconds that each source is read for.
pub const HORIZON: f64 = 100.0;

/// Three racks of two hosts with a disk each.
pub static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let text = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 10, \
                devices: [{read: 100MB/s, write: 50MB/s}]}";
    Cluster::from_text("cluster", text).expect("a good cluster file")
});

/// A source from its settings.
pub fn source(settings: &str) -> Source {
    read_yaml("settings", settings).expect("good settings")
}

/// Reads `bytes` as the file of a source, and checks what comes of it.
pub fn read(source: &Source, bytes: &[u8]) {
    let read = Text::from_bytes("file", bytes).and_then(|text| match source {
        Source::Coflow(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Swim(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Blocks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Flows(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Matrix(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Rates(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Tasks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Facebook(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::Cell(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::Reads(settings) => settings.generate(&CLUSTER, 1, HORIZON),
        Source::App(_) => unreachable!("app files and squares have targets of their own"),
    });
    check(&read);
}

/// An error is one short line. A workload is in order of time, within the run, of this cluster, and without NaN.
pub fn check(read: &Result<Loaded, InputError>) {
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(error) => return one_line(error),
    };
    let workload = &loaded.workload;
    let in_order = |times: Vec<f64>| {
        assert!(times.iter().all(|at| (0.0..HORIZON).contains(at)) && times.is_sorted());
    };
    in_order(workload.flows.iter().map(|flow| flow.start).collect());
    in_order(workload.rates.iter().map(|change| change.at).collect());
    in_order(workload.files.iter().map(|file| file.start).collect());
    assert!(workload.jobs.iter().all(|job| job.start.is_finite()));
    for change in &workload.rates {
        assert!(change.rate.0 >= 0 && change.resource.index() < CLUSTER.fabric.resource_count());
    }
    for file in &workload.files {
        assert!(file.bytes.0 > 0 && file.block.0 > 0 && file.replicas > 0);
        assert!(file.writer.index() < CLUSTER.fabric.host_count());
        assert!(file.job.is_none_or(|job| (job as usize) < workload.jobs.len()));
        for fetch in &file.fetches {
            assert!(fetch.from != file.writer && fetch.from.index() < CLUSTER.fabric.host_count());
        }
    }
}

/// An error fits a terminal whatever the file holds.
pub fn one_line(error: &InputError) {
    let text = error.to_string();
    assert!(text.len() < 2000 && !text.contains('\n'), "{text}");
}

/// Reads a capture by address. What comes of it is finite and within the times that files can say.
pub fn capture(bytes: Vec<u8>) {
    let mut capture = Capture::new(Settings::default(), Places::addresses());
    let mut open = match capture.open("file", Cursor::new(bytes)) {
        Ok(open) => open,
        Err(error) => return one_line(&error),
    };
    loop {
        match capture.read(&mut open, 1000) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return one_line(&error),
        }
    }
    let matrix = capture.finish();
    for pair in &matrix.pairs {
        assert!(pair.cell.standard_error().is_finite());
        assert!(pair.start_s.abs() <= i64::MAX / 1_000_000_000);
        assert!(pair.start_s % i64::from(matrix.interval_s) == 0);
        assert!([pair.source, pair.destination].iter().all(|&place| (place as usize) < matrix.places.len()));
    }
}

/// A capture of UDP datagrams to a port, each in an Ethernet frame.
pub fn captured(port: u16, datagrams: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for datagram in datagrams {
        let datagram = &datagram[..datagram.len().min(65_000)];
        let length = datagram.len() as u16;
        for word in [1_700_000_000, 0, u32::from(length) + 42, u32::from(length) + 42] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        file.extend((length + 28).to_be_bytes());
        file.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40]);
        file.extend(port.to_be_bytes());
        file.extend((length + 8).to_be_bytes());
        file.extend([0, 0]);
        file.extend(*datagram);
    }
    file
}
