//! Map files: counters to query from Prometheus, and the mapping from labels to links. `leeward hotspots`
//! reads the same files (`docs/reference/telemetry-map.md`).

mod file;
mod pattern;

use regex::Regex;

/// A map file.
#[derive(Clone, Debug)]
pub struct Map {
    /// Metrics to query from Prometheus.
    pub metrics: Metrics,
    rules: Vec<Rule>,
    /// Ports known to be outside the cluster.
    ignore: Vec<Match>,
    /// Labels by which copies of a series differ.
    pub replica_labels: Vec<String>,
}

/// Direction of a counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Direction {
    /// Into a port.
    In,
    /// Out of a port.
    Out,
    /// Over a link, by the link's own name.
    Load,
}

/// Metrics to query from Prometheus.
#[derive(Clone, PartialEq, Debug)]
pub struct Metrics {
    /// Selector of a counter for each direction.
    pub queries: Vec<(Direction, String)>,
    /// Bits per count.
    pub unit: f64,
    /// Selector of port speeds.
    pub speed: Option<String>,
    /// Bit/s per unit of speed.
    pub speed_unit: f64,
    /// True for 32-bit counters, false for 64-bit ones.
    pub narrow: bool,
}

/// For each label, a pattern that matches its whole text.
type Match = Vec<(String, Regex)>;

/// Links of the ports whose labels match all patterns.
#[derive(Clone, Debug)]
struct Rule {
    labels: Match,
    links: Vec<(Direction, Template)>,
}

/// Template of a link name, with parts from a port's labels.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    /// Text of a group or label, or its number plus an offset.
    Field(String, Option<i64>),
}

/// Labels and their values, sorted by label.
pub type Labels = Vec<(String, String)>;

/// Mapping of a port in one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mapping {
    /// Link of this name, by the rule of this index; without rules, the label `link` contains the name.
    Link(String, Option<usize>),
    /// A port known to be outside the cluster.
    Ignored,
    /// No rule matches.
    Unknown,
    /// The rule with this index matches, but the labels give no name, for this reason.
    Unnamed(usize, String),
}

impl Direction {
    /// All directions.
    pub const ALL: [Direction; 3] = [Direction::In, Direction::Out, Direction::Load];

    /// Name in map files.
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Load => "load",
        }
    }
}

impl Map {
    /// Mapping of a port with these labels, in one direction.
    pub fn mapping(&self, labels: &Labels, direction: Direction) -> Mapping {
        if self.ignore.iter().any(|patterns| groups(patterns, labels).is_some()) {
            return Mapping::Ignored;
        }
        if self.rules.is_empty() {
            let name = text(labels, "link").filter(|name| !name.is_empty());
            let only = labels.first().filter(|_| labels.len() == 1).map(|(_, text)| text.as_str());
            return name.or(only).map_or(Mapping::Unknown, |name| match name {
                "" => Mapping::Ignored,
                name => Mapping::Link(name.to_owned(), None),
            });
        }
        let first = self
            .rules
            .iter()
            .enumerate()
            .find_map(|(index, rule)| groups(&rule.labels, labels).map(|groups| (index, rule, groups)));
        let Some((index, rule, groups)) = first else { return Mapping::Unknown };
        let Some((_, template)) = rule.links.iter().find(|(candidate, _)| *candidate == direction) else {
            // A rule without this direction excludes it on purpose.
            return Mapping::Ignored;
        };
        let value = |name: &str| {
            let group = groups.iter().rev().find(|(group, _)| *group == name).map(|&(_, text)| text);
            group.or_else(|| text(labels, name))
        };
        match template.render(value) {
            Ok(name) if name.is_empty() => Mapping::Ignored,
            Ok(name) => Mapping::Link(name, Some(index)),
            Err(reason) => Mapping::Unnamed(index, reason),
        }
    }

    /// Number of rules.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }
}

impl Template {
    /// Name of the link; `value` returns the text of a group or label.
    fn render<'a>(&self, value: impl Fn(&str) -> Option<&'a str>) -> Result<String, String> {
        let mut name = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => name += text,
                Part::Field(field, offset) => {
                    let text =
                        value(field).ok_or_else(|| format!("`{{{field}}}`: no such label or group"))?;
                    match offset {
                        None => name += text,
                        Some(offset) => name += &(number(text, field)? + offset).to_string(),
                    }
                }
            }
        }
        Ok(name)
    }
}

fn number(text: &str, field: &str) -> Result<i64, String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (1..10).contains(&text.len());
    let number = text.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| format!("`{{{field}}}`: `{}` is not a number", leeward_fabric::input::excerpt(text)))
}

fn text<'a>(labels: &'a Labels, name: &str) -> Option<&'a str> {
    labels.iter().find(|(label, _)| label == name).map(|(_, text)| text.as_str())
}

/// Named groups of the patterns, in order, if each pattern matches its whole label.
fn groups<'a>(patterns: &'a Match, labels: &'a Labels) -> Option<Vec<(&'a str, &'a str)>> {
    let mut found = Vec::new();
    for (label, pattern) in patterns {
        let captures = pattern.captures(text(labels, label).unwrap_or_default())?;
        let names = pattern.capture_names().flatten();
        found.extend(names.filter_map(|name| Some((name, captures.name(name)?.as_str()))));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use leeward_fabric::input::read_yaml;
    use leeward_testing::rows::{check_rows, equal};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Cases {
        right: Vec<Right>,
        wrong: Vec<Wrong>,
    }

    #[derive(Deserialize)]
    struct Right {
        of: String,
        map: String,
        ports: Vec<Port>,
    }

    #[derive(Deserialize)]
    struct Port {
        labels: BTreeMap<String, String>,
        wrong: Option<String>,
        #[serde(flatten)]
        directions: BTreeMap<String, Option<String>>,
    }

    #[derive(Deserialize)]
    struct Wrong {
        field: String,
        line: u64,
        map: String,
    }

    fn cases() -> Cases {
        let text = include_str!("../../tests/maps/cases.yaml");
        read_yaml("cases.yaml", text).expect("valid cases")
    }

    #[test]
    fn ports_map_to_the_same_links_as_in_leeward_hotspots() {
        for Right { of, map, ports } in cases().right {
            let map = Map::from_text("map.yaml", &map).unwrap_or_else(|error| panic!("{of}: {error}"));
            for Port { labels, wrong, directions } in ports {
                let labels: Labels = labels.into_iter().collect();
                for direction in Direction::ALL {
                    let found = match map.mapping(&labels, direction) {
                        Mapping::Link(name, _) => Ok(Some(name)),
                        Mapping::Ignored => Ok(Some(String::new())),
                        Mapping::Unknown => Ok(None),
                        Mapping::Unnamed(rule, _) => Err(format!("links[{rule}]")),
                    };
                    let expected = directions.get(direction.name()).map(|name| Ok(name.clone()));
                    let expected = expected.or(wrong.clone().map(Err));
                    assert!(
                        expected.is_none_or(|expected| expected == found),
                        "{of}: {labels:?} {direction:?}: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn map_errors_have_the_same_line_and_field_as_in_leeward_hotspots() {
        check_rows(cases().wrong, |Wrong { field, line, map }| {
            let error = Map::from_text("map.yaml", &map).err().ok_or_else(|| format!("no error: {map}"))?;
            equal(&(error.line, error.field.as_deref()), &(Some(line), Some(field.as_str())))
                .map_err(|failure| format!("{map}: {failure}"))
        });
    }

    #[test]
    fn a_service_map_needs_counters_and_rejects_columns() {
        for (text, field, part) in [
            ("links: []\n", "prometheus", "counters to query"),
            ("prometheus: {in: a}\ncolumns: {labels: [a]}\n", "columns", "remove it"),
        ] {
            let error = Map::from_text("map.yaml", text).expect_err(text);
            assert_eq!(error.field.as_deref(), Some(field), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
        let long = format!("prometheus: {{in: a}} # {}", "x".repeat(1_000_000));
        assert!(Map::from_text("map.yaml", &long).is_err());
    }

    #[test]
    fn python_only_pattern_syntax_is_rejected_by_name() {
        for (pattern, part) in [
            ("a(?=b)", "(?=b)"),
            ("(?<!a)b", "(?<!a)b"),
            (r"(a)\1", r"\1"),
            (r"a\Z", r"\Z"),
            ("a++", "+"),
            ("(?>a)", "(?>a)"),
            ("a{,3}", "{,3}"),
            ("(a{40}){40}", "{40}"),
            ("b(?i)", "(?i)"),
            (r"\p{L}", r"\p{L}"),
            ("[[:alpha:]]", "[[:alpha"),
            (r"[\w--_]", r"[\w--_]"),
            (r"(?P<a b>x)", "(?P<a b>"),
            ("*a", "*a"),
            ("a|*b", "*b"),
        ] {
            let text = format!("prometheus: {{in: a}}\nlinks: [{{match: {{b: '{pattern}'}}, in: c}}]\n");
            let error = Map::from_text("map.yaml", &text).expect_err(pattern);
            assert_eq!(error.field.as_deref(), Some("links[0].match.b"), "{error}");
            assert!(error.message.contains(&format!("`{part}`")), "{error}");
        }
    }
}
