//! The optimisers: how parameters change by their gradients.
//!
//! All arithmetic is of f32, element by element, but for factors that all elements share, which are of f64
//! until they are used; nothing depends on how a gradient is kept. A parameter to which nothing flows in a
//! step has the gradient zero. Of a *sparse* one, a table, the rows whose gradient is zero stay as they are,
//! with all that is remembered of them: no momentum moves them, and no decay.

use crate::gradients::{Gradient, Gradients};
use crate::groups::Group;
use crate::parameters::{Changed, Data, Parameter, Parameters};

/// The formulas are those of PyTorch's optimisers of these names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Algorithm {
    /// Stochastic gradient descent.
    Sgd {
        /// How much of the last step is taken again; 0 remembers nothing.
        momentum: f64,
        /// Whether the gradient is looked at where the momentum leads (Nesterov 1983).
        nesterov: bool,
    },
    /// Each element by the squares of all its gradients (Duchi et al. 2011).
    AdaGrad {
        /// Added to the root, so that nothing is divided by zero.
        epsilon: f64,
    },
    /// Each element by the moments of its gradients (Kingma and Ba 2015).
    Adam(Moments),
    /// With decay of its own, which the moments do not see.
    AdamW(Moments),
}

/// How the moments of gradients are followed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// What is kept of the mean in a step.
    pub beta1: f64,
    /// What is kept of the mean square in a step.
    pub beta2: f64,
    /// Added to the root, so that nothing is divided by zero.
    pub epsilon: f64,
}

impl Algorithm {
    /// The names of what is remembered of each element.
    pub fn memories(&self) -> &'static [&'static str] {
        match self {
            Algorithm::Sgd { momentum, .. } if *momentum == 0.0 => &[],
            Algorithm::Sgd { .. } => &["momentum"],
            Algorithm::AdaGrad { .. } => &["squares"],
            Algorithm::Adam(_) | Algorithm::AdamW(_) => &["mean", "squares"],
        }
    }
}

/// What is remembered of all parameters: for each, an array for each of the algorithm's memories.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// By parameter, memory and element.
    pub of: Vec<Vec<Vec<f32>>>,
}

impl Memory {
    /// Nothing was seen yet.
    pub fn new(parameters: &Parameters, groups: &[Group]) -> Memory {
        let of = |(parameter, group): (&Parameter, &Group)| match parameter.floats() {
            Some(values) if !group.frozen => {
                let memories = group.algorithm.memories().iter();
                memories.map(|_| vec![0.0; values.len()]).collect()
            }
            _ => Vec::new(),
        };
        let list = parameters.list.iter().zip(groups);
        Memory {
            of: list.map(of).collect(),
        }
    }
}

/// Changes all parameters but the frozen ones by one step, counted from 1; `factor` is the schedule's. Tells
/// of each parameter what it changed.
pub fn update(
    groups: &[Group],
    factor: f64,
    step: u64,
    gradients: &Gradients,
    parameters: &mut Parameters,
    memory: &mut Memory,
) -> Vec<Changed> {
    let each = parameters
        .list
        .iter_mut()
        .zip(&gradients.of)
        .zip(groups)
        .zip(&mut memory.of);
    each.map(|(((parameter, gradient), group), memory)| {
        let rule = Rule::new(&group.algorithm, group.rate * factor, group.decay, step);
        match group.frozen {
            true => Changed::Nothing,
            false => rule.step(parameter, gradient, group.sparse, memory),
        }
    })
    .collect()
}

/// All elements, where only some are there.
fn dense(gradient: &Gradient, width: usize, count: usize) -> Vec<f32> {
    let mut whole = vec![0.0; count];
    for (row, values) in gradient.touched(width) {
        whole[row * width..][..values.len()].copy_from_slice(values);
    }
    whole
}

/// An algorithm with the numbers of one parameter and one step.
struct Rule {
    kind: Kind,
    rate: f32,
    /// Is added to the gradient, times the parameter.
    decay: f32,
}

enum Kind {
    Sgd {
        momentum: f32,
        nesterov: bool,
    },
    AdaGrad {
        epsilon: f32,
    },
    Adam {
        beta1: f32,
        beta2: f32,
        epsilon: f32,
        /// The rate, and the root of the squares, without what the zeros at the beginning make too small.
        rate: f32,
        root: f32,
        /// What is left of a parameter by the decay that the moments do not see.
        kept: f32,
    },
}

impl Rule {
    fn new(algorithm: &Algorithm, rate: f64, decay: f64, step: u64) -> Rule {
        let adam = |moments: &Moments, kept: f64| {
            let missing = |beta: f64| 1.0 - libm::pow(beta, step as f64);
            Kind::Adam {
                beta1: moments.beta1 as f32,
                beta2: moments.beta2 as f32,
                epsilon: moments.epsilon as f32,
                rate: (rate / missing(moments.beta1)) as f32,
                root: missing(moments.beta2).sqrt() as f32,
                kept: kept as f32,
            }
        };
        let (kind, coupled) = match algorithm {
            Algorithm::Sgd { momentum, nesterov } => {
                let (momentum, nesterov) = (*momentum as f32, *nesterov);
                (Kind::Sgd { momentum, nesterov }, decay)
            }
            Algorithm::AdaGrad { epsilon } => {
                let epsilon = *epsilon as f32;
                (Kind::AdaGrad { epsilon }, decay)
            }
            Algorithm::Adam(moments) => (adam(moments, 1.0), decay),
            Algorithm::AdamW(moments) => (adam(moments, 1.0 - rate * decay), 0.0),
        };
        Rule {
            kind,
            rate: rate as f32,
            decay: coupled as f32,
        }
    }

    /// Changes a parameter; of a sparse one, the rows whose gradient is not zero.
    fn step(
        &self,
        parameter: &mut Parameter,
        gradient: &Gradient,
        is_sparse: bool,
        memory: &mut [Vec<f32>],
    ) -> Changed {
        let width = parameter.width();
        let Data::F32(values) = &mut parameter.data else {
            return Changed::Nothing;
        };
        match gradient {
            gradient if is_sparse => {
                let touched = gradient.touched(width);
                for (row, gradient) in &touched {
                    self.apply(row * width, gradient, values, memory);
                }
                return Changed::Rows(touched.iter().map(|(row, _)| *row as u32).collect());
            }
            Gradient::Dense(gradient) => self.apply(0, gradient, values, memory),
            gradient => {
                let whole = dense(gradient, width, values.len());
                self.apply(0, &whole, values, memory);
            }
        }
        Changed::Whole
    }

    /// Changes the elements from `start` on, as many as the gradient has.
    fn apply(&self, start: usize, gradient: &[f32], values: &mut [f32], memory: &mut [Vec<f32>]) {
        let values = &mut values[start..][..gradient.len()];
        let mut memory = memory
            .iter_mut()
            .map(|memory| &mut memory[start..][..gradient.len()]);
        let coupled = |gradient: f32, value: f32| match self.decay {
            0.0 => gradient,
            decay => gradient + decay * value,
        };
        match (&self.kind, memory.next(), memory.next()) {
            (Kind::Sgd { momentum, nesterov }, Some(moving), _) => {
                for ((value, gradient), moving) in values.iter_mut().zip(gradient).zip(moving) {
                    let gradient = coupled(*gradient, *value);
                    *moving = momentum * *moving + gradient;
                    let direction = match nesterov {
                        true => gradient + momentum * *moving,
                        false => *moving,
                    };
                    *value -= self.rate * direction;
                }
            }
            (Kind::AdaGrad { epsilon }, Some(squares), _) => {
                for ((value, gradient), squares) in values.iter_mut().zip(gradient).zip(squares) {
                    let gradient = coupled(*gradient, *value);
                    *squares += gradient * gradient;
                    *value -= self.rate * gradient / (squares.sqrt() + epsilon);
                }
            }
            (
                Kind::Adam {
                    beta1,
                    beta2,
                    epsilon,
                    rate,
                    root,
                    kept,
                },
                Some(mean),
                Some(squares),
            ) => {
                let memory = mean.iter_mut().zip(squares);
                for ((value, gradient), (mean, squares)) in
                    values.iter_mut().zip(gradient).zip(memory)
                {
                    let gradient = coupled(*gradient, *value);
                    *value *= kept;
                    *mean = beta1 * *mean + (1.0 - beta1) * gradient;
                    *squares = beta2 * *squares + (1.0 - beta2) * gradient * gradient;
                    *value -= rate * *mean / (squares.sqrt() / root + epsilon);
                }
            }
            // SGD without momentum remembers nothing.
            _ => {
                for (value, gradient) in values.iter_mut().zip(gradient) {
                    *value -= self.rate * coupled(*gradient, *value);
                }
            }
        }
    }
}
