//! Metrics in the text format of Prometheus.

use std::fmt::Write as _;

use kreon_base::metrics::{Number, labels, push_metric};

use super::recorder::Totals;

/// What the server itself has to tell, beside the commands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerFigures {
    pub clients: u64,
    pub accepted: u64,
    pub refused: u64,
    pub buffers_bytes: u64,
    pub subscribed_channels: u64,
    pub resident_bytes: u64,
    pub cpu_s: f64,
}

/// A metric: its name behind the prefix, what it is, its value.
type Metric<T> = (&'static str, &'static str, fn(&T) -> Number);

const OF_SERVER: &[Metric<ServerFigures>] = &[
    ("clients", "Connections.", |it| it.clients.into()),
    ("accepted_total", "Connections that were let in.", |it| {
        it.accepted.into()
    }),
    (
        "refused_total",
        "Connections that were refused, as there were too many.",
        |it| it.refused.into(),
    ),
    (
        "buffer_bytes",
        "What connections hold together, of those with 64 KiB and more: buffers, messages that wait, what commands gather.",
        |it| it.buffers_bytes.into(),
    ),
    ("channels", "Channels with subscribers.", |it| {
        it.subscribed_channels.into()
    }),
    ("resident_bytes", "Memory of the process.", |it| {
        it.resident_bytes.into()
    }),
    (
        "cpu_seconds_total",
        "Time of processors that the process took.",
        |it| it.cpu_s.into(),
    ),
];

const OF_REQUESTS: &[Metric<Totals>] = &[
    ("requests_total", "Requests.", |it| it.requests.into()),
    ("received_bytes_total", "Bytes of requests.", |it| {
        it.received_bytes.into()
    }),
    ("sent_bytes_total", "Bytes of replies.", |it| {
        it.sent_bytes.into()
    }),
    (
        "violations_total",
        "Connections that sent what is no request.",
        |it| it.violations.into(),
    ),
];

/// Borders of the buckets of times, in nanoseconds, and as they are written.
const BORDERS: &[(u64, &str)] = &[
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1"),
];

/// The text, without the figures of the store.
pub(crate) fn text(server: &ServerFigures, totals: &Totals) -> String {
    let mut text = String::with_capacity(16 << 10);
    for (name, help, value) in OF_SERVER {
        let sample = [(String::new(), value(server))];
        push_metric(&mut text, (&format!("kreon_server_{name}"), help), sample);
    }
    for (name, help, value) in OF_REQUESTS {
        let sample = [(String::new(), value(totals))];
        push_metric(&mut text, (&format!("kreon_server_{name}"), help), sample);
    }
    let errors = totals.errors.iter();
    let errors = errors.map(|(code, count)| (labels(&[("code", code)]), (*count).into()));
    let help = ("kreon_server_errors_total", "Error replies.");
    push_metric(&mut text, help, errors);
    push_histograms(&mut text, totals);
    text
}

fn push_histograms(text: &mut String, totals: &Totals) {
    const NAME: &str = "kreon_server_command_seconds";
    let _ = writeln!(
        text,
        "# HELP {NAME} Times of commands, from the previous reply of the connection's turn on."
    );
    let _ = writeln!(text, "# TYPE {NAME} histogram");
    for (command, figures) in &totals.commands {
        let name = command.name;
        for (border_ns, border) in BORDERS {
            let count = figures.times_ns.count_between(0, *border_ns);
            let _ = writeln!(
                text,
                "{NAME}_bucket{{command=\"{name}\",le=\"{border}\"}} {count}"
            );
        }
        let count = figures.times_ns.len();
        let _ = writeln!(
            text,
            "{NAME}_bucket{{command=\"{name}\",le=\"+Inf\"}} {count}"
        );
        let _ = writeln!(
            text,
            "{NAME}_sum{{command=\"{name}\"}} {}",
            figures.total.as_secs_f64()
        );
        let _ = writeln!(text, "{NAME}_count{{command=\"{name}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::command::find;
    use crate::metrics::{Answered, Outcome, Recorders};

    #[test]
    fn buckets_of_a_command_count_all_that_took_at_most_as_long() {
        let recorders = Recorders::new(1);
        for us in [4, 40, 2_000_000] {
            let answered = Answered {
                command: find(b"get").unwrap(),
                took: Duration::from_micros(us),
                outcome: Outcome::Done,
            };
            recorders.of(0).turn(&[answered], 10, 20);
        }
        recorders.of(0).error("WRONGTYPE x");
        let text = text(&ServerFigures::default(), &recorders.totals());
        for line in [
            "kreon_server_command_seconds_bucket{command=\"get\",le=\"0.000005\"} 1",
            "kreon_server_command_seconds_bucket{command=\"get\",le=\"0.00005\"} 2",
            "kreon_server_command_seconds_bucket{command=\"get\",le=\"1\"} 2",
            "kreon_server_command_seconds_bucket{command=\"get\",le=\"+Inf\"} 3",
            "kreon_server_command_seconds_sum{command=\"get\"} 2.000044",
            "kreon_server_received_bytes_total 30",
            "kreon_server_errors_total{code=\"WRONGTYPE\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
