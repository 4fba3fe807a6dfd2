//! What stands above a table: when, of which commit, on what, how large, of which versions, how set, by which command.

use super::sources::Source;
use crate::engine::Kind;

/// Letters of a line of the documents.
const LINE_MAX: usize = 130;

/// The paragraphs; of `stores` only, where there are several.
pub fn head(sources: &[&Source], stores: &[Kind]) -> String {
    let Some(origin) = sources.first().map(|source| source.origin()) else {
        return String::new();
    };
    let mut origin = origin.clone();
    for source in sources {
        let more = source.origin();
        let is_new = |have: &[(String, String)], one: &(String, String)| {
            have.iter().all(|(name, _)| *name != one.0)
        };
        let versions = more.versions.iter().filter(|v| is_new(&origin.versions, v));
        let versions: Vec<_> = versions.cloned().collect();
        origin.versions.extend(versions);
        let tuning = more.tuning.iter().filter(|t| is_new(&origin.tuning, t));
        let tuning: Vec<_> = tuning.cloned().collect();
        origin.tuning.extend(tuning);
    }
    let is_shown = |(name, _): &(String, String)| {
        stores.is_empty() || stores.iter().any(|store| store.name() == name)
    };
    origin.versions.retain(is_shown);
    origin.tuning.retain(is_shown);
    let dates = distinct(sources.iter().map(|source| source.origin().date()));
    let sizes = distinct(sources.iter().map(|source| size(source)));
    let machines = distinct(sources.iter().map(|source| machine(source)));
    let mut text = wrapped(&format!(
        "{dates}, commit {}: {sizes}; {machines}; {}.",
        origin.commit,
        origin.versions_line()
    ));
    if !origin.tuning.is_empty() {
        text += &format!(
            "\n{}",
            wrapped(&format!("Settings: {}.", origin.tuning_line()))
        );
    }
    text += "\n```sh\n";
    for source in sources {
        text += &format!("{}\n", source.origin().typed());
    }
    text + "```\n"
}

fn distinct(words: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join("; ")
}

fn machine(source: &Source) -> String {
    let machine = match source {
        Source::Ycsb(results) => &results.machine,
        Source::Overwrite(results) => &results.machine,
        Source::Recovery(results) => &results.machine,
        Source::Engine(results) => &results.machine,
    };
    format!("{}, {} cores", machine.processor, machine.cores)
}

fn size(source: &Source) -> String {
    match source {
        Source::Ycsb(results) => {
            let points = &results.settings.points;
            let means = points.first().map(|point| point.means).unwrap_or_default();
            let phases = points.iter().filter_map(|point| point.phases.first());
            let clients = distinct(phases.map(|phase| phase.threads.to_string()));
            let limited = match results.records.iter().all(|record| record.is_limited) {
                true => "",
                false => " (NOT enforced)",
            };
            format!(
                "preset `{}`, {} of pairs, {} MiB of memory for each store{limited}, {} clients, {} by turns",
                results.settings.preset,
                mib(means.data_bytes),
                means.memory_bytes >> 20,
                clients.replace("; ", " or "),
                rounds(results.settings.rounds),
            )
        }
        Source::Overwrite(results) => match results.runs.first() {
            Some(run) => format!(
                "{} of pairs, {} MiB of memory for each store",
                mib(run.live_bytes),
                run.memory_bytes >> 20
            ),
            None => "no run".to_owned(),
        },
        Source::Recovery(results) => rounds(results.rounds()),
        Source::Engine(results) => results.size.clone(),
    }
}

fn rounds(rounds: u32) -> String {
    match rounds {
        1 => "one round".to_owned(),
        rounds => format!("medians of {rounds} rounds"),
    }
}

/// Runs of tests are smaller than a MiB.
fn mib(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

/// `text` in lines of the documents' width.
pub fn wrapped(text: &str) -> String {
    let (mut out, mut width) = (String::new(), 0);
    for word in text.split_whitespace() {
        if width > 0 && width + 1 + word.len() > LINE_MAX {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out += word;
        width += word.len();
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_width_of_the_documents() {
        let text = "word ".repeat(60);
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.len() <= LINE_MAX), "{lines}");
        assert_eq!(lines.split_whitespace().count(), 60);
        assert_eq!(lines.lines().count(), 3);
    }
}
