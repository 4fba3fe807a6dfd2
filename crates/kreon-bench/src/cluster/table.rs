//! Figures of rounds, and the tables of their medians.

use crate::report::grid::{heading, line, short};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    PutAlone,
    GetAlone,
    PutMany,
    GetMany,
}

impl Kind {
    /// In their order.
    pub const ALL: [Self; 4] = [Self::PutAlone, Self::GetAlone, Self::PutMany, Self::GetMany];

    fn name(self) -> &'static str {
        match self {
            Self::PutAlone => "puts, one at a time",
            Self::GetAlone => "gets, one at a time",
            Self::PutMany => "puts, many under way",
            Self::GetMany => "gets, many under way",
        }
    }

    fn is_alone(self) -> bool {
        matches!(self, Self::PutAlone | Self::GetAlone)
    }
}

/// Processor time of a call, in microseconds, by whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    pub client: f64,
    pub primary: f64,
    /// Of all backups together.
    pub backup: f64,
    /// Of the coordinator and of servers without a copy.
    pub others: f64,
}

/// The figures of one kind of calls of one store in one round.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub kind: Kind,
    pub thousands_per_second: f64,
    /// Only of calls one at a time.
    pub p50_us: f64,
    /// Likewise.
    pub p99_us: f64,
    pub cpu_us: Cpu,
}

impl Sample {
    /// For people who wait.
    pub fn line(&self) -> String {
        let figure = match self.kind.is_alone() {
            true => format!("p50 {:.1} us, p99 {:.1} us", self.p50_us, self.p99_us),
            false => format!("{:.1} k/s", self.thousands_per_second),
        };
        let Cpu {
            client,
            primary,
            backup,
            others,
        } = self.cpu_us;
        format!(
            "{}: {figure}; CPU us/call: client {client:.2}, primary {primary:.2}, backup {backup:.2}, others {others:.2}",
            self.kind.name()
        )
    }
}

/// The middle one of some figures, or the mean of the two in the middle; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// A table for each kind of calls: stores with the samples of all their rounds.
pub fn tables<'a>(stores: impl Iterator<Item = (&'a str, &'a Vec<Sample>)> + Clone) -> String {
    let kinds = Kind::ALL.into_iter();
    let tables = kinds.map(|kind| table(kind, stores.clone()));
    tables.collect::<Vec<_>>().join("\n")
}

fn table<'a>(kind: Kind, stores: impl Iterator<Item = (&'a str, &'a Vec<Sample>)>) -> String {
    let mut names: Vec<String> = Vec::new();
    match kind.is_alone() {
        true => names.extend(["p50, us", "rounds", "p99, us"].map(String::from)),
        false => names.extend(["k/s", "rounds"].map(String::from)),
    }
    let cpu = ["CPU us/call: client", "primary", "backup", "others"];
    names.extend(cpu.map(String::from));
    let mut table = heading(kind.name(), &names);
    for (name, samples) in stores {
        let samples: Vec<Sample> = samples.iter().filter(|s| s.kind == kind).copied().collect();
        table.push_str(&row(kind, name, &samples));
    }
    table
}

fn row(kind: Kind, name: &str, samples: &[Sample]) -> String {
    let all = |of: fn(&Sample) -> f64| samples.iter().map(of).collect::<Vec<f64>>();
    let middle = |of: fn(&Sample) -> f64| short(median(all(of)));
    let range = |of: fn(&Sample) -> f64| {
        let values = all(of);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        format!("{} to {}", short(least), short(most))
    };
    let mut cells = vec![name.to_owned()];
    match kind.is_alone() {
        true => cells.extend([
            middle(|s| s.p50_us),
            range(|s| s.p50_us),
            middle(|s| s.p99_us),
        ]),
        false => cells.extend([
            middle(|s| s.thousands_per_second),
            range(|s| s.thousands_per_second),
        ]),
    }
    cells.extend([
        middle(|s| s.cpu_us.client),
        middle(|s| s.cpu_us.primary),
        middle(|s| s.cpu_us.backup),
        middle(|s| s.cpu_us.others),
    ]);
    line(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(kind: Kind, figure: f64) -> Sample {
        Sample {
            kind,
            thousands_per_second: figure,
            p50_us: figure,
            p99_us: 2.0 * figure,
            cpu_us: Cpu {
                client: figure / 10.0,
                ..Cpu::default()
            },
        }
    }

    #[test]
    fn medians_are_in_the_middle_of_any_number_of_rounds() {
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![9.0]), 9.0);
        assert_eq!(median(vec![9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(vec![9.0, 1.0, 5.0, 6.0]), 5.5);
    }

    #[test]
    fn a_row_has_the_median_and_the_range_of_its_own_kind_of_calls() {
        let samples = vec![
            sample(Kind::PutAlone, 70.0),
            sample(Kind::PutMany, 300.0),
            sample(Kind::PutAlone, 50.0),
            sample(Kind::PutMany, 100.0),
            sample(Kind::PutAlone, 60.0),
            sample(Kind::PutMany, 200.0),
        ];
        let text = tables([("a store", &samples)].into_iter());
        assert!(
            text.contains("| a store | 60.0 | 50.0 to 70.0 | 120 | 6.00 |"),
            "{text}"
        );
        assert!(
            text.contains("| a store | 200 | 100 to 300 | 20.0 |"),
            "{text}"
        );
        let head = "| puts, many under way | k/s | rounds | CPU us/call: client | primary | backup | others |";
        assert!(text.contains(head), "{text}");
    }

    #[test]
    fn a_line_tells_the_figure_of_its_kind() {
        assert!(
            sample(Kind::GetAlone, 50.0)
                .line()
                .contains("p50 50.0 us, p99 100.0 us")
        );
        assert!(sample(Kind::GetMany, 50.0).line().contains(": 50.0 k/s;"));
    }
}
