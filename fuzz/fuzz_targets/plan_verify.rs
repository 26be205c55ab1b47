//! A pool planned from arbitrary sizes passes verification, and a damaged plan does not.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::plan_verify(data));
