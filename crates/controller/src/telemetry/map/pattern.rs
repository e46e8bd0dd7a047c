//! Patterns of maps: Python's, as far as they mean the same to every program that reads them.
//!
//! `leeward hotspots` reads them with Python's `re`, Prometheus with RE2 in the rules that are exported, and this service
//! with the crate `regex`, which takes no longer for one text than for another. What all have and mean alike is taken, and
//! the rest refused by its name, as the export of rules does. On the way a pattern is written anew: signs that mean
//! themselves in Python are marked as such, because some of them mean more to `regex`.

use regex::{Regex, RegexBuilder, escape};

const ALLOWED: &str = "letters and sets, |, ( ), (?: ), (?P<name> ), (?i) at the start, *, +, ? and {n,m} up to 1000, \
    lazy ones too, \\d \\w \\s \\b \\A, \\t \\n \\r \\x20, and \\ before a sign";
/// Of repetitions, also of those within others.
const MOST: u32 = 1000;
/// Bytes that a compiled pattern may take.
const LARGEST: usize = 4 << 20;

/// A pattern that matches all of a text, or nothing of it.
///
/// # Errors
/// What of it is not known here, or why it is none.
pub fn compiled(pattern: &str) -> Result<Regex, String> {
    let unknown = |rest: &str| {
        let part: String = rest.chars().take(8).collect();
        format!("the service does not know `{part}` in a pattern; expected {ALLOWED}")
    };
    let whole = format!(r"\A(?:{})\z", written_anew(pattern).map_err(unknown)?);
    RegexBuilder::new(&whole).size_limit(LARGEST).build().map_err(|error| {
        // The lines before repeat the pattern as it was written anew.
        let told = error.to_string();
        format!("no pattern: {}", told.lines().last().unwrap_or_default().trim_start_matches("error: "))
    })
}

/// What a part of a pattern is to those beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// It can be repeated.
    Letter,
    /// It cannot.
    Mark,
    Open,
    Close,
    /// What stands before it comes so many times at most; without a limit counts as once.
    Repeat(u32),
}

/// The same pattern for `regex`, or the rest of it from where something begins that is not known.
fn written_anew(pattern: &str) -> Result<String, &str> {
    let (mut written, mut rest) = (String::new(), pattern);
    // Of the part before: whether it can be repeated, and how often it is; and the most in each group that is open.
    let (mut repeatable, mut times, mut most) = (false, 1_u32, vec![1_u32]);
    while !rest.is_empty() {
        let (length, text, token) = token(rest, rest.len() == pattern.len()).ok_or(rest)?;
        (repeatable, times) = match token {
            Token::Letter => (true, 1),
            Token::Mark => (false, 1),
            Token::Open => {
                most.push(1);
                (false, 1)
            }
            Token::Close => (true, most.pop().unwrap_or(1)),
            Token::Repeat(more) if repeatable && more.saturating_mul(times) <= MOST => (false, more * times),
            Token::Repeat(_) => return Err(rest),
        };
        if let Some(most) = most.last_mut() {
            *most = (*most).max(times);
        }
        written += &text;
        rest = &rest[length..];
    }
    Ok(written)
}

/// The first part of a text: its length, how it is written for `regex`, and what it is. `None` if it is not known.
fn token(rest: &str, first: bool) -> Option<(usize, String, Token)> {
    let sign = rest.chars().next()?;
    let (length, text, token) = match sign {
        '[' => {
            let (length, text) = set(rest)?;
            return Some((length, text, Token::Letter));
        }
        '(' => return group(rest, first).map(|(length, token)| (length, rest[..length].to_owned(), token)),
        ')' => (1, ")".to_owned(), Token::Close),
        '*' | '+' | '?' => return Some(lazy(rest, 1, 1)),
        '{' => match counts(rest) {
            Some((length, times)) => return Some(lazy(rest, length, times)),
            // Python takes {,3} for a repetition, and others for letters.
            None if rest.starts_with("{,") => return None,
            None => (1, escape("{"), Token::Letter),
        },
        '\\' if rest[1..].starts_with(['b', 'B', 'A']) => (2, rest[..2].to_owned(), Token::Mark),
        '\\' => {
            let (length, text) = escaped(rest)?;
            (length, text, Token::Letter)
        }
        '|' | '^' | '$' => (1, sign.to_string(), Token::Mark),
        '.' => (1, ".".to_owned(), Token::Letter),
        letter => (letter.len_utf8(), escape(letter.encode_utf8(&mut [0; 4])), Token::Letter),
    };
    Some((length, text, token))
}

/// A repetition, with the sign that makes it lazy if it is there.
fn lazy(rest: &str, length: usize, times: u32) -> (usize, String, Token) {
    let length = length + usize::from(rest[length..].starts_with('?'));
    (length, rest[..length].to_owned(), Token::Repeat(times))
}

/// `{n}`, `{n,}` or `{n,m}`: its length, and the higher number.
fn counts(rest: &str) -> Option<(usize, u32)> {
    let (inside, _) = rest.strip_prefix('{')?.split_once('}')?;
    let (low, high) = inside.split_once(',').unwrap_or((inside, inside));
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u32::MAX))
    };
    let high = if high.is_empty() { number(low) } else { number(high) };
    Some((inside.len() + 2, number(low)?.max(high?)))
}

/// The head of a group, or flags of the whole pattern.
fn group(rest: &str, first: bool) -> Option<(usize, Token)> {
    let Some(head) = rest.strip_prefix("(?") else { return Some((1, Token::Open)) };
    if let Some(name) = head.strip_prefix("P<") {
        let (name, _) = name.split_once('>')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        return is_name.then_some((name.len() + 5, Token::Open));
    }
    let flags = head.bytes().take_while(|byte| b"ims".contains(byte)).count();
    match head.as_bytes().get(flags)? {
        b':' => Some((flags + 3, Token::Open)),
        b')' if first && flags > 0 => Some((flags + 3, Token::Mark)),
        _ => None,
    }
}

/// A letter after a backslash: its length, and how it is written for `regex`.
fn escaped(rest: &str) -> Option<(usize, String)> {
    match rest[1..].chars().next()? {
        'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
            Some((2, rest[..2].to_owned()))
        }
        'x' => {
            let is_hex = rest.get(2..4)?.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| (4, rest[..4].to_owned()))
        }
        // Written as it is: `\<` is a sign in Python, and the beginning of a word to `regex`.
        sign if sign.is_ascii_punctuation() => Some((2, escape(sign.encode_utf8(&mut [0; 4])))),
        _ => None,
    }
}

/// A set: its length, and how it is written for `regex`, where sets can be subtracted and stand within others.
fn set(rest: &str) -> Option<(usize, String)> {
    let (mut at, mut written) = (1, "[".to_owned());
    if rest[at..].starts_with('^') {
        (at, written) = (at + 1, written + "^");
    }
    if rest[at..].starts_with(']') {
        (at, written) = (at + 1, written + r"\]");
    }
    loop {
        let tail = &rest[at..];
        let sign = tail.chars().next()?;
        let (length, text) = match sign {
            ']' => return Some((at + 1, written + "]")),
            '\\' => escaped(tail)?,
            '[' if tail.starts_with("[:") => return None,
            '-' if tail.starts_with("--") => return None,
            '-' => (1, "-".to_owned()),
            letter => (letter.len_utf8(), escape(letter.encode_utf8(&mut [0; 4]))),
        };
        (at, written) = (at + length, written + &text);
    }
}
