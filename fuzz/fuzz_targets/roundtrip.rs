//! A plan that decodes encodes to the bytes it came from.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::roundtrip(data));
