//! The list of cities that the crate `reverse_geocoder` ships, turned into keys and values.
//!
//! Cargo is asked to have the crate's source at hand, as for any dependency; it is never compiled.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;

/// Writes `place,latitude,longitude` rows to `file`, each place once: country, province and name with
/// slashes between, so that the places of a country or a province share a prefix. Returns how many.
pub fn write(file: &Path) -> Result<usize> {
    let source = source()?;
    let list = std::fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))?;
    let (rows, count) = rows(&list).with_context(|| format!("in {}", source.display()))?;
    std::fs::write(file, rows).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(count)
}

fn source() -> Result<PathBuf> {
    // For this platform only, or cargo would fetch the sources for all others, too.
    let platform = Command::new("rustc")
        .args(["--print", "host-tuple"])
        .output()
        .context("cannot start rustc")?;
    let platform = String::from_utf8(platform.stdout).context("rustc names no platform")?;
    let metadata = workspace::metadata(&[
        "--manifest-path",
        "xtask/Cargo.toml",
        "--features",
        "cities",
        "--filter-platform",
        platform.trim(),
    ])?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == "reverse_geocoder")
        .context("cargo does not know the crate with the list of cities")?;
    Ok(package.manifest_path.with_file_name("cities.csv"))
}

fn rows(list: &str) -> Result<(String, usize)> {
    let mut lines = list.lines();
    ensure!(
        lines.next() == Some("lat,lon,name,admin1,admin2,cc"),
        "the columns of the list are not the known ones"
    );
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut rows = String::from("place,latitude,longitude\n");
    let mut count = 0;
    for line in lines {
        let fields = fields(line);
        let [latitude, longitude, name, province, _, country] = &fields[..] else {
            anyhow::bail!("this row has not six columns: {line}");
        };
        let mut place = format!("{country}/{province}/{name}");
        // Villages of one name in one province are different places.
        let times = seen.entry(place.clone()).or_default();
        *times += 1;
        if *times > 1 {
            write!(place, " ({times})")?;
        }
        let place = place.replace('"', "\"\"");
        writeln!(rows, "\"{place}\",{latitude},{longitude}")?;
        count += 1;
    }
    Ok((rows, count))
}

/// The fields of a CSV row; quotes may stand around a field and doubled within.
fn fields(row: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = row.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_are_taken_apart() {
        assert_eq!(fields(r#"1,"a, ""b""",,c"#), ["1", "a, \"b\"", "", "c"]);
    }

    #[test]
    fn places_of_one_name_stay_apart() {
        let list = "lat,lon,name,admin1,admin2,cc\n1,2,A,P,,XX\n3,4,A,P,Q,XX\n";
        let (rows, count) = rows(list).unwrap();
        assert_eq!(count, 2);
        let expected = "place,latitude,longitude\n\"XX/P/A\",1,2\n\"XX/P/A (2)\",3,4\n";
        assert_eq!(rows, expected);
    }
}
