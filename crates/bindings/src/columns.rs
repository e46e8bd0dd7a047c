//! Columns of an Arrow table as numbers, without copies if the types already match.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use leeward_fabric::input::InputError;

/// A column of one record batch, or the elements of a column of lists.
pub struct Column<'a> {
    array: &'a ArrayRef,
    /// Argument with the table, for errors.
    argument: &'static str,
    name: &'static str,
    /// Table row of the batch's first row.
    first_row: usize,
    /// Lists that contain these elements.
    lists: Option<&'a Lists>,
}

/// Ids of objects, from 0; borrowed from the table for 32-bit and 64-bit columns.
pub enum Ids {
    Narrow(ScalarBuffer<u32>),
    Wide(ScalarBuffer<i64>),
}

/// Lists of a column of lists: start and end of each list in the elements.
pub struct Lists {
    rows: usize,
    offsets: Offsets,
    /// Elements that belong to a list.
    elements: ArrayRef,
}

enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
    Fixed(usize),
}

impl<'a> Column<'a> {
    /// The column with this name of a batch whose first row is `first_row` of its table.
    pub fn of(
        argument: &'static str,
        batch: &'a RecordBatch,
        name: &'static str,
        first_row: usize,
    ) -> Option<Column<'a>> {
        let array = batch.column_by_name(name)?;
        Some(Column { array, argument, name, first_row, lists: None })
    }

    /// True if the `index`th element has no value.
    pub fn is_null(&self, index: usize) -> bool {
        self.array.data_type() == &DataType::Null || self.array.is_null(index)
    }

    /// Error for the `index`th element, with its table row from 0.
    pub fn refuse(&self, index: usize, problem: impl Display) -> InputError {
        let row = self.first_row + self.lists.map_or(index, |lists| lists.row_of(index));
        InputError::new(self.argument, format!("row {row}: {problem}")).in_field(self.name)
    }

    fn refuse_type(&self, expected: &str) -> InputError {
        let message = format!("a column of {}: expected {expected}", self.array.data_type());
        InputError::new(self.argument, message).in_field(self.name)
    }

    fn refuse_nulls(&self) -> Result<(), InputError> {
        let nulls = self.array.logical_nulls();
        match nulls.and_then(|nulls| (0..nulls.len()).find(|&index| nulls.is_null(index))) {
            Some(index) => Err(self.refuse(index, "null: expected a value in every row")),
            None => Ok(()),
        }
    }

    /// Numbers without nulls that all satisfy `accept`.
    pub fn numbers(
        &self,
        accept: impl Fn(f64) -> bool,
        expected: &str,
    ) -> Result<ScalarBuffer<f64>, InputError> {
        self.refuse_nulls()?;
        let numbers = self.as_numbers()?;
        self.check(&numbers, accept, expected)?;
        Ok(numbers)
    }

    /// Numbers, with `absent` in place of null.
    pub fn numbers_or(
        &self,
        absent: f64,
        accept: impl Fn(f64) -> bool,
        expected: &str,
    ) -> Result<ScalarBuffer<f64>, InputError> {
        if self.array.data_type() == &DataType::Null {
            return Ok(vec![absent; self.array.len()].into());
        }
        let mut numbers = self.as_numbers()?;
        if let Some(nulls) = self.array.nulls() {
            let filled =
                numbers.iter().zip(nulls).map(|(&number, valid)| if valid { number } else { absent });
            numbers = filled.collect();
        }
        self.check(&numbers, accept, expected)?;
        Ok(numbers)
    }

    fn check(&self, numbers: &[f64], accept: impl Fn(f64) -> bool, expected: &str) -> Result<(), InputError> {
        match numbers.iter().position(|&number| !accept(number)) {
            Some(index) => Err(self.refuse(index, format!("{}: expected {expected}", numbers[index]))),
            None => Ok(()),
        }
    }

    fn as_numbers(&self) -> Result<ScalarBuffer<f64>, InputError> {
        macro_rules! from {
            ($type:ty) => {
                self.array.as_primitive::<$type>().values().iter().map(|&number| number as f64).collect()
            };
        }
        Ok(match self.array.data_type() {
            DataType::Float64 => self.array.as_primitive::<Float64Type>().values().clone(),
            DataType::Float32 => from!(Float32Type),
            DataType::Int64 => from!(Int64Type),
            DataType::Int32 => from!(Int32Type),
            DataType::Int16 => from!(Int16Type),
            DataType::Int8 => from!(Int8Type),
            DataType::UInt64 => from!(UInt64Type),
            DataType::UInt32 => from!(UInt32Type),
            DataType::UInt16 => from!(UInt16Type),
            DataType::UInt8 => from!(UInt8Type),
            _ => return Err(self.refuse_type("numbers")),
        })
    }

    /// Numbers of objects below `count`, or names that `find` maps to other codes.
    pub fn ids(
        &self,
        what: &str,
        count: usize,
        find: impl Fn(&str) -> Option<u32>,
    ) -> Result<Ids, InputError> {
        self.refuse_nulls()?;
        macro_rules! narrow {
            ($type:ty) => {
                // A negative number becomes a number above every count.
                self.array.as_primitive::<$type>().values().iter().map(|&id| id as u32).collect()
            };
        }
        let ids = match self.array.data_type() {
            DataType::Int64 => Ids::Wide(self.array.as_primitive::<Int64Type>().values().clone()),
            DataType::UInt64 => {
                Ids::Wide(self.array.as_primitive::<UInt64Type>().values().inner().clone().into())
            }
            DataType::Int32 => {
                Ids::Narrow(self.array.as_primitive::<Int32Type>().values().inner().clone().into())
            }
            DataType::UInt32 => Ids::Narrow(self.array.as_primitive::<UInt32Type>().values().clone()),
            DataType::Int16 => Ids::Narrow(narrow!(Int16Type)),
            DataType::Int8 => Ids::Narrow(narrow!(Int8Type)),
            DataType::UInt16 => Ids::Narrow(narrow!(UInt16Type)),
            DataType::UInt8 => Ids::Narrow(narrow!(UInt8Type)),
            _ => return Ok(Ids::Narrow(self.ids_of_names(what, find)?)),
        };
        let known = |index: &usize| match &ids {
            Ids::Narrow(ids) => (ids[*index] as usize) < count,
            Ids::Wide(ids) => (0..count as i64).contains(&ids[*index]),
        };
        match (0..self.array.len()).find(|index| !known(index)) {
            Some(index) => {
                let last = count.saturating_sub(1);
                let given = match &ids {
                    Ids::Narrow(ids) => i64::from(ids[index] as i32),
                    Ids::Wide(ids) => ids[index],
                };
                Err(self.refuse(index, format!("{what} {given}: unknown; the cluster has 0 to {last}")))
            }
            None => Ok(ids),
        }
    }

    fn ids_of_names(
        &self,
        what: &str,
        find: impl Fn(&str) -> Option<u32>,
    ) -> Result<ScalarBuffer<u32>, InputError> {
        let expected = format!("{what} numbers or names");
        let unknown = |index, name: &str| self.refuse(index, format!("unknown {what} `{name}`"));
        if let Some(dictionary) = self.array.as_any_dictionary_opt() {
            let values = dictionary.values();
            let names = Strings::of(values).ok_or_else(|| self.refuse_type(&expected))?;
            let ids: Vec<Option<u32>> = (0..values.len()).map(|value| find(names.get(value))).collect();
            let keys = dictionary.normalized_keys();
            let id = |(row, &key): (usize, &usize)| ids[key].ok_or_else(|| unknown(row, names.get(key)));
            return keys.iter().enumerate().map(id).collect();
        }
        let names = Strings::of(self.array).ok_or_else(|| self.refuse_type(&expected))?;
        (0..self.array.len())
            .map(|index| find(names.get(index)).ok_or_else(|| unknown(index, names.get(index))))
            .collect()
    }

    /// Lists of a column of lists.
    pub fn lists(&self) -> Result<Lists, InputError> {
        self.refuse_nulls()?;
        let (offsets, first, last, elements) = match self.array.data_type() {
            DataType::List(_) => {
                let lists = self.array.as_list::<i32>();
                let offsets = lists.offsets().clone();
                let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
                (Offsets::Small(offsets), first, last, lists.values())
            }
            DataType::LargeList(_) => {
                let lists = self.array.as_list::<i64>();
                let offsets = lists.offsets().clone();
                let (first, last) = (offsets[0] as usize, offsets[offsets.len() - 1] as usize);
                (Offsets::Large(offsets), first, last, lists.values())
            }
            DataType::FixedSizeList(_, size) => {
                let lists = self.array.as_fixed_size_list();
                (Offsets::Fixed(*size as usize), 0, lists.values().len(), lists.values())
            }
            _ => return Err(self.refuse_type("lists")),
        };
        Ok(Lists { rows: self.array.len(), offsets, elements: elements.slice(first, last - first) })
    }

    /// Elements of `lists`, which come from this column.
    pub fn elements<'b>(&self, lists: &'b Lists) -> Column<'b> {
        let Column { argument, name, first_row, .. } = *self;
        Column { array: &lists.elements, argument, name, first_row, lists: Some(lists) }
    }
}

impl Ids {
    pub fn get(&self, index: usize) -> u32 {
        match self {
            Ids::Narrow(ids) => ids[index],
            Ids::Wide(ids) => ids[index] as u32,
        }
    }
}

impl Lists {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Range of the elements of the `row`th list.
    pub fn range(&self, row: usize) -> Range<usize> {
        match &self.offsets {
            Offsets::Small(at) => (at[row] - at[0]) as usize..(at[row + 1] - at[0]) as usize,
            Offsets::Large(at) => (at[row] - at[0]) as usize..(at[row + 1] - at[0]) as usize,
            Offsets::Fixed(size) => row * size..(row + 1) * size,
        }
    }

    fn row_of(&self, element: usize) -> usize {
        let holds = |&row: &usize| self.range(row).contains(&element);
        (0..self.rows).find(holds).expect("every element belongs to a list")
    }
}

/// Strings in any Arrow layout.
enum Strings<'a> {
    Small(&'a arrow_array::StringArray),
    Large(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
}

impl<'a> Strings<'a> {
    fn of(array: &'a ArrayRef) -> Option<Strings<'a>> {
        match array.data_type() {
            DataType::Utf8 => Some(Strings::Small(array.as_string())),
            DataType::LargeUtf8 => Some(Strings::Large(array.as_string())),
            DataType::Utf8View => Some(Strings::View(array.as_string_view())),
            _ => None,
        }
    }

    fn get(&self, index: usize) -> &'a str {
        match self {
            Strings::Small(names) => names.value(index),
            Strings::Large(names) => names.value(index),
            Strings::View(names) => names.value(index),
        }
    }
}
