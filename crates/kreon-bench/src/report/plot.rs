//! Plots as SVG, drawn by hand: bars, and lines over a linear or logarithmic scale.

use std::fmt::Write;

/// A plot's frame.
pub struct Frame {
    /// Above the plot.
    pub title: String,
    /// Beside the vertical axis.
    pub unit: &'static str,
    /// Beneath the horizontal axis of lines.
    pub across: &'static str,
    /// The vertical axis is logarithmic.
    pub is_log: bool,
}

/// A line, or one store's bars.
pub struct Series {
    /// In the legend; the style sheet has a colour of that name.
    pub name: &'static str,
    /// Points; of bars, the index of the group and the height.
    pub points: Vec<(f64, f64)>,
}

/// Of bars, which take the whole width of the page.
const WIDTH: f64 = 960.0;
/// Of lines: two plots stand side by side, and their text must stay legible.
const LINES_WIDTH: f64 = 560.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;

/// Marks along an axis, about.
const MARKS: f64 = 5.0;

/// Bars, a group for each of `groups`.
pub fn bars(frame: &Frame, groups: &[String], series: &[Series]) -> String {
    let scale = Scale::of(frame.is_log, series);
    let mut svg = begin(frame, &scale, series, WIDTH);
    let group_width = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar_width = group_width * 0.8 / series.len().max(1) as f64;
    for (at, group) in groups.iter().enumerate() {
        let left = LEFT + group_width * (at as f64 + 0.1);
        for (place, one) in series.iter().enumerate() {
            let height = one.points.iter().find(|point| point.0 == at as f64);
            let Some((_, value)) = height else { continue };
            let (x, y) = (left + bar_width * place as f64, scale.y(*value));
            let _ = write!(
                svg,
                "<rect x='{x:.1}' y='{y:.1}' width='{:.1}' height='{:.1}' style='fill:var(--{name})'><title>{name} {}: {value:.4}</title></rect>",
                bar_width * 0.92,
                (HEIGHT - BOTTOM - y).max(0.0),
                escape(group),
                name = one.name,
            );
        }
        text(
            &mut svg,
            (left + group_width * 0.4, HEIGHT - BOTTOM + 16.0),
            "middle",
            group,
        );
    }
    svg + "</svg></figure>\n"
}

/// Lines over `marks` of the horizontal axis, or over its range if there are none.
pub fn lines(frame: &Frame, marks: &[(f64, String)], series: &[Series]) -> String {
    let scale = Scale::of(frame.is_log, series);
    let mut svg = begin(frame, &scale, series, LINES_WIDTH);
    let points = || series.iter().flat_map(|one| &one.points);
    let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points()
        .map(|point| point.0)
        .fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(1e-9);
    let x_of = |x: f64| LEFT + (x - low) / span * (LINES_WIDTH - LEFT - RIGHT);
    let even: Vec<_> = even_marks(low, high)
        .into_iter()
        .map(|x| (x, short(x)))
        .collect();
    for (x, name) in if marks.is_empty() { &even } else { marks } {
        text(&mut svg, (x_of(*x), HEIGHT - BOTTOM + 16.0), "middle", name);
    }
    text(
        &mut svg,
        ((LEFT + LINES_WIDTH) / 2.0, HEIGHT - 6.0),
        "middle",
        frame.across,
    );
    for one in series {
        if let [(x, y)] = one.points[..] {
            // A line needs two points.
            let _ = write!(
                svg,
                "<circle cx='{:.1}' cy='{:.1}' r='3.5' style='fill:var(--{name})'><title>{name}</title></circle>",
                x_of(x),
                scale.y(y),
                name = one.name,
            );
        }
        let path: Vec<_> = one
            .points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), scale.y(*y)))
            .collect();
        let _ = write!(
            svg,
            "<polyline points='{}' style='stroke:var(--{name})'><title>{name}</title></polyline>",
            path.join(" "),
            name = one.name,
        );
    }
    svg + "</svg></figure>\n"
}

/// The vertical axis.
struct Scale {
    is_log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(is_log: bool, series: &[Series]) -> Self {
        let values = || {
            series
                .iter()
                .flat_map(|one| &one.points)
                .map(|point| point.1)
        };
        let high = values().fold(0.0, f64::max).max(1e-9);
        let low = values().filter(|value| *value > 0.0).fold(high, f64::min);
        match is_log {
            true => Self {
                is_log,
                // The lowest bar must be seen, too.
                low: 10f64.powf((low / 1.5).log10().floor()),
                high: 10f64.powf(high.log10().ceil()).max(low * 10.0),
            },
            false => Self {
                is_log,
                low: 0.0,
                high: high * 1.05,
            },
        }
    }

    fn y(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value.max(self.low) / self.low).log10() / (self.high / self.low).log10(),
            false => value / self.high,
        };
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }

    fn marks(&self) -> Vec<f64> {
        if !self.is_log {
            return even_marks(0.0, self.high);
        }
        let decades = (self.high / self.low).log10().round() as i32;
        (0..=decades)
            .map(|decade| self.low * 10f64.powi(decade))
            .collect()
    }
}

fn begin(frame: &Frame, scale: &Scale, series: &[Series], width: f64) -> String {
    let legend = series.iter().map(|one| {
        format!(
            "<span><i style='background:var(--{name})'></i>{name}</span>",
            name = one.name
        )
    });
    let mut svg = format!(
        "<figure><figcaption><b>{title} <small>{}</small></b>{}</figcaption>\
         <svg viewBox='0 0 {width} {HEIGHT}' role='img' aria-label='{title}'>",
        escape(frame.unit),
        legend.collect::<String>(),
        title = escape(&frame.title),
    );
    for mark in scale.marks() {
        let y = scale.y(mark);
        let _ = write!(
            svg,
            "<line x1='{LEFT}' y1='{y:.1}' x2='{:.1}' y2='{y:.1}' class='grid'/>",
            width - RIGHT
        );
        text(&mut svg, (LEFT - 6.0, y + 4.0), "end", &short(mark));
    }
    svg
}

/// Round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten.
fn even_marks(low: f64, high: f64) -> Vec<f64> {
    let rough = ((high - low) / MARKS).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = match rough / power {
        share if share <= 1.0 => power,
        share if share <= 2.0 => 2.0 * power,
        share if share <= 5.0 => 5.0 * power,
        _ => 10.0 * power,
    };
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = write!(
        svg,
        "<text x='{x:.1}' y='{y:.1}' text-anchor='{anchor}'>{}</text>",
        escape(text)
    );
}

/// A number in few characters.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Text for the inside of an element or of an attribute in single quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(1500.0), "1.5k");
        assert_eq!(short(2e6), "2M");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(0.0), "0");
    }

    #[test]
    fn marks_are_round_numbers() {
        assert_eq!(even_marks(0.0, 1194.0), [0.0, 500.0, 1000.0]);
        assert_eq!(even_marks(0.0, 9.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(
            even_marks(0.0, 1.0),
            [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]
        );
        assert!(even_marks(0.0, 0.0).len() <= 2);
    }

    #[test]
    fn higher_values_stand_higher() {
        let series = [Series {
            name: "x",
            points: vec![(0.0, 1.0), (1.0, 100.0)],
        }];
        for is_log in [false, true] {
            let scale = Scale::of(is_log, &series);
            assert!(scale.y(100.0) < scale.y(1.0));
            assert!(scale.y(1.0) <= HEIGHT - BOTTOM && scale.y(100.0) >= TOP - 1.0);
        }
    }
}
