//! Which versions of the stores are in this build: from the lock file that it was built with, or from the library itself where
//! that is the system's.

use super::Kind;

const LOCK: &str = include_str!("../../../../Cargo.lock");

/// The version of `engine`; `None` if it has none.
pub fn version(engine: Kind) -> Option<String> {
    #[cfg(feature = "wiredtiger")]
    if engine == Kind::Wiredtiger {
        return Some(kreon_bench_wiredtiger::version());
    }
    let packages: &[&str] = match engine {
        Kind::Nothing | Kind::Busy | Kind::Device | Kind::Unwritten | Kind::Wiredtiger => &[],
        Kind::Kreon => &["kreon"],
        Kind::Kvell => &["kreon-kvell"],
        Kind::Tucana => &["kreon-tucana"],
        Kind::Rocksdb | Kind::Blobdb => &["librocksdb-sys"],
        Kind::Lmdb => &["lmdb-master-sys", "heed"],
        Kind::Fjall => &["fjall"],
        Kind::Redb => &["redb"],
        Kind::Bftree => &["bf-tree"],
    };
    let versions = packages.iter().filter_map(|package| {
        let rest = LOCK
            .split_once(&format!("name = \"{package}\"\nversion = \""))?
            .1;
        let version = rest.split('"').next()?;
        Some(match packages.len() {
            1 => version.to_owned(),
            _ => format!("{package} {version}"),
        })
    });
    let versions: Vec<_> = versions.collect();
    (!versions.is_empty()).then(|| versions.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_store_has_a_version() {
        for engine in [
            Kind::Kreon,
            Kind::Kvell,
            Kind::Tucana,
            Kind::Rocksdb,
            Kind::Lmdb,
            Kind::Fjall,
            Kind::Redb,
            Kind::Bftree,
        ] {
            let version = version(engine).unwrap();
            assert!(version.contains('.'), "{engine:?}: {version}");
        }
        let of_system = version(Kind::Wiredtiger);
        assert_eq!(of_system.is_some(), Kind::Wiredtiger.is_built());
        assert_eq!(version(Kind::Nothing), None);
    }
}
