//! A profile as one page: no scripts, nothing to load, light and dark.

use super::Profile;
use super::facts::Facts;
use super::measure::{BackendProfile, Parity};
use super::phase::{Part, Place};
use super::svg::{self, Line, Piece, escape};
use super::table::{crossing_rows, find, milliseconds, part_names, verdict};
use std::time::Duration;

const STYLE: &str = include_str!("style.css");

/// Classes of the operations that have a colour of their own.
const OP_CLASSES: [&str; 7] = ["s1", "s2", "s3", "s4", "s5", "s6", "s7"];
/// The class of all other operations.
const OTHER_OPS: &str = "other";
/// The class of the host's parts.
const HOST: &str = "host";

/// The whole page.
pub fn page(profile: &Profile) -> String {
    let plan = &profile.plan;
    let title = format!("Profile of {}", profile.model);
    let backends = &profile.backends;
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         <p>{} layers; a prefill of {} tokens, {} decode steps to warm up, {} measured.</p>\n",
        profile.layers,
        plan.prompt.len(),
        plan.warm_up,
        plan.steps,
        title = escape(&title),
    );
    out += &steps(backends);
    for backend in backends {
        out += &section(backend);
    }
    out += &curves(backends);
    out += &maps(backends);
    out + "</main>\n</body>\n</html>\n"
}

/// The operations that take most of a step, over all backends: they keep their colour throughout.
fn coloured(backends: &[BackendProfile]) -> Vec<&'static str> {
    let mut shares: Vec<(&'static str, f64)> = Vec::new();
    for backend in backends {
        for part in backend.step.parts.iter().filter(|part| part.place == Place::Op) {
            let share = backend.step.share(part.time);
            match shares.iter_mut().find(|(name, _)| *name == part.name) {
                Some((_, sum)) => *sum += share,
                None => shares.push((part.name, share)),
            }
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares.into_iter().take(OP_CLASSES.len()).map(|(name, _)| name).collect()
}

/// A bar a backend: where a decode step's wall goes.
fn steps(backends: &[BackendProfile]) -> String {
    let coloured = coloured(backends);
    let mut out = "<section>\n<h2>A decode step</h2>\n<ul class=\"legend\">".to_owned();
    let ops = coloured.iter().zip(OP_CLASSES).map(|(name, class)| (*name, class));
    for (name, class) in ops.chain([("other operations", OTHER_OPS), ("host", HOST)]) {
        out += &format!("<li><span class=\"swatch {class}\"></span>{}</li>", escape(name));
    }
    out += "</ul>\n";
    for backend in backends {
        out += &format!(
            "<h3>{} <small>{} ms a step (median); shares of a traced step:</small></h3>\n",
            escape(&backend.label),
            milliseconds(backend.step_wall)
        );
        let label = format!("Shares of a decode step on {}", backend.label);
        out += &svg::stacked_bar(&label, &pieces(backend, &coloured));
        out += &format!("\n<p>{}.</p>\n", escape(&verdict(backend)));
    }
    out + "</section>\n"
}

/// Operations of a colour in the legend's order, so that bars can be compared; the others as one
/// piece, and the host's parts each.
fn pieces(backend: &BackendProfile, coloured: &[&'static str]) -> Vec<Piece> {
    let step = &backend.step;
    let piece = |name: &str, class, time: Duration| {
        let share = step.share(time);
        let title = format!("{name}: {} ms, {:.1}%", milliseconds(time), 100.0 * share);
        Piece { title, class, share }
    };
    let own = coloured.iter().zip(OP_CLASSES);
    let mut pieces: Vec<Piece> =
        own.filter_map(|(name, class)| Some(piece(name, class, find(step, name)?.time))).collect();
    let others = step.parts.iter().filter(|p| p.place == Place::Op && !coloured.contains(&p.name));
    pieces.push(piece("other operations", OTHER_OPS, others.map(|part| part.time).sum()));
    let host = step.parts.iter().filter(|part| part.place == Place::Host);
    pieces.extend(host.map(|part| piece(&format!("host: {}", part.name), HOST, part.time)));
    pieces
}

/// A backend's tables.
fn section(backend: &BackendProfile) -> String {
    let mut out = format!(
        "<section>\n<h2>{}</h2>\n<p>Load {} ms, prefill {} ms, decode step {} ms (median).</p>\n",
        escape(&backend.label),
        milliseconds(backend.load),
        milliseconds(backend.prefill_wall),
        milliseconds(backend.step_wall)
    );
    if let Some(facts) = &backend.facts {
        out += "<h3>Counted by the session</h3>\n";
        let rows = facts.rows().into_iter().map(|row| (row.name.to_owned(), row.cells.to_vec()));
        out += &table(&Facts::COLUMNS, rows);
    }
    out += "<h3>Crossings, as the backend is called</h3>\n";
    let rows = crossing_rows(backend).into_iter().map(|(kind, cells)| {
        let cell = |(count, bytes): (u64, u64)| [count.to_string(), bytes.to_string()];
        (kind.to_owned(), cells.into_iter().flat_map(cell).collect())
    });
    let columns = ["load", "bytes", "prefill", "bytes", "decode step", "bytes"];
    out += &table(&columns, rows);
    out += "<h3>Where the time goes <small>(traced)</small></h3>\n";
    let rows = part_names(backend).into_iter().map(|(name, place)| {
        let phases = [&backend.prefill, &backend.step];
        let cells = phases.into_iter().flat_map(|phase| match find(phase, name) {
            Some(Part { calls, time, .. }) => {
                let share = 100.0 * phase.share(*time);
                [calls.to_string(), milliseconds(*time), format!("{share:.1}%")]
            }
            None => ["–", "–", "–"].map(str::to_owned),
        });
        let name = if place == Place::Host { format!("host: {name}") } else { name.to_owned() };
        (name, cells.collect())
    });
    let columns = ["prefill: calls", "ms", "share", "decode step: calls", "ms", "share"];
    out += &table(&columns, rows);
    out + "</section>\n"
}

fn table(columns: &[&str], rows: impl Iterator<Item = (String, Vec<String>)>) -> String {
    let mut out = "<div class=\"wide\"><table>\n<tr><th></th>".to_owned();
    for column in columns {
        out += &format!("<th>{}</th>", escape(column));
    }
    out += "</tr>\n";
    for (name, cells) in rows {
        out += &format!("<tr><th>{}</th>", escape(&name));
        for cell in cells {
            out += &format!("<td>{}</td>", escape(&cell));
        }
        out += "</tr>\n";
    }
    out + "</table></div>\n"
}

/// Classes of the backends' lines, again from the first where there are more.
fn line_class(index: usize) -> &'static str {
    OP_CLASSES[index % OP_CLASSES.len()]
}

/// Every backend that was compared with a golden.
fn compared(backends: &[BackendProfile]) -> impl Iterator<Item = (usize, &str, &Parity)> {
    let all = backends.iter().enumerate();
    all.filter_map(|(index, backend)| Some((index, backend.label.as_str(), backend.parity.as_ref()?)))
}

/// The prompts that a golden has layers of.
fn prompts(parity: &Parity) -> impl Iterator<Item = usize> {
    parity.maps.iter().map(|map| map.prompt)
}

/// A chart a prompt: the distance from the golden's runs, layer by layer.
fn curves(backends: &[BackendProfile]) -> String {
    let Some((_, _, first)) = compared(backends).next() else { return String::new() };
    let mut out = "<section>\n<h2>Layer by layer</h2>\n\
         <p>Relative L2 of the residual stream over all tokens of a prompt: to the golden's bf16 run \
         (solid) and to its f32 run (dashed). Grey: the golden's own bf16 run to its f32 run.</p>\n\
         <ul class=\"legend\">"
        .to_owned();
    for (index, label, _) in compared(backends) {
        out += &format!("<li><span class=\"swatch {}\"></span>{}</li>", line_class(index), escape(label));
    }
    out += "<li><span class=\"swatch host\"></span>the golden itself</li></ul>\n<div class=\"charts\">\n";
    for prompt in prompts(first) {
        let of_prompt = |parity: &Parity| {
            let start = parity.layers.iter().position(|figures| figures.prompt == prompt).unwrap_or(0);
            let count = parity.layers.iter().filter(|figures| figures.prompt == prompt).count();
            start..start + count
        };
        let places: Vec<&str> =
            first.layers[of_prompt(first)].iter().map(|figures| figures.place.as_str()).collect();
        let own = first.reference.get(of_prompt(first)).unwrap_or_default().to_vec();
        let mut lines = vec![Line { name: "the golden itself".into(), class: "host".into(), values: own }];
        for (index, label, parity) in compared(backends) {
            let figures = &parity.layers[of_prompt(parity)];
            let class = line_class(index);
            lines.push(Line {
                name: format!("{label}, to f32"),
                class: format!("{class} dashed"),
                values: figures.iter().map(|figures| figures.to_f32.relative_l2).collect(),
            });
            lines.push(Line {
                name: format!("{label}, to bf16"),
                class: class.into(),
                values: figures.iter().map(|figures| figures.to_bf16.relative_l2).collect(),
            });
        }
        let title = format!("Prompt {prompt}");
        out += &format!("<figure><figcaption>{title}</figcaption>");
        out += &svg::line_chart(&title, &places, &lines);
        out += "</figure>\n";
    }
    out + "</div>\n</section>\n"
}

/// A map a prompt and backend: the distance from the golden's bf16 run by layer and token.
fn maps(backends: &[BackendProfile]) -> String {
    let Some((_, _, first)) = compared(backends).next() else { return String::new() };
    let places: Vec<&str> = first.layers.iter().map(|figures| figures.place.as_str()).collect();
    let values = compared(backends).flat_map(|(_, _, parity)| &parity.maps);
    let values = values.flat_map(|map| &map.places).flatten().copied().filter(|value| value.is_finite());
    let highest = values.fold(0.0, f64::max);
    let mut out = format!(
        "<section>\n<h2>Layer by layer and token by token</h2>\n\
         <p>Relative L2 to the golden's bf16 run at each token. \
         <span class=\"scale\"></span> 0 to {highest:.1e}, the same in all maps.</p>\n"
    );
    for prompt in prompts(first) {
        for (_, label, parity) in compared(backends) {
            let Some(map) = parity.maps.iter().find(|map| map.prompt == prompt) else { continue };
            let rows: Vec<(&str, &[f64])> =
                places.iter().copied().zip(map.places.iter().map(Vec::as_slice)).collect();
            let title = format!("Prompt {prompt}, {label}");
            out += &format!("<figure><figcaption>{}</figcaption>", escape(&title));
            out += &svg::heat_map(&title, &rows, highest);
            out += "</figure>\n";
        }
    }
    out + "</section>\n"
}
