//! Format of numbers in messages: four digits with a unit.

use leeward_fabric::input::format_number;
use leeward_traces::Stage;

/// Significant digits of a number in a message.
const DIGITS: usize = 4;

const TIMES: &[(f64, &str)] = &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];

/// Time from seconds: `47.89 ms`.
pub fn time(seconds: f64) -> String {
    scaled(seconds, TIMES, DIGITS)
}

/// Share in percent: `31.25 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0, DIGITS))
}

/// Message for an overload: long-run arrivals and capacity, in the work unit of a stage.
pub(crate) fn overload(stage: Stage, load: f64, service: f64) -> String {
    let (load, service) = distinct(|count| (rate(stage, load, count), rate(stage, service, count)));
    format!("overload: {load} arrives where {service} is served")
}

/// Message for a bound above its SLO, both in seconds.
pub(crate) fn above(bound: f64, slo: f64) -> String {
    let (bound, slo) = distinct(|count| (scaled(bound, TIMES, count), scaled(slo, TIMES, count)));
    format!("a bound of {bound}, above its SLO of {slo}")
}

/// Formats two numbers with as few digits as distinguish them, at least [`DIGITS`].
fn distinct(texts: impl Fn(usize) -> (String, String)) -> (String, String) {
    let pair = (DIGITS..17).map(&texts).find(|(first, second)| first != second);
    pair.unwrap_or_else(|| texts(17))
}

/// Work per second: a share of a device, or bytes per second.
fn rate(stage: Stage, work: f64, count: usize) -> String {
    match stage {
        Stage::Storage => format!("{} %", digits(work * 100.0, count)),
        Stage::NetworkIn | Stage::NetworkOut => {
            scaled(work, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")], count)
        }
    }
}

/// Value in the largest unit that does not exceed it, else in the smallest unit.
fn scaled(value: f64, units: &[(f64, &str)], count: usize) -> String {
    let fits = units.iter().find(|(unit, _)| value.abs() >= *unit);
    let (unit, name) = fits.unwrap_or(&units[units.len() - 1]);
    format!("{} {name}", digits(value / unit, count))
}

/// Number rounded to `count` digits.
fn digits(value: f64, count: usize) -> String {
    let rounded = format!("{value:.*e}", count.max(1) - 1).parse().unwrap_or(value);
    format_number(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_unit_and_few_digits() {
        let table = [
            (0.0478912, "47.89 ms"),
            (1.0 / 750.0, "1.333 ms"),
            (0.0, "0 ns"),
            (2.0, "2 s"),
            (1e308, "1e308 s"),
        ];
        for (seconds, text) in table {
            assert_eq!(time(seconds), text);
        }
        assert_eq!(above(0.05500001, 0.055), "a bound of 55.00001 ms, above its SLO of 55 ms");
        assert_eq!(time(f64::INFINITY), "inf s");
        assert_eq!(percent(0.3125), "31.25 %");
        assert_eq!(
            overload(Stage::Storage, 2.203_664_67, 1.0),
            "overload: 220.4 % arrives where 100 % is served"
        );
        assert_eq!(
            overload(Stage::NetworkIn, 125e6 + 1.0, 125e6),
            "overload: 125.000001 MB/s arrives where 125 MB/s is served"
        );
    }
}
