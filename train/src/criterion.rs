//! Which epoch is the best: `--best accuracy`, `--best error:min`.

use std::fmt;
use std::str::FromStr;

/// The loss, least, unless told.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The metric, or [`LOSS`].
    pub name: String,
    /// Whether more of it is better.
    pub is_most: bool,
}

/// What the loss is called among the metrics.
pub const LOSS: &str = "loss";

impl Default for Criterion {
    fn default() -> Criterion {
        Criterion {
            name: LOSS.to_owned(),
            is_most: false,
        }
    }
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Criterion, String> {
        let (name, is_most) = match text.rsplit_once(':') {
            Some((name, "max")) => (name, true),
            Some((name, "min")) => (name, false),
            Some(_) => return Err("expected `loss`, `accuracy` or `error:min`".to_owned()),
            None => (text, text != LOSS),
        };
        Ok(Criterion {
            name: name.to_owned(),
            is_most,
        })
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}",
            self.name,
            if self.is_most { "max" } else { "min" }
        )
    }
}

impl Criterion {
    /// Whether a score is better than the best one so far; what is not a number never is.
    pub fn is_better(&self, score: f64, best: Option<f64>) -> bool {
        match best {
            _ if score.is_nan() => false,
            None => true,
            Some(best) if self.is_most => score > best,
            Some(best) => score < best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_to_be_least_and_metrics_most() {
        let read = |text: &str| {
            text.parse::<Criterion>()
                .map(|criterion| criterion.to_string())
        };
        assert_eq!(read("loss").unwrap(), "loss:min");
        assert_eq!(read("accuracy").unwrap(), "accuracy:max");
        assert_eq!(read("error:min").unwrap(), "error:min");
        assert!(read("error:least").is_err());
        let loss = Criterion::default();
        assert!(loss.is_better(1.0, Some(2.0)) && !loss.is_better(2.0, Some(2.0)));
        assert!(!loss.is_better(f64::NAN, None) && loss.is_better(9.0, None));
    }
}
