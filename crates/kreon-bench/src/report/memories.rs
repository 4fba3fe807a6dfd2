//! A run over several sizes of memory: what each costs, and from which one on one store does better than another.

use super::grid::{NONE, heading, line, short};
use super::plot::{Frame, Series, lines};
use super::summary::{Cell, engines};
use crate::engine::Kind;
use crate::run::settings::Settings;
use crate::ycsb::workload::Workload;

/// Fewer are no curve.
const POINTS_MIN: usize = 3;

/// The memory of each point of a run that differ in nothing else.
pub struct Memories(Vec<(String, u64)>);

/// What is compared of cells: more is better, or less.
struct Figure {
    name: &'static str,
    of: fn(&Cell) -> f64,
    is_cost: bool,
}

const FIGURES: [Figure; 3] = [
    Figure {
        name: "ops/s",
        of: |cell| cell.ops_per_second,
        is_cost: false,
    },
    Figure {
        name: "CPU",
        of: Cell::net_cpu_us,
        is_cost: true,
    },
    Figure {
        name: "bytes moved",
        of: moved_bytes,
        is_cost: true,
    },
];

/// At the device, in both directions, for a request.
fn moved_bytes(cell: &Cell) -> f64 {
    cell.read_bytes + cell.write_bytes
}

impl Memories {
    /// Those of `settings`; `None` if its points are not a curve over the memory.
    pub fn of(settings: &Settings) -> Option<Self> {
        let points = settings.points.iter();
        let mut memories: Vec<(String, u64)> = points
            .map(|point| (point.variant.clone(), point.means.memory_bytes))
            .collect();
        memories.sort_by_key(|memory| memory.1);
        let count = memories.len();
        memories.dedup_by_key(|memory| memory.1);
        (count >= POINTS_MIN && memories.len() == count).then_some(Self(memories))
    }

    /// The cell of a store in a workload at each memory where there is one, the smallest first.
    fn along<'a>(
        &self,
        cells: &'a [Cell],
        engine: Kind,
        workload: Workload,
    ) -> Vec<(f64, &'a Cell)> {
        let cell_at = |variant: &str| {
            cells.iter().find(|cell| {
                (cell.engine, cell.workload, cell.variant.as_str()) == (engine, workload, variant)
            })
        };
        let memories = self.0.iter();
        memories
            .filter_map(|(variant, bytes)| Some((mib(*bytes), cell_at(variant)?)))
            .collect()
    }

    /// For each workload requests a second and bytes moved, over the memory.
    ///
    /// # Errors
    /// Of drawing.
    pub fn plots(&self, cells: &[Cell]) -> anyhow::Result<String> {
        let mut text = String::new();
        for workload in workloads(cells) {
            let rate = self.plot(
                cells,
                workload,
                "Throughput",
                "k ops/s, logarithmic",
                &|c| c.ops_per_second / 1e3,
            )?;
            let unit = "B/op, logarithmic";
            let moved = self.plot(cells, workload, "Moved at the device", unit, &moved_bytes)?;
            text += &format!(
                "<h3>{}</h3><div class='pair'>{rate}{moved}</div>",
                workload.name()
            );
        }
        Ok(text)
    }

    fn plot(
        &self,
        cells: &[Cell],
        workload: Workload,
        title: &str,
        unit: &'static str,
        figure: &dyn Fn(&Cell) -> f64,
    ) -> anyhow::Result<String> {
        let stores = engines(cells)
            .into_iter()
            .filter(|engine| engine.is_store());
        let curves: Vec<_> = stores
            .map(|engine| {
                let along = self.along(cells, engine, workload).into_iter();
                let points = along.map(|(mib, cell)| (mib.log2(), figure(cell)));
                Series {
                    name: engine.name(),
                    points: points.collect(),
                }
            })
            .collect();
        let marks = self.0.iter();
        let marks: Vec<_> = marks
            .map(|(_, bytes)| (mib(*bytes).log2(), format!("{:.0}", mib(*bytes))))
            .collect();
        let frame = Frame {
            title: title.to_owned(),
            unit,
            across: "MiB of memory, logarithmic",
            is_log: true,
        };
        lines(&frame, &marks, &curves)
    }

    /// How many times better each store does than the one that is named last, at each memory, and where both are alike.
    pub fn markdown(&self, cells: &[Cell]) -> String {
        let stores: Vec<Kind> = engines(cells)
            .into_iter()
            .filter(|engine| engine.is_store())
            .collect();
        let mut names: Vec<String> = self
            .0
            .iter()
            .map(|(_, b)| format!("{:.0} MiB", mib(*b)))
            .collect();
        names.push("alike at".to_owned());
        let mut text = heading("times better", &names);
        for workload in workloads(cells) {
            for pair in pairs(&stores) {
                for figure in &FIGURES {
                    text += &self.row(cells, workload, pair, figure);
                }
            }
        }
        text
    }

    fn row(
        &self,
        cells: &[Cell],
        workload: Workload,
        (one, other): (Kind, Kind),
        figure: &Figure,
    ) -> String {
        let ratios: Vec<(f64, f64)> = {
            let (ours, theirs) = (
                self.along(cells, one, workload),
                self.along(cells, other, workload),
            );
            let beside = |at: f64| theirs.iter().find(|(mib, _)| *mib == at);
            ours.iter()
                .filter_map(|(mib, cell)| {
                    let (mine, other) = ((figure.of)(cell), (figure.of)(beside(*mib)?.1));
                    let (above, below) = match figure.is_cost {
                        true => (other, mine),
                        false => (mine, other),
                    };
                    // Of nothing there is no ratio.
                    (above > 0.0 && below > 0.0).then(|| (*mib, above / below))
                })
                .collect()
        };
        let at = |wanted: f64| ratios.iter().find(|(mib, _)| *mib == wanted);
        let told = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), short);
        let mut row = vec![format!(
            "{}, {}: {} over {}",
            workload.name(),
            figure.name,
            one.label(),
            other.label()
        )];
        row.extend(
            self.0
                .iter()
                .map(|(_, bytes)| told(at(mib(*bytes)).map(|at| at.1))),
        );
        row.push(match alike_at(&ratios) {
            Some(mib) => format!("{mib:.0} MiB"),
            None => NONE.to_owned(),
        });
        line(row)
    }
}

/// Each store beside each that comes after it, kreon last.
fn pairs(stores: &[Kind]) -> Vec<(Kind, Kind)> {
    let mut stores = stores.to_vec();
    stores.sort_by_key(|store| *store == Kind::Kreon);
    let mut pairs = Vec::new();
    for (at, one) in stores.iter().enumerate() {
        pairs.extend(stores[at + 1..].iter().map(|other| (*one, *other)));
    }
    pairs
}

/// The memory at which a ratio, over logarithms of both, passes 1 for the last time; `None` if it never does.
fn alike_at(ratios: &[(f64, f64)]) -> Option<f64> {
    ratios
        .array_windows()
        .rev()
        .find_map(|[(low, below), (high, above)]| {
            let (below, above) = (below.ln(), above.ln());
            let passes = (below < 0.0) != (above < 0.0);
            let share = below / (below - above);
            passes.then(|| (low.ln() + share * (high / low).ln()).exp())
        })
}

fn workloads(cells: &[Cell]) -> impl Iterator<Item = Workload> {
    let is_there = |workload: &Workload| cells.iter().any(|cell| cell.workload == *workload);
    Workload::ALL.into_iter().filter(is_there)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{of, results};
    use super::super::summary::cells;
    use super::*;
    use crate::run::settings::Point;

    /// Load A of Tucana and kreon at each memory, with so many thousand requests a second.
    fn swept(rates: &[(u64, f64, f64)]) -> (Settings, Vec<Cell>) {
        let mut records = Vec::new();
        let mut settings = results(Vec::new(), false).settings;
        let like = settings.points[0].clone();
        settings.points.clear();
        // The largest first: the order of a run need not be that of the curve.
        for (mib, ours, theirs) in rates.iter().rev() {
            let variant = format!("{mib} MiB");
            for (engine, rate) in [(Kind::Tucana, ours), (Kind::Kreon, theirs)] {
                let mut record = of(engine, Workload::LoadA, rate * 1e3);
                record.variant.clone_from(&variant);
                records.push(record);
            }
            let mut means = like.means;
            means.memory_bytes = mib << 20;
            settings.points.push(Point {
                variant,
                means,
                phases: Vec::new(),
            });
        }
        (settings, cells(&records))
    }

    #[test]
    fn stores_are_alike_where_their_curves_cross() {
        let (settings, cells) =
            swept(&[(64, 50.0, 200.0), (256, 400.0, 100.0), (512, 600.0, 100.0)]);
        let text = Memories::of(&settings).unwrap().markdown(&cells);
        // A quarter at 64 MiB, four times at 256: in the middle of the logarithms.
        let line = "| Load A, ops/s: tucana over kreon | 0.25 | 4.00 | 6.00 | 128 MiB |";
        assert!(text.contains(line), "{text}");
        // Both records have the same CPU time.
        let line = "| Load A, CPU: tucana over kreon | 1.00 | 1.00 | 1.00 | - |";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_curve_that_never_crosses_has_no_such_place() {
        assert_eq!(alike_at(&[(1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(alike_at(&[]), None);
        // Where it crosses more than once, the last place counts.
        let place = alike_at(&[(1.0, 2.0), (2.0, 0.5), (8.0, 2.0)]);
        assert!((place.unwrap() - 4.0).abs() < 1e-9, "{place:?}");
    }

    #[test]
    fn a_plot_has_a_curve_for_each_store_and_a_mark_for_each_memory() {
        let (settings, cells) =
            swept(&[(64, 50.0, 200.0), (256, 400.0, 100.0), (512, 600.0, 100.0)]);
        let drawn = Memories::of(&settings).unwrap().plots(&cells).unwrap();
        for text in [
            "tucana</span>",
            "kreon</span>",
            "\n64\n",
            "\n256\n",
            "\n512\n",
            "Load A",
        ] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
    }

    #[test]
    fn few_points_or_equal_ones_are_no_curve() {
        let (settings, _) = swept(&[(64, 1.0, 1.0), (256, 1.0, 1.0)]);
        assert!(Memories::of(&settings).is_none());
        let (settings, _) = swept(&[(64, 1.0, 1.0), (256, 1.0, 1.0), (256, 1.0, 1.0)]);
        assert!(Memories::of(&settings).is_none());
    }
}
