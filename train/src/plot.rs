//! A plot of losses and metrics by epoch, as SVG.

use std::error::Error;

use plotters::prelude::*;

use crate::settings::Settings;
use crate::state::{EpochRecord, Means};

const WIDTH: u32 = 800;
const PANEL: u32 = 300;
const MOST_LABELS: usize = 12;

/// A line of the plot.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The plot of what there is so far.
pub fn draw(history: &[EpochRecord], settings: &Settings) -> Result<String, Box<dyn Error>> {
    let count = history
        .iter()
        .map(|record| record.train.metrics.len())
        .max()
        .unwrap_or(0);
    let mut panels = vec![(
        "loss".to_owned(),
        pair(history, &|means| Some(means.loss.0)),
    )];
    for place in 0..count {
        let of = |means: &Means| means.metrics.get(place).map(|metric| metric.0);
        panels.push((settings.metric(place), pair(history, &of)));
    }
    let mut svg = String::new();
    {
        let size = (WIDTH, PANEL * panels.len() as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let areas = root.split_evenly((panels.len(), 1));
        for (area, (title, series)) in areas.iter().zip(&panels) {
            panel(area, title, series)?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// The line of the training data, and that of the development data.
fn pair(history: &[EpochRecord], value: &dyn Fn(&Means) -> Option<f64>) -> Vec<Series> {
    let series = |name: &str, means: &dyn Fn(&EpochRecord) -> Option<Means>| {
        let point = |record: &EpochRecord| {
            let value = value(&means(record)?).filter(|value| value.is_finite())?;
            Some((record.epoch as f64, value))
        };
        Series {
            name: name.to_owned(),
            points: history.iter().filter_map(point).collect(),
        }
    };
    let both = [
        series("train", &|record| Some(record.train.clone())),
        series("dev", &|record| record.dev.clone()),
    ];
    both.into_iter()
        .filter(|series| !series.points.is_empty())
        .collect()
}

/// The least and the largest number, a little apart from each other.
fn range(numbers: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| {
        (least.min(x), most.max(x))
    });
    match least <= most {
        true => {
            let margin = (0.05 * (most - least)).max(1e-3 * most.abs()).max(1e-9);
            least - margin..most + margin
        }
        false => 0.0..1.0,
    }
}

fn panel<'a, DB: DrawingBackend<ErrorType: 'static> + 'a>(
    area: &DrawingArea<DB, plotters::coord::Shift>,
    title: &str,
    series: &[Series],
) -> Result<(), Box<dyn Error>> {
    let epochs = series
        .iter()
        .map(|series| series.points.len())
        .max()
        .unwrap_or(0);
    let points = || series.iter().flat_map(|series| series.points.iter());
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(
            range(points().map(|point| point.0)),
            range(points().map(|point| point.1)),
        )?;
    chart
        .configure_mesh()
        .x_desc("epoch")
        .y_desc(title)
        .max_light_lines(0)
        .x_label_formatter(&|epoch| format!("{epoch:.0}"))
        .x_labels(epochs.min(MOST_LABELS))
        .draw()?;
    for (place, series) in series.iter().enumerate() {
        let colour = Palette99::pick(place).to_rgba();
        let line =
            LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)).point_size(2);
        chart
            .draw_series(line)?
            .label(&series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    if !series.is_empty() {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    Ok(())
}
