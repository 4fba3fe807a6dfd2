//! Fewer operations that still fail.

use std::time::{Duration, Instant};

use super::operations::{Chapter, Operation};

/// How long it is tried.
const PATIENCE: Duration = Duration::from_secs(30);

/// Operations that are told.
const TOLD_MAX: usize = 30;

type Attempt<'a, R> = &'a dyn Fn(&[Chapter]) -> Result<R, String>;

/// Leaves operations out as long as the rest fails; the settings stay. Tells what is left.
pub fn shrink<R>(mut chapters: Vec<Chapter>, attempt: Attempt<'_, R>) -> String {
    let started = Instant::now();
    let mut chunk = places(&chapters).len().div_ceil(2);
    let mut last = None;
    while chunk > 0 {
        let mut start = 0;
        while start < places(&chapters).len() && started.elapsed() < PATIENCE {
            let fewer = without(&chapters, start, chunk);
            match attempt(&fewer) {
                Err(what) => (chapters, last) = (fewer, Some(what)),
                Ok(_) => start += chunk,
            }
        }
        chunk /= 2;
    }
    let mut lines = vec![format!(
        "fewer operations that fail: {}",
        last.unwrap_or_default()
    )];
    for (chapter, lane, at) in places(&chapters).into_iter().take(TOLD_MAX) {
        let operation = &chapters[chapter].lanes[lane][at];
        lines.push(format!(
            "  chapter {chapter} lane {lane}: {}",
            brief(operation)
        ));
    }
    lines.join("\n")
}

fn brief(operation: &Operation) -> String {
    let mut text = format!("{operation:?}");
    if let Some((end, _)) = text.char_indices().nth(300) {
        text.truncate(end);
    }
    text
}

/// All operations, in order: chapter, lane, place.
fn places(chapters: &[Chapter]) -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    for (chapter, found) in chapters.iter().enumerate() {
        for (lane, operations) in found.lanes.iter().enumerate() {
            all.extend((0..operations.len()).map(|at| (chapter, lane, at)));
        }
    }
    all
}

fn without(chapters: &[Chapter], start: usize, count: usize) -> Vec<Chapter> {
    let mut fewer = chapters.to_vec();
    let gone: Vec<_> = places(chapters)
        .into_iter()
        .skip(start)
        .take(count)
        .collect();
    for (chapter, lane, at) in gone.into_iter().rev() {
        fewer[chapter].lanes[lane].remove(at);
    }
    fewer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation_of_many_is_found() {
        let chapters = super::super::operations::chapters(5);
        let is_checkpoint = |operation: &Operation| matches!(operation, Operation::Checkpoint);
        let fails = |chapters: &[Chapter]| {
            let lanes = chapters.iter().flat_map(|chapter| &chapter.lanes).flatten();
            match lanes.filter(|operation| is_checkpoint(operation)).count() {
                0 => Ok(()),
                _ => Err("it fails".to_owned()),
            }
        };
        assert!(fails(&chapters).is_err());
        let told = shrink(chapters, &fails);
        assert_eq!(told.lines().count(), 2, "{told}");
        assert!(told.contains("Checkpoint"), "{told}");
    }
}
