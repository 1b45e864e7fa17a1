//! `batch-run --explain`: where batching was gained and lost, as text, as JSON, or as a page.

mod html;

use std::fmt::Write;

use clap::ValueEnum;
use cohort_runtime::report::explain::{Block, Cause, Explanation, Loss, OperandModes};
use comfy_table::{CellAlignment, Table, presets};

use crate::exit::Stop;
use crate::sarif::{self, FileRegion, Finding, Level};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    /// A page for a browser, with the source and what each line of it cost
    Html,
}

/// A table, however it is shown.
struct Sheet {
    title: &'static str,
    header: &'static [&'static str],
    /// Columns of numbers.
    numbers: std::ops::Range<usize>,
    rows: Vec<Vec<String>>,
}

/// The whole explanation, with a line break at its end.
pub fn render(explanation: &Explanation, format: Format) -> Result<String, Stop> {
    match format {
        Format::Text => Ok(text(explanation)),
        Format::Html => Ok(html::page(explanation)),
        Format::Json => serde_json::to_string_pretty(explanation)
            .map(|json| json + "\n")
            .map_err(|error| Stop::usage(format!("cannot write the explanation: {error}"))),
    }
}

fn text(explanation: &Explanation) -> String {
    let mut page = summary(explanation);
    for sheet in sheets(explanation) {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n{}\n{}\n", sheet.title, sheet.table());
    }
    if explanation.losses.is_empty() {
        page += "\nNo batching was lost.\n";
    }
    page
}

/// All tables that have rows, but that of operands, which may have none.
fn sheets(explanation: &Explanation) -> Vec<Sheet> {
    let mut blocks: Vec<&Block> = explanation.blocks.iter().collect();
    blocks.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut sheets = vec![block_sheet(&blocks)];
    sheets.extend(Some(ragged_sheet(&blocks)).filter(|sheet| !sheet.rows.is_empty()));
    sheets.push(operand_sheet(&blocks));
    sheets.extend((!explanation.losses.is_empty()).then(|| loss_sheet(&explanation.losses)));
    sheets
}

impl Sheet {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(self.header.to_vec());
        for column in 0..self.header.len() {
            if let Some(shown) = table.column_mut(column) {
                shown.set_cell_alignment(match self.is_number(column) {
                    true => CellAlignment::Right,
                    false => CellAlignment::Left,
                });
            }
        }
        table.add_rows(&self.rows);
        table
    }

    /// Whether a column has numbers.
    fn is_number(&self, column: usize) -> bool {
        self.numbers.contains(&column) || self.header[column] == "cost"
    }
}

fn summary(explanation: &Explanation) -> String {
    let fewest = match explanation.fewest_launches {
        Some(fewest) => format!(" (dependencies allow {fewest})"),
        None => String::new(),
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} instances, {} flushes, {} launches{fewest}, {} rows, {:.1} rows a launch",
        explanation.instances,
        explanation.flushes,
        explanation.kernel_launches,
        explanation.rows,
        explanation.mean_rows_per_launch
    );
    let _ = writeln!(
        text,
        "recorded in {}, scheduled in {}, computed in {}",
        duration(explanation.record_seconds),
        duration(explanation.schedule_seconds),
        duration(explanation.kernel_seconds)
    );
    if let Some(scheduler) = &explanation.scheduler {
        let _ = writeln!(text, "scheduler {}: {}", scheduler.used, scheduler.why);
    }
    let reuse = &explanation.schedule_reuse;
    let _ = match reuse.unused {
        Some(why) => writeln!(text, "schedules are not reused: {why}"),
        None => writeln!(
            text,
            "schedules reused by structure: of {} instances, {}",
            reuse.reused,
            percent(reuse.hit_rate)
        ),
    };
    if let Some(strands) = &explanation.strands {
        let _ = writeln!(text, "strands: {}", strands.why);
    }
    if let Some(batches) = &explanation.batches {
        let _ = writeln!(text, "batches: {}", batches.why);
    }
    text
}

fn block_sheet(blocks: &[&Block]) -> Sheet {
    let row = |block: &&Block| {
        vec![
            block.name.clone(),
            block.location.clone(),
            duration(block.seconds),
            percent(block.share),
            block.launches.to_string(),
            count_or_dash(block.fewest_launches),
            block.rows.to_string(),
            format!("{:.1}", block.mean_rows_per_launch),
        ]
    };
    Sheet {
        title: "Blocks, by time",
        header: &[
            "block",
            "place",
            "time",
            "share",
            "launches",
            "least",
            "rows",
            "rows a launch",
        ],
        numbers: 2..8,
        rows: blocks.iter().map(row).collect(),
    }
}

/// Blocks whose calls differ in length, and what padding to the longest call of each launch would
/// add.
fn ragged_sheet(blocks: &[&Block]) -> Sheet {
    let padding = |own: u64, padded: u64| match padded {
        0 => "-".to_owned(),
        padded => percent(1.0 - own as f64 / padded as f64),
    };
    let row = |block: &&Block| {
        let work = block.ragged?;
        Some(vec![
            block.name.clone(),
            block.location.clone(),
            work.calls.to_string(),
            block.rows.to_string(),
            work.dense_rows.to_string(),
            padding(work.flops, work.dense_flops),
            padding(work.bytes, work.dense_bytes),
        ])
    };
    Sheet {
        title: "Calls of differing length, and what padding them would add",
        header: &[
            "block",
            "place",
            "calls",
            "rows",
            "rows if padded",
            "padding of flops",
            "padding of bytes",
        ],
        numbers: 2..7,
        rows: blocks.iter().filter_map(row).collect(),
    }
}

fn operand_sheet(blocks: &[&Block]) -> Sheet {
    let mut rows = Vec::new();
    for block in blocks {
        let dashes = || [(); 3].map(|()| "-".to_owned());
        let shared =
            (!block.shared.is_empty()).then(|| (block.shared.join(", "), "shared", dashes()));
        let operands = block.operands.iter().enumerate().map(|(index, operand)| {
            let OperandModes { ty, modes, .. } = operand;
            let counts = [modes.contiguous, modes.identical, modes.gathered];
            let name = format!("{index}: {ty}");
            match operand.is_scalar {
                true => (name, "scalar", dashes()),
                false => (name, "row", counts.map(|count| count.to_string())),
            }
        });
        for (operand, mode, counts) in shared.into_iter().chain(operands) {
            let mut row = vec![
                block.name.clone(),
                block.location.clone(),
                operand,
                mode.to_owned(),
            ];
            row.extend(counts);
            rows.push(row);
        }
    }
    Sheet {
        title: "Operands: launches in which an operand lay together, was one row, was gathered",
        header: &[
            "block",
            "place",
            "operand",
            "mode",
            "contiguous",
            "identical",
            "gathered",
        ],
        numbers: 4..7,
        rows,
    }
}

fn loss_sheet(losses: &[Loss]) -> Sheet {
    let row = |loss: &Loss| {
        let place = match &loss.block {
            Some(block) => format!("{block}, {}", loss.location),
            None => loss.location.clone(),
        };
        vec![
            loss.seconds.map_or("?".to_owned(), duration),
            cause(loss.cause).to_owned(),
            place,
            loss.launches.to_string(),
            loss.flops.to_string(),
            loss.why.clone(),
        ]
    };
    Sheet {
        title: "Where batching was lost, and what that costs at most",
        header: &["cost", "cause", "place", "launches", "flops", "why"],
        numbers: 3..5,
        rows: losses.iter().map(row).collect(),
    }
}

pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Decision => "decision",
        Cause::Misalignment => "misalignment",
        Cause::UnsharedMatrix => "unshared matrix",
    }
}

/// Adds a loss to the log of findings, if there is one.
pub fn log(loss: &Loss) {
    sarif::add(|| {
        let place = place(&loss.location).map(|(file, line, column)| FileRegion {
            file: file.to_owned(),
            start: (line, column),
            end: None,
            message: loss.block.clone(),
        });
        Finding {
            rule: format!("lost-batching/{}", cause(loss.cause).replace(' ', "-")),
            level: Level::Note,
            message: loss.why.clone(),
            places: place.into_iter().collect(),
            related: Vec::new(),
            properties: serde_json::json!({
                "seconds": loss.seconds,
                "launches": loss.launches,
                "flops": loss.flops,
            }),
        }
    });
}

/// File, line and column of a place.
pub fn place(location: &str) -> Option<(&str, usize, usize)> {
    let mut parts = location.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((parts.next()?, line, column))
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn count_or_dash(count: Option<u64>) -> String {
    count.map_or("-".to_owned(), |count| count.to_string())
}

/// Three digits and a unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration(2.5), "2.50 s");
        assert_eq!(duration(0.0125), "12.50 ms");
        assert_eq!(duration(0.0000031), "3.1 µs");
    }
}
