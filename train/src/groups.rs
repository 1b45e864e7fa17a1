//! Parameter groups by name: `--group 'emb:rate=0.1,decay=0'`, `--group 'enc.*:frozen'`.

use glob::Pattern;

use crate::error::Error;
use crate::optimiser::Algorithm;
use crate::parameters::Parameters;

/// How one parameter is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The optimiser.
    pub algorithm: Algorithm,
    /// The learning rate before the schedule.
    pub rate: f64,
    /// Weight decay.
    pub decay: f64,
    /// Whether it stays as it is; what has no floats always does.
    pub frozen: bool,
    /// Rows that have no gradient in a step stay as they are.
    pub sparse: bool,
}

/// What an option says of the names that match.
#[derive(Clone, Debug, Default)]
struct Changes {
    algorithm: Option<Algorithm>,
    rate: Option<f64>,
    decay: Option<f64>,
    frozen: Option<bool>,
    sparse: Option<bool>,
}

/// Reads `--group` options into the group of each parameter, which are all like `usual` without. Of options
/// that match the same name the later one counts, each thing by itself. `algorithm` knows optimisers by name.
pub fn assign(
    options: &[String],
    usual: &Group,
    algorithm: &dyn Fn(&str) -> Option<Algorithm>,
    parameters: &Parameters,
) -> Result<Vec<Group>, Error> {
    let list = parameters.list.iter();
    let mut groups: Vec<Group> = list
        .map(|parameter| Group {
            frozen: parameter.floats().is_none(),
            sparse: parameter.is_table,
            ..usual.clone()
        })
        .collect();
    for option in options {
        let (pattern, changes) = parse(option, algorithm)?;
        let mut matched = false;
        for (parameter, group) in parameters.list.iter().zip(&mut groups) {
            if !pattern.matches(&parameter.name) {
                continue;
            }
            matched = true;
            group.algorithm = changes.algorithm.unwrap_or(group.algorithm);
            group.rate = changes.rate.unwrap_or(group.rate);
            group.decay = changes.decay.unwrap_or(group.decay);
            group.frozen |= changes.frozen == Some(true);
            if changes.frozen == Some(false) && parameter.floats().is_some() {
                group.frozen = false;
            }
            group.sparse = changes.sparse.unwrap_or(group.sparse);
            if group.sparse && parameter.shape.len() < 2 {
                return Err(wrong(option, &format!("`{}` has no rows", parameter.name)));
            }
        }
        if !matched {
            let names: Vec<&str> = parameters.list.iter().map(|p| p.name.as_str()).collect();
            let names = names.join(", ");
            return Err(wrong(
                option,
                &format!("no parameter has such a name; there are {names}"),
            ));
        }
    }
    Ok(groups)
}

fn wrong(option: &str, what: &str) -> Error {
    Error::Setting(format!("`--group {option}`: {what}"))
}

fn parse(
    option: &str,
    algorithm: &dyn Fn(&str) -> Option<Algorithm>,
) -> Result<(Pattern, Changes), Error> {
    let (names, text) = option
        .split_once(':')
        .ok_or_else(|| wrong(option, "write it as `--group 'emb:rate=0.1,decay=0'`"))?;
    let pattern = Pattern::new(names.trim()).map_err(|error| wrong(option, error.msg))?;
    let mut changes = Changes::default();
    for part in text.split(',') {
        let (key, value) = match part.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.trim())),
            None => (part.trim(), None),
        };
        let number = || {
            let number = value.and_then(|value| value.parse().ok());
            let fits = number.filter(|x: &f64| x.is_finite() && *x >= 0.0);
            fits.ok_or_else(|| wrong(option, &format!("`{key}` is a number from 0, `{key}=0.1`")))
        };
        let truth = || match value {
            None | Some("yes" | "true") => Ok(true),
            Some("no" | "false") => Ok(false),
            Some(_) => Err(wrong(option, &format!("`{key}` is `yes` or `no`"))),
        };
        match key {
            "optimiser" | "optimizer" => {
                let known = value.and_then(algorithm);
                let what = format!("there is no optimiser `{}`", value.unwrap_or_default());
                changes.algorithm = Some(known.ok_or_else(|| wrong(option, &what))?);
            }
            "rate" => changes.rate = Some(number()?),
            "decay" => changes.decay = Some(number()?),
            "frozen" => changes.frozen = Some(truth()?),
            "sparse" => changes.sparse = Some(truth()?),
            _ => {
                let what = format!(
                    "there is no `{key}`; a group has `rate`, `decay`, `optimiser`, `frozen` and \
                     `sparse`"
                );
                return Err(wrong(option, &what));
            }
        }
    }
    Ok((pattern, changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Data, Parameter};

    const SGD: Algorithm = Algorithm::Sgd {
        momentum: 0.0,
        nesterov: false,
    };
    const ADAGRAD: Algorithm = Algorithm::AdaGrad { epsilon: 0.0 };

    fn parameters() -> Parameters {
        let parameter = |name: &str, shape: &[usize], is_table| Parameter {
            name: name.into(),
            shape: shape.to_vec(),
            data: Data::F32(vec![0.0; shape.iter().product()]),
            is_table,
        };
        let mut list = vec![
            parameter("emb", &[3, 2], true),
            parameter("enc.w", &[2, 2], false),
            parameter("enc.b", &[2], false),
        ];
        list.push(Parameter {
            data: Data::I32(vec![1]),
            ..parameter("shift", &[1], false)
        });
        Parameters { list }
    }

    fn groups(options: &[&str]) -> Result<Vec<Group>, Error> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let usual = Group {
            algorithm: SGD,
            rate: 0.5,
            decay: 0.25,
            frozen: false,
            sparse: false,
        };
        let adagrad = |name: &str| (name == "adagrad").then_some(ADAGRAD);
        assign(&options, &usual, &adagrad, &parameters())
    }

    #[test]
    fn later_options_count_each_thing_by_itself() {
        let groups = groups(&[
            "*:rate=0.1",
            "enc.*:frozen",
            "emb:decay=0,optimiser=adagrad",
            "enc.b:frozen=no, rate = 1",
        ]);
        let [emb, w, b, shift] = groups.unwrap().try_into().unwrap();
        assert_eq!(
            (emb.rate, emb.decay, emb.frozen, emb.sparse),
            (0.1, 0.0, false, true)
        );
        assert_eq!(
            (w.rate, w.decay, w.frozen, w.sparse),
            (0.1, 0.25, true, false)
        );
        assert_eq!((b.rate, b.frozen), (1.0, false));
        assert_eq!((emb.algorithm, w.algorithm), (ADAGRAD, SGD));
        assert!(shift.frozen, "integers are not trained");
    }

    #[test]
    fn mistakes_are_told() {
        for (option, message) in [
            ("emb", "write it as"),
            (
                "em:rate=1",
                "no parameter has such a name; there are emb, enc.w",
            ),
            ("emb:speed=1", "there is no `speed`"),
            ("emb:optimiser=adam", "there is no optimiser `adam`"),
            ("emb:rate", "`rate` is a number"),
            ("emb:rate=-1", "`rate` is a number"),
            ("emb:frozen=maybe", "`yes` or `no`"),
            ("enc.b:sparse", "`enc.b` has no rows"),
        ] {
            let error = groups(&[option]).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
