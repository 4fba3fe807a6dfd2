//! Compiles the C side against the header of the system's WiredTiger, and links its library.

fn main() {
    println!("cargo:rerun-if-changed=src/shim.c");
    #[cfg(feature = "wiredtiger")]
    {
        cc::Build::new()
            .file("src/shim.c")
            .flag("-std=c99")
            .warnings_into_errors(true)
            .compile("kreon_wiredtiger");
        println!("cargo:rustc-link-lib=wiredtiger");
    }
}
