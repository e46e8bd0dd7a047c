//! Rows of a table that is no text, such as one in columns, and the cells of rows and of lines.

use std::borrow::Cow;

/// Rows of a table in order, one at a time.
pub trait Rows {
    /// Names of the columns.
    fn columns(&self) -> &[String];

    /// Moves to the next row; false after the last. The first call moves to the first row.
    ///
    /// # Errors
    ///
    /// Fails if the table cannot be read; the error is a message of one line.
    fn advance(&mut self) -> Result<bool, String>;

    /// The cell of the current row in a column, which exists.
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// A cell. An empty text stands for a missing value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// Text, which may be a number.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// A whole number that is not negative.
    Count(u64),
}

/// Largest number up to which all whole numbers are exact in a double.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

impl<'a> Cell<'a> {
    /// A cell without a value.
    pub const EMPTY: Cell<'static> = Cell::Text("");

    /// True without a value.
    pub fn is_empty(self) -> bool {
        self == Cell::EMPTY
    }

    /// The cell as it is written in a text file.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Cell::Text(text) => text.into(),
            Cell::Number(number) => number.to_string().into(),
            Cell::Count(count) => count.to_string().into(),
        }
    }

    /// The number; `None` for another text.
    pub(super) fn number(self) -> Option<f64> {
        match self {
            Cell::Text(text) => text.parse().ok(),
            Cell::Number(number) => Some(number),
            Cell::Count(count) => Some(count as f64),
        }
    }

    /// The whole number from 0; `None` for another number or text.
    pub(super) fn count(self) -> Option<u64> {
        match self {
            Cell::Text(text) => text.parse().ok(),
            Cell::Number(number) => {
                (number.fract() == 0.0 && (0.0..=MOST_EXACT).contains(&number)).then_some(number as u64)
            }
            Cell::Count(count) => Some(count),
        }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Cell<'a> {
        Cell::Text(text)
    }
}
