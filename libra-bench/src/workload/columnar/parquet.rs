//! Parquet, page by page.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::super::collect::Collector;
use super::super::error::InputError;
use super::super::lengths::{BLOCK, Blocks};
use super::super::read::LengthSource;
use super::{choose, damaged, guarded, push, wrong_type};

/// Lists taken at a time: their values are decoded, and may be a million each.
const LISTS: usize = 16;

/// One column of all row groups.
struct Column {
    file: SerializedFileReader<File>,
    /// Which of the leaves of the schema.
    leaf: usize,
    shape: Shape,
    /// The next row group.
    group: usize,
    reader: Option<ColumnReader>,
    rows: u64,
    numbers: Collector,
    levels: Levels,
}

/// What a row of the column is.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// A whole number, whose level of definition is this where it is not null.
    Number { defined: i16, is_unsigned: bool },
    /// A list; the level of definition of each of its elements is at least this.
    List { element: i16 },
}

#[derive(Default)]
struct Levels {
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

const FORMAT: &str = "Parquet";

/// Opens the column that `options` name.
pub(in super::super) fn open(
    path: &Path,
    options: &LengthSource,
) -> Result<Box<dyn Blocks>, InputError> {
    guarded(path, FORMAT, || open_unguarded(path, options))
}

fn open_unguarded(path: &Path, options: &LengthSource) -> Result<Box<dyn Blocks>, InputError> {
    let file = File::open(path).map_err(|source| InputError::io(path, source))?;
    let file = SerializedFileReader::new(file).map_err(|error| damaged(path, FORMAT, &error))?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<String> = (schema.columns().iter().map(|leaf| name(leaf))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let leaf = choose(path, &names, options.column.as_deref())?;
    let column = schema.column(leaf);
    let shape = shape(&column).map_err(|found| wrong_type(path, names[leaf], found))?;
    Ok(Box::new(Column {
        file,
        leaf,
        shape,
        group: 0,
        reader: None,
        rows: 0,
        numbers: Collector::new(path, "row", options.cumulative),
        levels: Levels::default(),
    }))
}

/// The name of a list without what lies in it; of a number its whole path.
fn name(leaf: &ColumnDescriptor) -> String {
    let parts = leaf.path().parts();
    match parts {
        [list, ..] if leaf.max_rep_level() == 1 => list.clone(),
        parts => parts.join("."),
    }
}

fn shape(leaf: &Arc<ColumnDescriptor>) -> Result<Shape, String> {
    let physical = leaf.physical_type();
    let is_unsigned = match leaf.logical_type_ref() {
        None => false,
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        Some(other) => return Err(format!("{other:?}")),
    };
    let is_integer = matches!(physical, Physical::INT32 | Physical::INT64);
    match leaf.max_rep_level() {
        0 if is_integer => Ok(Shape::Number {
            defined: leaf.max_def_level(),
            is_unsigned,
        }),
        1 if is_integer => Ok(Shape::List {
            // A null element is one level less than one that is there.
            element: leaf.max_def_level() - i16::from(leaf.self_type().is_optional()),
        }),
        0 => Err(physical.to_string()),
        1 => Err(format!("lists of {physical}")),
        _ => Err(format!("lists of lists of {physical}")),
    }
}

impl Blocks for Column {
    fn fill(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        let path = self.numbers.path().to_owned();
        guarded(&path, FORMAT, || self.fill_unguarded(block))
    }
}

impl Column {
    fn fill_unguarded(&mut self, block: &mut Vec<u32>) -> Result<(), InputError> {
        while block.is_empty() {
            let Some(reader) = &mut self.reader else {
                if self.group == self.file.num_row_groups() {
                    return self.numbers.finish(self.rows);
                }
                let group = self.file.get_row_group(self.group);
                let pages = group.and_then(|group| group.get_column_page_reader(self.leaf));
                let pages = pages.map_err(|error| damaged(self.numbers.path(), FORMAT, &error))?;
                let schema = self.file.metadata().file_metadata().schema_descr_ptr();
                self.reader = Some(get_column_reader(schema.column(self.leaf), pages));
                self.group += 1;
                continue;
            };
            let mut taking = Taking {
                shape: self.shape,
                levels: &mut self.levels,
                rows: &mut self.rows,
                numbers: &mut self.numbers,
                block: &mut *block,
            };
            let read = match reader {
                ColumnReader::Int32ColumnReader(reader) => {
                    taking.take(reader, |value, is_unsigned| match is_unsigned {
                        true => (value as u32).into(),
                        false => value.into(),
                    })
                }
                ColumnReader::Int64ColumnReader(reader) => {
                    taking.take(reader, |value, is_unsigned| match is_unsigned {
                        true => (value as u64).into(),
                        false => value.into(),
                    })
                }
                _ => unreachable!("the shape has asked for whole numbers"),
            }?;
            if read == 0 {
                self.reader = None;
            }
        }
        Ok(())
    }
}

/// Rows on their way into a block.
struct Taking<'a> {
    shape: Shape,
    levels: &'a mut Levels,
    rows: &'a mut u64,
    numbers: &'a mut Collector,
    block: &'a mut Vec<u32>,
}

impl Taking<'_> {
    /// Takes the next rows and returns how many.
    fn take<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        number: impl Fn(T::T, bool) -> i128,
    ) -> Result<usize, InputError> {
        let Levels { defined, repeated } = &mut *self.levels;
        defined.clear();
        repeated.clear();
        let mut values = Vec::new();
        let most = match self.shape {
            Shape::Number { .. } => BLOCK,
            Shape::List { .. } => LISTS,
        };
        let read = reader.read_records(most, Some(defined), Some(repeated), &mut values);
        let (read, _, _) = read.map_err(|error| damaged(self.numbers.path(), FORMAT, &error))?;
        match self.shape {
            // Levels are left out where no row can be null.
            Shape::Number {
                defined: 0,
                is_unsigned,
            } => {
                for value in values {
                    self.push(Some(number(value, is_unsigned)))?;
                }
            }
            Shape::Number {
                defined: level,
                is_unsigned,
            } => {
                let mut values = values.into_iter();
                for index in 0..self.levels.defined.len() {
                    let is_null = self.levels.defined[index] < level;
                    let value = if is_null { None } else { values.next() };
                    self.push(value.map(|value| number(value, is_unsigned)))?;
                }
            }
            Shape::List { element } => {
                let mut length = 0;
                for index in 0..self.levels.repeated.len() {
                    if self.levels.repeated[index] == 0 && index > 0 {
                        self.push(Some(length))?;
                        length = 0;
                    }
                    length += i128::from(self.levels.defined[index] >= element);
                }
                if read > 0 {
                    self.push(Some(length))?;
                }
            }
        }
        Ok(read)
    }

    fn push(&mut self, value: Option<i128>) -> Result<(), InputError> {
        *self.rows += 1;
        push(self.numbers, self.block, *self.rows, value)
    }
}
