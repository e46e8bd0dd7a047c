//! Measures how fast captures are converted to matrices on one core. For comparison, also measures a plain copy of the
//! same bytes through a buffer of the same size, and a walk over the records without parsing.

use std::hint::black_box;
use std::io::{Cursor, Read};
use std::sync::Arc;

use leeward_capture::places::Mapping;
use leeward_capture::{Capture, Content, Places, Settings};
use leeward_testing::bench::{fastest, record, repeats};

const BYTES: usize = 256 << 20;
const REPEATS: usize = 5;
const HOSTS: u32 = 1000;
/// Number of records between two readings of the clock.
const STEP: u64 = 1 << 16;

fn main() {
    println!(
        "a file of {} MB, {HOSTS} hosts; MB/s of file, the fastest of {}\n",
        BYTES >> 20,
        repeats(REPEATS)
    );
    println!(
        "{:>22} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8}",
        "packets", "copy", "walk", "matrix", "packets/s", "of copy", "of walk"
    );
    // The mix has equally many packets of each size.
    for (name, sizes) in
        [("64 to 1500 bytes", &[64, 594, 1500][..]), ("64 bytes", &[64]), ("1500 bytes", &[1500])]
    {
        let (file, packets) = pcap(sizes);
        let copy = fastest(repeats(REPEATS), || copy_file(&file));
        let walk = fastest(repeats(REPEATS), || walk_records(&file));
        let matrix = fastest(repeats(REPEATS), || read_matrix(&file, packets));
        let rate = |seconds: f64| file.len() as f64 / 1e6 / seconds;
        record(&format!("capture, {name}"), "bytes/s", rate(matrix) * 1e6);
        record(&format!("capture, {name}, walk"), "ratio", walk / matrix);
        println!(
            "{name:>22} {:>8.0} {:>8.0} {:>8.0} {:>10.0} {:>8.2} {:>8.2}",
            rate(copy),
            rate(walk),
            rate(matrix),
            packets as f64 / matrix,
            copy / matrix,
            walk / matrix
        );
    }
}

/// A capture of complete UDP packets between hosts, and the number of packets.
fn pcap(sizes: &[usize]) -> (Arc<[u8]>, u64) {
    let mut file = Vec::with_capacity(BYTES + 2000);
    file.extend([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    let (mut packets, mut random) = (0, 1_u32);
    while file.len() < BYTES {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (from, to) = (random >> 8 & 0xffff, random >> 16);
        let size = sizes[packets as usize % sizes.len()];
        let head = [
            1_700_000_000 + packets as u32 / 1_000_000,
            packets as u32 % 1_000_000,
            size as u32,
            size as u32,
        ];
        head.iter().for_each(|word| file.extend(word.to_le_bytes()));
        let start = file.len();
        file.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
        file.extend((size as u16 - 14).to_be_bytes());
        file.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        for host in [from % HOSTS, to % HOSTS] {
            file.extend([10, 0, (host >> 8) as u8, host as u8]);
        }
        file.extend([0x13, 0x88, 0x13, 0x89]);
        file.extend((size as u16 - 34).to_be_bytes());
        file.resize(start + size, 7);
        packets += 1;
    }
    (file.into(), packets)
}

fn copy_file(file: &Arc<[u8]>) {
    let mut reader = Cursor::new(file.clone());
    let mut buffer = vec![0; 1 << 20];
    while reader.read(&mut buffer).expect("bytes in memory") > 0 {
        black_box(&buffer);
    }
}

fn walk_records(file: &[u8]) {
    let (mut at, mut sum) = (24, 0_u64);
    while let Some(head) = file.get(at..at + 16) {
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        sum += u64::from(length);
        at += 16 + length as usize;
    }
    black_box(sum);
}

fn read_matrix(file: &Arc<[u8]>, packets: u64) {
    let text: String =
        (0..HOSTS).map(|host| format!("10.0.{}.{} h{host}\n", host >> 8, host & 255)).collect();
    let mapping = Mapping::of("hosts", &text).expect("a mapping");
    let settings = Settings { content: Content::Packets, ..Settings::default() };
    let mut capture = Capture::new(settings, Places::mapped(&mapping, |name| Some(name.to_owned())));
    let mut open = capture.open("bench", Cursor::new(file.clone())).expect("a capture");
    while capture.read(&mut open, STEP).expect("a capture") {}
    let matrix = capture.finish();
    assert_eq!(matrix.pairs.iter().map(|pair| pair.cell.samples).sum::<u64>(), packets);
}
