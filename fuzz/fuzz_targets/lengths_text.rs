//! Text that may be a lengths file: parsing answers with lengths or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::lengths_text(data));
