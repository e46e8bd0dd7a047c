//! Measures how fast traces are read. For comparison, also measures splitting the same lines at their commas, and
//! reading with the work of each request and its r-b curve.

use std::hint::black_box;

use leeward_calculus::RbCurve;
use leeward_fabric::input::Text;
use leeward_testing::bench::fastest;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::synthetic::{Shape, Sizes, Synthetic};
use leeward_traces::{Kind, NetworkWork, Request, Work};

const REQUESTS: usize = 400_000;
const REPEATS: usize = 5;

/// Formats a request as a line of a dialect.
type Format = fn(&Request) -> String;

fn main() {
    let shape = Shape {
        rate: 1000.0,
        gap_c2: 10.0,
        bursts: None,
        sizes: Sizes::LogNormal { mean: 16_384.0, c2: 2.0, largest: 1 << 20 },
        read_share: 0.7,
        sequential_share: 0.3,
        volume: 1 << 38,
    };
    let requests: Vec<Request> = Synthetic::new(shape, 1).expect("a valid shape").take(REQUESTS).collect();
    let work = fastest(REPEATS, || {
        let mut work = Work::new(NetworkWork::default(), None);
        let arrivals = requests.iter().map(|request| (request.at.0, work.of(request).unwrap().network_out));
        black_box(RbCurve::from_nanos(arrivals).unwrap());
    });
    println!("{:>10} {:>12} {:>12} {:>7}", "dialect", "split/s", "requests/s", "share");
    let formats: [(&str, Format); 5] =
        [("leeward", leeward), ("compactor", compactor), ("msr", msr), ("spc", spc), ("blktrace", blktrace)];
    for (name, format) in formats {
        let mut text = String::from(if name == "leeward" { "seconds,kind,size,offset\n" } else { "" });
        requests.iter().for_each(|request| text += &format(request));
        let split = fastest(REPEATS, || {
            let cells = text.lines().map(|line| line.split(',').count());
            black_box(cells.sum::<usize>());
        });
        // The time to copy the text for the reader is not measured.
        let mut copies = vec![text.clone().into_bytes(); REPEATS];
        let read = fastest(REPEATS, || {
            let text = Text::from_bytes("t", copies.pop().expect("one copy per repeat")).unwrap();
            let read = Requests::open(text, &ReadSettings::default()).unwrap();
            assert_eq!(read.map(|request| request.unwrap().size).filter(|&size| size > 0).count(), REQUESTS);
        });
        let rate = |seconds: f64| REQUESTS as f64 / seconds;
        println!("{name:>10} {:>12.0} {:>12.0} {:>7.2}", rate(split), rate(read), split / read);
    }
    println!("\nwork and r-b curve: {:.0} requests/s", REQUESTS as f64 / work);
}

fn letter(request: &Request) -> &'static str {
    if request.kind == Kind::Read { "R" } else { "W" }
}

fn word(request: &Request) -> &'static str {
    if request.kind == Kind::Read { "Read" } else { "Write" }
}

fn seconds(request: &Request) -> String {
    format!("{}.{:09}", request.at.0 / 1_000_000_000, request.at.0 % 1_000_000_000)
}

fn leeward(request: &Request) -> String {
    let (at, kind) = (seconds(request), word(request));
    format!("{at},{kind},{},{}\n", request.size, request.offset.unwrap_or(0))
}

fn compactor(request: &Request) -> String {
    format!("{},{:#010x},Disk{}\n", request.at.0, request.size, word(request))
}

fn msr(request: &Request) -> String {
    let (at, kind) = (request.at.0 / 100, word(request));
    format!("{at},usr,0,{kind},{},{},41286\n", request.offset.unwrap_or(0), request.size)
}

fn spc(request: &Request) -> String {
    let block = request.offset.unwrap_or(0) / 512;
    format!("0,{block},{},{},{}\n", request.size, letter(request), seconds(request))
}

fn blktrace(request: &Request) -> String {
    let (block, sectors) = (request.offset.unwrap_or(0) / 512, request.size / 512);
    let (at, kind) = (seconds(request), letter(request));
    format!("  8,0    3        1     {at}   697  Q   {kind} {block} + {sectors} [cp]\n")
}
