//! Sequences placed in pools are placed once each and within the bound.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::vrsp(data));
