//! Patterns of map files: the common subset of three regular-expression dialects.
//!
//! `leeward hotspots` uses Python's `re`, exported Prometheus rules use RE2, and this service uses the crate `regex`,
//! which matches in linear time. The module accepts only the syntax that has the same meaning in all of them. It
//! rejects other syntax and names the unsupported part, as the export of rules does. The module also rewrites patterns:
//! it escapes characters that are literals in Python and have a meaning in `regex`.
//!
//! No library parses this subset, so the tokenizer is hand-written.

use regex::{Regex, RegexBuilder, escape};

const ALLOWED: &str = "letters and sets, |, ( ), (?: ), (?P<name> ), (?i) at the start, *, +, ? and {n,m} up to 1000, \
    lazy ones too, \\d \\w \\s \\b \\A, \\t \\n \\r \\x20, and \\ before punctuation";
/// Largest number of repetitions; numbers of nested repetitions are multiplied.
const MAX_REPETITIONS: u32 = 1000;
/// Largest compiled pattern, in bytes.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// Compiles a pattern that matches a complete text.
///
/// # Errors
/// The unsupported part of the pattern, or the syntax error.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let unsupported = |rest: &str| {
        let part: String = rest.chars().take(8).collect();
        format!("the service does not support `{part}` in a pattern; expected {ALLOWED}")
    };
    let whole = format!(r"\A(?:{})\z", rewrite(pattern).map_err(unsupported)?);
    RegexBuilder::new(&whole).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| {
        // Earlier lines of the message repeat the rewritten pattern.
        let message = error.to_string();
        format!(
            "invalid pattern: {}",
            message.lines().last().unwrap_or_default().trim_start_matches("error: ")
        )
    })
}

/// Kind of a part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A part that can be repeated.
    Letter,
    /// A part that cannot be repeated.
    Mark,
    Open,
    Close,
    /// Repeats the previous part up to this number of times; a repetition without a limit counts as 1.
    Repeat(u32),
}

/// Rewrites a pattern for `regex`.
///
/// # Errors
/// The rest of the pattern, from the first unsupported part.
fn rewrite(pattern: &str) -> Result<String, &str> {
    let (mut written, mut rest) = (String::new(), pattern);
    // State of the previous part: true if it can be repeated, and its number of repetitions. The last value is the
    // largest number of repetitions in each open group.
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
            Token::Repeat(more) if repeatable && more.saturating_mul(times) <= MAX_REPETITIONS => {
                (false, more * times)
            }
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

/// First part of a text: its length, its form for `regex`, and its kind. `None` if it is unsupported.
fn token(rest: &str, first: bool) -> Option<(usize, String, Token)> {
    let letter = rest.chars().next()?;
    let (length, text, token) = match letter {
        '[' => {
            let (length, text) = set(rest)?;
            return Some((length, text, Token::Letter));
        }
        '(' => return group(rest, first).map(|(length, token)| (length, rest[..length].to_owned(), token)),
        ')' => (1, ")".to_owned(), Token::Close),
        '*' | '+' | '?' => return Some(lazy(rest, 1, 1)),
        '{' => match counts(rest) {
            Some((length, times)) => return Some(lazy(rest, length, times)),
            // Python reads {,3} as a repetition; the others read it as literals.
            None if rest.starts_with("{,") => return None,
            None => (1, escape("{"), Token::Letter),
        },
        '\\' if rest[1..].starts_with(['b', 'B', 'A']) => (2, rest[..2].to_owned(), Token::Mark),
        '\\' => {
            let (length, text) = escaped(rest)?;
            (length, text, Token::Letter)
        }
        '|' | '^' | '$' => (1, letter.to_string(), Token::Mark),
        '.' => (1, ".".to_owned(), Token::Letter),
        _ => (letter.len_utf8(), escape(letter.encode_utf8(&mut [0; 4])), Token::Letter),
    };
    Some((length, text, token))
}

/// A repetition, with its lazy marker if present.
fn lazy(rest: &str, length: usize, times: u32) -> (usize, String, Token) {
    let length = length + usize::from(rest[length..].starts_with('?'));
    (length, rest[..length].to_owned(), Token::Repeat(times))
}

/// `{n}`, `{n,}` or `{n,m}`: length, and the larger number.
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

/// Head of a group, or flags of the whole pattern.
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

/// An escaped character: length, and its form for `regex`.
fn escaped(rest: &str) -> Option<(usize, String)> {
    match rest[1..].chars().next()? {
        'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
            Some((2, rest[..2].to_owned()))
        }
        'x' => {
            let is_hex = rest.get(2..4)?.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| (4, rest[..4].to_owned()))
        }
        // Drops the backslash: `\<` is a literal in Python, and the start of a word in `regex`.
        mark if mark.is_ascii_punctuation() => Some((2, escape(mark.encode_utf8(&mut [0; 4])))),
        _ => None,
    }
}

/// A set: length, and its form for `regex`, which also supports subtraction and nesting of sets.
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
        let letter = tail.chars().next()?;
        let (length, text) = match letter {
            ']' => return Some((at + 1, written + "]")),
            '\\' => escaped(tail)?,
            '[' if tail.starts_with("[:") => return None,
            '-' if tail.starts_with("--") => return None,
            '-' => (1, "-".to_owned()),
            _ => (letter.len_utf8(), escape(letter.encode_utf8(&mut [0; 4]))),
        };
        (at, written) = (at + length, written + &text);
    }
}
