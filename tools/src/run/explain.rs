//! `batch-run --explain`: where batching was gained and lost, as text or JSON.

use std::fmt::Write;

use clap::ValueEnum;
use cohort_runtime::explain::{Block, Cause, Explanation, Loss, OperandModes};
use comfy_table::{CellAlignment, Table, presets};

use crate::exit::Stop;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

/// The whole explanation, with a line break at its end.
pub fn render(explanation: &Explanation, format: Format) -> Result<String, Stop> {
    match format {
        Format::Text => Ok(text(explanation)),
        Format::Json => serde_json::to_string_pretty(explanation)
            .map(|json| json + "\n")
            .map_err(|error| Stop::usage(format!("cannot write the explanation: {error}"))),
    }
}

fn text(explanation: &Explanation) -> String {
    let mut page = summary(explanation);
    page += "\nBlocks, by time\n";
    let mut blocks: Vec<&Block> = explanation.blocks.iter().collect();
    blocks.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    page += &block_table(&blocks);
    let ragged = ragged_table(&blocks);
    if !ragged.is_empty() {
        page += "\nCalls of differing length, and what padding them would add\n";
        page += &ragged;
    }
    page += "\nOperands: launches in which an operand lay together, was one row, was gathered\n";
    page += &operand_table(&blocks);
    if explanation.losses.is_empty() {
        page += "\nNo batching was lost.\n";
    } else {
        page += "\nWhere batching was lost, and what that costs at most\n";
        page += &loss_table(&explanation.losses);
    }
    page
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
    text
}

fn block_table(blocks: &[&Block]) -> String {
    let header = [
        "block",
        "place",
        "time",
        "share",
        "launches",
        "least",
        "rows",
        "rows a launch",
    ];
    let mut table = table(&header, 2);
    for block in blocks {
        table.add_row([
            block.name.clone(),
            block.location.clone(),
            duration(block.seconds),
            format!("{:.1} %", 100.0 * block.share),
            block.launches.to_string(),
            count_or_dash(block.fewest_launches),
            block.rows.to_string(),
            format!("{:.1}", block.mean_rows_per_launch),
        ]);
    }
    format!("{table}\n")
}

/// Blocks whose calls differ in length, and what padding to the longest call of each launch would
/// add.
fn ragged_table(blocks: &[&Block]) -> String {
    let header = [
        "block",
        "place",
        "calls",
        "rows",
        "rows if padded",
        "padding of flops",
        "padding of bytes",
    ];
    let mut table = table(&header, 2);
    let padding = |own: u64, padded: u64| match padded {
        0 => "-".to_owned(),
        padded => format!("{:.1} %", 100.0 * (1.0 - own as f64 / padded as f64)),
    };
    let mut is_empty = true;
    for block in blocks {
        let Some(work) = block.ragged else {
            continue;
        };
        is_empty = false;
        table.add_row([
            block.name.clone(),
            block.location.clone(),
            work.calls.to_string(),
            block.rows.to_string(),
            work.dense_rows.to_string(),
            padding(work.flops, work.dense_flops),
            padding(work.bytes, work.dense_bytes),
        ]);
    }
    match is_empty {
        true => String::new(),
        false => format!("{table}\n"),
    }
}

fn operand_table(blocks: &[&Block]) -> String {
    let header = [
        "block",
        "place",
        "operand",
        "mode",
        "contiguous",
        "identical",
        "gathered",
    ];
    let mut table = table(&header, 4);
    for block in blocks {
        let dashes = || [(); 3].map(|()| "-".to_owned());
        let shared =
            (!block.shared.is_empty()).then(|| (block.shared.join(", "), "shared", dashes()));
        let rows = block.operands.iter().enumerate().map(|(index, operand)| {
            let OperandModes { ty, modes, .. } = operand;
            let counts = [modes.contiguous, modes.identical, modes.gathered];
            let name = format!("{index}: {ty}");
            match operand.is_scalar {
                true => (name, "scalar", dashes()),
                false => (name, "row", counts.map(|count| count.to_string())),
            }
        });
        for (operand, mode, [contiguous, identical, gathered]) in shared.into_iter().chain(rows) {
            table.add_row([
                block.name.clone(),
                block.location.clone(),
                operand,
                mode.to_owned(),
                contiguous,
                identical,
                gathered,
            ]);
        }
    }
    format!("{table}\n")
}

fn loss_table(losses: &[Loss]) -> String {
    let header = ["cost", "cause", "place", "launches", "flops", "why"];
    let mut table = table(&header, 3);
    if let Some(why) = table.column_mut(5) {
        why.set_cell_alignment(CellAlignment::Left);
    }
    if let Some(cost) = table.column_mut(0) {
        cost.set_cell_alignment(CellAlignment::Right);
    }
    for loss in losses {
        let cause = match loss.cause {
            Cause::Decision => "decision",
            Cause::Misalignment => "misalignment",
            Cause::UnsharedMatrix => "unshared matrix",
        };
        let place = match &loss.block {
            Some(block) => format!("{block}, {}", loss.location),
            None => loss.location.clone(),
        };
        table.add_row([
            loss.seconds.map_or("?".to_owned(), duration),
            cause.to_owned(),
            place,
            loss.launches.to_string(),
            loss.flops.to_string(),
            loss.why.clone(),
        ]);
    }
    format!("{table}\n")
}

/// A table whose columns from `first_number` on hold numbers.
fn table(header: &[&str], first_number: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.to_vec());
    for column in first_number..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
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
