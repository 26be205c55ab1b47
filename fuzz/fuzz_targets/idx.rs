//! Bytes that may be a Megatron index: reading answers as a slow decoder does, or with an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::idx(data));
