#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreon_properties::run("tucana_index", data));
