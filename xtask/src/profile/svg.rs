//! The pictures of the page: plain SVG, coloured by the page's style sheet.

use std::fmt::Display;

/// Text as it may stand in an element or in a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

/// A piece of a stacked bar.
pub(super) struct Piece {
    /// What it is, with its figures; shown where the pointer rests.
    pub(super) title: String,
    /// The class that colours it.
    pub(super) class: &'static str,
    /// Its share of the bar.
    pub(super) share: f64,
}

/// A bar of the page's width, divided into shares.
pub(super) fn stacked_bar(label: &str, pieces: &[Piece]) -> String {
    const WIDTH: f64 = 960.0;
    let mut out = open(label, WIDTH, 36.0);
    let mut x = 0.0;
    for Piece { title, class, share } in pieces {
        let width = share * WIDTH;
        // A gap of the page's ground between pieces that are wide enough for one.
        let drawn = if width > 3.0 { width - 1.5 } else { width };
        out += &format!(
            r#"<rect class="{class}" x="{x:.2}" y="0" width="{drawn:.2}" height="36"><title>{}</title></rect>"#,
            escape(title)
        );
        let percent = format!("{:.0}%", 100.0 * share);
        if width > 36.0 {
            out += &format!(
                r#"<text class="on" x="{:.2}" y="23" text-anchor="middle">{percent}</text>"#,
                x + drawn / 2.0
            );
        }
        x += width;
    }
    out + "</svg>"
}

/// A line of a chart.
pub(super) struct Line {
    /// What it shows.
    pub(super) name: String,
    /// The classes that colour and dash it.
    pub(super) class: String,
    /// A value for each mark of the x axis.
    pub(super) values: Vec<f64>,
}

/// Lines over places, from zero up.
pub(super) fn line_chart(label: &str, places: &[&str], lines: &[Line]) -> String {
    const WIDTH: f64 = 470.0;
    const HEIGHT: f64 = 300.0;
    let (left, right, top, bottom) = (58.0, 10.0, 12.0, 92.0);
    let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
    let highest = lines.iter().flat_map(|line| &line.values).copied().filter(|v| v.is_finite());
    let scale = Scale::up_to(highest.fold(0.0, f64::max));
    let x = |index: usize| left + width * index as f64 / places.len().saturating_sub(1).max(1) as f64;
    let y = |value: f64| top + height * (1.0 - value / scale.end);

    let mut out = open(label, WIDTH, HEIGHT);
    for mark in scale.marks() {
        let y = y(mark);
        out +=
            &format!(r#"<line class="grid" x1="{left}" x2="{:.1}" y1="{y:.1}" y2="{y:.1}"/>"#, left + width);
        out += &text(left - 6.0, y + 4.0, "end", scale.label(mark));
    }
    for (index, place) in places.iter().enumerate() {
        let (x, y) = (x(index) + 4.0, top + height + 14.0);
        out += &format!(
            r#"<text class="axis" x="{x:.1}" y="{y:.1}" text-anchor="end" transform="rotate(-40 {x:.1} {y:.1})">{}</text>"#,
            escape(place)
        );
    }
    for Line { name, class, values } in lines {
        let finite = || values.iter().enumerate().filter(|(_, value)| value.is_finite());
        let points: Vec<String> = finite().map(|(i, &v)| format!("{:.1},{:.1}", x(i), y(v))).collect();
        out += &format!(r#"<polyline class="line {class}" points="{}"/>"#, points.join(" "));
        for (index, value) in finite() {
            out += &format!(
                r#"<circle class="dot {class}" cx="{:.1}" cy="{:.1}" r="3"><title>{}: {} {value:.2e}</title></circle>"#,
                x(index),
                y(*value),
                escape(name),
                escape(places.get(index).copied().unwrap_or_default())
            );
        }
    }
    out + "</svg>"
}

/// Values by row and column, the darker the larger, up to `highest`.
pub(super) fn heat_map(label: &str, rows: &[(&str, &[f64])], highest: f64) -> String {
    const WIDTH: f64 = 960.0;
    const ROW: f64 = 18.0;
    let left = 130.0;
    let columns = rows.iter().map(|(_, values)| values.len()).max().unwrap_or(0).max(1);
    let cell = (WIDTH - left) / columns as f64;
    let height = ROW * rows.len() as f64;
    let mut out = open(label, WIDTH, height + 20.0);
    for (row, (name, values)) in rows.iter().enumerate() {
        let y = ROW * row as f64;
        out += &text(left - 8.0, y + 13.0, "end", name);
        for (column, value) in values.iter().enumerate() {
            let x = left + cell * column as f64;
            // What is not finite is as far off as can be.
            let depth = if value.is_finite() { value / highest.max(f64::MIN_POSITIVE) } else { 1.0 };
            out += &format!(
                r#"<rect class="heat" x="{x:.2}" y="{y}" width="{:.2}" height="{}" fill-opacity="{:.3}"><title>{}, token {column}: {value:.2e}</title></rect>"#,
                (cell - 0.8).max(0.2),
                ROW - 1.0,
                0.04 + 0.96 * depth.clamp(0.0, 1.0),
                escape(name)
            );
        }
    }
    let every = (columns / 12).max(1).next_multiple_of(5);
    for column in (0..columns).step_by(every) {
        out += &text(left + cell * (column as f64 + 0.5), height + 14.0, "middle", column);
    }
    out + "</svg>"
}

fn open(label: &str, width: f64, height: f64) -> String {
    format!(
        r#"<svg viewBox="0 0 {width} {height}" role="img" aria-label="{}" xmlns="http://www.w3.org/2000/svg">"#,
        escape(label)
    )
}

fn text(x: f64, y: f64, anchor: &str, what: impl Display) -> String {
    let what = escape(&what.to_string());
    format!(r#"<text class="axis" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{what}</text>"#)
}

/// An axis from zero in round steps.
struct Scale {
    step: f64,
    end: f64,
}

impl Scale {
    /// With at most five steps, each of 1, 2 or 5 times a power of ten.
    fn up_to(highest: f64) -> Self {
        if highest <= 0.0 {
            return Self { step: 1.0, end: 1.0 };
        }
        let rough = highest / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * power);
        Self { step, end: step * (highest / step).ceil() }
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        let (step, count) = (self.step, (self.end / self.step).round() as usize);
        (0..=count).map(move |i| step * i as f64)
    }

    /// With just the digits that the steps need.
    fn label(&self, mark: f64) -> String {
        let digits = (-self.step.log10().floor()).clamp(0.0, 12.0) as usize;
        format!("{mark:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        assert_eq!(escape(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn axes_have_round_steps() {
        let labels = |highest| {
            let scale = Scale::up_to(highest);
            scale.marks().map(|mark| scale.label(mark)).collect::<Vec<_>>()
        };
        assert_eq!(labels(0.0072), ["0.000", "0.002", "0.004", "0.006", "0.008"]);
        assert_eq!(labels(1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.0), ["0", "1"]);
    }
}
