//! By what the learning rates are multiplied as training goes on.

use std::fmt;
use std::str::FromStr;

/// The course behind the warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course {
    /// The same at all steps.
    Constant,
    /// Down to 0 at the last step.
    Linear,
    /// Half a turn of the cosine, down to 0 at the last step (Loshchilov and Hutter 2017).
    Cosine,
    /// Times `factor` every `epochs` epochs.
    Step {
        /// After how many epochs each time.
        epochs: u64,
        /// By what.
        factor: f64,
    },
    /// As the inverse of the square root of the step (Vaswani et al. 2017).
    InverseSqrt,
}

impl FromStr for Course {
    type Err = String;

    fn from_str(text: &str) -> Result<Course, String> {
        let step = || {
            let inner = text
                .strip_prefix("step")?
                .trim()
                .strip_prefix('(')?
                .strip_suffix(')')?;
            let (epochs, factor) = inner.split_once(',')?;
            let epochs = epochs.trim().parse().ok().filter(|epochs| *epochs > 0)?;
            let factor = factor.trim().parse().ok();
            let factor = factor.filter(|x: &f64| x.is_finite() && *x >= 0.0)?;
            Some(Course::Step { epochs, factor })
        };
        match text {
            "constant" => Ok(Course::Constant),
            "linear" => Ok(Course::Linear),
            "cosine" => Ok(Course::Cosine),
            "inverse-sqrt" => Ok(Course::InverseSqrt),
            _ => step().ok_or_else(|| {
                "expected `constant`, `linear`, `cosine`, `inverse-sqrt` or `step(10,0.5)`, every 10 epochs \
                 times 0.5"
                    .to_owned()
            }),
        }
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Course::Constant => write!(f, "constant"),
            Course::Linear => write!(f, "linear"),
            Course::Cosine => write!(f, "cosine"),
            Course::Step { epochs, factor } => write!(f, "step({epochs},{factor})"),
            Course::InverseSqrt => write!(f, "inverse-sqrt"),
        }
    }
}

/// The warm-up and the course behind it, over the steps of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// What follows the warm-up.
    pub course: Course,
    /// Steps over which the rate rises linearly to its full value.
    pub warmup: u64,
    /// Mini-batches of an epoch.
    pub steps_an_epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
}

impl Schedule {
    /// The factor of a step, counted from 1.
    pub fn factor(&self, step: u64) -> f64 {
        if step <= self.warmup {
            return step as f64 / self.warmup as f64;
        }
        let all = self.steps_an_epoch.saturating_mul(self.epochs);
        // 0 at the first step behind the warm-up, 1 behind the last one.
        let part = || {
            let length = all.saturating_sub(self.warmup).max(1);
            ((step - self.warmup - 1) as f64 / length as f64).min(1.0)
        };
        match self.course {
            Course::Constant => 1.0,
            Course::Linear => 1.0 - part(),
            Course::Cosine => 0.5 * (1.0 + libm::cos(std::f64::consts::PI * part())),
            Course::Step { epochs, factor } => {
                let epoch = (step - 1) / self.steps_an_epoch.max(1);
                libm::pow(factor, (epoch / epochs) as f64)
            }
            Course::InverseSqrt => (self.warmup.max(1) as f64 / step as f64).sqrt(),
        }
    }

    /// Whether another number of epochs makes other steps.
    pub fn depends_on_epochs(&self) -> bool {
        matches!(self.course, Course::Linear | Course::Cosine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(course: &str, warmup: u64, steps: &[u64]) -> Vec<f64> {
        let schedule = Schedule {
            course: course.parse().unwrap(),
            warmup,
            steps_an_epoch: 10,
            epochs: 4,
        };
        steps.iter().map(|step| schedule.factor(*step)).collect()
    }

    #[test]
    fn courses_are_as_documented() {
        assert_eq!(
            factors("constant", 4, &[1, 3, 4, 5, 40]),
            [0.25, 0.75, 1.0, 1.0, 1.0]
        );
        assert_eq!(
            factors("linear", 0, &[1, 11, 21, 41, 99]),
            [1.0, 0.75, 0.5, 0.0, 0.0]
        );
        let cosine = factors("cosine", 0, &[1, 21, 41]);
        let near = |x: f64, y: f64| (x - y).abs() < 1e-12;
        assert!(near(cosine[0], 1.0) && near(cosine[1], 0.5) && near(cosine[2], 0.0));
        assert_eq!(
            factors("step(2, 0.5)", 0, &[1, 20, 21, 40]),
            [1.0, 1.0, 0.5, 0.5]
        );
        assert_eq!(factors("inverse-sqrt", 4, &[2, 4, 16]), [0.5, 1.0, 0.5]);
        assert_eq!(factors("inverse-sqrt", 0, &[1, 4]), [1.0, 0.5]);
    }

    #[test]
    fn a_course_is_read_as_it_is_written() {
        for text in [
            "constant",
            "linear",
            "cosine",
            "inverse-sqrt",
            "step(10,0.5)",
        ] {
            assert_eq!(text.parse::<Course>().unwrap().to_string(), text);
        }
        for wrong in ["", "step", "step(0,1)", "step(1)", "step(1,x)", "sqrt"] {
            assert!(wrong.parse::<Course>().is_err(), "{wrong}");
        }
    }
}
