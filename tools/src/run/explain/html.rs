//! An explanation as one page for a browser, with nothing outside of it: the program's text with what each
//! line cost, what limits batching under the line that does, and the tables of the text form.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use cohort_runtime::report::explain::{Block, Explanation, Loss};

use super::{Sheet, cause, duration, percent, place, sheets, summary};

const STYLE: &str = include_str!("page.css");

/// What was computed and lost at a line.
#[derive(Default)]
struct Line<'a> {
    blocks: Vec<&'a Block>,
    losses: Vec<&'a Loss>,
}

/// The whole page.
pub fn page(explanation: &Explanation) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Where the time goes</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Where the time goes</h1>\n"
    );
    for sentence in summary(explanation).lines() {
        put(&mut page, format_args!("<p>{}</p>\n", escaped(sentence)));
    }
    let lines = lines(explanation);
    let files: BTreeSet<&str> = lines.keys().map(|(file, _)| *file).collect();
    for file in files {
        // What is there of an artifact's program may be its places only.
        let text = file.ends_with(".coh").then(|| fs::read_to_string(file));
        if let Some(Ok(text)) = text {
            page += &source(file, &text, &lines);
        }
    }
    for sheet in sheets(explanation) {
        page += &table(&sheet);
    }
    if explanation.losses.is_empty() {
        page += "<p>No batching was lost.</p>\n";
    }
    page + "</body>\n</html>\n"
}

/// By file and line.
fn lines(explanation: &Explanation) -> BTreeMap<(&str, usize), Line<'_>> {
    let mut lines: BTreeMap<_, Line<'_>> = BTreeMap::new();
    for block in &explanation.blocks {
        if let Some((file, line, _)) = place(&block.location) {
            lines.entry((file, line)).or_default().blocks.push(block);
        }
    }
    for loss in &explanation.losses {
        if let Some((file, line, _)) = place(&loss.location) {
            lines.entry((file, line)).or_default().losses.push(loss);
        }
    }
    lines
}

/// The text of a file, a row a line.
fn source(file: &str, text: &str, lines: &BTreeMap<(&str, usize), Line<'_>>) -> String {
    let mut page = format!(
        "<h2>{}</h2>\n<p>A block's time is that of all its operations; it stands at the line of the block's place.</p>\n\
         <table class=\"source\">\n<tr><th>line</th><th>time</th><th>share</th><th>launches</th>\
         <th>rows a launch</th><th></th></tr>\n",
        escaped(file)
    );
    for (index, code) in text.lines().enumerate() {
        let number = index + 1;
        let line = lines.get(&(file, number));
        let blocks = line.map_or(&[][..], |line| &line.blocks);
        // A sum of nothing may be a negative zero.
        let share: f64 = blocks.iter().map(|block| block.share).sum();
        let figures = match blocks {
            [] => [const { String::new() }; 4],
            blocks => {
                let seconds = blocks.iter().map(|block| block.seconds).sum();
                let launches: u64 = blocks.iter().map(|block| block.launches).sum();
                let rows: u64 = blocks.iter().map(|block| block.rows).sum();
                [
                    duration(seconds),
                    percent(share),
                    launches.to_string(),
                    format!("{:.1}", rows as f64 / launches.max(1) as f64),
                ]
            }
        };
        let [seconds, share_text, launches, rows] = figures;
        put(
            &mut page,
            format_args!(
                "<tr id=\"{anchor}\" style=\"--heat: {heat:.3}\"><td>{number}</td><td>{seconds}</td><td>{share_text}</td>\
                 <td>{launches}</td><td>{rows}</td><td><code>{code}</code></td></tr>\n",
                anchor = escaped(&format!("{file}:{number}")),
                heat = (share + 0.0).clamp(0.0, 1.0),
                code = escaped(code),
            ),
        );
        for loss in line.map_or(&[][..], |line| &line.losses) {
            let cost = match loss.seconds {
                Some(seconds) => format!("at most {}", duration(seconds)),
                None => "at an unknown cost".to_owned(),
            };
            put(
                &mut page,
                format_args!(
                    "<tr class=\"loss\"><td colspan=\"5\"></td><td>{}, {cost}: {}</td></tr>\n",
                    cause(loss.cause),
                    escaped(&loss.why)
                ),
            );
        }
    }
    page + "</table>\n"
}

fn table(sheet: &Sheet) -> String {
    let mut page = format!("<h2>{}</h2>\n<table>\n<tr>", escaped(sheet.title));
    for name in sheet.header {
        put(&mut page, format_args!("<th>{}</th>", escaped(name)));
    }
    page += "</tr>\n";
    for row in &sheet.rows {
        page += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let class = match sheet.is_number(column) {
                true => " class=\"number\"",
                false => "",
            };
            put(&mut page, format_args!("<td{class}>{}</td>", escaped(cell)));
        }
        page += "</tr>\n";
    }
    page + "</table>\n"
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

/// Text that is not markup.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            c => shown.push(c),
        }
    }
    shown
}
