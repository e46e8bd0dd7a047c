//! Dialects of public traces and of fio, compressed files, and traces out of order.

use std::fmt::Write as _;
use std::io::Write;

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Text};
use leeward_testing::rows::{check_rows, equal};
use leeward_traces::read::{Dialect, ReadSettings, Requests, Rest, Tally};
use leeward_traces::{Kind, Request};
use proptest::prelude::*;

use Kind::{Read, Write as Written};

fn read_with(text: impl Into<Vec<u8>>, settings: &ReadSettings) -> Result<(Vec<Request>, Tally), InputError> {
    let mut read = Requests::open(Text::from_bytes("t.csv", text)?, settings)?;
    let requests = read.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok((requests, read.tally()))
}

fn read(text: &str) -> Result<(Vec<Request>, Tally), InputError> {
    read_with(text, &ReadSettings::default())
}

fn error_of(text: &str) -> String {
    read(text).map_or_else(|error| error.to_string(), |_| "no error".to_owned())
}

fn request(at: u64, kind: Kind, size: u64, offset: Option<u64>) -> Request {
    Request { at: Nanos(at), kind, size, offset }
}

const AZURE: &str = "Timestamp,AnonRegion,AnonUserId,AnonAppName,AnonFunctionInvocationId,AnonBlobName,BlobType,\
    AnonBlobETag,BlobBytes,Read,Write";

#[test]
fn public_traces_and_logs_of_fio_are_detected_and_read_in_their_units() {
    let azure = format!(
        "{AZURE}\n1606089600001,gwt,42,app,inv,blob,BlockBlob/application/json,etag,3.0,True,False\n\
         1606089600002,gwt,42,app,inv,blob,BlockBlob,etag,7,False,True\n1606089600002,g,4,a,i,b,B,e,7,False,False\n"
    );
    let table: Vec<(Dialect, &str, Vec<Request>, u64)> = vec![
        (
            Dialect::Alibaba,
            "419,W,8192,4096,1577808000000046\n725,R,0,512,1577808000000056\n",
            vec![
                request(1_577_808_000_000_046_000, Written, 4096, Some(8192)),
                request(1_577_808_000_000_056_000, Read, 512, Some(0)),
            ],
            0,
        ),
        (
            Dialect::Tencent,
            "Timestamp,Offset,Size,IOType,VolumeID\n1538323200,12910952,128,0,1063\n1538323201,8,1,1,1064\n",
            vec![
                request(1_538_323_200_000_000_000, Read, 65_536, Some(12_910_952 * 512)),
                request(1_538_323_201_000_000_000, Written, 512, Some(4096)),
            ],
            1,
        ),
        (
            Dialect::Systor,
            "Timestamp,Response,IOType,LUN,Offset,Size\n1455592511.078887,0.000235,R,4,81920,4096\n1455592511.1,,W,4,0,512\n",
            vec![
                request(1_455_592_511_078_887_000, Read, 4096, Some(81_920)),
                request(1_455_592_511_100_000_000, Written, 512, Some(0)),
            ],
            1,
        ),
        // fio 3.33: `--write_lat_log`, with offsets and priorities.
        (
            Dialect::FioLog,
            "12, 206322, 0, 4096, 61440, 0\n13, 105367, 1, 4096, 774144, 0\n13, 900, 2, 4096, 0, 0\n",
            vec![
                request(11_793_678, Read, 4096, Some(61_440)),
                request(12_894_633, Written, 4096, Some(774_144)),
            ],
            1,
        ),
        (Dialect::FioLog, "1, 1000, 0, 512\n", vec![request(999_000, Read, 512, None)], 0),
        // A fifth column alone is an offset, or since fio 3.20 a priority.
        (
            Dialect::FioLog,
            "1, 1000, 0, 512, 0\n1, 1000, 1, 512, 0x4001\n1, 1000, 0, 512, 8192\n1, 1000, 0, 512, 0, 0x4001\n",
            vec![
                request(999_000, Read, 512, None),
                request(999_000, Written, 512, None),
                request(999_000, Read, 512, Some(8192)),
                request(999_000, Read, 512, Some(0)),
            ],
            0,
        ),
        (
            Dialect::FioIolog,
            "fio version 3 iolog\n25 /dev/sda add\n218 /dev/sda open\n224 /dev/sda read 61440 4096\n\
             517 /dev/sda sync 0 0\n710 /dev/sda write 491520 4096\n711 /dev/sda close\n",
            vec![request(224_000, Read, 4096, Some(61_440)), request(710_000, Written, 4096, Some(491_520))],
            5,
        ),
        (
            Dialect::FioIolog,
            "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 1500 0\nf write 4096 512\nf close\n",
            vec![request(0, Read, 4096, Some(0)), request(1_500_000, Written, 512, Some(4096))],
            5,
        ),
        (
            Dialect::Twitter,
            "0,q:q:1:8WTfjZU14ee,26,1024,33,get,0\n1,nz:u:eeW511W3dcH3de3d15ec,22,304,58,set,86400\n\
             1,k,22,0,58,get,0\n2,k,22,0,58,delete,0\n",
            vec![request(0, Read, 1024, None), request(1_000_000_000, Written, 304, None)],
            2,
        ),
        (
            Dialect::Azure,
            &azure,
            vec![
                request(1_606_089_600_001_000_000, Read, 3, None),
                request(1_606_089_600_002_000_000, Written, 7, None),
            ],
            2,
        ),
    ];
    check_rows(table, |(dialect, text, expected, rest)| {
        let opened = Requests::open(Text::from_bytes("t", text).unwrap(), &ReadSettings::default()).unwrap();
        equal(&opened.dialect(), &dialect)?;
        let (requests, tally) = read(text).map_err(|error| error.to_string())?;
        equal(&requests, &expected)?;
        equal(&(tally.lines - tally.requests), &rest)
    });
}

#[test]
fn a_volume_of_a_public_trace_can_be_chosen() {
    let of = |text: &str, volume: &str| {
        let settings = ReadSettings { volume: Some(volume.to_owned()), ..ReadSettings::default() };
        read_with(text, &settings).unwrap().0.len()
    };
    assert_eq!(of("419,W,0,4096,1\n725,R,0,512,2\n725,R,0,512,3\n", "725"), 2);
    assert_eq!(of("1,0,128,0,1063\n2,0,1,1,1064\n", "1064"), 1);
    assert_eq!(of("1.0,0.1,R,4,0,4096\n1.1,,W,5,0,512\n", "5"), 1);
    assert_eq!(of("fio version 3 iolog\n1 /a read 0 512\n2 /b read 0 512\n", "/b"), 1);
}

#[test]
fn mistakes_in_public_traces_are_reported_with_line_and_field() {
    let table = [
        (
            "419,W,0,4096,1\n419,T,0,4096,2\n",
            "t.csv:2: opcode: `T`: unknown type of request; expected one of R, W",
        ),
        (
            "419,W,0,4096,1\n419,W,0,4096\n",
            "t.csv:2: timestamp: missing; expected device_id,opcode,offset,length,timestamp",
        ),
        ("419,W,0,4096,-1\n", "t.csv:1: timestamp: `-1`: must not be negative; expected microseconds"),
        (
            "1,0,128,0,1063\n2,0,1,2,1064\n",
            "t.csv:2: IOType: `2`: unknown type of request; expected one of 0, 1",
        ),
        (
            "1.0,0.1,R,4,0,4096\n1.1,,W,5,x,512\n",
            "t.csv:2: Offset: `x`: not a whole number from 0; expected bytes",
        ),
        ("fio version 1 iolog\n0, 0, 4096\n", "t.csv:1: version: version 1: expected 2 or 3"),
        (
            "fio version 3 iolog\n5 f peek 0 512\n",
            "t.csv:2: action: `peek`: unknown action; expected read, write, sync, datasync, trim, add, open, close, or \
             wait in version 2",
        ),
        (
            "fio version 3 iolog\n5 f read 0\n",
            "t.csv:2: length: missing; expected file, action, offset and length",
        ),
        (
            "fio version 3 iolog\n5 f wait 100\n",
            "t.csv:2: action: `wait`: unknown action; expected read, write, sync, \
            datasync, trim, add, open, close, or wait in version 2",
        ),
        (
            "fio version 3 iolog\n5 f read 0 512 9\n",
            "t.csv:2: end of line: `9`: the line should end before it",
        ),
        (
            "fio version 2 iolog\nf add\nf open\nf read 0 512\nf write 0 512\nf close\n",
            "t.csv: no times: a log of version 2 as fio writes it; expected `wait` lines, or a log of fio 3.31 or later",
        ),
        (
            "1, 1000, 0, 512\n1, 1000, 7, 512\n",
            "t.csv:2: direction: `7`: unknown type of request; expected one of 0, 1",
        ),
        (
            "0,k,1,10,3,get,0\n1,k,1,10,3,touch,0\n",
            "t.csv:2: operation: `touch`: unknown operation; expected one of get, gets, set, add, replace, cas, append, \
             prepend, delete, incr, decr",
        ),
    ];
    check_rows(table, |(text, expected)| equal(&error_of(text), expected));
    let odd = format!("{AZURE}\n1,g,4,a,i,b,B,e,7,yes,False\n");
    assert_eq!(error_of(&odd), "t.csv:2: Read: `yes`: expected True or False");
}

#[test]
fn requests_of_0_bytes_are_counted() {
    let (requests, tally) =
        read("seconds,kind,size\n1,read,4096\n2,write,0\n3,write,512\n4,read,0\n").unwrap();
    assert_eq!((requests.len(), tally.rest(Rest::Empty), tally.lines), (2, 2, 5));
    assert_eq!(error_of("seconds,kind,size\n1,read,0\n"), "t.csv: no requests; expected at least one");
}

#[test]
fn a_fraction_of_a_byte_is_rounded_up_and_counted() {
    let (requests, tally) =
        read("seconds,kind,size\n1,read,4096.5\n2,write,512.0\n3,write,0.25\n4,read,0.0\n").unwrap();
    let sizes: Vec<u64> = requests.iter().map(|request| request.size).collect();
    assert_eq!((sizes, tally.rounded, tally.rest(Rest::Empty)), (vec![4097, 512, 1], 2, 1));
    for (size, message) in [
        ("-4.5", "`-4.5`: not a whole number from 0; expected bytes"),
        ("4.", "`4.`: not a whole number from 0; expected bytes"),
        (".5", "`.5`: not a whole number from 0; expected bytes"),
        ("4.5e3", "`4.5e3`: not a whole number from 0; expected bytes"),
        ("18446744073709551615.5", "`18446744073709551615.5`: out of range"),
    ] {
        assert_eq!(
            error_of(&format!("seconds,kind,size\n1,read,{size}\n")),
            format!("t.csv:2: size: {message}")
        );
    }
}

/// A trace in a dialect. Times are whole seconds, sizes and offsets whole sectors.
fn write(dialect: Dialect, requests: &[Request]) -> String {
    let mut text = match dialect {
        Dialect::FioIolog => "fio version 3 iolog\n".to_owned(),
        Dialect::Azure => format!("{AZURE}\n"),
        _ => String::new(),
    };
    for &Request { at, kind, size, offset } in requests {
        let (seconds, micros) = (at.0 / 1_000_000_000, at.0 / 1000);
        let (offset, is_read) = (offset.unwrap_or(0), kind == Read);
        let letter = if is_read { "R" } else { "W" };
        let word = if is_read { "read" } else { "write" };
        match dialect {
            Dialect::Alibaba => writeln!(text, "3,{letter},{offset},{size},{micros}"),
            Dialect::Tencent => {
                writeln!(text, "{seconds},{},{},{},9", offset / 512, size / 512, u8::from(!is_read))
            }
            Dialect::Systor => writeln!(text, "{seconds}.000000,0.1,{letter},2,{offset},{size}"),
            Dialect::FioLog => {
                writeln!(text, "{}, 0, {}, {size}, {offset}, 0", micros / 1000, u8::from(!is_read))
            }
            Dialect::FioIolog => writeln!(text, "{micros} /dev/sda {word} {offset} {size}"),
            Dialect::Twitter => {
                writeln!(text, "{seconds},key,3,{size},1,{},0", if is_read { "get" } else { "set" })
            }
            _ => {
                let (reads, writes) = if is_read { ("True", "False") } else { ("False", "True") };
                writeln!(text, "{},r,u,a,i,b,t,e,{size},{reads},{writes}", micros / 1000)
            }
        }
        .unwrap();
    }
    text
}

/// A text in parts, each compressed in the given way.
fn compress(parts: &[&str], way: usize) -> Vec<u8> {
    let mut data = Vec::new();
    for part in parts {
        match way {
            0 => data.extend_from_slice(part.as_bytes()),
            1 => {
                let mut encoder = flate2::write::GzEncoder::new(&mut data, flate2::Compression::fast());
                encoder.write_all(part.as_bytes()).unwrap();
                encoder.finish().unwrap();
            }
            2 => {
                let mut encoder = bzip2::write::BzEncoder::new(&mut data, bzip2::Compression::fast());
                encoder.write_all(part.as_bytes()).unwrap();
                encoder.finish().unwrap();
            }
            _ => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                data.extend(ruzstd::encoding::compress_to_vec(part.as_bytes(), level));
                // A frame without text, as parallel compressors write them.
                data.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
            }
        }
    }
    data
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let one = (0..100_000_u64, any::<bool>(), 1..2_000_000_u64, 0..1_u64 << 40);
    prop::collection::vec(one, 1..40).prop_map(|rows| {
        let request = |(at, is_read, size, offset): (u64, bool, u64, u64)| {
            request(at * 1_000_000_000, if is_read { Read } else { Written }, size * 512, Some(offset * 512))
        };
        let mut requests: Vec<Request> = rows.into_iter().map(request).collect();
        requests.sort_by_key(|request| request.at);
        requests
    })
}

fn dialects() -> impl Strategy<Value = Dialect> {
    let known = Dialect::ALL.into_iter().skip(5).collect::<Vec<_>>();
    prop::sample::select(known)
}

proptest! {
    #[test]
    fn a_written_trace_is_read_back(requests in requests(), dialect in dialects()) {
        let without = matches!(dialect, Dialect::Twitter | Dialect::Azure);
        let expected: Vec<Request> = requests
            .iter()
            .map(|&request| Request { offset: request.offset.filter(|_| !without), ..request })
            .collect();
        let (found, tally) = read(&write(dialect, &requests)).unwrap();
        prop_assert_eq!(&found, &expected);
        let rest: u64 = Rest::ALL.map(|reason| tally.rest(reason)).iter().sum();
        prop_assert_eq!(tally.lines, tally.requests + rest);
    }

    #[test]
    fn compressed_parts_are_read_as_their_text(requests in requests(), way in 0..4_usize, cut in any::<prop::sample::Index>()) {
        let text = write(Dialect::Alibaba, &requests);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let parts = [lines[..lines.len() / 2].concat(), lines[lines.len() / 2..].concat()];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let data = compress(&parts, way);
        prop_assert_eq!(read_with(data.clone(), &ReadSettings::default()).unwrap().0, requests.clone());
        // A part that ends early is an error, or the file ends between two parts.
        let length = 8 + cut.index(data.len().saturating_sub(8).max(1));
        if way > 0
            && let Ok((some, _)) = read_with(&data[..length.min(data.len())], &ReadSettings::default())
        {
            prop_assert!(some == requests || some.len() == lines.len() / 2, "{} of {}", some.len(), requests.len());
        }
    }

    #[test]
    fn sorting_gives_the_trace_in_order_and_says_what_it_moved(
        requests in requests(), keys in prop::collection::vec(any::<u32>(), 40)
    ) {
        let mut shuffled: Vec<(u32, Request)> = keys.into_iter().zip(requests.clone()).collect();
        shuffled.sort_by_key(|(key, _)| *key);
        let shuffled: Vec<Request> = shuffled.into_iter().map(|(_, request)| request).collect();
        let settings = ReadSettings { sort: true, ..ReadSettings::default() };
        let (found, tally) = read_with(write(Dialect::Alibaba, &shuffled), &settings).unwrap();
        let times = |requests: &[Request]| requests.iter().map(|request| request.at).collect::<Vec<_>>();
        prop_assert_eq!(times(&found), times(&requests));
        let moved = shuffled.windows(2).filter(|pair| pair[1].at < pair[0].at).count() as u64;
        let mut latest = Nanos(0);
        let mut disorder = Nanos(0);
        for request in &shuffled {
            latest = latest.max(request.at);
            disorder = disorder.max(latest.since(request.at));
        }
        prop_assert_eq!((tally.moved, tally.disorder), (moved, disorder));
        if moved > 0 {
            let error = error_of(&write(Dialect::Alibaba, &shuffled));
            prop_assert!(error.contains("sort the lines by time"), "{}", error);
        }
    }
}
