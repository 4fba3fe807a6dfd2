//! Fields that others may reach into, of structs that threads share.

use crate::floors::graph::Source;
use crate::floors::graph::items::Kind;
use crate::floors::graph::types::{Field, fields};

pub fn print(crates: &[Source]) {
    println!("== public fields of structs that hold a lock, an atomic or an ArcSwap");
    for source in crates {
        let structs = shared(source);
        let total: usize = structs.iter().map(|(_, public, _)| public).sum();
        println!("{}: {total} in {} structs", source.name, structs.len());
        for (name, public, all) in structs {
            println!("    {name}: {public} of {all}");
        }
    }
}

/// The shared structs with public fields: file and name, public fields, all fields.
fn shared(source: &Source) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for file in &source.files {
        for item in file.modules.iter().flat_map(|module| &module.items) {
            let tokens = &file.tokens[item.tokens.clone()];
            let fields = if item.kind == Kind::Type {
                fields(tokens)
            } else {
                Vec::new()
            };
            let public = fields.iter().filter(|field| field.public).count();
            if public > 0 && fields.iter().any(is_shared) {
                let name = format!("{} {}", file.name, item.name);
                found.push((name, public, fields.len()));
            }
        }
    }
    found
}

fn is_shared(field: &Field<'_>) -> bool {
    let words = field.kind.iter().filter_map(|token| token.word());
    let mut shared = words.filter(|word| {
        matches!(*word, "Mutex" | "RwLock")
            || word.starts_with("Atomic")
            || word.starts_with("ArcSwap")
    });
    shared.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    #[test]
    fn public_fields_beside_a_lock_are_counted() {
        let text = "pub struct A { pub(crate) a: u8, pub b: Mutex<u8>, c: u8 } pub struct B { pub a: u8 } \
            struct C { a: AtomicU64 }";
        let source = Source::new("house", in_memory(&[("lib.rs", text)]));
        assert_eq!(shared(&source), [("lib.rs A".to_owned(), 2, 3)]);
    }
}
