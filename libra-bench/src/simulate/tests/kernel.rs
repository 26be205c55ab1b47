use super::super::kernel::Direction::{Backward, Forward};
use super::super::kernel::{Kernel, KernelTable};
use super::super::program::Attention;
use super::document;
use std::path::Path;

/// Width of K and V of a head together.
const WIDTH: u32 = 256;

fn kernel(name: &str) -> Kernel {
    Kernel::new(
        KernelTable::read(name, Path::new("")).expect("built in"),
        989.0,
    )
}

/// 10¹² forward operations a second of a launch, without what the launch itself takes.
fn tflops(kernel: &Kernel, pieces: &[Attention]) -> f64 {
    let operations: f64 = pieces
        .iter()
        .map(|piece| piece.pairs as f64 * f64::from(piece.heads) * 2.0 * f64::from(WIDTH))
        .sum();
    operations / (kernel.launch_ns(pieces, WIDTH, Forward) - 12e3) / 1e3
}

#[test]
fn documents_of_the_table_are_as_fast_as_it_says() {
    let kernel = kernel("h100-fa2-varlen");
    for (length, heads, expected) in [
        (128, 64, 85.0),
        (512, 16, 177.0),
        (4096, 64, 348.0),
        (4096, 16, 335.0),
        (32768, 8, 345.0),
    ] {
        let documents = vec![document(length, heads); 32768 / length as usize];
        let found = tflops(&kernel, &documents);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{length} x {heads}: {found}"
        );
    }
}

#[test]
fn short_documents_cost_more_than_few_heads() {
    // What the paper's figure 5 is about: 64 heads cut to 16 lose 4 %, 4K tokens cut to 512 lose 41 %.
    let kernel = kernel("h100-fa2-varlen");
    let whole = tflops(&kernel, &[document(4096, 64); 8]);
    let heads = tflops(&kernel, &[document(4096, 16); 8]);
    let length = tflops(&kernel, &[document(512, 64); 64]);
    assert!((heads / whole - 0.96).abs() < 0.01);
    assert!((length / whole - 0.59).abs() < 0.01);
}

#[test]
fn between_two_rows_speeds_are_between_theirs() {
    let kernel = kernel("h100-fa3");
    let mut last = 0.0;
    for length in [1024, 1200, 1448, 1700, 2048] {
        let speed = tflops(&kernel, &[document(length, 64)]);
        assert!(
            speed > last && (282.0..585.0).contains(&speed),
            "{length}: {speed}"
        );
        last = speed;
    }
    let middle = tflops(&kernel, &[document(1448, 64)]);
    assert!(
        (middle - 433.5).abs() < 1.0,
        "half way in log length: {middle}"
    );
}

#[test]
fn times_of_a_launch_add_up() {
    let kernel = kernel("h200-fa3");
    let pieces = [document(300, 64), document(5000, 64)];
    let [one, other] = pieces.map(|piece| kernel.launch_ns(&[piece], WIDTH, Forward) - 12e3);
    let both = kernel.launch_ns(&pieces, WIDTH, Forward) - 12e3;
    assert!((both - one - other).abs() < 1e-6);
}

#[test]
fn nothing_to_compute_is_no_launch() {
    let kernel = kernel("h200-fa3");
    let nothing = Attention {
        queries: 100,
        heads: 4,
        pairs: 0,
    };
    assert_eq!(kernel.launch_ns(&[], WIDTH, Forward), 0.0);
    assert_eq!(kernel.launch_ns(&[nothing], WIDTH, Backward), 0.0);
}

#[test]
fn one_query_costs_as_much_as_a_tile_of_them() {
    let kernel = kernel("h100-fa2-varlen");
    let one = Attention {
        queries: 1,
        heads: 8,
        pairs: 10_000,
    };
    let tile = Attention {
        queries: 128,
        heads: 8,
        pairs: 1_280_000,
    };
    let [one, tile] = [one, tile].map(|piece| kernel.launch_ns(&[piece], WIDTH, Forward));
    assert!((one / tile - 1.0).abs() < 0.01, "{one} {tile}");
}

#[test]
fn backward_has_two_and_a_half_times_the_operations_at_its_own_speed() {
    for (name, length, ratio) in [
        ("h200-fa3", 8192, 2.5 / 0.871),
        ("h100-fa3", 8192, 2.5 * 657.0 / 518.0),
        ("h100-fa2-varlen", 8192, 2.5 / 0.902),
    ] {
        let kernel = kernel(name);
        let pieces = [document(length, 64); 4];
        let time = |direction| kernel.launch_ns(&pieces, WIDTH, direction) - 12e3;
        assert!(
            (time(Backward) / time(Forward) - ratio).abs() < 0.01,
            "{name}"
        );
    }
}
