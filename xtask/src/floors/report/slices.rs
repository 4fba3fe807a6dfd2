//! Types whose methods are scattered over many files.

use crate::floors::graph::Source;

/// More files than this are told of.
const FILES_MAX: usize = 3;

pub fn print(crates: &[Source]) {
    println!("== types with inherent methods in more than {FILES_MAX} files");
    let mut all: Vec<_> = crates.iter().flat_map(sliced).collect();
    all.sort_by_key(|(methods, _)| std::cmp::Reverse(*methods));
    for (_, line) in all {
        println!("{line}");
    }
}

/// How many methods each sliced type has, and what to say of it.
fn sliced(source: &Source) -> Vec<(usize, String)> {
    let slices = source.methods.slices();
    slices
        .filter(|(_, files)| files.len() > FILES_MAX)
        .map(|(id, files)| {
            let methods = files.values().sum();
            let line = format!(
                "{} {}: {methods} methods in {} files",
                source.name,
                id.name,
                files.len()
            );
            (methods, line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    #[test]
    fn a_type_in_four_files_is_told_of() {
        let slice = "use crate::S; impl S { fn f(&self) {} }";
        let mut texts = vec![("lib.rs", "mod a; mod b; mod c; mod d; pub struct S;")];
        texts.extend(["a.rs", "b.rs", "c.rs"].map(|name| (name, slice)));
        assert!(sliced(&Source::new("house", in_memory(&texts))).is_empty());
        texts.push(("d.rs", slice));
        let told = sliced(&Source::new("house", in_memory(&texts)));
        assert_eq!(told[0].1, "house S: 4 methods in 4 files");
    }
}
