//! Metrics in the text format of Prometheus, version 0.0.4: names end in their unit, those of counters in `_total`.

use std::fmt;
use std::fmt::Write as _;

/// The value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Written with all its digits.
    Whole(u64),
    /// Written with as many digits as tell it from others.
    Real(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) if number.is_nan() => f.write_str("NaN"),
            Self::Real(number) if number.is_infinite() => match number.is_sign_positive() {
                true => f.write_str("+Inf"),
                false => f.write_str("-Inf"),
            },
            Self::Real(number) => number.fmt(f),
        }
    }
}

/// Labels as they stand behind a name, with their values escaped; nothing for no labels.
pub fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        let value = value.replace('\\', "\\\\");
        let value = value.replace('"', "\\\"").replace('\n', "\\n");
        let before = if text.is_empty() { "{" } else { "," };
        _ = write!(text, "{before}{name}=\"{value}\"");
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

/// Appends a metric with its samples, each with its [`labels`].
/// One without samples has its help and its type all the same.
pub fn push_metric(
    text: &mut String,
    (name, help): (&str, &str),
    samples: impl IntoIterator<Item = (String, Number)>,
) {
    let kind = match name.ends_with("_total") {
        true => "counter",
        false => "gauge",
    };
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, number) in samples {
        _ = writeln!(text, "{name}{labels} {number}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        assert_eq!(labels(&[]), "");
        let text = labels(&[("a", "x"), ("b", "\\ \" \n")]);
        assert_eq!(text, r#"{a="x",b="\\ \" \n"}"#);
    }

    #[test]
    fn a_metric_has_help_and_type_even_without_samples() {
        let mut text = String::new();
        push_metric(&mut text, ("empty", "None."), []);
        let samples = [
            (String::new(), Number::Real(0.5)),
            (labels(&[("of", "x")]), Number::Whole(u64::MAX)),
            (String::new(), Number::Real(f64::INFINITY)),
        ];
        push_metric(&mut text, ("a_total", "Two\nlines."), samples);
        let expected = "# HELP empty None.\n# TYPE empty gauge\n# HELP a_total Two\\nlines.\n# TYPE a_total counter\na_total 0.5\n\
            a_total{of=\"x\"} 18446744073709551615\na_total +Inf\n";
        assert_eq!(text, expected);
    }
}
