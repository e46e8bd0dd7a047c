//! Map file format, with errors by line and field.

use std::fmt;

use leeward_fabric::input::{InputError, Spanned, excerpt, read_yaml};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::pattern::compile;
use super::{Direction, Map, Match, Metrics, Part, Rule, Template};

/// Largest map file, in bytes.
const MAX_BYTES: usize = 1_000_000;
/// Counter units, in bits.
const COUNTERS: [(&str, f64); 2] = [("bits", 1.0), ("octets", 8.0)];
/// Rate units, in bit/s.
const RATES: [(&str, f64); 12] = [
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("Tbps", 1e12),
    ("B/s", 8.0),
    ("kB/s", 8e3),
    ("MB/s", 8e6),
    ("GB/s", 8e9),
    ("KiB/s", 8.0 * 1024.0),
    ("MiB/s", 8.0 * 1024.0 * 1024.0),
    ("GiB/s", 8.0 * 1024.0 * 1024.0 * 1024.0),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MapFile {
    prometheus: Option<Spanned<MetricsFile>>,
    columns: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    links: Vec<Spanned<RuleFile>>,
    #[serde(default)]
    ignore: Vec<Spanned<Patterns>>,
    #[serde(default)]
    replica_labels: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricsFile {
    r#in: Option<Spanned<String>>,
    out: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
    unit: Option<Spanned<String>>,
    speed: Option<Spanned<String>>,
    speed_unit: Option<Spanned<String>>,
    counter_bits: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    r#match: Spanned<Patterns>,
    r#in: Option<Spanned<String>>,
    out: Option<Spanned<String>>,
    load: Option<Spanned<String>>,
}

/// Pattern of each label, in file order. If two patterns have a group of the same name, the last group counts.
struct Patterns(Vec<(String, Spanned<String>)>);

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Labels;

        impl<'de> Visitor<'de> for Labels {
            type Value = Patterns;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("labels with patterns")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Patterns, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Patterns(entries))
            }
        }
        deserializer.deserialize_map(Labels)
    }
}

impl Map {
    /// Reads the map file of a service. A service queries Prometheus, and reads no telemetry files.
    ///
    /// # Errors
    /// [`InputError`] with line and field.
    pub fn from_text(file: &str, text: &str) -> Result<Map, InputError> {
        if text.len() > MAX_BYTES {
            return Err(InputError::new(file, format!("longer than {MAX_BYTES} bytes")));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let MapFile { prometheus, columns, links, ignore, replica_labels } = read_yaml(file, text)?;
        let reader = Reader { file };
        if let Some(columns) = columns {
            let message = "this field is for telemetry files, which a service does not read; remove it";
            return Err(reader.invalid("columns", &columns, message));
        }
        let Some(prometheus) = prometheus else {
            let message = "missing; expected the counters to query: `in` and `out`, or `load`";
            return Err(InputError::new(file, message).in_field("prometheus"));
        };
        let each = |(index, patterns): (usize, &Spanned<Patterns>)| {
            reader.patterns(&format!("ignore[{index}]"), patterns)
        };
        Ok(Map {
            metrics: reader.metrics(&prometheus)?,
            rules: links.iter().enumerate().map(|rule| reader.rule(rule)).collect::<Result<_, _>>()?,
            ignore: ignore.iter().enumerate().map(each).collect::<Result<_, _>>()?,
            replica_labels: replica_labels.into_iter().map(|label| label.value).collect(),
        })
    }
}

/// Converts the file format to a map.
struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn invalid<T>(&self, field: &str, place: &Spanned<T>, message: impl fmt::Display) -> InputError {
        InputError::new(self.file, message).in_field(field).at(place)
    }

    fn metrics(&self, given: &Spanned<MetricsFile>) -> Result<Metrics, InputError> {
        let at = "prometheus";
        let MetricsFile { r#in, out, load, unit, speed, speed_unit, counter_bits } = &given.value;
        let queries = self.directions(at, [r#in, out, load], |_, text| Ok(text.to_owned()))?;
        if queries.is_empty() {
            let message = "expected the counters to query: `in` and `out`, or `load`";
            return Err(self.invalid(at, given, message));
        }
        let speed = speed.as_ref().map(|speed| self.text(&format!("{at}.speed"), speed).map(str::to_owned));
        Ok(Metrics {
            queries,
            unit: self.choice("prometheus.unit", unit.as_ref(), &COUNTERS, 8.0)?,
            speed: speed.transpose()?,
            speed_unit: self.choice("prometheus.speed_unit", speed_unit.as_ref(), &RATES, 1e6)?,
            narrow: self.choice(
                "prometheus.counter_bits",
                counter_bits.as_ref(),
                &[("32", true), ("64", false)],
                false,
            )?,
        })
    }

    fn rule(&self, (index, given): (usize, &Spanned<RuleFile>)) -> Result<Rule, InputError> {
        let at = format!("links[{index}]");
        let RuleFile { r#match, r#in, out, load } = &given.value;
        let links = self.directions(&at, [r#in, out, load], |_, text| {
            let message = || format!("`{}`: expected `{{name}}` or `{{name+1}}`", excerpt(text));
            parse_template(text).ok_or_else(message)
        })?;
        if links.is_empty() {
            return Err(self.invalid(&at, given, "expected `in`, `out` or `load`: the name of a link"));
        }
        Ok(Rule { labels: self.patterns(&format!("{at}.match"), r#match)?, links })
    }

    /// Reads the values that a section has for each direction.
    fn directions<T>(
        &self,
        at: &str,
        given: [&Option<Spanned<String>>; 3],
        read: impl Fn(Direction, &str) -> Result<T, String>,
    ) -> Result<Vec<(Direction, T)>, InputError> {
        let values = Direction::ALL
            .into_iter()
            .zip(given)
            .filter_map(|(direction, text)| Some((direction, text.as_ref()?)));
        let read = |(direction, value): (Direction, &Spanned<String>)| {
            let field = format!("{at}.{}", direction.name());
            let text = self.text(&field, value)?;
            Ok((direction, read(direction, text).map_err(|message| self.invalid(&field, value, message))?))
        };
        values.map(read).collect()
    }

    fn patterns(&self, at: &str, given: &Spanned<Patterns>) -> Result<Match, InputError> {
        if given.value.0.is_empty() {
            return Err(self.invalid(at, given, "expected labels with patterns"));
        }
        let pattern = |(label, value): &(String, Spanned<String>)| {
            let field = format!("{at}.{}", excerpt(label));
            let text = self.text(&field, value)?;
            let pattern = compile(text);
            let invalid = |reason| self.invalid(&field, value, format!("`{}`: {reason}", excerpt(text)));
            Ok((label.clone(), pattern.map_err(invalid)?))
        };
        given.value.0.iter().map(pattern).collect()
    }

    fn text<'a>(&self, field: &str, given: &'a Spanned<String>) -> Result<&'a str, InputError> {
        if given.value.trim().is_empty() {
            return Err(self.invalid(field, given, "must not be empty"));
        }
        Ok(&given.value)
    }

    fn choice<T: Copy>(
        &self,
        field: &str,
        given: Option<&Spanned<String>>,
        known: &[(&str, T)],
        default: T,
    ) -> Result<T, InputError> {
        let Some(given) = given else { return Ok(default) };
        let choice = known.iter().find(|(name, _)| *name == given.value);
        choice.map(|&(_, value)| value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
            let message = format!("`{}`: expected one of {}", excerpt(&given.value), names.join(", "));
            self.invalid(field, given, message)
        })
    }
}

/// Parses a template of a link name: text with `{name}`, `{name+1}` or `{name-1}`.
fn parse_template(text: &str) -> Option<Template> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, tail)) = rest.split_once('{') {
        let (inside, after) = tail.split_once('}')?;
        parts.push(Part::Text(before.to_owned()));
        parts.push(parse_field(inside)?);
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    let is_plain = |part: &Part| !matches!(part, Part::Text(text) if text.contains(['{', '}']));
    parts.iter().all(is_plain).then_some(Template(parts))
}

/// Parses the inside of braces: a name, with an optional offset.
fn parse_field(inside: &str) -> Option<Part> {
    let end = inside.find(['+', '-']).unwrap_or(inside.len());
    let (name, offset) = inside.split_at(end);
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let offset = match offset {
        "" => None,
        offset => {
            let digits = &offset[1..];
            let is_number =
                (1..7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            Some(offset.parse().ok().filter(|_| is_number)?)
        }
    };
    is_name.then(|| Part::Field(name.to_owned(), offset))
}
