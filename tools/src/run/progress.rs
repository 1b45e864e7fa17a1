//! How far a run is, for a person at a terminal.

use std::io::IsTerminal;
use std::path::Path;

use cohort_runtime::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::Arguments;

/// A progress bar on stderr, or nothing where nobody would see it.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub fn new(arguments: &Arguments) -> Bar {
        if arguments.quiet || !std::io::stderr().is_terminal() {
            return Bar {
                bar: ProgressBar::hidden(),
            };
        }
        let size = (arguments.input != Path::new("-")).then(|| crate::text::size(&arguments.input));
        let (bar, template) = match size.flatten() {
            Some(size) => (
                ProgressBar::new(size),
                "{elapsed_precise} {wide_bar} {bytes}/{total_bytes} {msg} (eta {eta})",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{elapsed_precise} {spinner} {bytes} {msg}",
            ),
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar { bar }
    }

    pub fn show(&mut self, progress: Progress) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(progress.bytes_read);
        self.bar.set_message(match progress.failed {
            0 => format!("{} instances", progress.instances),
            failed => format!("{} instances, {failed} failed", progress.instances),
        });
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
