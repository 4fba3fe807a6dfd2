//! Planted cycles, each through another kind of edge, and what must not be taken for one.

use super::Source;
use super::files::in_memory;

fn cycle(files: &[(&str, &str)]) -> Vec<String> {
    let source = Source::new("house", in_memory(files));
    source
        .largest_cycle()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Slices of one type: the files import downwards only, the methods call each other.
const SLICED: &[(&str, &str)] = &[
    ("lib.rs", "mod core; mod write; mod spill; mod read;"),
    (
        "core.rs",
        "pub struct Core { pub log: u8 } impl Core { pub fn check(&self) {} }",
    ),
    (
        "write.rs",
        "use crate::core::Core; impl Core { pub fn put(&self) { self.check(); self.spill() } }",
    ),
    (
        "spill.rs",
        "use super::core::Core; impl Core { pub fn spill(&self) { self.check(); self.make_room(); } }",
    ),
    (
        "read.rs",
        "use crate::core::Core; impl Core { fn get(&self) { self.put() } }",
    ),
];

#[test]
fn a_sliced_impl_that_only_calls_down_is_no_cycle() {
    assert!(cycle(SLICED).is_empty());
}

#[test]
fn methods_of_a_sliced_impl_that_call_each_other_are_a_cycle() {
    let mut files = SLICED.to_vec();
    files[3].1 =
        "use super::core::Core; impl Core { pub fn spill(&self) { if full { self.put() } } }";
    assert_eq!(cycle(&files), ["write.rs", "spill.rs"]);
    // The same name elsewhere hides nothing: `self` tells the type.
    files[4].1 = "struct Other; impl Other { pub fn put(&self) {} pub fn spill(&self) {} }";
    assert_eq!(cycle(&files), ["write.rs", "spill.rs"]);
    files[2].1 =
        "use crate::core::Core; impl Core { pub fn put(core: &Core) { Core::spill(core) } }";
    assert_eq!(cycle(&files), ["write.rs", "spill.rs"]);
}

#[test]
fn a_cycle_through_a_re_export_is_found_where_the_item_is_defined() {
    let files = [
        ("lib.rs", "mod log; mod tree; pub use tree::Tree;"),
        (
            "log/mod.rs",
            "mod open; mod tail; pub use open::{Log, Log as Journal}; pub use tail::Tail;",
        ),
        ("log/open.rs", "use crate::Tree; pub struct Log(Tree);"),
        ("log/tail.rs", "use super::Log; pub struct Tail(Log);"),
        (
            "tree.rs",
            "pub struct Tree; fn walk() { let log: Option<crate::log::Journal> = None; }",
        ),
    ];
    assert_eq!(cycle(&files), ["log/open.rs", "tree.rs"]);
    let mut straight = files;
    straight[4].1 = "pub struct Tree; fn walk() {}";
    assert!(cycle(&straight).is_empty());
}

#[test]
fn a_re_export_is_no_edge_but_what_a_module_uses_is() {
    let mut files = [
        ("lib.rs", "mod log;"),
        (
            "log/mod.rs",
            "mod open; pub use open::open; pub struct Log;",
        ),
        (
            "log/open.rs",
            "use super::Log; pub fn open() -> Log { Log }",
        ),
    ];
    assert!(cycle(&files).is_empty());
    files[1].1 = "mod open; pub use open::open; pub struct Log; fn again() { open(); }";
    assert_eq!(cycle(&files), ["log/mod.rs", "log/open.rs"]);
}

/// Whether the file of the caller points at that of the log.
fn calls_log(body: &str) -> bool {
    let caller = format!("use crate::parts::Parts; {body}");
    let files = in_memory(&[
        ("lib.rs", "mod log; mod parts; mod caller;"),
        (
            "log.rs",
            "pub struct Log; impl Log { pub fn append(&self) {} }",
        ),
        (
            "parts.rs",
            "use crate::log::Log; pub struct Parts { log: Arc<Log>, maybe: Option<Log>, all: Vec<Log>, \
             locked: Mutex<Log> } impl Parts { pub fn log(&self) -> &Log { &self.log } }",
        ),
        ("caller.rs", caller.as_str()),
    ]);
    Source::new("house", files).edges()[3].contains_key(&1)
}

#[test]
fn methods_are_found_through_fields_results_and_locals() {
    // `append` is a method of lists too: only the type of the receiver tells.
    assert!(!calls_log("fn f() { any!().append() }"));
    assert!(!calls_log("fn f(parts: &Parts) { parts.all.append() }"));
    for body in [
        "parts.log.append()",
        "parts.log().append()",
        "parts.all[0].append()",
        "parts.locked.lock().append()",
        "parts.maybe.as_ref()?.append()",
        "let log = parts.log(); log.append()",
        "let (other, log) = (1, parts.log()); log.append()",
        "if let Some(log) = &parts.maybe { log.append() }",
        "let Some(log) = &parts.maybe else { return }; log.append()",
        "for log in &parts.all { log.append(); }",
    ] {
        assert!(
            calls_log(&format!("fn f(parts: &Parts) {{ {body} }}")),
            "{body}"
        );
    }
}

#[test]
fn calls_on_values_of_other_crates_are_no_edges() {
    let files = [
        ("lib.rs", "mod log; mod caller;"),
        (
            "log.rs",
            "use crate::caller::Caller; pub struct Log(Caller); impl Log { pub fn turn_round(&self) {} }",
        ),
        (
            "caller.rs",
            "pub struct Caller; fn f(list: &HashMap<u8, u8>) { list.turn_round() }",
        ),
    ];
    assert!(cycle(&files).is_empty());
    let mut unknown = files;
    unknown[2].1 = "pub struct Caller; fn f() { any!().turn_round() }";
    assert_eq!(cycle(&unknown).len(), 2);
    // Private methods are called below their own module only.
    unknown[1].1 =
        "use crate::caller::Caller; pub struct Log(Caller); impl Log { fn turn_round(&self) {} }";
    assert!(cycle(&unknown).is_empty());
}

#[test]
fn tests_make_no_edges() {
    let files = [
        ("lib.rs", "mod log; mod tree;"),
        (
            "log.rs",
            "pub struct Log; #[cfg(test)] mod tests { use crate::tree::Tree; }",
        ),
        ("tree.rs", "use crate::log::Log; pub struct Tree(Log);"),
    ];
    assert!(cycle(&files).is_empty());
}
