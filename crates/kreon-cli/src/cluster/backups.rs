//! How far backups and joiners are, for people and programs.

use indicatif::HumanBytes;
use kreon_wire::Backup;
use serde_json::{Value, json};

/// How far a backup is, or a copy that is on its way: one line without its server.
pub fn told(backup: &Backup) -> String {
    if backup.has_ended {
        return "its stream has ended".to_owned();
    }
    let lags = format!(
        "{} behind, {} not durable",
        HumanBytes(backup.lag_bytes),
        HumanBytes(backup.durable_lag_bytes)
    );
    match backup.is_counted {
        true => lags,
        false => format!("joins: {} copied, {lags}", progress(backup)),
    }
}

/// How much of its copy a joiner has.
fn progress(backup: &Backup) -> String {
    let (done, all) = (backup.copied_bytes, backup.to_copy_bytes);
    // What is written meanwhile is copied, too: it is never more than all of it for long.
    let percent = done.saturating_mul(100).checked_div(all).unwrap_or(100);
    format!(
        "{} of {} ({}%)",
        HumanBytes(done),
        HumanBytes(all),
        percent.min(100)
    )
}

pub fn as_json(backup: &Backup) -> Value {
    json!({
        "server": backup.member.server.0,
        "is_counted": backup.is_counted,
        "has_ended": backup.has_ended,
        "lag_bytes": backup.lag_bytes,
        "durable_lag_bytes": backup.durable_lag_bytes,
        "copied_bytes": backup.copied_bytes,
        "to_copy_bytes": backup.to_copy_bytes,
    })
}

#[cfg(test)]
mod tests {
    use kreon_wire::{Member, ProcessId, ServerId};

    use super::*;

    #[test]
    fn a_joiner_tells_how_much_of_its_copy_it_has() {
        let backup = Backup {
            member: Member {
                server: ServerId(2),
                process: ProcessId([0; 16]),
            },
            is_counted: true,
            has_ended: false,
            lag_bytes: 2048,
            durable_lag_bytes: 0,
            copied_bytes: 1 << 20,
            to_copy_bytes: 4 << 20,
        };
        assert_eq!(told(&backup), "2.00 KiB behind, 0 B not durable");
        let joins = Backup {
            is_counted: false,
            ..backup
        };
        let copied = "joins: 1.00 MiB of 4.00 MiB (25%) copied, ";
        assert!(told(&joins).starts_with(copied), "{}", told(&joins));
        let nothing = Backup {
            to_copy_bytes: 0,
            ..joins
        };
        assert!(told(&nothing).contains("(100%)"));
    }
}
