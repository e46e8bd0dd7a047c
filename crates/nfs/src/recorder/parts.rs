//! Files on their way to whole ones: the rename at their end, and those that a killed proxy left.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use leeward_fabric::Nanos;

/// End of the name of a file that grows.
pub(super) const PART: &str = ".csv.part";
/// End of the name of a whole file.
const WHOLE: &str = ".csv";
/// Bytes of a block in the search for the last whole line. A file may be larger than the memory of the process.
const BLOCK: u64 = 64 << 10;
/// Bytes that have the first two lines.
const HEAD: u64 = 256;

/// Renames a file that grew to `NAME-TIME.csv`. An existing file is never replaced.
pub(super) fn complete(path: &Path, first: Nanos) -> io::Result<()> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(PART));
    let name = name.ok_or_else(|| io::Error::other("no name of a trace"))?;
    let time = Timestamp::from_nanosecond(first.0.into()).map_err(io::Error::other)?;
    let time = time.strftime("%Y%m%dT%H%M%SZ");
    for number in 0..1000 {
        let more = if number == 0 { String::new() } else { format!("-{number}") };
        let whole = path.with_file_name(format!("{name}-{time}{more}{WHOLE}"));
        if !whole.try_exists()? {
            return fs::rename(path, whole);
        }
    }
    Err(io::Error::other(format!("{name}-{time}: too many files of this time")))
}

/// Completes the files of a proxy that was killed: a line without its end is removed, and a file without a request too.
pub(super) fn complete_parts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(PART) {
            continue;
        }
        let mut file = File::options().read(true).write(true).open(&path)?;
        match whole_lines(&mut file)? {
            Some((first, length)) => {
                file.set_len(length)?;
                complete(&path, first)?;
            }
            None => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Time of the first request of a trace, and the bytes of its whole lines; `None` without a request. It reads the ends of
/// the file alone.
pub(super) fn whole_lines(file: &mut (impl Read + Seek)) -> io::Result<Option<(Nanos, u64)>> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut length = 0;
    while end > 0 && length == 0 {
        let from = end.saturating_sub(BLOCK);
        let block = read_from(file, from, end - from)?;
        if let Some(at) = block.iter().rposition(|&byte| byte == b'\n') {
            length = from + at as u64 + 1;
        }
        end = from;
    }
    let head = read_from(file, 0, length.min(HEAD))?;
    let second = head.split(|&byte| byte == b'\n').nth(1);
    Ok(second.and_then(first_time).map(|first| (first, length)))
}

fn read_from(file: &mut (impl Read + Seek), from: u64, length: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Time of a line.
fn first_time(line: &[u8]) -> Option<Nanos> {
    let (seconds, rest) = std::str::from_utf8(line).ok()?.split_once('.')?;
    let nanos: u64 = rest.get(..9)?.parse().ok()?;
    Some(Nanos(seconds.parse::<u64>().ok()?.checked_mul(Nanos::SECOND.0)?.checked_add(nanos)?))
}

/// Bytes of all traces of a folder.
pub(super) fn recorded_bytes(folder: &Path) -> io::Result<u64> {
    let mut sum = 0_u64;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(WHOLE) {
            sum = sum.saturating_add(entry.metadata()?.len());
        }
    }
    Ok(sum)
}
