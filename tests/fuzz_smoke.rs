//! Every fuzz target for about a second, on the same inputs each time.

#![forbid(unsafe_code)]

use arbtest::arbtest;
use libra_tests::{blessed, cases, fuzz, plan_file};

/// Runs `target` on random inputs of rising size; a failure prints the seed of its input.
fn smoke(inputs: u64, target: fn(&[u8])) {
    for input in 1..=inputs {
        let size = 16 + input % 64 * 8;
        arbtest(|u| {
            target(u.bytes(u.len())?);
            Ok(())
        })
        .seed(input << 32 | size)
        .run();
    }
}

/// Runs `target` on plans in which a few random bytes were overwritten and the digests mended.
fn smoke_near_plans(inputs: u64, target: fn(&[u8])) {
    let plans: Vec<Vec<u8>> = cases::named()
        .iter()
        .map(|named| libra_sched::wire::encode(&named.case.plan()))
        .collect();
    for input in 1..=inputs {
        arbtest(|u| {
            let mut bytes = u.choose(&plans)?.clone();
            for _ in 0..u.int_in_range(1..=4)? {
                let place = u.int_in_range(plan_file::HEADER..=bytes.len() - 1)?;
                bytes[place] = *u.choose(&[0, 1, 2, 0x10, 0x7f, 0x80, 0xff])?;
            }
            plan_file::seal(&mut bytes);
            target(&bytes);
            Ok(())
        })
        .seed(input << 32 | 64)
        .run();
    }
}

/// Plan files that once made a reader fail.
#[test]
fn regressions_stay_fixed() {
    let folder = blessed::at("tests/regressions/decode");
    for entry in std::fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        println!("{}", path.display());
        let bytes = std::fs::read(path).expect("the file can be read");
        fuzz::decode(&bytes);
        fuzz::roundtrip(&bytes);
    }
}

#[test]
fn decode() {
    smoke(60_000, fuzz::decode);
    smoke_near_plans(12_000, fuzz::decode);
}

#[test]
fn roundtrip() {
    smoke(12_000, fuzz::roundtrip);
    smoke_near_plans(12_000, fuzz::roundtrip);
}

#[test]
fn plan_verify() {
    smoke(3_000, fuzz::plan_verify);
}

#[test]
fn vrsp() {
    smoke(60_000, fuzz::vrsp);
}

#[test]
fn lengths_text() {
    smoke(60_000, fuzz::lengths_text);
    for text in [
        "",
        "9",
        "12\n0 5 9\n0 12\n",
        "12\n0 13\n",
        "12\n3 4\n",
        "0\n0\n",
        "4\n0 4 4\n",
    ] {
        fuzz::lengths_text(text.as_bytes());
    }
}

#[test]
fn idx() {
    smoke(6_000, fuzz::idx);
}

#[test]
fn npy() {
    smoke(6_000, fuzz::npy);
}

#[test]
fn the_canary_sings_on_its_word_only() {
    for silent in [&b""[..], b"LIBR", b"libra", b" LIBRA"] {
        fuzz::canary(silent);
    }
    assert!(std::panic::catch_unwind(|| fuzz::canary(b"LIBRA and more")).is_err());
}
