//! Columns of `.parquet`, `.arrow` and `.feather` files: whole numbers, or lists, of which the lengths count.

mod arrow;
mod parquet;

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

pub(super) use self::arrow::open as open_arrow;
pub(super) use self::parquet::open as open_parquet;

use super::collect::{Collector, choose_column, present_columns, wanted_column};
use super::error::InputError;

/// The column to read, of those there are.
fn choose(path: &Path, names: &[&str], wanted: Option<&str>) -> Result<usize, InputError> {
    choose_column(names, wanted).ok_or_else(|| InputError::NoSuchColumn {
        path: path.to_owned(),
        column: wanted_column(wanted),
        present: present_columns(names),
    })
}

/// A column of something else.
fn wrong_type(path: &Path, column: &str, found: String) -> InputError {
    InputError::ColumnType {
        path: path.to_owned(),
        column: column.to_owned(),
        found,
    }
}

/// A file that its reader refuses.
fn damaged(path: &Path, format: &'static str, problem: impl ToString) -> InputError {
    InputError::Damaged {
        path: path.to_owned(),
        format,
        problem: problem.to_string(),
    }
}

/// A number that stands in row `row`, `None` for a null.
fn push(
    numbers: &mut Collector,
    block: &mut Vec<u32>,
    row: u64,
    value: Option<i128>,
) -> Result<(), InputError> {
    match value {
        None => Err(InputError::NotAnInteger {
            place: numbers.place(row),
            value: "null".to_owned(),
        }),
        // Of numbers of 64 bits only negative ones fail.
        Some(value) => match u64::try_from(value) {
            Ok(value) => numbers.push(block, row, value),
            Err(_) => Err(numbers.negative(row, value.to_string())),
        },
    }
}

thread_local! {
    /// Whether a panic of this thread is about to be made an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a foreign reader, which may panic where a file is damaged; then it must not be called again.
///
/// The panic's message is not printed: a hook asks first whether it is guarded.
fn guarded<T>(
    path: &Path,
    format: &'static str,
    read: impl FnOnce() -> Result<T, InputError>,
) -> Result<T, InputError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(outer);
    read.unwrap_or_else(|payload| Err(damaged(path, format, said(payload.as_ref()))))
}

fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("its contents contradict each other")
        .to_owned()
}
