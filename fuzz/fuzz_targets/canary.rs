//! Proof that the harness can fail: this target crashes by design.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| libra_tests::fuzz::canary(data));
