#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kreon_properties::run("kvell_image", data));
