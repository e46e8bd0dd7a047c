//! Prometheus answers to queries. Any error invalidates the whole answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::beginning;
use super::map::Labels;

/// Largest number of series in an answer.
const MAX_SERIES: usize = 250_000;
/// Largest valid time, in seconds since 1970.
const MAX_TIME_S: f64 = 1e11;

/// Readings of one port, oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Labels of the series, without the name of the metric.
    pub labels: Labels,
    /// Times in milliseconds since 1970, and values.
    pub readings: Vec<(i64, f64)>,
}

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// Series in the order of their labels, without duplicates.
    pub series: Vec<Series>,
    /// First reason why data may be missing: a warning or remark (`infos`) of Prometheus, `isPartial` of VictoriaMetrics,
    /// or a series with native histograms, which are not counters.
    pub warning: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    status: String,
    data: Data,
    warnings: Option<Vec<String>>,
    infos: Option<Vec<String>>,
    #[serde(default)]
    is_partial: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Vec<ResultSeries>,
}

#[derive(Deserialize)]
struct ResultSeries {
    metric: BTreeMap<String, String>,
    /// Times and values; empty for histograms.
    #[serde(default)]
    values: Vec<(f64, String)>,
    histograms: Option<IgnoredAny>,
}

impl Answer {
    /// Reads the answer to a range selector.
    ///
    /// # Errors
    /// A message about the first difference from a valid Prometheus answer.
    pub fn read(text: &[u8]) -> Result<Answer, String> {
        let Body { status, data, warnings, infos, is_partial } =
            serde_json::from_slice(text).map_err(|error| {
                let text = beginning(&String::from_utf8_lossy(&text[..text.len().min(400)]), 80);
                format!("it does not answer as Prometheus would ({error}): `{text}`")
            })?;
        if status != "success" || data.result_type != "matrix" {
            let answer = beginning(&format!("{status}, {}", data.result_type), 80);
            return Err(format!("expected `success` and a matrix; the answer is `{answer}`"));
        }
        if data.result.len() > MAX_SERIES {
            let count = data.result.len();
            return Err(format!("{count} series, more than {MAX_SERIES}: narrow the selector"));
        }
        let mut warnings: Vec<String> = warnings.into_iter().chain(infos).flatten().collect();
        if is_partial {
            warnings.push("isPartial: a storage node did not answer".to_owned());
        }
        if let Some(one) = data.result.iter().find(|series| series.histograms.is_some()) {
            let labels: Labels = one.metric.clone().into_iter().collect();
            warnings.push(format!("{} has native histograms; expected a counter", format_labels(&labels)));
        }
        let mut series: Vec<Series> = data.result.into_iter().map(read_series).collect::<Result<_, _>>()?;
        series.sort_unstable_by(|a, b| a.labels.cmp(&b.labels));
        if let Some(pair) = series.windows(2).find(|pair| pair[0].labels == pair[1].labels) {
            let labels = format_labels(&pair[0].labels);
            return Err(format!("two series have the labels {labels}: the selector must name one metric"));
        }
        Ok(Answer { series, warning: warnings.first().map(|text| beginning(text, 200)) })
    }
}

fn read_series(ResultSeries { metric, values, .. }: ResultSeries) -> Result<Series, String> {
    let labels: Labels = metric.into_iter().filter(|(name, _)| name != "__name__").collect();
    let reading = |(at, text): (f64, String)| {
        let value = text.parse::<f64>().ok().filter(|_| at.abs() <= MAX_TIME_S);
        let value = value.ok_or_else(|| {
            let text = beginning(&text, 40);
            format!("`{text}` at {at}: invalid reading of {}", format_labels(&labels))
        })?;
        Ok(((at * 1000.0).round() as i64, value))
    };
    let mut readings: Vec<(i64, f64)> = values.into_iter().map(reading).collect::<Result<_, String>>()?;
    readings.sort_unstable_by_key(|&(at, _)| at);
    Ok(Series { labels, readings })
}

/// Labels as readable text.
pub fn format_labels(labels: &Labels) -> String {
    let pairs: Vec<String> = labels.iter().map(|(name, text)| format!("{name}={text}")).collect();
    beginning(&pairs.join(" "), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(result: &str) -> Result<Answer, String> {
        let text = format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#);
        Answer::read(text.as_bytes())
    }

    #[test]
    fn series_are_sorted_by_labels_and_time_without_the_metric_name() {
        let answer = matrix(
            r#"[{"metric":{"__name__":"x","b":"1"},"values":[[30.0014,"7"],[15,"1e3"]]},
                {"metric":{"a":"2"},"values":[[15,"NaN"]]},
                {"metric":{"h":"3"},"histograms":[[15,{}]]}]"#,
        );
        let series = answer.expect("a valid answer").series;
        let labels: Vec<&str> = series.iter().map(|series| series.labels[0].0.as_str()).collect();
        assert_eq!(labels, ["a", "b", "h"]);
        assert_eq!(series[1].readings, [(15_000, 1000.0), (30_001, 7.0)]);
        assert!(series[0].readings[0].1.is_nan() && series[2].readings.is_empty());
        assert_eq!(matrix("[]").map(|answer| answer.series), Ok(vec![]));
    }

    #[test]
    fn malformed_answers_are_rejected_as_a_whole() {
        let valid = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        for text in [
            "",
            "<html>",
            &"[".repeat(100_000),
            &valid[..valid.len() - 1],
            &valid.replace("success", "error"),
            &valid.replace("matrix", "vector"),
            &valid.replace("[]", "null"),
            "{\"status\":\"success\"}",
        ] {
            assert!(Answer::read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Answer::read(b"\xff\xfe").is_err());
        for result in [
            "3",
            "[3]",
            "[{}]",
            r#"[{"metric":[],"values":[]}]"#,
            r#"[{"metric":{"a":1},"values":[]}]"#,
            r#"[{"metric":{},"values":[[1]]}]"#,
            r#"[{"metric":{},"values":[[1,"2","3"]]}]"#,
            r#"[{"metric":{},"values":[["x","1"]]}]"#,
            r#"[{"metric":{},"values":[[1e300,"1"]]}]"#,
            r#"[{"metric":{},"values":[[1,"one"]]}]"#,
            r#"[{"metric":{},"values":[[1,null]]}]"#,
            r#"[{"metric":{},"values":[]},{"metric":{"__name__":"y"},"values":[]}]"#,
        ] {
            let error = matrix(result).expect_err(result);
            assert!(error.len() < 500 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_warning_is_returned() {
        let text = r#"{"status":"success","warnings":["one store\nis away"],
                       "data":{"resultType":"matrix","result":[]}}"#;
        let warning = Answer::read(text.as_bytes()).expect("a valid answer").warning;
        assert_eq!(warning.as_deref(), Some("one store is away"));
        let remark =
            Answer::read(text.replace("warnings", "infos").as_bytes()).expect("a valid answer").warning;
        assert_eq!(remark.as_deref(), Some("one store is away"));
        for (fields, result, expected) in [
            (r#""warnings":null,"infos":null"#, "[]", None),
            (r#""isPartial":false,"stats":{"seriesFetched":"1"}"#, "[]", None),
            (r#""isPartial":true"#, "[]", Some("isPartial: a storage node did not answer")),
            (
                r#""isPartial":false"#,
                r#"[{"metric":{"a":"1"},"histograms":[[15,{"count":"1","sum":"1"}]]}]"#,
                Some("a=1 has native histograms; expected a counter"),
            ),
        ] {
            let data = format!(r#"{{"resultType":"matrix","result":{result}}}"#);
            let text = format!(r#"{{"status":"success",{fields},"data":{data}}}"#);
            let warning = Answer::read(text.as_bytes()).expect("a valid answer").warning;
            assert_eq!(warning.as_deref(), expected);
        }
    }
}
