//! Field parsers that several dialects share.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, Line, cells, excerpt};

use crate::Kind;

const SECOND: u64 = 1_000_000_000;
/// Size of a sector, for dialects that count in sectors.
const SECTOR: u64 = 512;

/// The cells of a line of a dialect with these columns. Columns from `least` on are optional, and empty if absent. If
/// `more` is true, further cells may follow.
pub(super) fn row<'a, const N: usize>(
    line: &Line<'a>,
    names: [&str; N],
    least: usize,
    more: bool,
) -> Result<[&'a str; N], InputError> {
    let mut cells = cells(line.text);
    let mut row = [""; N];
    for (index, (cell, name)) in row.iter_mut().zip(names).enumerate() {
        match cells.next() {
            Some(text) => *cell = text,
            None if index >= least => {}
            None => return Err(line.error(name, format!("missing; expected {}", names.join(",")))),
        }
    }
    if !more && cells.next().is_some() {
        let message = format!("more than {N} cells; expected {}", names.join(","));
        return Err(line.error("columns", message));
    }
    Ok(row)
}

/// True for a line of these names of columns.
pub(super) fn is_heading(line: &str, names: &[&str]) -> bool {
    let mut cells = cells(line);
    names.iter().all(|name| cells.next().is_some_and(|cell| cell.eq_ignore_ascii_case(name)))
        && cells.next().is_none()
}

/// Seconds as a decimal number, to the nanosecond. The digits are parsed directly, because a double does not have
/// enough digits for times since 1970.
pub(super) fn seconds(line: &Line<'_>, field: &str, text: &str) -> Result<Nanos, InputError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !whole.is_empty() && digits(whole) && digits(fraction) {
        let mut nanos = 0;
        for place in 0..9 {
            nanos = nanos * 10 + u64::from(fraction.as_bytes().get(place).map_or(0, |digit| digit - b'0'));
        }
        let round = u64::from(fraction.as_bytes().get(9).is_some_and(|&digit| digit >= b'5'));
        let whole: Option<u64> = whole.parse().ok();
        let at = whole.and_then(|whole| whole.checked_mul(SECOND)?.checked_add(nanos + round));
        return at.map(Nanos).ok_or_else(|| too_large(line, field, text));
    }
    let seconds = line.number(field, "seconds", text)?;
    if seconds * 1e9 >= u64::MAX as f64 {
        return Err(too_large(line, field, text));
    }
    Ok(Nanos::from_secs_f64(seconds))
}

/// A number of units of `nanos` nanoseconds.
pub(super) fn ticks(line: &Line<'_>, field: &str, text: &str, nanos: u64) -> Result<Nanos, InputError> {
    let unit = match nanos {
        1 => "nanoseconds",
        100 => "ticks of 100 ns",
        1000 => "microseconds",
        _ => "milliseconds",
    };
    let ticks = signed(line, field, unit, text)?;
    ticks.checked_mul(nanos).map(Nanos).ok_or_else(|| too_large(line, field, text))
}

/// A whole number; a negative number has its own error.
pub(super) fn signed(line: &Line<'_>, field: &str, unit: &str, text: &str) -> Result<u64, InputError> {
    if text.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok_and(|number| number > 0)) {
        let message = format!("`{}`: must not be negative; expected {unit}", excerpt(text));
        return Err(line.error(field, message));
    }
    line.count(field, unit, text)
}

/// A number of bytes, and whether it had a fraction. A fraction is rounded up.
pub(super) fn size(line: &Line<'_>, field: &str, text: &str) -> Result<(u64, bool), InputError> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) if digits(whole) && digits(fraction) => {
            let has_fraction = fraction.bytes().any(|digit| digit != b'0');
            let bytes = signed(line, field, "bytes", whole)?.checked_add(u64::from(has_fraction));
            Ok((bytes.ok_or_else(|| too_large(line, field, text))?, has_fraction))
        }
        _ => Ok((signed(line, field, "bytes", text)?, false)),
    }
}

/// A number of sectors, in bytes.
pub(super) fn sectors(line: &Line<'_>, field: &str, text: &str) -> Result<u64, InputError> {
    let count = signed(line, field, "sectors of 512 bytes", text)?;
    count.checked_mul(SECTOR).ok_or_else(|| too_large(line, field, text))
}

/// The kind of a request from its type name, in lower or upper case.
pub(super) fn kind(
    line: &Line<'_>,
    field: &str,
    text: &str,
    reads: &[&str],
    writes: &[&str],
) -> Result<Kind, InputError> {
    let is = |word: &&str| word.eq_ignore_ascii_case(text);
    if reads.iter().any(is) {
        Ok(Kind::Read)
    } else if writes.iter().any(is) {
        Ok(Kind::Write)
    } else {
        let words: Vec<&str> = reads.iter().chain(writes).copied().collect();
        let message =
            format!("`{}`: unknown type of request; expected one of {}", excerpt(text), words.join(", "));
        Err(line.error(field, message))
    }
}

/// A time in seconds, with all digits.
pub(super) fn exact(at: Nanos) -> String {
    let text = format!("{}.{:09}", at.0 / SECOND, at.0 % SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn too_large(line: &Line<'_>, field: &str, text: &str) -> InputError {
    line.error(field, format!("`{}`: out of range", excerpt(text)))
}
