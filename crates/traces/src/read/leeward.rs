//! Leeward's own dialect: CSV with a header, or a table in columns. The columns `seconds`, `kind` and `size` are required,
//! and `offset` is optional. Columns may be in any order, and others are ignored.

use leeward_fabric::input::{Cell, InputError, Line, cells, excerpt};

use super::{Fields, Parse, ParsedLine, Rest, fields};
use crate::Request;

const COLUMNS: [&str; 4] = ["seconds", "kind", "size", "offset"];
/// Number of required columns.
const LEAST: usize = 3;

pub(super) fn matches(line: &str) -> bool {
    COLUMNS[..LEAST].iter().all(|name| cells(line).any(|cell| cell == *name))
}

pub(super) struct Parser {
    /// Column of each cell of a line.
    columns: Vec<Option<usize>>,
    /// The header, which concatenated files repeat.
    header: String,
}

impl Parser {
    pub(super) fn open(header: &Line<'_>) -> Result<Parser, InputError> {
        let column = |cell| COLUMNS.iter().position(|name| *name == cell);
        let columns: Vec<Option<usize>> = cells(header.text).map(column).collect();
        for (at, name) in COLUMNS.iter().enumerate() {
            match columns.iter().filter(|column| **column == Some(at)).count() {
                0 if at < LEAST => {
                    let given = excerpt(header.text);
                    let message = format!(
                        "no such column; expected a header with seconds,kind,size and optionally offset, found `{given}`"
                    );
                    return Err(header.error(name, message));
                }
                0 | 1 => {}
                _ => return Err(header.error(name, "two columns have this name")),
            }
        }
        Ok(Parser { columns, header: header.text.to_owned() })
    }
}

impl Parse for Parser {
    fn fields(&self) -> Fields {
        Fields { at: "seconds", size: "size" }
    }

    fn line(&mut self, line: &Line<'_>) -> Result<ParsedLine, InputError> {
        if line.text == self.header {
            return Ok(ParsedLine::Rest(Rest::Heading));
        }
        let mut row = [Cell::EMPTY; COLUMNS.len()];
        let mut width = 0;
        for cell in line.cells() {
            if let Some(Some(column)) = self.columns.get(width) {
                row[*column] = cell;
            }
            width += 1;
        }
        if width != self.columns.len() {
            let message = format!("{width} cells, but the header has {}", self.columns.len());
            return Err(line.error("columns", message));
        }
        let [at, kind, size, offset] = row.map(Cell::text);
        let at = fields::seconds(line, "seconds", &at)?;
        let kind = fields::kind(line, "kind", &kind, &["read", "r"], &["write", "w"])?;
        let (size, is_rounded) = fields::size(line, "size", &size)?;
        let request = Request {
            at,
            kind,
            size,
            offset: match &*offset {
                "" => None,
                text => Some(fields::signed(line, "offset", "bytes", text)?),
            },
        };
        Ok(ParsedLine::of(request, is_rounded))
    }
}
