//! The models that every promise is tested with. A new model needs a row here, nothing else.

use cohort_e2e::instances::{Instances, Shape, dag};
use cohort_e2e::{Model, Rng, paths};
use serde_json::Value as Json;

/// A model of `examples/`.
#[derive(Clone, Copy, Debug)]
pub struct ModelCase {
    pub name: &'static str,
    /// Its program dims.
    pub dims: &'static [&'static str],
    /// Whether integers of the input have a meaning beyond being words.
    pub inputs: Inputs,
    /// About how many nodes a large instance has; less where a node costs much.
    pub size: usize,
}

/// How instances are made.
#[derive(Clone, Copy, Debug)]
pub enum Inputs {
    /// From the entry's types, with words for integers.
    ByType,
    /// `[Node(word, [earlier nodes])]`.
    Dag,
    /// From the entry's types, but no array is empty.
    NoneEmpty,
    /// From the entry's types; integers are columns of a table of this many.
    Columns(usize),
}

const fn case(name: &'static str, dims: &'static [&'static str]) -> ModelCase {
    ModelCase {
        name,
        dims,
        inputs: Inputs::ByType,
        size: 12,
    }
}

pub const MODELS: &[ModelCase] = &[
    case("treelstm", &["V", "D", "H", "C"]),
    case("treegru", &["V", "D", "H", "C"]),
    case("treefc", &["V", "H", "C"]),
    ModelCase {
        size: 5,
        ..case("mvrnn", &["V", "H", "C"])
    },
    case("childsum", &["V", "D", "H", "C"]),
    ModelCase {
        inputs: Inputs::Dag,
        ..case("dagrnn", &["V", "D", "H", "C"])
    },
    case("birnn", &["V", "D", "H", "C"]),
    case("nestedrnn", &["V", "H", "C"]),
    case("drnn", &["H", "C"]),
    ModelCase {
        inputs: Inputs::NoneEmpty,
        ..case("stackrnn", &["V", "H", "C"])
    },
    case("act", &["D", "H", "C"]),
    case("encoder", &["L", "D", "F"]),
    case("masked_mha", &["D"]),
    case("berxit", &["D", "C"]),
    case("vgemm", &[]),
    case("trmm", &[]),
    ModelCase {
        inputs: Inputs::Columns(3),
        ..case("exprtree", &[])
    },
];

/// A multiple of this is what a model with heads takes for D.
const HEADS: u64 = 4;

impl ModelCase {
    /// The example as it is shipped.
    #[track_caller]
    pub fn shipped(&self) -> Model {
        let golden = &paths::goldens(self.name)[0];
        Model::with_weights_file(&paths::model_source(self.name), &golden.weights)
    }

    /// The model with random weights of the given dims, which are those of V, D, H and C. Of an
    /// encoder's, F is H; with heads D is the next multiple of their number.
    #[track_caller]
    pub fn with_sizes(&self, sizes: [u64; 4], rng: &mut Rng) -> Model {
        let [v, mut d, h, c] = sizes;
        if ["encoder", "masked_mha", "berxit"].contains(&self.name) {
            d = d.next_multiple_of(HEADS);
        }
        let sizes = [v, d, h, c, 2, h];
        let named = ["V", "D", "H", "C", "L", "F"].into_iter().zip(sizes);
        let dims: Vec<(&str, u64)> = named.filter(|(name, _)| self.dims.contains(name)).collect();
        Model::with_random_weights(&paths::model_source(self.name), &dims, rng)
    }

    /// Random instances of every shape, with the ids `i0`, `i1`, …
    pub fn instances(&self, model: &Model, count: usize, rng: &mut Rng) -> Vec<Json> {
        let words = match self.inputs {
            Inputs::Columns(count) => count,
            _ => model.vocabulary(),
        };
        let mut instances = Instances::new(&model.program, words);
        (0..count)
            .map(|index| {
                let id = format!("i{index}");
                match self.inputs {
                    Inputs::ByType | Inputs::Columns(_) => {
                        let shape = Shape::nth(index, self.size, rng);
                        instances.instance(&id, shape, rng)
                    }
                    Inputs::NoneEmpty => {
                        let shape = Shape::Random(rng.between(1, self.size));
                        instances.instance(&id, shape, rng)
                    }
                    Inputs::Dag => {
                        let length = rng.between(0, 2 * self.size);
                        dag(&id, words, length, rng)
                    }
                }
            })
            .collect()
    }
}

/// The model of the name.
#[track_caller]
pub fn model_case(name: &str) -> &'static ModelCase {
    MODELS
        .iter()
        .find(|case| case.name == name)
        .expect("a name of the table")
}

/// Instances as the text of an input file.
pub fn to_text(instances: &[Json]) -> String {
    instances
        .iter()
        .map(|instance| format!("{instance}\n"))
        .collect()
}

/// A binary tree that is a chain of `depth` nodes down the right side, as text.
pub fn chain(depth: usize) -> String {
    let nodes = r#"{"Node":[{"Leaf":[0]},"#.repeat(depth);
    format!(r#"{nodes}{{"Leaf":[0]}}{}"#, "]}".repeat(depth))
}

/// A balanced binary tree of `levels` levels of nodes, as text.
pub fn balanced(levels: usize) -> String {
    (0..levels).fold(r#"{"Leaf":[0]}"#.to_string(), |tree, _| {
        format!(r#"{{"Node":[{tree},{tree}]}}"#)
    })
}
