//! A profile for the terminal.

use super::Profile;
use super::measure::BackendProfile;
use super::phase::{Crossing, Part, Phase, Place};
use std::time::Duration;

/// Every table of every backend.
pub fn tables(profile: &Profile) -> String {
    let plan = &profile.plan;
    let mut out = format!(
        "{}: a prefill of {} tokens, {} decode steps to warm up, {} measured\n",
        profile.model,
        plan.prompt.len(),
        plan.warm_up,
        plan.steps
    );
    for backend in &profile.backends {
        out += &format!(
            "\n== {}: load {} ms, prefill {} ms, decode step {} ms (median)\n\n",
            backend.label,
            milliseconds(backend.load),
            milliseconds(backend.prefill_wall),
            milliseconds(backend.step_wall)
        );
        out += &parts(backend);
        out += &crossings(backend);
        out += &facts(backend);
        out += &format!("\n{}\n", verdict(backend));
    }
    out
}

/// What a backend's host does beside the operations, in a sentence.
pub(super) fn verdict(backend: &BackendProfile) -> String {
    match backend.host_share {
        Some(share) => format!(
            "host work outside the device's op time: {:.1}% of a decode step's wall (median, untraced)",
            100.0 * share
        ),
        None => format!(
            "host work outside the ops: {:.1}% of a decode step's wall (mean, traced)",
            100.0 * backend.step.share(host_time(&backend.step))
        ),
    }
}

/// The host's parts together.
pub(super) fn host_time(phase: &Phase) -> Duration {
    phase.parts.iter().filter(|part| part.place == Place::Host).map(|part| part.time).sum()
}

/// The names of all parts of both phases: those of the decode step in their order, then the others.
pub(super) fn part_names(backend: &BackendProfile) -> Vec<(&'static str, Place)> {
    let mut names: Vec<(&'static str, Place)> = Vec::new();
    for part in backend.step.parts.iter().chain(&backend.prefill.parts) {
        if !names.iter().any(|(name, _)| *name == part.name) {
            names.push((part.name, part.place));
        }
    }
    // Stable: the operations stay in their order, before the host.
    names.sort_by_key(|(_, place)| *place == Place::Host);
    names
}

pub(super) fn find<'p>(phase: &'p Phase, name: &str) -> Option<&'p Part> {
    phase.parts.iter().find(|part| part.name == name)
}

fn parts(backend: &BackendProfile) -> String {
    let phases = [&backend.prefill, &backend.step];
    let mut out =
        format!("{:<26}{:^30}{:^30}\n{:<26}", "", "prefill (traced)", "decode step (traced)", "part");
    for _ in phases {
        out += &format!("{:>8}{:>12}{:>9} ", "calls", "ms", "share");
    }
    out += "\n";
    for (name, place) in part_names(backend) {
        let name_in_table = if place == Place::Host { format!("host: {name}") } else { name.to_owned() };
        out += &format!("{name_in_table:<26}");
        for phase in phases {
            out += &match find(phase, name) {
                Some(Part { calls, time, .. }) => {
                    let share = 100.0 * phase.share(*time);
                    format!("{calls:>8}{:>12}{share:>8.1}% ", milliseconds(*time))
                }
                None => format!("{:>8}{:>12}{:>9} ", "-", "-", "-"),
            };
        }
        out += "\n";
    }
    out += &format!("{:<26}", "calls of the backend, wall");
    for phase in phases {
        out += &format!("{:>8}{:>12}{:>8.1}% ", phase.calls, milliseconds(phase.wall), 100.0);
    }
    out + "\n"
}

/// The kinds of crossings in any phase, each with its count and bytes in load, prefill and step.
pub(super) fn crossing_rows(backend: &BackendProfile) -> Vec<(&'static str, [(u64, u64); 3])> {
    let phases = [&backend.load_crossings, &backend.prefill.crossings, &backend.step.crossings];
    let mut rows: Vec<(&'static str, [(u64, u64); 3])> = Vec::new();
    for (column, crossings) in phases.into_iter().enumerate() {
        for &Crossing { kind, count, written, read } in crossings {
            let at = rows.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
                rows.push((kind, [(0, 0); 3]));
                rows.len() - 1
            });
            rows[at].1[column] = (count, written + read);
        }
    }
    rows
}

fn crossings(backend: &BackendProfile) -> String {
    let mut out = format!(
        "\n{:<26}{:^22}{:^22}{:^22}\n{:<26}",
        "", "load", "prefill", "decode step", "crossings, as called"
    );
    for _ in 0..3 {
        out += &format!("{:>8}{:>12}  ", "count", "bytes");
    }
    out += "\n";
    for (kind, cells) in crossing_rows(backend) {
        out += &format!("{kind:<26}");
        for (count, bytes) in cells {
            out += &format!("{count:>8}{bytes:>12}  ");
        }
        out += "\n";
    }
    out
}

fn facts(backend: &BackendProfile) -> String {
    let Some(facts) = &backend.facts else { return String::new() };
    let mut out = format!("\n{:<26}", "counted by the session");
    for column in super::facts::Facts::COLUMNS {
        out += &format!("{column:>19}");
    }
    out += "\n";
    for row in facts.rows() {
        out += &format!("{:<26}", row.name);
        for cell in row.cells {
            out += &format!("{cell:>19}");
        }
        out += "\n";
    }
    out
}

/// A duration in milliseconds.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}
