//! The runs that the documents have tables of.

/// A run: the folder of its results, by which documents name it, and the command of `kreon-bench`.
pub struct Bench {
    pub name: &'static str,
    command: &'static str,
}

/// In the order in which they run: what the README shows first.
pub const PLAN: &[Bench] = &[
    bench(
        "memory",
        "ycsb --preset memory --engines kreon,rocksdb,lmdb,fjall,redb,bftree --seconds 3",
    ),
    bench(
        "small",
        "ycsb --preset small --engines kreon,rocksdb,busy --seconds 3",
    ),
    bench(
        "large",
        "ycsb --preset large --engines kreon,rocksdb,lmdb,fjall,redb --seconds 3 --load-seconds 25",
    ),
    bench(
        "reads-zipfian",
        "ycsb --preset large --engines kreon,rocksdb --workloads c --seconds 6 --operations 10000000",
    ),
    bench(
        "reads-uniform",
        "ycsb --preset large --engines kreon,rocksdb --workloads c --seconds 6 --operations 10000000 \
         --distribution uniform",
    ),
    bench(
        "reads-zipfian-32",
        "ycsb --preset large --engines kreon,rocksdb --workloads c --seconds 6 --operations 10000000 \
         --reads-together 32",
    ),
    bench(
        "reads-uniform-32",
        "ycsb --preset large --engines kreon,rocksdb --workloads c --seconds 6 --operations 10000000 \
         --distribution uniform --reads-together 32",
    ),
    bench(
        "scans",
        "ycsb --preset large --engines kreon,rocksdb --workloads load_e,e,g --seconds 4 --rounds 1 \
         --converge-seconds 45",
    ),
    bench(
        "mix-sd",
        "ycsb --preset small --engines kreon,rocksdb --mix sd --workloads load_a,a,c --seconds 3",
    ),
    bench(
        "mix-s",
        "ycsb --preset small --engines kreon,rocksdb --mix s --records 3000000 --workloads load_a,a,c --seconds 3 \
         --rounds 2",
    ),
    bench(
        "sync",
        "ycsb --preset sync --engines kreon,rocksdb --threads 1,64",
    ),
    bench("recovery", "recovery --data-mib 1024"),
    bench(
        "recovery-large",
        "recovery --data-mib 10240 --memory-mib 1024 --rounds 1",
    ),
    bench("overwrite", "overwrite --engines kreon --data-mib 256"),
    bench(
        "overwrite-write-16",
        "overwrite --engines kreon --distributions uniform --data-mib 512 --write-amplification-max 16 --seconds 45",
    ),
    bench(
        "overwrite-512",
        "overwrite --engines kreon,rocksdb --distributions uniform --data-mib 512 --seconds 20",
    ),
    bench("engine", "figures"),
];

const fn bench(name: &'static str, command: &'static str) -> Bench {
    Bench { name, command }
}

/// What `--tiny` changes, by command: the runs then take seconds, and their figures say nothing.
const TINY: &[(&str, &str)] = &[
    (
        "ycsb",
        "--records 2000 --operations 2000 --seconds 0.3 --load-seconds 5 --rounds 1 --converge-seconds 0.3",
    ),
    ("recovery", "--data-mib 4 --memory-mib 256 --rounds 1"),
    (
        "overwrite",
        "--data-mib 4 --memory-mib 64 --times 2 --seconds 1",
    ),
    ("figures", "--records 20000 --memory-mib 64"),
];

impl Bench {
    /// The arguments of `kreon-bench`.
    pub fn arguments(&self, is_tiny: bool) -> Vec<&'static str> {
        let all: Vec<&str> = self.command.split_whitespace().collect();
        match is_tiny {
            true => shrunk(&all),
            false => all,
        }
    }
}

/// `arguments` with the values of [`TINY`]; of what only some runs ask for, theirs alone are changed.
fn shrunk(arguments: &[&'static str]) -> Vec<&'static str> {
    let command = arguments.first().copied().unwrap_or_default();
    let tiny = TINY.iter().find(|(name, _)| *name == command);
    let tiny: Vec<_> = tiny.map_or("", |(_, all)| all).split_whitespace().collect();
    let mut all = vec![command];
    for pair in arguments[1..].chunks(2) {
        if !tiny.contains(&pair[0]) {
            all.extend(pair);
        }
    }
    for pair in tiny.chunks(2) {
        if pair[0] != "--converge-seconds" || arguments.contains(&pair[0]) {
            all.extend(pair);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_plan_has_a_value() {
        for bench in PLAN {
            let all = bench.arguments(false);
            for pair in all[1..].chunks(2) {
                let [name, value] = pair else {
                    panic!("{}: {pair:?}", bench.name)
                };
                assert!(
                    name.starts_with("--") && !value.starts_with("--"),
                    "{}",
                    bench.name
                );
            }
        }
    }

    #[test]
    fn every_table_of_the_documents_has_its_run_and_every_run_its_table() {
        let mut named: Vec<String> = Vec::new();
        for document in crate::results::documents::of_the_project().unwrap() {
            let text = std::fs::read_to_string(document).unwrap();
            let marks = text
                .lines()
                .filter_map(|line| line.strip_prefix("<!-- results: "));
            for mark in marks {
                let runs = mark.split_once(" of ").unwrap().1;
                let runs = runs.split([';', ' ']).next().unwrap().split(',');
                named.extend(runs.map(str::to_owned));
            }
        }
        named.sort();
        named.dedup();
        let mut planned: Vec<_> = PLAN.iter().map(|bench| bench.name.to_owned()).collect();
        planned.sort();
        assert_eq!(named, planned);
    }

    #[test]
    fn tiny_runs_keep_what_is_measured_and_change_how_much() {
        let scans = PLAN.iter().find(|bench| bench.name == "scans").unwrap();
        let tiny = scans.arguments(true).join(" ");
        assert_eq!(tiny.matches("--converge-seconds").count(), 1);
        assert_eq!(tiny.matches("--seconds").count(), 1);
        assert!(tiny.contains("--workloads load_e,e,g") && tiny.contains("--records 2000"));
        let small = PLAN.iter().find(|bench| bench.name == "small").unwrap();
        assert!(!small.arguments(true).contains(&"--converge-seconds"));
    }
}
