//! Arrow IPC, files and streams, a record batch at a time.
//!
//! A stream must end with its marker. The format lets it end with the file as well, but then one that was cut off between
//! two batches looks whole; every writer in use writes the marker.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::super::collect::Collector;
use super::super::error::InputError;
use super::super::lengths::Blocks;
use super::super::read::LengthSource;
use super::{choose, damaged, guarded, push, wrong_type};

/// What a file begins with; a stream does not.
const MAGIC: &[u8] = b"ARROW1";

/// Up to the first that says why it is none.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

/// One column of all record batches.
struct Column {
    batches: Batches,
    rows: u64,
    numbers: Collector,
}

const FORMAT: &str = "Arrow IPC";

/// Opens the column that `options` name.
pub(in super::super) fn open(
    path: &Path,
    options: &LengthSource,
) -> Result<Box<dyn Blocks>, InputError> {
    guarded(path, FORMAT, || open_unguarded(path, options))
}

fn open_unguarded(path: &Path, options: &LengthSource) -> Result<Box<dyn Blocks>, InputError> {
    let refuse = |error: ArrowError| damaged(path, FORMAT, &error);
    let (schema, _) = read(path, None)?.map_err(refuse)?;
    let names: Vec<&str> = (schema.fields().iter())
        .map(|field| field.name().as_str())
        .collect();
    let index = choose(path, &names, options.column.as_deref())?;
    let data_type = schema.field(index).data_type();
    let holds_lengths = match data_type {
        DataType::List(of) | DataType::LargeList(of) | DataType::FixedSizeList(of, _) => {
            of.data_type().is_integer()
        }
        other => other.is_integer(),
    };
    if !holds_lengths {
        return Err(wrong_type(path, names[index], data_type.to_string()));
    }
    let (_, batches) = read(path, Some(vec![index]))?.map_err(refuse)?;
    Ok(Box::new(Column {
        batches,
        rows: 0,
        numbers: Collector::new(path, "row", options.cumulative),
    }))
}

/// The schema and the record batches of a file or a stream.
fn read(
    path: &Path,
    columns: Option<Vec<usize>>,
) -> Result<Result<(SchemaRef, Batches), ArrowError>, InputError> {
    let fail = |source| InputError::io(path, source);
    let mut file = File::open(path).map_err(fail)?;
    let mut magic = [0; MAGIC.len()];
    let is_file = match file.read_exact(&mut magic) {
        Ok(()) => magic == MAGIC,
        Err(_) => false,
    };
    file.seek(SeekFrom::Start(0)).map_err(fail)?;
    let file = BufReader::new(file);
    let told = |batch: Result<RecordBatch, ArrowError>| batch.map_err(|error| error.to_string());
    Ok(if is_file {
        FileReader::try_new(file, columns)
            .map(|reader| (reader.schema(), Box::new(reader.map(told)) as Batches))
    } else {
        let file = Watched {
            file,
            bytes: 0,
            is_at_end: false,
        };
        StreamReader::try_new(file, columns)
            .map(|reader| (reader.schema(), Box::new(Stream(reader)) as Batches))
    })
}

/// A file that is read to its end or not.
struct Watched {
    file: BufReader<File>,
    /// Read so far.
    bytes: u64,
    /// Whether there was nothing more to read.
    is_at_end: bool,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes += read as u64;
        self.is_at_end |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

/// The record batches of a stream, up to its marker.
struct Stream(StreamReader<Watched>);

impl Iterator for Stream {
    type Item = Result<RecordBatch, String>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next() {
            Some(batch) => Some(batch.map_err(|error| error.to_string())),
            None => self.check_end().err().map(Err),
        }
    }
}

impl Stream {
    /// Whether the reader ended at the marker, and the file does, too.
    fn check_end(&mut self) -> Result<(), String> {
        let file = self.0.get_mut();
        if file.is_at_end {
            return Err(format!(
                "the stream ends after {} bytes without its end marker, the bytes FF FF FF FF 00 00 00 00: it is cut off",
                file.bytes
            ));
        }
        let end = file.bytes;
        match io::copy(file, &mut io::sink()) {
            Ok(0) => Ok(()),
            Ok(more) => Err(format!(
                "{more} bytes follow the end marker of the stream at byte {end}; legal are none"
            )),
            Err(error) => Err(error.to_string()),
        }
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
            let Some(batch) = self.batches.next() else {
                return self.numbers.finish(self.rows);
            };
            let batch = batch.map_err(|problem| damaged(self.numbers.path(), FORMAT, problem))?;
            self.take(block, batch.column(0).as_ref())?;
        }
        Ok(())
    }

    fn take(&mut self, block: &mut Vec<u32>, column: &dyn Array) -> Result<(), InputError> {
        match column.data_type() {
            DataType::Int8 => self.take_numbers::<Int8Type>(block, column),
            DataType::Int16 => self.take_numbers::<Int16Type>(block, column),
            DataType::Int32 => self.take_numbers::<Int32Type>(block, column),
            DataType::Int64 => self.take_numbers::<Int64Type>(block, column),
            DataType::UInt8 => self.take_numbers::<UInt8Type>(block, column),
            DataType::UInt16 => self.take_numbers::<UInt16Type>(block, column),
            DataType::UInt32 => self.take_numbers::<UInt32Type>(block, column),
            DataType::UInt64 => self.take_numbers::<UInt64Type>(block, column),
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                self.take_rows(block, column, |row| lists.value_length(row).into())
            }
            DataType::LargeList(_) => {
                let lists = column.as_list::<i64>();
                self.take_rows(block, column, |row| lists.value_length(row).into())
            }
            DataType::FixedSizeList(_, length) => {
                let length = *length;
                self.take_rows(block, column, |_| length.into())
            }
            other => Err(wrong_type(self.numbers.path(), "", other.to_string())),
        }
    }

    fn take_numbers<T: ArrowPrimitiveType>(
        &mut self,
        block: &mut Vec<u32>,
        column: &dyn Array,
    ) -> Result<(), InputError>
    where
        i128: From<T::Native>,
    {
        let numbers = column.as_primitive::<T>();
        self.take_rows(block, column, |row| numbers.value(row).into())
    }

    fn take_rows(
        &mut self,
        block: &mut Vec<u32>,
        column: &dyn Array,
        length: impl Fn(usize) -> i128,
    ) -> Result<(), InputError> {
        for row in 0..column.len() {
            self.rows += 1;
            let value = column.is_valid(row).then(|| length(row));
            push(&mut self.numbers, block, self.rows, value)?;
        }
        Ok(())
    }
}
