//! The colour of each line and bar: of middle brightness, because a plot has the same colours on a light and on a dark
//! page.

use plotters::style::RGBColor;

/// Of lines of the grid and of the axes.
pub const GRID: RGBColor = RGBColor(0x80, 0x88, 0x90);

/// Of the store or curve `name`.
pub fn of(name: &str) -> RGBColor {
    let colour = NAMED.iter().find(|(known, _)| *known == name);
    colour.map_or(GRID, |(_, colour)| *colour)
}

/// As a style sheet has it.
pub fn css(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

const NAMED: [(&str, RGBColor); 16] = [
    ("kreon", RGBColor(0x12, 0x98, 0x6c)),
    ("kvell", RGBColor(0x08, 0x94, 0xa4)),
    ("tucana", RGBColor(0xa0, 0x88, 0x10)),
    ("rocksdb", RGBColor(0xdc, 0x48, 0x60)),
    ("blobdb", RGBColor(0xc0, 0x80, 0x10)),
    ("lmdb", RGBColor(0x38, 0x88, 0xd0)),
    ("fjall", RGBColor(0x92, 0x70, 0xd4)),
    ("redb", RGBColor(0xa8, 0x70, 0x40)),
    ("bftree", RGBColor(0xc8, 0x52, 0xb4)),
    ("wiredtiger", RGBColor(0x58, 0x90, 0x20)),
    ("busy", RGBColor(0x6c, 0x74, 0x7c)),
    ("device", RGBColor(0x4c, 0x80, 0x98)),
    ("unwritten", RGBColor(0x94, 0x82, 0x58)),
    ("analytic", RGBColor(0x38, 0x88, 0xd0)),
    ("simulated", RGBColor(0xc0, 0x80, 0x10)),
    ("target", RGBColor(0xdc, 0x48, 0x60)),
];

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::engine::Kind;

    /// Of WCAG 2.
    fn luminance(RGBColor(red, green, blue): RGBColor) -> f64 {
        let linear = |part: u8| match f64::from(part) / 255.0 {
            part if part <= 0.040_45 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    }

    fn contrast(one: RGBColor, other: RGBColor) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn every_colour_is_seen_on_a_light_and_on_a_dark_page() {
        // The plates under the plots, of the style sheet.
        let (light, dark) = (RGBColor(0xf7, 0xf8, 0xfa), RGBColor(0x1a, 0x1e, 0x23));
        for (name, colour) in NAMED.into_iter().chain([("grid", GRID)]) {
            for plate in [light, dark] {
                let contrast = contrast(colour, plate);
                assert!(contrast >= 3.0, "{name}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn every_store_has_a_colour_of_its_own() {
        let mut colours: Vec<_> = Kind::value_variants()
            .iter()
            .map(|engine| css(of(engine.name())))
            .collect();
        let stores = colours.len();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), stores);
    }
}
