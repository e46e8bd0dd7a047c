//! The two text formats of `/metrics`, and the choice between them by the header `accept`.

/// Format of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exposition {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The older text format of Prometheus, 0.0.4, which more tools read.
    Text,
}

/// Preference of the client for a format: its weight in thousandths, and how exactly the client names the format.
type Preference = (u16, u8);

impl Exposition {
    /// Media type without parameters.
    pub const fn media(self) -> &'static str {
        match self {
            Exposition::OpenMetrics => "application/openmetrics-text",
            Exposition::Text => "text/plain",
        }
    }

    const fn version(self) -> &'static str {
        match self {
            Exposition::OpenMetrics => "1.0.0",
            Exposition::Text => "0.0.4",
        }
    }

    /// Media type with version and charset.
    pub fn content_type(self) -> String {
        format!("{}; version={}; charset=utf-8", self.media(), self.version())
    }

    /// Chooses the format with the greatest weight in the values of `accept`; OpenMetrics if both have the same weight,
    /// or if the client accepts neither.
    pub fn accepted(values: &[&str]) -> Exposition {
        let weight = |format: Exposition| {
            let ranges = values.iter().flat_map(|value| value.split(','));
            // The most exact range counts, whatever its weight (RFC 9110, section 12.5.1).
            let best = ranges.filter_map(|range| format.preference(range)).max_by_key(|&(_, exact)| exact);
            best.map_or(0, |(weight, _)| weight)
        };
        let (open, text) = (weight(Exposition::OpenMetrics), weight(Exposition::Text));
        if text > open { Exposition::Text } else { Exposition::OpenMetrics }
    }

    /// Preference for this format in a media range such as `text/plain;version=0.0.4;q=0.5`; `None` if the range does
    /// not include the format.
    fn preference(self, range: &str) -> Option<Preference> {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (kind, _) = self.media().split_once('/')?;
        let mut exact = match name.split_once('/')? {
            _ if name.eq_ignore_ascii_case(self.media()) => 2,
            (range, "*") if range.eq_ignore_ascii_case(kind) => 1,
            ("*", "*") => 0,
            _ => return None,
        };
        let mut weight = 1_000;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => weight = read_weight(value)?,
                "version" if value == self.version() => exact += 1,
                "version" => return None,
                _ => {}
            }
        }
        Some((weight, exact))
    }

    /// Converts OpenMetrics text to this format.
    pub fn convert(self, open_metrics: String) -> String {
        match self {
            Exposition::OpenMetrics => open_metrics,
            Exposition::Text => to_text(&open_metrics),
        }
    }
}

/// Weight of a media range in thousandths; `None` if it is none.
fn read_weight(text: &str) -> Option<u16> {
    let weight: f64 = text.parse().ok()?;
    (0.0..=1.0).contains(&weight).then(|| (weight * 1_000.0).round() as u16)
}

/// Converts OpenMetrics text to the older format: there, the name of a counter's family includes `_total`, an info is a
/// gauge, and comments about units and the end do not exist. Samples are the same in both.
fn to_text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        if let Some(family) = line.strip_prefix("# HELP ") {
            // The suffix of the name follows from the type, which is in the next line.
            help = family;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            let help = help.strip_prefix(name).unwrap_or_default();
            text += &format!("# HELP {name}{suffix}{help}\n# TYPE {name}{suffix} {kind}\n");
        } else if !line.starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Exposition::{OpenMetrics, Text};
    use super::*;

    #[test]
    fn the_greatest_weight_decides_and_open_metrics_if_equal() {
        let cases = [
            ("", OpenMetrics),
            ("*/*", OpenMetrics),
            ("text/plain", Text),
            ("TEXT/Plain; Version=0.0.4", Text),
            ("text/*", Text),
            ("text/plain, application/openmetrics-text", OpenMetrics),
            ("text/plain;q=0.9, application/openmetrics-text;q=0.8", Text),
            ("text/plain;q=0.9, */*;q=0.8", Text),
            ("text/plain;q=0.4, */*;q=0.8", OpenMetrics),
            ("text/plain;q=0, */*", OpenMetrics),
            ("application/openmetrics-text;q=0, */*", Text),
            ("text/plain;version=1.0.0", OpenMetrics),
            ("text/plain;q=2", OpenMetrics),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", OpenMetrics),
            // Prometheus 2.50, then Prometheus 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
              text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
              application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
              text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                OpenMetrics,
            ),
            // The same scraper, told to prefer the older format.
            (
                "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2",
                Text,
            ),
        ];
        for (accept, format) in cases {
            assert_eq!(Exposition::accepted(&[accept]), format, "{accept}");
        }
        let lines = ["application/openmetrics-text;q=0.1", "text/plain"];
        assert_eq!(Exposition::accepted(&lines), Text, "several headers are one list");
    }

    #[test]
    fn families_have_the_names_of_the_older_format() {
        let open = "# HELP a Number of a.\n# TYPE a counter\n# UNIT a seconds\na_total{b=\"#\"} 1\n\
                    # HELP v Version.\n# TYPE v info\nv_info{version=\"1\"} 1\n\
                    # HELP h Times.\n# TYPE h histogram\nh_sum 0.5\nh_count 1\nh_bucket{le=\"+Inf\"} 1\n# EOF\n";
        let text = "# HELP a_total Number of a.\n# TYPE a_total counter\na_total{b=\"#\"} 1\n\
                    # HELP v_info Version.\n# TYPE v_info gauge\nv_info{version=\"1\"} 1\n\
                    # HELP h Times.\n# TYPE h histogram\nh_sum 0.5\nh_count 1\nh_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(Exposition::Text.convert(open.to_owned()), text);
        assert_eq!(Exposition::OpenMetrics.convert(open.to_owned()), open);
    }
}
