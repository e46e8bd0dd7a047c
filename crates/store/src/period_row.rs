//! Conversion of periods to rows and back. The means of the links, one byte each, are stored as base64 text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use leeward_fabric::Nanos;
use leeward_records::{ClusterVersion, LinkMean, Period, PeriodLength};
use serde::de::DeserializeOwned;

use super::StoreError;
use super::TimeRange;
use super::row::{Cell, ResultRow, number_or_zero, unreadable};

const TABLE: &str = "periods";

/// Row of `periods`.
///
/// # Errors
/// [`StoreError::Row`] if the numbers cannot be serialized.
pub fn period(period: &Period) -> Result<[Cell<'static>; 7], StoreError> {
    let Period { began, ends, length, counts, hot, cluster, links } = period;
    let json = |text: serde_json::Result<String>| {
        text.map(|text| Cell::Plain(text.into())).map_err(|error| unreadable(TABLE, ends.0, &error))
    };
    let links: Vec<u8> = links.iter().map(|mean| mean.0).collect();
    Ok([
        Cell::number(length.length().0),
        Cell::number(ends.0),
        Cell::number(began.0),
        Cell::number(cluster.0),
        json(serde_json::to_string(counts))?,
        json(serde_json::to_string(hot))?,
        Cell::Plain(STANDARD.encode(links).into()),
    ])
}

/// Parameters of [`super::schema::FORGET_PERIODS`]: the periods that are too old when this one ends.
pub fn forgotten(period: &Period) -> [Cell<'static>; 2] {
    [Cell::number(period.length.length().0), Cell::number(period.ends.since(period.length.kept()).0)]
}

/// Parameters of [`super::schema::PERIODS`].
pub fn range(length: PeriodLength, range: TimeRange) -> [Cell<'static>; 3] {
    [length.length().0, range.since.0, range.until.0].map(Cell::number)
}

/// Period from a row of [`super::schema::PERIODS`].
///
/// # Errors
/// [`StoreError::Row`] for an invalid row.
pub fn read_period(row: &dyn ResultRow) -> Result<Period, StoreError> {
    let (length, ends) = (number_or_zero(row, 0)?, number_or_zero(row, 1)?);
    let invalid = |problem: String| StoreError::Row { table: TABLE, id: ends, problem };
    let known = PeriodLength::ALL.into_iter().find(|known| known.length().0 == length);
    let links = STANDARD.decode(row.plain(6)?.unwrap_or_default());
    Ok(Period {
        length: known.ok_or_else(|| invalid(format!("unknown length {length} ns")))?,
        ends: Nanos(ends),
        began: Nanos(number_or_zero(row, 2)?),
        cluster: ClusterVersion(number_or_zero(row, 3)?),
        counts: read_json(row, 4, ends)?,
        hot: read_json(row, 5, ends)?,
        links: links.map_err(|error| invalid(error.to_string()))?.into_iter().map(LinkMean).collect(),
    })
}

fn read_json<T: DeserializeOwned>(row: &dyn ResultRow, at: usize, ends: u64) -> Result<T, StoreError> {
    let text = row.plain(at)?.unwrap_or_default();
    serde_json::from_str(&text).map_err(|error| unreadable(TABLE, ends, &error))
}

/// Row of `link_names`.
///
/// # Errors
/// [`StoreError::Row`] if the names cannot be serialized.
pub fn link_names(cluster: ClusterVersion, names: &Arc<[String]>) -> Result<[Cell<'static>; 2], StoreError> {
    let text =
        serde_json::to_string(&**names).map_err(|error| unreadable("link_names", cluster.0, &error))?;
    Ok([Cell::number(cluster.0), Cell::Plain(text.into())])
}

/// Names from a row of [`super::schema::LINK_NAMES`].
///
/// # Errors
/// [`StoreError::Row`] for an invalid row.
pub fn read_link_names(row: &dyn ResultRow) -> Result<Vec<String>, StoreError> {
    let text = row.plain(0)?.unwrap_or_default();
    serde_json::from_str(&text).map_err(|error| unreadable("link_names", 0, &error))
}
