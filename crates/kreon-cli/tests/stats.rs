//! `kreon stats`: a few lines, all tables, or one JSON object whose fields are documented.

mod fixture;

use std::collections::BTreeSet;

use fixture::Fixture;
use serde_json::Value;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stats.md");

const METRICS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/observability.md");

/// Objects whose fields are listed as a part of their parent.
const WHOLE: [&str; 1] = ["last_image"];

#[test]
fn the_summary_is_about_ten_lines_and_all_is_many() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let summary = fixture.ok(&["stats"]);
    let names: Vec<_> = summary.lines().map(|line| line[..20].trim_end()).collect();
    assert_eq!(
        names,
        [
            "store",
            "format",
            "size on disk",
            "live data",
            "space amplification",
            "regions",
            "keys",
            "memory",
            "last checkpoint",
            "health",
        ]
    );
    assert!(summary.contains(" 1: default\n"), "{summary}");
    assert!(summary.contains("at most 1 "), "{summary}");
    let all = fixture.ok(&["stats", "--all"]);
    assert!(all.lines().count() > 40, "{all}");
}

#[test]
fn a_store_that_is_open_elsewhere_tells_its_own_figures() {
    let fixture = Fixture::new();
    let options = kreon::Store::options().memory_bytes(9 << 20).status(true);
    let store = options.open(fixture.store()).unwrap();
    let region = store.region("of another process").unwrap();
    region.put("k", "v").unwrap();
    let summary = fixture.ok(&["stats"]);
    assert!(summary.contains(" 1: of another process\n"), "{summary}");
    assert!(summary.contains("of a budget of 9.00 MiB"), "{summary}");
    let json: Value = serde_json::from_str(&fixture.ok(&["stats", "--json"])).unwrap();
    assert_eq!(json["l0_entries"], 1);
    assert_eq!(json["path"], fixture.store().to_str().unwrap());
    let metrics = fixture.ok(&["stats", "--prometheus"]);
    assert_eq!(
        metrics.lines().count(),
        store.stats().to_prometheus().lines().count()
    );
    let all = fixture.ok(&["stats", "--all"]);
    assert!(all.contains("L0 entries"), "{all}");
    // Others cannot tell.
    fixture.run(&["get", "k"]).fails(4, &["busy"]);
    drop((region, store));
    assert!(!fixture.ok(&["stats"]).contains("of a budget of 9.00 MiB"));
}

/// Every field of `value`, elements of lists under `name[]`.
fn fields(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) if !WHOLE.contains(&path) => {
            for (name, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                fields(value, &format!("{path}{dot}{name}"), all);
            }
        }
        Value::Array(list) if list.first().is_some_and(Value::is_object) => {
            fields(&list[0], &format!("{path}[]"), all);
        }
        _ => {
            all.insert(path.to_owned());
        }
    }
}

#[test]
fn the_fields_of_the_object_are_those_that_are_documented() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    fixture.ok(&["compact"]);
    let json = fixture.ok(&["stats", "--json"]);
    assert_eq!(json.lines().count(), 1, "{json}");
    let object: Value = serde_json::from_str(&json).unwrap();
    let mut there = BTreeSet::new();
    fields(&object, "", &mut there);
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let documented: BTreeSet<_> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(there, documented);

    assert_eq!(object["schema"], 1);
    assert_eq!(object["path"], fixture.store().to_str().unwrap());
    assert_eq!(object["regions"], serde_json::json!(["default"]));
    assert_eq!(object["memory_bytes"], 16 << 20, "{json}");
    assert!(object["disk_bytes"].as_u64().unwrap() > 0, "{json}");
}

#[test]
fn no_number_of_the_library_is_left_out_of_the_object() {
    let fixture = Fixture::new();
    fixture.ok(&["put", "k", "v"]);
    let json = fixture.ok(&["stats", "--json"]);
    let store = kreon::Store::open(fixture.store()).unwrap();
    let debug = format!("{:?}", store.stats());
    let fields = debug
        .split([' ', '{', ','])
        .filter_map(|word| word.strip_suffix(':'));
    for field in fields {
        assert!(
            json.contains(&format!("\"{field}\":")),
            "no {field} in {json}"
        );
    }
    assert!(debug.contains("device_flushes:"), "{debug}");
}

/// Splits a sample into its name and its labels, with their values unescaped.
fn sample(line: &str) -> (&str, Vec<(String, String)>) {
    let (series, number) = line.rsplit_once(' ').unwrap();
    assert!(number.parse::<f64>().is_ok(), "{line}");
    let Some((name, rest)) = series.split_once('{') else {
        return (series, Vec::new());
    };
    let mut rest = rest.strip_suffix('}').unwrap();
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (label, behind) = rest.split_once("=\"").unwrap();
        let (mut value, mut chars) = (String::new(), behind.char_indices());
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    escaped @ ('\\' | '"') => value.push(escaped),
                    other => panic!("\\{other} in {line}"),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push((label.to_owned(), value));
        rest = &behind[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (name, labels)
}

#[test]
fn metrics_parse_and_their_names_are_those_that_are_documented() {
    let fixture = Fixture::new();
    let odd = "a\"b\\c";
    fixture.ok(&["-r", odd, "put", "k", "v"]);
    fixture.ok(&["compact"]);
    let text = fixture.ok(&["stats", "--prometheus"]);
    assert!(text.ends_with('\n'));
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.starts_with("kreon_store_") && name.chars().all(is_part)
    };
    let (mut there, mut series) = (BTreeSet::new(), BTreeSet::new());
    let (mut helped, mut typed) = ("", ("", ""));
    let mut regions = BTreeSet::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split_once(' ').unwrap().0;
            assert!(is_name(helped), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            typed = kind.split_once(' ').unwrap();
            assert_eq!(typed.0, helped);
            let expected = match helped.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            assert_eq!(typed.1, expected, "{line}");
            assert!(there.insert(helped.to_owned()), "{helped} twice");
        } else {
            let (name, labels) = sample(line);
            assert_eq!(name, typed.0, "{line}");
            assert!(series.insert((name.to_owned(), labels.clone())), "{line}");
            let of_region = labels.into_iter().filter(|(label, _)| label == "region");
            regions.extend(of_region.map(|(_, region)| region));
        }
    }
    assert!(regions.contains(odd), "{regions:?}");
    let document = std::fs::read_to_string(METRICS).unwrap();
    let names = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = names.filter_map(|line| Some(line.split_once('`')?.0.to_owned()));
    let documented: BTreeSet<_> = names.filter(|name| is_name(name)).collect();
    assert_eq!(there, documented);
}
