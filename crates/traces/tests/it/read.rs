//! Reads traces of all dialects, and reports mistakes with their place.

use std::io::Write;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Text};
use leeward_testing::rows::{check_rows, equal};
use leeward_traces::read::{Dialect, Event, ReadSettings, Requests, Rest, Tally};
use leeward_traces::{Kind, Request};
use proptest::prelude::*;

fn read_with(text: impl Into<Vec<u8>>, settings: &ReadSettings) -> Result<Vec<Request>, InputError> {
    Requests::open(Text::from_bytes("t.csv", text)?, settings)?.collect()
}

fn read(text: &str) -> Result<Vec<Request>, InputError> {
    read_with(text, &ReadSettings::default())
}

fn error_of(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |_| "no error".to_owned())
}

fn request(at: u64, kind: Kind, size: u64, offset: Option<u64>) -> Request {
    Request { at: Nanos(at), kind, size, offset }
}

const BLKPARSE: &str = "
  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
  8,0    3        2     0.000000100   697  G   W 223490 + 8 [kjournald]
  8,0    3        0     0.000000200     0  m   N cfq697S /  alloced
  8,0    3        3     0.000000300   697  Q FWS [fsync]
  8,0    3        4     0.000000350   697  Q   D 1000 + 2048 [fstrim]
  8,0    3        5     0.000000400   697  D   W 223490 + 8 [kjournald]
  8,16   1        6     0.000000500   698  Q  RA 0 + 16 [cat]
  8,0    3        7     0.000000600     0  C   W 223490 + 8 [0]
CPU3 (8,0):
 Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB
Total (8,0):
 Reads Queued:           1,        8KiB
Throughput (R/W): 0KiB/s / 0KiB/s
";

#[test]
fn each_dialect_is_detected_by_its_first_line_and_read_in_its_own_units() {
    use Kind::{Read, Write};
    let table = [
        (
            Dialect::Leeward,
            "seconds,kind,size,offset\n0.5,read,4096,\n1700000000.123456789,W,512,1024\n",
            vec![
                request(500_000_000, Read, 4096, None),
                request(1_700_000_000_123_456_789, Write, 512, Some(1024)),
            ],
        ),
        (
            Dialect::Leeward,
            "\u{feff}\"size\",\"other\",kind,seconds\r\n7,x,write,1e-3\r\n",
            vec![request(1_000_000, Write, 7, None)],
        ),
        (
            Dialect::Compactor,
            "564037000,0x00001000,DiskWrite\n564037000,bd01,DiskRead\n564037001,0x1,Get,0x200\n564037002,0x1,Put,512\n",
            vec![
                request(564_037_000, Write, 4096, None),
                request(564_037_000, Read, 0xbd01, None),
                request(564_037_001, Read, 1, Some(512)),
                request(564_037_002, Write, 1, Some(512)),
            ],
        ),
        (
            Dialect::Msr,
            "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,0,1,1\n",
            vec![
                request(12_816_637_200_306_162_900, Read, 24_576, Some(7_014_609_920)),
                request(12_816_637_201_638_215_500, Write, 1, Some(0)),
            ],
        ),
        (
            Dialect::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n5,usr,0,Read,512,512,0\n",
            vec![request(500, Read, 512, Some(512))],
        ),
        (
            Dialect::Spc,
            "0,20941264,8192,W,0.551706\n1,2,512,r,0.554041,and,more\n",
            vec![
                request(551_706_000, Write, 8192, Some(20_941_264 * 512)),
                request(554_041_000, Read, 512, Some(1024)),
            ],
        ),
        (
            Dialect::Blktrace,
            BLKPARSE,
            vec![request(0, Write, 4096, Some(223_490 * 512)), request(500, Read, 8192, Some(0))],
        ),
    ];
    for (dialect, text, expected) in table {
        let text = Text::from_bytes("t.csv", text).unwrap();
        let mut requests = Requests::open(text, &ReadSettings::default()).unwrap();
        assert_eq!(requests.dialect(), dialect);
        assert_eq!(requests.by_ref().collect::<Result<Vec<_>, _>>(), Ok(expected), "{dialect}");
        assert_eq!(requests.tally().rest(Rest::NoPayload), if dialect == Dialect::Blktrace { 2 } else { 0 });
        check_tally(requests.tally());
    }
}

/// Every line is a request, or is counted with a reason.
fn check_tally(tally: Tally) {
    let rest: u64 = Rest::ALL.into_iter().map(|reason| tally.rest(reason)).sum();
    assert_eq!(tally.lines, tally.requests + rest, "{tally:?}");
}

#[test]
fn outputs_of_blkparse_may_follow_each_other() {
    let later = BLKPARSE.replace(" 0.000000", " 5.000000").replace("8,0 ", "8,32 ");
    let both = format!("{BLKPARSE}Skips: 2 forward (7 -   0.1%)\n{later}Skips: 0 forward (0 -   0.0%)\n");
    let mut requests =
        Requests::open(Text::from_bytes("t.txt", both).unwrap(), &ReadSettings::default()).unwrap();
    let sizes: Vec<u64> = requests.by_ref().map(|request| request.unwrap().size).collect();
    assert_eq!(sizes, [4096, 8192, 4096, 8192]);
    let tally = requests.tally();
    check_tally(tally);
    assert_eq!((tally.lines, tally.requests, tally.lost), (28, 4, 7));
    let rest = Rest::ALL.map(|reason| tally.rest(reason));
    assert_eq!(rest, [0, 8, 0, 4, 12, 0], "{tally:?}");
    // What follows sums and is not one of them is an error, also if it is a damaged event.
    for (line, error) in [
        ("8,16 0 1 0.7", "t.csv:15: process: missing; expected device processor"),
        ("hello", "t.csv:15: device: `hello`: expected a device"),
        ("0.5,read,4096", "t.csv:15: device: `0.5,read,4096`: expected a device"),
    ] {
        let text = format!("{BLKPARSE}{line}\n");
        assert!(error_of(&text).starts_with(error), "{}", error_of(&text));
    }
}

#[test]
fn headings_may_come_again() {
    let csv = "seconds,kind,size\n1,read,1\n";
    assert_eq!(read(&format!("{csv}{}", csv.replace("1,read", "2,read"))).unwrap().len(), 2);
    let msr = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n5,usr,0,Read,512,512,0\n";
    assert_eq!(read(&format!("{msr}{msr}")).unwrap().len(), 2);
    assert_eq!(
        error_of(&format!("{csv}{}", csv.replace("kind,size", "size,kind"))),
        "t.csv:3: seconds: `seconds`: not a number; expected seconds"
    );
}

#[test]
fn a_gzip_file_is_read_as_its_content() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"1,0x1000,Get\n2,0x1000,Put\n").unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(read_with(packed.clone(), &ReadSettings::default()).unwrap().len(), 2);
    let cut = read_with(&packed[..packed.len() - 4], &ReadSettings::default()).unwrap_err();
    assert_eq!(cut.to_string(), "t.csv:3: the gzip data ends early: is the file truncated?");
}

#[test]
fn a_volume_and_an_event_can_be_chosen() {
    let settings = |volume: &str| ReadSettings { volume: Some(volume.into()), ..ReadSettings::default() };
    let spc = "0,1,512,R,0.1\n1,1,1024,R,0.2\n";
    assert_eq!(read_with(spc, &settings("1")).unwrap()[0].size, 1024);
    let msr = "1,a.b,0,Read,0,512,0\n2,a.b,1,Read,0,1024,0\n";
    assert_eq!(read_with(msr, &settings("a.b.1")).unwrap()[0].size, 1024);
    assert_eq!(read_with(BLKPARSE, &settings("8,16")).unwrap()[0].size, 8192);
    let issued = ReadSettings { event: Event::Issued, ..ReadSettings::default() };
    assert_eq!(read_with(BLKPARSE, &issued).unwrap()[0].at, Nanos(400));
    assert_eq!(
        read_with(spc, &settings("7")).unwrap_err().to_string(),
        "t.csv: no request to volume `7`; expected one of its ASUs, such as 0"
    );
    assert_eq!(
        read_with("1,0x1,Get\n", &settings("7")).unwrap_err().to_string(),
        "t.csv: a trace of dialect compactor has one volume; leave `volume` out"
    );
    assert_eq!(
        read_with(spc, &issued).unwrap_err().to_string(),
        "t.csv: a trace of dialect spc has no events; leave `event` out"
    );
}

#[test]
fn each_mistake_is_reported_with_its_line_its_field_and_the_expected_value() {
    let table = [
        ("", "t.csv: the file is empty"),
        ("seconds,kind,size\n", "t.csv: no requests; expected at least one"),
        ("seconds,kind,size\n1,read\n", "t.csv:2: columns: 2 cells, but the header has 3"),
        ("seconds,kind,size,size\n1,read,1,1\n", "t.csv:1: size: two columns have this name"),
        ("seconds,kind,size\n-1,read,1\n", "t.csv:2: seconds: `-1`: must not be negative; expected seconds"),
        ("seconds,kind,size\n99999999999999,read,1\n", "t.csv:2: seconds: `99999999999999`: out of range"),
        ("seconds,kind,size\nnan,read,1\n", "t.csv:2: seconds: `nan`: not a finite number; expected seconds"),
        ("seconds,kind,size\n1,read,-4\n", "t.csv:2: size: `-4`: must not be negative; expected bytes"),
        (
            "seconds,kind,size\n1,read,4.x\n",
            "t.csv:2: size: `4.x`: not a whole number from 0; expected bytes",
        ),
        (
            "seconds,kind,size\n1,read,1073741825\n",
            "t.csv:2: size: 1073741825 bytes; expected at most 1073741824",
        ),
        (
            "seconds,kind,size\n1,trim,1\n",
            "t.csv:2: kind: `trim`: unknown type of request; expected one of read, r, write, w",
        ),
        (
            "seconds,kind,size,offset\n1,read,1,18446744073709551615\n",
            "t.csv:2: offset: the request ends beyond any volume; expected an offset in bytes",
        ),
        (
            "seconds,kind,size\n1.5,read,1\n1.499999999,read,1\n",
            "t.csv:3: seconds: 1.499999999 s is before the request above it (1.5 s): sort the lines by time, or set `sort`",
        ),
        (
            "2,0x1,Get\n1,0x1,Get\n",
            "t.csv:2: nanoseconds: 0.000000001 s is before the request above it (0.000000002 s): sort the lines by time, or set `sort`",
        ),
        (
            "2,0x1,Get\n3,0x1,Delete\n",
            "t.csv:2: type: `Delete`: unknown type of request; expected one of DiskRead, Get, DiskWrite, Put",
        ),
        ("2,0xq,Get\n", "t.csv:1: size: `0xq`: expected bytes in hexadecimal, such as 0x1000"),
        ("-2,0x1,Get\n", "t.csv:1: nanoseconds: `-2`: must not be negative; expected nanoseconds"),
        ("2,0x1,Get\n2,0x1\n", "t.csv:2: type: missing; expected nanoseconds,size,type,offset"),
        ("2,0x1,Get,0,0\n", "t.csv:1: columns: more than 4 cells; expected nanoseconds,size,type,offset"),
        ("1844674407370955162,h,0,Read,0,512,0\n", "t.csv:1: Timestamp: `1844674407370955162`: out of range"),
        (
            "0,1,512,R,0.1\n0,1,512,X,0.1\n",
            "t.csv:2: Opcode: `X`: unknown type of request; expected one of R, W",
        ),
        ("0,36028797018963968,512,R,0.1\n", "t.csv:1: LBA: `36028797018963968`: out of range"),
        (
            "8,0 1 1 0.0 1 Q R 0 + 8 [x]\n8,0 1 1 0.0 1 Q R 0 8\n",
            "t.csv:2: sectors: missing; expected `SECTOR + SECTORS`",
        ),
        ("8,0 1 1 0.0 1 Q R 0 + 8 [x]\nhello\n", "t.csv:2: device: `hello`: expected a device, such as 8,0"),
        (
            "8,0 1 1 0.0 1 Q X 0 + 8 [x]\n",
            "t.csv:1: operation: `X`: unknown type of request; expected R or W among its letters",
        ),
    ];
    check_rows(table, |(text, expected)| equal(&error_of(text), expected));
}

#[test]
fn an_unknown_dialect_is_rejected_with_a_list_of_all_dialects() {
    let error = error_of("time;bytes\n1;2\n");
    assert!(
        error.starts_with("t.csv:1: dialect: `time;bytes`: a line of no known dialect; expected one of ")
    );
    for dialect in Dialect::ALL {
        assert!(error.contains(&format!("{dialect} (")), "{error}");
        assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
    }
}

#[test]
fn a_dialect_from_the_settings_is_not_detected_again() {
    let settings = ReadSettings { dialect: Some(Dialect::Leeward), ..ReadSettings::default() };
    assert_eq!(
        read_with("1,0x1,Get\n", &settings).unwrap_err().to_string(),
        "t.csv:1: seconds: no such column; expected a header with seconds,kind,size and optionally offset, found `1,0x1,Get`"
    );
}

#[test]
fn a_stream_ends_with_its_first_error() {
    let text = Text::from_bytes("t.csv", *b"1,0x1,Get\n0,0x1,Get\n2,0x1,Get\n").unwrap();
    let mut requests = Requests::open(text, &ReadSettings::default()).unwrap();
    assert!(matches!(requests.next(), Some(Ok(_))));
    assert!(matches!(requests.next(), Some(Err(_))));
    assert!(requests.next().is_none());
}

/// Property of readers on any bytes: the stream ends, with requests in order or with an error on one line.
fn check_reading(bytes: &[u8]) -> Result<(), TestCaseError> {
    for dialect in Dialect::ALL.map(Some).into_iter().chain([None]) {
        let settings = ReadSettings { dialect, ..ReadSettings::default() };
        match read_with(bytes, &settings) {
            Ok(requests) => {
                let mut again = Requests::open(Text::from_bytes("t.csv", bytes).unwrap(), &settings).unwrap();
                prop_assert!(again.by_ref().all(|request| request.is_ok()));
                check_tally(again.tally());
                prop_assert!(!requests.is_empty() && requests.is_sorted_by_key(|request| request.at));
                prop_assert!(requests.iter().all(|request| (1..=1 << 30).contains(&request.size)));
            }
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_reading(&bytes)?;
    }

    #[test]
    fn no_mangled_trace_makes_a_reader_panic(
        dialect in 0..6_usize,
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), "[-0-9a-zA-Z,. +x\n\"]{0,20}"), 0..4),
    ) {
        let mut text = [
            "seconds,kind,size,offset\n0.5,read,4096,\n1.5,write,512,1024\n",
            "564037000,0x00001000,DiskWrite\n564037001,0xbd01,Get,0x200\n",
            "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,0,Write,0,1,1\n",
            "0,20941264,8192,W,0.551706\n1,2,512,r,0.554041,and,more\n",
            BLKPARSE,
            "8,0 1 1 0.0 1 Q R 0 + 8 [x]\n",
        ][dialect].to_owned();
        for (at, insert) in cuts {
            let at = at.index(text.len());
            let end = (at + insert.len() / 2).min(text.len());
            text.replace_range(at..end, &insert);
        }
        check_reading(text.as_bytes())?;
    }

    /// Events, other events, events of other devices, flushes and whole blocks of sums in any order: all requests to the
    /// volume are read, and every line is counted once.
    #[test]
    fn every_line_of_any_mix_of_outputs_is_a_request_or_counted(
        lines in proptest::collection::vec(0..6_usize, 1..60), chosen in any::<bool>(),
    ) {
        let sums = "CPU0 (sda):\n Reads Queued:           1,        8KiB\t Writes Queued:           1,        4KiB\n\
                    Total (sda):\n IO unplugs:            15        \t Timer unplugs:           0\n\n\
                    Throughput (R/W): 0KiB/s / 0KiB/s\nEvents (sda): 2 entries\nSkips: 0 forward (0 -   0.0%)\n";
        let mut text = String::from("  8,0 3 1 0.000000000 697 C W 0 + 8 [a]\n");
        let mut expected = [0_u64, 1, 0, 0, 0, 0];
        let mut requests = 0;
        for (at, line) in lines.iter().enumerate() {
            match line {
                0 => text += &format!("  8,0 3 1 {at}.5 697 Q W 8 + 8 [a]\n"),
                1 => text += &format!("  8,16 3 1 {at}.5 697 Q R 8 + 8 [a]\n"),
                2 => text += &format!("  8,0 3 1 {at}.5 697 I W 8 + 8 [a]\n"),
                3 => text += &format!("  8,0 3 1 {at}.5 697 Q FWS [a]\n"),
                4 => text += sums,
                _ => text += "Input file sda.blktrace.1 added\n",
            }
            match line {
                0 => requests += 1,
                1 if chosen => expected[2] += 1,
                1 => requests += 1,
                2 => expected[1] += 1,
                3 => expected[3] += 1,
                4 => expected[4] += 7,
                _ => expected[4] += 1,
            }
        }
        let volume = chosen.then(|| "8,0".to_owned());
        let text = Text::from_bytes("t.txt", text).unwrap();
        let mut read = Requests::open(text, &ReadSettings { volume, ..ReadSettings::default() }).unwrap();
        let count = read.by_ref().filter(Result::is_ok).count() as u64;
        prop_assert_eq!(count, requests);
        prop_assert_eq!(Rest::ALL.map(|reason| read.tally().rest(reason)), expected);
        check_tally(read.tally());
    }

    #[test]
    fn a_trace_in_our_dialect_reads_back_unchanged(
        rows in proptest::collection::vec((0..1_u64 << 62, any::<bool>(), 1..=1_u64 << 30, proptest::option::of(0..1_u64 << 60)), 1..50)
    ) {
        let mut requests: Vec<Request> = rows
            .into_iter()
            .map(|(at, reads, size, offset)| request(at, if reads { Kind::Read } else { Kind::Write }, size, offset))
            .collect();
        requests.sort_by_key(|request| request.at);
        let mut text = String::from("seconds,kind,size,offset\n");
        for Request { at, kind, size, offset } in &requests {
            let kind = if *kind == Kind::Read { "read" } else { "write" };
            let offset = offset.map_or(String::new(), |offset| offset.to_string());
            text += &format!("{}.{:09},{kind},{size},{offset}\n", at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        }
        prop_assert_eq!(read(&text).unwrap(), requests);
    }
}
