//! Tables in columns give the same workloads and the same errors as lists in CSV.

use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{Cell, Files, Rows, cells};
use leeward_workloads::{Inputs, Tables};

use crate::support::{VALID, read, source, tree};

const HORIZON: f64 = 3600.0;

/// A table in memory, with its numbers as numbers.
#[derive(Clone, Debug)]
pub struct Memory {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// Number of rows that were reached.
    at: usize,
}

#[derive(Clone, Debug)]
enum Value {
    Text(String),
    Number(f64),
    Count(u64),
}

impl Memory {
    pub fn of_csv(text: &str) -> Memory {
        let mut lines = text.lines();
        let header = lines.next().expect("a header");
        let value = |cell: &str| match (cell.parse(), cell.parse()) {
            (Ok(count), _) => Value::Count(count),
            (_, Ok(number)) => Value::Number(number),
            _ => Value::Text(cell.to_owned()),
        };
        let row = |line: &str| cells(line).map(value).collect();
        Memory { columns: cells(header).map(str::to_owned).collect(), rows: lines.map(row).collect(), at: 0 }
    }
}

impl Rows for Memory {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn advance(&mut self) -> Result<bool, String> {
        self.at += 1;
        Ok(self.at <= self.rows.len())
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        match &self.rows[self.at - 1][column] {
            Value::Text(text) => Cell::Text(text),
            Value::Number(number) => Cell::Number(*number),
            Value::Count(count) => Cell::Count(*count),
        }
    }
}

impl Tables for Memory {
    fn open(&self, _path: &Path, _columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        Ok(Box::new(self.clone()))
    }

    fn given(&self, name: &str, _columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        if name == "list" { Ok(Box::new(self.clone())) } else { Err("no such table".to_owned()) }
    }
}

/// Tables that cannot be read.
#[derive(Debug)]
pub struct Broken;

impl Tables for Broken {
    fn open(&self, _path: &Path, _columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        Err("cut off".to_owned())
    }

    fn given(&self, _name: &str, _columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        Err("cut off".to_owned())
    }
}

/// Settings and text of each list in CSV; the settings name the table `list`.
fn lists() -> impl Iterator<Item = (String, &'static str)> {
    let kinds = ["{flows", "{rates", "{blocks"];
    let of_list = move |settings: &str| kinds.iter().any(|kind| settings.starts_with(kind));
    VALID.into_iter().filter(move |(settings, _)| of_list(settings)).map(|(settings, text)| {
        let (before, after) = settings.split_once("file: ").expect("a source with a file");
        let end = after.find([',', '}']).expect("the end of the name");
        (format!("{before}file: 'table:list'{}", &after[end..]), text)
    })
}

#[test]
fn a_table_gives_the_workload_of_its_list() {
    let cluster = tree(3, 2);
    let mut count = 0;
    for (settings, text) in lists() {
        let source = source(&settings);
        let expected = read(&source, text.as_bytes(), &cluster, 1, HORIZON).expect("a valid list");
        let inputs = Inputs { files: Files::default(), tables: Some(Arc::new(Memory::of_csv(text))) };
        let loaded = source.load(&cluster, &inputs, 1, HORIZON).expect("a valid table");
        assert_eq!(loaded.workload, expected.workload, "{settings}");
        assert_eq!(loaded.provenance, expected.provenance, "{settings}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[test]
fn an_invalid_cell_is_the_error_of_its_line() {
    let cluster = tree(3, 2);
    let invalid = [Value::Number(-1.0), Value::Number(f64::NAN), Value::Text("x".to_owned())];
    for (settings, text) in lists() {
        let source = source(&settings);
        for value in &invalid {
            let mut table = Memory::of_csv(text);
            let column = table.columns.iter().position(|name| name.ends_with("_s")).expect("a time");
            table.rows[1][column] = value.clone();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let mut changed: Vec<String> = cells(&lines[2]).map(str::to_owned).collect();
            changed[column] = match value {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text.clone(),
                Value::Count(count) => count.to_string(),
            };
            lines[2] = changed.join(",");
            let expected = read(&source, lines.join("\n").as_bytes(), &cluster, 1, HORIZON);
            let inputs = Inputs { files: Files::default(), tables: Some(Arc::new(table)) };
            let loaded = source.load(&cluster, &inputs, 1, HORIZON);
            let (loaded, expected) = (loaded.expect_err("an invalid cell"), expected.expect_err("the same"));
            assert_eq!(loaded.to_string(), expected.to_string(), "{settings}");
        }
    }
}

#[test]
fn an_unknown_table_is_an_error_that_names_it() {
    let (settings, text) = lists().next().expect("a list");
    let source = source(&settings.replace("table:list", "table:other"));
    let inputs = Inputs { files: Files::default(), tables: Some(Arc::new(Memory::of_csv(text))) };
    let error = source.load(&tree(3, 2), &inputs, 1, HORIZON).expect_err("no such table");
    assert_eq!(error.to_string(), "table:other: no such table");
    let without = source.load(&tree(3, 2), &Inputs::default(), 1, HORIZON).expect_err("no tables");
    assert!(without.to_string().contains("no such file"), "{without}");
}
