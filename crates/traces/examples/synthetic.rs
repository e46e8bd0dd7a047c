//! Writes the trace `examples/slo/mail.csv.gz`, as CSV on stdout: five minutes of a volume for mail, with the
//! burstiness of workload B of SLO table 3.1. Rate, sizes and mix are invented.
//!
//! `cargo run --release -p leeward-traces --example synthetic | gzip -n9 > examples/slo/mail.csv.gz`

use std::io::{self, BufWriter, Write};

use leeward_traces::Kind;
use leeward_traces::synthetic::{Shape, Sizes, Synthetic, TABLE_3_1};

const SECONDS: u64 = 300;

fn main() -> io::Result<()> {
    write(&mut BufWriter::new(io::stdout().lock()))
}

/// Writes the trace as CSV.
///
/// # Errors
///
/// Fails if `out` cannot be written.
pub fn write(out: &mut impl Write) -> io::Result<()> {
    let workload =
        TABLE_3_1.iter().find(|workload| workload.letter == 'B').expect("workload B is in the table");
    let shape = Shape {
        rate: 30.0,
        gap_c2: workload.gap_c2,
        bursts: None,
        sizes: Sizes::Choice(vec![(4096, 4.0), (8192, 8.0), (32_768, 2.0), (131_072, 1.0)]),
        read_share: 0.6,
        sequential_share: 0.2,
        volume: 64 << 30,
    };
    writeln!(out, "seconds,kind,size,offset")?;
    let requests = Synthetic::new(shape, 1).expect("a valid shape");
    for request in requests.take_while(|request| request.at.0 < SECONDS * 1_000_000_000) {
        let micros = request.at.0 / 1000;
        let kind = if request.kind == Kind::Read { "read" } else { "write" };
        let offset = request.offset.unwrap_or_default();
        writeln!(out, "{}.{:06},{kind},{},{offset}", micros / 1_000_000, micros % 1_000_000, request.size)?;
    }
    out.flush()
}
