//! `qwen35 info`.

use super::Outcome;
use super::arguments::InfoArguments;
use super::{needs, output};
use qwen35_model::Config;
use qwen35_model::checkpoint::{
    Checkpoint, ConfigDifference, ConfigJson, StoredTensor, TensorProblem, TextTensors, inventory,
};
use qwen35_model::known::{ForConfig, Known};
use std::fmt::Write;
use std::io;
use std::process::ExitCode;

/// A checkpoint that is not what the types ask for.
#[derive(Debug, thiserror::Error)]
#[error(
    "{place}: expected {config}, found differences in config.json ({keys}) and in the tensors ({tensors})"
)]
struct Differs {
    place: String,
    config: &'static str,
    keys: usize,
    tensors: usize,
}

pub(super) fn run(arguments: &InfoArguments) -> Outcome {
    if let Some(size) = arguments.config {
        output::write(&mut io::stdout().lock(), &needs::report(size))?;
        return Ok(ExitCode::SUCCESS);
    }
    let checkpoint = super::open(&arguments.model)?;
    let json = ConfigJson::of(&checkpoint)?;
    let known = match Known::of(&json) {
        Ok(known) => known,
        // Compared with the nearest, so that the report says what would have to change.
        Err(unknown) => match unknown.nearest() {
            Some(known) => known,
            None => return Err(unknown.into()),
        },
    };
    known.with(Report { checkpoint: &checkpoint, json: &json })
}

struct Report<'a> {
    checkpoint: &'a Checkpoint,
    json: &'a ConfigJson,
}

impl ForConfig for Report<'_> {
    type Output = Outcome;

    fn run<C: Config>(self) -> Outcome {
        let differences = self.json.differences::<C>();
        let text = TextTensors::of(self.checkpoint)?;
        let problems = text.problems::<C>();
        let report = write_report::<C>(self.checkpoint, &text, &differences, &problems)?;
        output::write(&mut io::stdout().lock(), &report)?;
        if differences.is_empty() && problems.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let (keys, tensors) = (differences.len(), problems.len());
        Err(Differs { place: self.checkpoint.place(), config: C::NAME, keys, tensors }.into())
    }
}

fn write_report<C: Config>(
    checkpoint: &Checkpoint,
    text: &TextTensors<'_>,
    differences: &[ConfigDifference],
    problems: &[TensorProblem],
) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    let found: Vec<_> = text.names().filter_map(|name| text.get(name)).collect();
    let elements: usize = found.iter().map(|tensor| elements(tensor)).sum();
    let bytes: usize = found.iter().map(|tensor| tensor.bytes.as_slice().len()).sum();
    writeln!(out, "checkpoint   {}", checkpoint.place())?;
    writeln!(out, "compared to  {}", C::NAME)?;
    writeln!(out, "text model   {} tensors, {elements} parameters, {bytes} bytes", found.len())?;
    writeln!(out, "passed over  {} tensors of vision and multi-token prediction", text.passed_over())?;

    writeln!(out, "\nconfig.json  {} keys differ", differences.len())?;
    for difference in differences {
        writeln!(out, "  {difference}")?;
    }
    writeln!(out, "\ntensors      {} differ", problems.len())?;
    for problem in problems {
        writeln!(out, "  {problem}")?;
    }

    let rows: Vec<[String; 4]> = inventory::<C>()
        .iter()
        .map(|expected| {
            let (dtype, shape) = match text.get(&expected.name) {
                Some(tensor) => (tensor.dtype.to_string(), format!("{:?}", tensor.shape)),
                None => ("-".to_owned(), "missing".to_owned()),
            };
            let wanted = format!("{} {}", expected.dtypes, expected.notation);
            [text.full_name(&expected.name), dtype, shape, wanted]
        })
        .collect();
    writeln!(out)?;
    write_table(&mut out, &["tensor", "dtype", "found", "expected"], &rows)?;
    Ok(out)
}

/// Elements of a stored tensor. Its sizes were multiplied without overflow when its header was
/// checked.
fn elements(tensor: &StoredTensor) -> usize {
    tensor.shape.iter().product()
}

/// Columns as wide as their widest cell, and none at the last.
fn write_table(out: &mut String, head: &[&str; 4], rows: &[[String; 4]]) -> std::fmt::Result {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].len()).chain([head[column].len()]).max().unwrap_or(0)
    };
    let (name, dtype, found) = (width(0), width(1), width(2));
    let mut line = |cells: [&str; 4]| {
        let [a, b, c, d] = cells;
        writeln!(out, "{a:name$}  {b:dtype$}  {c:found$}  {d}")
    };
    line(*head)?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
}
