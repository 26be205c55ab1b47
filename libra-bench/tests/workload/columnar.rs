//! Parquet and Arrow files, whole and broken.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt16Array,
    UInt64Array,
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_ipc::{CompressionType, MetadataVersion};
use arrow_schema::{DataType, Field};
use libra_bench::workload::LengthSource;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{DoubleType, Int32Type, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::read::{column, cumulative, plain, read};

/// Columns of every shape: a number that is always there, one that may be null, lists with and without nulls.
const SCHEMA: &str = "message corpus {
    required int32 length;
    optional int64 size;
    required int64 id (integer(64, false));
    optional group input_ids (list) { repeated group list { optional int32 element; } }
    required double score;
    required int64 made (timestamp(millis, true));
    required group nested { required int32 count; }
}";

/// Row groups of three samples: lengths 3, 1, 2, in lists as well; the second `size` of a group is `second`.
fn parquet(groups: usize, second: Option<i64>, properties: WriterProperties) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).unwrap();
    for _ in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        for index in 0.. {
            let Some(mut column) = group.next_column().unwrap() else {
                break;
            };
            let levels: Vec<i16> = vec![1, second.is_some().into(), 1];
            let sizes: Vec<i64> = [Some(3), second, Some(2)].into_iter().flatten().collect();
            match index {
                0 => column
                    .typed::<Int32Type>()
                    .write_batch(&[3, 1, 2], None, None),
                1 => column
                    .typed::<Int64Type>()
                    .write_batch(&sizes, Some(&levels), None),
                2 => column
                    .typed::<Int64Type>()
                    .write_batch(&[3, 1, 2], None, None),
                // The second element of the first list is null.
                3 => column.typed::<Int32Type>().write_batch(
                    &[7, 7, 7, 7, 7],
                    Some(&[3, 2, 3, 3, 3, 3]),
                    Some(&[0, 1, 1, 0, 0, 1]),
                ),
                4 => column
                    .typed::<DoubleType>()
                    .write_batch(&[3.0, 1.0, 2.0], None, None),
                5 => column
                    .typed::<Int64Type>()
                    .write_batch(&[3, 1, 2], None, None),
                _ => column
                    .typed::<Int32Type>()
                    .write_batch(&[3, 1, 2], None, None),
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

fn usual() -> WriterProperties {
    WriterProperties::default()
}

#[test]
fn every_parquet_column_of_numbers_or_lists_gives_its_lengths() {
    let file = parquet(2, Some(1), usual());
    for options in [
        plain(),
        column("length"),
        column("size"),
        column("id"),
        column("input_ids"),
        column("nested.count"),
    ] {
        match read("a.parquet", &file, &options) {
            Ok(lengths) => assert_eq!(lengths, [3, 1, 2, 3, 1, 2], "{options:?}"),
            Err(error) => panic!("{options:?}: {error}"),
        }
    }
}

#[test]
fn pages_of_every_compression_and_version_are_read() {
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder()
                .set_compression(compression)
                .set_writer_version(version)
                .build();
            let lengths = read(
                "a.parquet",
                &parquet(1, Some(1), properties),
                &column("input_ids"),
            );
            assert_eq!(lengths.unwrap(), [3, 1, 2], "{compression} {version:?}");
        }
    }
}

#[test]
fn a_broken_parquet_file_is_told_with_column_and_row() {
    let file = parquet(1, Some(1), usual());
    let names = "the columns are length, size, id, input_ids, score, made, nested.count";
    let cases: [(&[u8], LengthSource, &str); 9] = [
        (
            &file,
            column("tokens"),
            &format!("a.parquet: no column `tokens`; {names}"),
        ),
        (
            &file,
            column("score"),
            "a.parquet: column `score` holds DOUBLE; legal are whole numbers, or lists of them, whose lengths count",
        ),
        (
            &file,
            column("made"),
            "a.parquet: column `made` holds Timestamp",
        ),
        (
            &parquet(1, None, usual()),
            column("size"),
            "a.parquet, row 2: `null` is not a whole number",
        ),
        (
            &parquet(1, Some(-5), usual()),
            column("size"),
            "a.parquet, row 2: -5 is negative",
        ),
        (
            &parquet(1, Some(0), usual()),
            column("size"),
            "a.parquet, row 2: the sample has 0 tokens",
        ),
        (
            &parquet(1, Some(1 << 32), usual()),
            column("size"),
            "a.parquet, row 2: 4294967296 tokens are too many",
        ),
        (
            &parquet(0, Some(1), usual()),
            plain(),
            "a.parquet: holds no samples in 0 rows",
        ),
        (b"7\n8\n", plain(), "a.parquet: cannot be read as Parquet: "),
    ];
    for (content, options, message) in cases {
        let error = read("a.parquet", content, &options)
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{error}\n{message}");
    }
    let error = read(
        "a.parquet",
        &parquet(1, Some(5), usual()),
        &LengthSource {
            column: Some("size".to_owned()),
            ..cumulative()
        },
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a.parquet, row 3: 2 follows 5"), "{error}");
}

#[test]
fn no_truncated_or_damaged_parquet_file_passes_for_another_or_panics() {
    let file = parquet(2, Some(1), usual());
    for end in (0..file.len()).step_by(7) {
        assert!(read("a.parquet", &file[..end], &plain()).is_err(), "{end}");
    }
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x11;
        let _ = read("a.parquet", &damaged, &plain());
        let _ = read("a.parquet", &damaged, &column("input_ids"));
    }
}

/// Lengths 3, 1, 2 in every type that holds them.
fn batch() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for length in [3, 1, 2] {
        lists.append_value((0..length).map(Some));
    }
    let element = Arc::new(Field::new("item", DataType::UInt16, true));
    let values: ArrayRef = Arc::new(UInt16Array::from(vec![7; 6]));
    let columns: [(&str, ArrayRef); 6] = [
        ("length", Arc::new(Int64Array::from(vec![3, 1, 2]))),
        (
            "size",
            Arc::new(UInt64Array::from(vec![Some(3), None, Some(1 << 63)])),
        ),
        ("input_ids", Arc::new(lists.finish())),
        (
            "pair",
            Arc::new(FixedSizeListArray::new(element, 2, values, None)),
        ),
        ("score", Arc::new(Float64Array::from(vec![3.0, 1.0, 2.0]))),
        ("text", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
        .expect("columns of three")
}

/// Two batches, as a file or as a stream.
fn arrow(is_file: bool, compression: Option<CompressionType>) -> Vec<u8> {
    let batch = batch();
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let mut bytes = Vec::new();
    if is_file {
        let mut writer =
            FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer =
            StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    bytes
}

#[test]
fn every_arrow_column_of_numbers_or_lists_gives_its_lengths() {
    for compression in [
        None,
        Some(CompressionType::LZ4_FRAME),
        Some(CompressionType::ZSTD),
    ] {
        for is_file in [true, false] {
            let file = arrow(is_file, compression);
            for (options, expected) in [
                (plain(), [3, 1, 2, 3, 1, 2]),
                (column("input_ids"), [3, 1, 2, 3, 1, 2]),
                (column("pair"), [2; 6]),
            ] {
                for name in ["a.arrow", "a.feather"] {
                    match read(name, &file, &options) {
                        Ok(lengths) => assert_eq!(lengths, expected, "{options:?}"),
                        Err(error) => panic!("{options:?} {is_file}: {error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn a_broken_arrow_file_is_told_with_column_and_row() {
    for is_file in [true, false] {
        let file = arrow(is_file, None);
        let names = "the columns are length, size, input_ids, pair, score, text";
        let cases: [(&[u8], LengthSource, &str); 6] = [
            (
                &file,
                column("tokens"),
                &format!("a.arrow: no column `tokens`; {names}"),
            ),
            (
                &file,
                column("score"),
                "a.arrow: column `score` holds Float64; legal are whole numbers",
            ),
            (
                &file,
                column("text"),
                "a.arrow: column `text` holds Utf8; legal are whole numbers",
            ),
            (
                &file,
                column("size"),
                "a.arrow, row 2: `null` is not a whole number",
            ),
            (
                &file[..file.len() / 2],
                plain(),
                "a.arrow: cannot be read as Arrow IPC: ",
            ),
            (
                b"7\n8\n9\n10\n",
                plain(),
                "a.arrow: cannot be read as Arrow IPC: ",
            ),
        ];
        for (content, options, message) in cases {
            let error = read("a.arrow", content, &options)
                .expect_err(message)
                .to_string();
            assert!(error.contains(message), "{error}\n{message}");
        }
    }
}

/// A stream of three batches, and where each of them begins.
fn stream(options: IpcWriteOptions) -> (Vec<u8>, Vec<usize>) {
    let batch = batch();
    let mut bytes = Vec::new();
    let writer = StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options);
    let mut writer = writer.unwrap();
    let mut begins = Vec::new();
    for _ in 0..3 {
        begins.push(writer.get_ref().len());
        writer.write(&batch).unwrap();
    }
    begins.push(writer.get_ref().len());
    writer.finish().unwrap();
    (bytes, begins)
}

#[test]
fn a_stream_that_is_cut_off_between_two_batches_does_not_pass_for_a_whole_one() {
    let legacy = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    for options in [IpcWriteOptions::default(), legacy] {
        let (whole, begins) = stream(options);
        let lengths = read("a.arrow", &whole, &plain()).unwrap();
        assert_eq!(lengths, [3, 1, 2, 3, 1, 2, 3, 1, 2]);
        for &end in &begins {
            let error = read("a.arrow", &whole[..end], &plain()).unwrap_err();
            let message = format!(
                "a.arrow: cannot be read as Arrow IPC: the stream ends after {end} bytes without its end marker, the \
                 bytes FF FF FF FF 00 00 00 00: it is cut off"
            );
            assert!(error.to_string().ends_with(&message), "{error}");
        }
    }
}

#[test]
fn what_follows_the_end_of_a_stream_is_not_passed_over() {
    let (whole, _) = stream(IpcWriteOptions::default());
    for more in [&whole[..], b"\0"] {
        let error = read("a.arrow", &[&whole, more].concat(), &plain()).unwrap_err();
        let message = format!(
            "{} bytes follow the end marker of the stream at byte {}; legal are none",
            more.len(),
            whole.len()
        );
        assert!(error.to_string().ends_with(&message), "{error}");
    }
}

#[test]
fn no_truncated_arrow_file_passes_for_another_and_no_damaged_one_panics() {
    for is_file in [true, false] {
        let file = arrow(is_file, None);
        for end in 0..file.len() {
            assert!(
                read("a.arrow", &file[..end], &plain()).is_err(),
                "{is_file} {end}"
            );
        }
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x11;
            let _ = read("a.arrow", &damaged, &plain());
            let _ = read("a.arrow", &damaged, &column("input_ids"));
        }
    }
}
