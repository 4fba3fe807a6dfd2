//! Plots as SVG: bars, and lines over a linear or logarithmic scale.

use std::ops::Range;

use anyhow::Context;
use plotters::chart::ChartContext;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::colours;

/// A plot's frame.
pub struct Frame {
    /// Above the plot.
    pub title: String,
    /// Beside the title.
    pub unit: &'static str,
    /// Beneath the horizontal axis of lines.
    pub across: &'static str,
    /// The vertical axis is logarithmic.
    pub is_log: bool,
}

/// A line, or one store's bars.
pub struct Series {
    /// In the legend; [`colours`] knows it.
    pub name: &'static str,
    /// Points; of bars, the index of the group and the height.
    pub points: Vec<(f64, f64)>,
}

/// Of bars, which take the whole width of the page.
const WIDTH: u32 = 960;
/// Of lines: two plots stand side by side, and their text must stay legible.
const LINES_WIDTH: u32 = 560;
const HEIGHT: u32 = 260;

/// Marks along an axis, at most.
const MARKS_MAX: usize = 8;

/// A share of a group's width that its bars take.
const BARS_SHARE: f64 = 0.8;

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

/// Bars, a group for each of `groups`.
///
/// # Errors
/// Of drawing.
pub fn bars(frame: &Frame, groups: &[String], series: &[Series]) -> anyhow::Result<String> {
    let scale = Scale::of(frame.is_log, series);
    let bar_width = BARS_SHARE / series.len().max(1) as f64;
    // A group takes 1 of the horizontal axis, and its name stands in the middle.
    let marks = groups.iter().enumerate();
    let across = Axis {
        range: (0.0, groups.len().max(1) as f64),
        marks: marks
            .map(|(at, group)| (at as f64 + 0.5, group.clone()))
            .collect(),
    };
    figure(frame, series, WIDTH, across, &scale, |chart| {
        for (place, one) in series.iter().enumerate() {
            let colour = colours::of(one.name).filled();
            let bars = one.points.iter().map(|(at, value)| {
                let left = at + (1.0 - BARS_SHARE) / 2.0 + bar_width * place as f64;
                let corners = [
                    (left, scale.low),
                    (left + bar_width * 0.92, scale.place(*value)),
                ];
                Rectangle::new(corners, colour)
            });
            chart.draw_series(bars).context("draw bars")?;
        }
        Ok(())
    })
}

/// Lines over `marks` of the horizontal axis, or over its range if there are none.
///
/// # Errors
/// Of drawing.
pub fn lines(frame: &Frame, marks: &[(f64, String)], series: &[Series]) -> anyhow::Result<String> {
    let scale = Scale::of(frame.is_log, series);
    let points = || series.iter().flat_map(|one| &one.points);
    let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.0).fold(low, f64::max);
    let range = match low.is_finite() {
        true if high > low => (low, high),
        true => (low, low + 1.0),
        false => (0.0, 1.0),
    };
    let across = Axis {
        range,
        marks: match marks {
            [] => even_marks(range),
            marks => marks.to_vec(),
        },
    };
    figure(frame, series, LINES_WIDTH, across, &scale, |chart| {
        for one in series {
            let colour = colours::of(one.name);
            let points = one.points.iter().map(|(x, y)| (*x, scale.place(*y)));
            match one.points[..] {
                // A line needs two points.
                [_] => chart
                    .draw_series(points.map(|point| Circle::new(point, 4, colour.filled())))
                    .context("draw a point")?,
                _ => chart
                    .draw_series(LineSeries::new(points, colour.stroke_width(2)))
                    .context("draw a line")?,
            };
        }
        Ok(())
    })
}

/// An axis: its two ends, and what stands where along it.
#[derive(Clone)]
struct Axis {
    range: (f64, f64),
    marks: Vec<(f64, String)>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        RangedCoordf64::from(self.range()).map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|mark| mark.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.0..self.range.1
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, at: &f64) -> String {
        let mark = self.marks.iter().find(|mark| mark.0 == *at);
        mark.map_or_else(String::new, |mark| mark.1.clone())
    }
}

/// The vertical axis, in values or in their decimal logarithms.
struct Scale {
    is_log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(is_log: bool, series: &[Series]) -> Self {
        let points = || series.iter().flat_map(|one| &one.points);
        let values = || points().map(|point| point.1);
        let high = values().fold(0.0, f64::max).max(1e-9);
        let least = values().filter(|value| *value > 0.0).fold(high, f64::min);
        if !is_log {
            return Self {
                is_log,
                low: 0.0,
                high: high * 1.05,
            };
        }
        // The lowest bar must be seen, too.
        let low = (least / 1.5).log10().floor();
        Self {
            is_log,
            low,
            high: high.log10().ceil().max(low + 1.0),
        }
    }

    /// Where `value` stands on the axis.
    fn place(&self, value: f64) -> f64 {
        match self.is_log {
            true => value.log10().max(self.low),
            false => value,
        }
    }

    fn axis(&self) -> Axis {
        let range = (self.low, self.high);
        let decades = self.low as i32..=self.high as i32;
        let mark = |decade| (f64::from(decade), short(10f64.powi(decade)));
        Axis {
            range,
            marks: match self.is_log {
                true => decades.map(mark).collect(),
                false => even_marks(range),
            },
        }
    }
}

/// The plot with its title and legend around it, which follow the style sheet.
fn figure(
    frame: &Frame,
    series: &[Series],
    width: u32,
    across: Axis,
    scale: &Scale,
    draw: impl FnOnce(&mut Chart<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, HEIGHT)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin_top(12)
            .margin_right(20)
            .x_label_area_size(if frame.across.is_empty() { 24 } else { 44 })
            .y_label_area_size(50)
            .build_cartesian_2d(across, scale.axis())
            .context("lay the plot out")?;
        mesh(&mut chart, frame)?;
        draw(&mut chart)?;
        area.present().context("end the plot")?;
    }
    let legend = series.iter().map(|one| {
        let colour = colours::css(colours::of(one.name));
        format!(
            "<span><i style='background:{colour}'></i>{}</span>",
            one.name
        )
    });
    Ok(format!(
        "<figure><figcaption><b>{} <small>{}</small></b>{}</figcaption>{svg}</figure>\n",
        escape(&frame.title),
        escape(frame.unit),
        legend.collect::<String>(),
    ))
}

fn mesh(chart: &mut Chart<'_>, frame: &Frame) -> anyhow::Result<()> {
    // The library takes a size for that of a line with what is above and below it: letters come to 12 pixels.
    const TEXT_PIXELS: u32 = 18;
    let grid = colours::GRID;
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(grid.mix(0.3))
        .light_line_style(TRANSPARENT)
        .bold_line_style(grid.mix(0.3))
        .label_style(("sans-serif", TEXT_PIXELS).into_font().color(&grid))
        .x_desc(frame.across);
    if frame.across.is_empty() {
        // Bars stand over their names: a line would go through them.
        mesh.disable_x_mesh();
    }
    mesh.draw().context("draw the axes")
}

/// Round numbers in a range.
fn even_marks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let marks = RangedCoordf64::from(low..high).key_points(MARKS_MAX);
    marks.into_iter().map(|at| (at, short(at))).collect()
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

    fn frame(is_log: bool) -> Frame {
        Frame {
            title: "a < b".to_owned(),
            unit: "us",
            across: "seconds",
            is_log,
        }
    }

    fn series(points: &[(f64, f64)]) -> Series {
        Series {
            name: "kreon",
            points: points.to_vec(),
        }
    }

    /// The attribute `name` of each bar.
    fn of_bars(svg: &str, name: &str) -> Vec<i32> {
        let bars = svg.split("<rect ").skip(1);
        let value = |bar: &str| {
            let rest = bar.split_once(&format!("{name}=\"")).unwrap().1;
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        bars.map(value).collect()
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(1500.0), "1.5k");
        assert_eq!(short(2e6), "2M");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(0.0), "0");
    }

    #[test]
    fn higher_values_have_higher_bars_and_stand_on_one_line() {
        let groups = ["A", "B"].map(str::to_owned);
        for is_log in [false, true] {
            let svg = bars(
                &frame(is_log),
                &groups,
                &[series(&[(0.0, 1.0), (1.0, 100.0)])],
            );
            let svg = svg.unwrap();
            let (tops, heights) = (of_bars(&svg, "y"), of_bars(&svg, "height"));
            assert_eq!(tops.len(), 2, "{svg}");
            assert!(tops[1] < tops[0] && heights[1] > heights[0], "{svg}");
            assert!((tops[0] + heights[0]).abs_diff(tops[1] + heights[1]) <= 1);
        }
    }

    #[test]
    fn the_lowest_bar_of_a_logarithmic_plot_is_seen() {
        let groups = ["A", "B"].map(str::to_owned);
        let svg = bars(
            &frame(true),
            &groups,
            &[series(&[(0.0, 1.0), (1.0, 1000.0)])],
        )
        .unwrap();
        assert!(of_bars(&svg, "height").iter().all(|height| *height > 5));
    }

    #[test]
    fn nothing_a_zero_and_one_point_can_be_drawn() {
        for points in [
            &[][..],
            &[(0.0, 0.0)],
            &[(1.0, 3.0)],
            &[(1.0, 0.0), (1.0, 2.0)],
        ] {
            for is_log in [false, true] {
                let drawn = lines(&frame(is_log), &[], &[series(points)]).unwrap();
                assert!(
                    drawn.contains("</svg>") && !drawn.contains("NaN"),
                    "{drawn}"
                );
                bars(&frame(is_log), &[], &[series(&[])]).unwrap();
            }
        }
    }

    #[test]
    fn marks_titles_and_the_legend_have_their_names() {
        let marks = [(0.0, "none".to_owned()), (1.0, "all".to_owned())];
        let drawn = lines(&frame(false), &marks, &[series(&[(0.0, 1.0), (1.0, 2.0)])]).unwrap();
        for text in [
            "\nnone\n",
            "\nall\n",
            "\nseconds\n",
            "a &lt; b",
            "kreon</span>",
        ] {
            assert!(drawn.contains(text), "{text}: {drawn}");
        }
    }
}
