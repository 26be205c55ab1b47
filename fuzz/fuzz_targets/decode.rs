//! Bytes that may be a plan: decoding answers with a plan or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::decode(data));
