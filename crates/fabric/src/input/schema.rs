//! Numbers and booleans in scalars. They follow the core schema of YAML 1.2 (section 10.3), with two rules of YAML 1.1
//! that existing files use: `yes` and `on` are booleans, and numbers may have underscores.

/// Value of a plain scalar where no particular type is expected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Plain<'t> {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'t str),
}

impl<'t> Plain<'t> {
    /// Reads a plain scalar.
    pub fn of(text: &'t str) -> Plain<'t> {
        if let Some(truth) = boolean(text) {
            return Plain::Bool(truth);
        }
        match integer(text).map(|number| (u64::try_from(number), i64::try_from(number))) {
            Some((Ok(number), _)) if !text.starts_with('-') => return Plain::Unsigned(number),
            Some((_, Ok(number))) if text.starts_with('-') => return Plain::Signed(number),
            _ => {}
        }
        match float(text) {
            // Infinity and NaN stay texts, so that the expected type accepts or rejects them.
            Some(number) if number.is_nan() => Plain::Text(".nan"),
            Some(number) if number == f64::INFINITY => Plain::Text(".inf"),
            Some(number) if number == f64::NEG_INFINITY => Plain::Text("-.inf"),
            Some(number) => Plain::Float(number),
            None => Plain::Text(text),
        }
    }
}

/// True for texts that mean an empty value.
pub(super) fn is_null(plain: &str) -> bool {
    plain.is_empty() || plain == "~" || plain.eq_ignore_ascii_case("null")
}

/// Reads a boolean.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match text.len() {
        1..=5 if is(&["true", "yes", "y", "on"]) => Some(true),
        1..=5 if is(&["false", "no", "n", "off"]) => Some(false),
        _ => None,
    }
}

/// Reads an integer: decimal without leading zeros, or with the prefix `0x`, `0o` or `0b`.
pub(super) fn integer(text: &str) -> Option<i128> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefixes = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    let prefixed = prefixes.iter().find_map(|&(prefix, radix)| Some((unsigned.strip_prefix(prefix)?, radix)));
    let (digits, radix) = prefixed.unwrap_or((unsigned, 10));
    let leading_zero = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    let between = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if leading_zero
        || !digits.starts_with(|first: char| first.is_ascii_hexdigit())
        || !digits.split('_').all(between)
    {
        return None;
    }
    let number = if digits.contains('_') {
        i128::from_str_radix(&digits.replace('_', ""), radix)
    } else {
        i128::from_str_radix(digits, radix)
    };
    number.ok().map(|number| if text.starts_with('-') { -number } else { number })
}

/// Reads a number. A number beyond the range of `f64` is infinite.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.as_bytes().first()? {
        b'0'..=b'9' => text.parse().ok(),
        b'.' if unsigned.eq_ignore_ascii_case(".nan") => Some(f64::NAN),
        b'.' if unsigned.eq_ignore_ascii_case(".inf") => {
            Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY })
        }
        b'.' => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        let rows = [
            ("yes", Plain::Bool(true)),
            ("Off", Plain::Bool(false)),
            ("0", Plain::Unsigned(0)),
            ("+12", Plain::Unsigned(12)),
            ("1_000", Plain::Unsigned(1000)),
            ("0x1F", Plain::Unsigned(31)),
            ("0o17", Plain::Unsigned(15)),
            ("0b101", Plain::Unsigned(5)),
            ("-7", Plain::Signed(-7)),
            ("007", Plain::Float(7.0)),
            ("1e3", Plain::Float(1000.0)),
            (".5", Plain::Float(0.5)),
            ("18446744073709551616", Plain::Float(18_446_744_073_709_551_616.0)),
            (".Inf", Plain::Text(".inf")),
            ("-.inf", Plain::Text("-.inf")),
            ("1e999", Plain::Text(".inf")),
            (".NaN", Plain::Text(".nan")),
            ("inf", Plain::Text("inf")),
            ("nan", Plain::Text("nan")),
            ("1__0", Plain::Text("1__0")),
            ("0x", Plain::Text("0x")),
            ("-", Plain::Text("-")),
            (".", Plain::Text(".")),
            ("10Gbps", Plain::Text("10Gbps")),
            ("2026-01-01", Plain::Text("2026-01-01")),
        ];
        for (text, value) in rows {
            assert_eq!(Plain::of(text), value, "{text}");
        }
    }

    proptest! {
        /// Numbers as Rust prints them.
        #[test]
        fn a_printed_number_is_read_as_itself(whole: i128, float in prop::num::f64::NORMAL) {
            prop_assert_eq!(integer(&whole.to_string()), Some(whole));
            prop_assert_eq!(super::float(&format!("{float:?}")), Some(float));
            prop_assert_eq!(super::float(&format!("{float:e}")), Some(float));
        }

        /// Texts of characters that numbers consist of.
        #[test]
        fn serde_saphyr_reads_the_same_numbers_and_booleans(text in "[-+]?[0-9a-fA-FxXob_.eE]{1,8}") {
            let library: Option<i128> = serde_saphyr::from_str(&text).ok();
            prop_assert_eq!(integer(&text), library, "{}", text);
            let library: Option<f64> = serde_saphyr::from_str(&text).ok();
            prop_assert_eq!(super::float(&text).filter(|float| float.is_finite()), library, "{}", text);
            let library: Option<bool> = serde_saphyr::from_str(&text).ok();
            prop_assert_eq!(boolean(&text), library, "{}", text);
        }
    }
}
