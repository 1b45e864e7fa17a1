//! Parameters to begin with, by rules: `w*=xavier`, `*.b=zeros`, `emb=normal(0.1)`.
//!
//! The numbers of a parameter are a function of the seed, its name, its shape and the rule, so another
//! parameter more changes none of the others.

use glob::Pattern;

use crate::error::Error;
use crate::parameters::Parameter;
use crate::random::Stream;

/// What the elements of a parameter begin with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Uniform in ±√(6 / (rows + columns)) of its matrices, as Glorot and Bengio have it (2010).
    Xavier,
    /// Of mean 0, and this standard deviation.
    Normal(f64),
    /// In [-a, a).
    Uniform(f64),
    /// All the same.
    Constant(f64),
}

impl Init {
    fn parse(text: &str) -> Option<Init> {
        let number = |name: &str| {
            let inner = text
                .strip_prefix(name)?
                .trim()
                .strip_prefix('(')?
                .strip_suffix(')')?;
            inner.trim().parse::<f64>().ok().filter(|x| x.is_finite())
        };
        let size = |name| number(name).filter(|x| *x >= 0.0);
        match text {
            "xavier" => Some(Init::Xavier),
            "zeros" => Some(Init::Constant(0.0)),
            "ones" => Some(Init::Constant(1.0)),
            _ => None,
        }
        .or_else(|| size("normal").map(Init::Normal))
        .or_else(|| size("uniform").map(Init::Uniform))
        .or_else(|| number("constant").map(Init::Constant))
    }

    /// What a parameter begins with for which there is no rule: zeros for vectors, and for others Xavier's.
    fn default_of(shape: &[usize]) -> Init {
        match shape.len() {
            0 | 1 => Init::Constant(0.0),
            _ => Init::Xavier,
        }
    }

    /// The elements of a parameter of floats.
    pub fn values(self, seed: u64, name: &str, shape: &[usize]) -> Vec<f32> {
        let count: usize = shape.iter().product();
        let mut stream = Stream::new(seed, "init", name.as_bytes());
        let mut uniform = |most: f64| {
            let next = |_| (most * (2.0 * stream.uniform() - 1.0)) as f32;
            (0..count).map(next).collect()
        };
        match self {
            Init::Constant(value) => vec![value as f32; count],
            Init::Uniform(most) => uniform(most),
            Init::Xavier => {
                let (rows, columns) = match shape {
                    [.., rows, columns] => (*rows, *columns),
                    [length] => (*length, 1),
                    [] => (1, 1),
                };
                uniform((6.0 / (rows + columns).max(1) as f64).sqrt())
            }
            Init::Normal(deviation) => {
                let next = |_| (deviation * stream.normal()) as f32;
                (0..count).map(next).collect()
            }
        }
    }
}

/// `--init` options: where several match a name, the last one counts.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(String, Pattern, Init)>,
}

impl Rules {
    /// Reads `--init` options, each `PATTERN=RULE`.
    pub fn new(options: &[String]) -> Result<Rules, Error> {
        let rule = |option: &String| {
            let wrong = |what: &str| Error::Setting(format!("`--init {option}`: {what}"));
            let (names, init) = option
                .split_once('=')
                .ok_or_else(|| wrong("write it as `--init 'w*=xavier'`"))?;
            let pattern = Pattern::new(names.trim()).map_err(|error| wrong(error.msg))?;
            let init = Init::parse(init.trim()).ok_or_else(|| {
                wrong(
                    "expected `xavier`, `normal(0.1)`, `uniform(0.1)`, `constant(1.0)`, `zeros` or `ones` \
                     behind the `=`",
                )
            })?;
            Ok((option.clone(), pattern, init))
        };
        Ok(Rules {
            rules: options.iter().map(rule).collect::<Result<_, Error>>()?,
        })
    }

    /// The rule of a parameter: of those that match its name the last, else the usual one of its shape.
    pub fn of(&self, name: &str, shape: &[usize]) -> Init {
        let rule = self
            .rules
            .iter()
            .rev()
            .find(|(_, pattern, _)| pattern.matches(name));
        rule.map_or_else(|| Init::default_of(shape), |(_, _, init)| *init)
    }

    /// A rule that matches no parameter is a mistake in a name.
    pub fn check(&self, parameters: &[Parameter]) -> Result<(), Error> {
        let matches = |pattern: &Pattern| {
            let mut names = parameters.iter().map(|parameter| &parameter.name);
            names.any(|name| pattern.matches(name))
        };
        match self.rules.iter().find(|(_, pattern, _)| !matches(pattern)) {
            None => Ok(()),
            Some((option, ..)) => Err(Error::Setting(format!(
                "`--init {option}`: no parameter has such a name"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(options: &[&str]) -> Result<Rules, Error> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        Rules::new(&options)
    }

    #[test]
    fn the_last_rule_that_matches_counts() {
        let rules = rules(&[
            "*=normal(0.1)",
            "w*=xavier",
            "*.b = zeros",
            "u=uniform( 0.5 )",
        ])
        .unwrap();
        assert_eq!(rules.of("wx", &[2, 3]), Init::Xavier);
        assert_eq!(rules.of("wx.b", &[3]), Init::Constant(0.0));
        assert_eq!(rules.of("u", &[3]), Init::Uniform(0.5));
        assert_eq!(rules.of("emb", &[2, 3]), Init::Normal(0.1));
        let none = Rules::default();
        assert_eq!(none.of("b", &[3]), Init::Constant(0.0));
        assert_eq!(none.of("w", &[3, 3]), Init::Xavier);
    }

    #[test]
    fn mistakes_are_told() {
        for wrong in [
            "w",
            "w=",
            "w=glorot",
            "w=normal",
            "w=normal(x)",
            "w=normal(-1)",
            "[=zeros",
            "w=uniform(NaN)",
        ] {
            let error = rules(&[wrong]).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn numbers_depend_on_seed_name_and_shape_alone() {
        let values = Init::Xavier.values(1, "w", &[30, 20]);
        assert_eq!(values, Init::Xavier.values(1, "w", &[30, 20]));
        assert_ne!(values, Init::Xavier.values(2, "w", &[30, 20]));
        assert_ne!(values, Init::Xavier.values(1, "v", &[30, 20]));
        let most = (6.0_f64 / 50.0).sqrt() as f32;
        assert!(values.iter().all(|x| x.abs() <= most));
        assert!(values.iter().any(|x| *x > 0.9 * most) && values.iter().any(|x| *x < -0.9 * most));
    }
}
