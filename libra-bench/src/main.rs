//! The command `libra-bench`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    libra_bench::main()
}
