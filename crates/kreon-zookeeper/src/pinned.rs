//! The files of a server: versions and checksums.

/// The version of ZooKeeper.
pub const VERSION: &str = "3.9.4";

/// A file.
pub struct Jar {
    pub group: &'static str,
    pub artifact: &'static str,
    pub version: &'static str,
    pub sha256: &'static str,
}

impl Jar {
    /// Its name, as Maven calls it.
    pub fn file(&self) -> String {
        format!("{}-{}.jar", self.artifact, self.version)
    }
}

/// What a server without encryption, web console and exported metrics loads; Netty is only for the first.
pub const JARS: [Jar; 6] = [
    Jar {
        group: "org.apache.zookeeper",
        artifact: "zookeeper",
        version: VERSION,
        sha256: "7bb3bb38bbddbc71424c59a7a0b170a1b2147313a84c972225ab0568dab513bf",
    },
    Jar {
        group: "org.apache.zookeeper",
        artifact: "zookeeper-jute",
        version: VERSION,
        sha256: "bd9750935add09b6cb920f7bcf0fa7b9a8165c45cdafd8ee1fc6808c46ec9094",
    },
    Jar {
        group: "org.slf4j",
        artifact: "slf4j-api",
        version: "2.0.13",
        sha256: "e7c2a48e8515ba1f49fa637d57b4e2f590b3f5bd97407ac699c3aa5efb1204a9",
    },
    Jar {
        group: "org.slf4j",
        artifact: "slf4j-simple",
        version: "2.0.13",
        sha256: "3153fe1d689cffb94f1530b58470c306685ba68844de8857116e3b6ebb81d9f7",
    },
    Jar {
        group: "io.dropwizard.metrics",
        artifact: "metrics-core",
        version: "4.1.12.1",
        sha256: "cec34936faa625039f4e46123eccaa10a9eb9d9a40c6075830cd81330e259cf9",
    },
    Jar {
        group: "org.xerial.snappy",
        artifact: "snappy-java",
        version: "1.1.10.5",
        sha256: "0f3f1857ed33116583f480b4df5c0218836c47bfbc9c6221c0d73f356decf37b",
    },
];
