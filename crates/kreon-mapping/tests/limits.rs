//! What the system does not let the process have is refused when the mapping is made. The limit is
//! set for a child: this test, started once more.

mod common;

use std::process::Command;
use std::sync::Arc;

use common::{Content, MemoryDevice};

use kreon_base::ErrorKind;
use kreon_mapping::{Mapping, MappingOptions};

/// Set in the child.
const IN_CHILD: &str = "KREON_TEST_UNDER_LIMIT";

#[test]
fn a_page_table_beyond_the_limit_of_addresses_is_refused_with_its_size() {
    if std::env::var_os(IN_CHILD).is_none() {
        return run_under_limit();
    }
    let device = Arc::new(MemoryDevice::new(1 << 20, Content::Zero));
    let open =
        |volume_bytes| Mapping::new(device.clone(), MappingOptions::new(4 << 20, volume_bytes));
    // 16 TiB need 16 GiB of addresses for the table, twice the limit.
    let refused = open(16 << 40).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
    assert!(refused.to_string().contains("RLIMIT_AS"), "{refused}");
    assert!(open(1 << 40).is_ok());
}

fn run_under_limit() {
    let this = std::env::current_exe().expect("this test");
    let ended = Command::new("sh")
        .args(["-c", "ulimit -v 8388608 && exec \"$0\" --test-threads=1"])
        .arg(this)
        .env(IN_CHILD, "1")
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}
