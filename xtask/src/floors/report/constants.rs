//! Numbers by which the store is tuned.

use std::collections::BTreeMap;

use super::product::tokens_of;
use crate::floors::graph::Source;
use crate::floors::tokens::Token;

/// The crates that decide about space and pace.
const CRATES: &[&str] = &["kreon-volume", "kreon-log", "kreon-engine"];

const NUMERIC: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64", "Duration",
];

pub fn print(crates: &[Source]) {
    for source in crates
        .iter()
        .filter(|source| CRATES.contains(&source.name.as_str()))
    {
        println!("== numeric constants of {} per folder", source.name);
        let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
        for file in &source.files {
            let folder = file
                .name
                .rsplit_once('/')
                .map_or("src", |(folder, _)| folder);
            *folders.entry(folder).or_default() += tokens_of(file).map(constants).sum::<usize>();
        }
        folders.retain(|_, count| *count > 0);
        for (folder, count) in &folders {
            println!("{folder}: {count}");
        }
        println!("in all: {}", folders.values().sum::<usize>());
    }
}

/// `const NAME: type` in `tokens`, those in functions and `impl` blocks too.
fn constants(tokens: &[Token]) -> usize {
    let named = tokens.windows(5).filter(|window| {
        window[0].is_word("const")
            && window[2].is_mark(':')
            && window[3].word().is_some_and(|word| NUMERIC.contains(&word))
            // A parameter of a type ends at `>` or a comma.
            && window[4].is_mark('=')
    });
    named.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::tokens::tokens;

    #[test]
    fn constants_with_a_numeric_type_count() {
        let source = "const A: u64 = 1; fn f<const N: usize>() { const B: Duration = x; } const C: &str = d;";
        assert_eq!(constants(&tokens(source)), 2);
    }
}
