//! Random instances of an entry's types, of all the shapes that recursion can take.

use std::collections::BTreeMap;

use cohort_frontend::program::{AdtId, Dim, Elem, Program, Type};
use serde_json::{Map, Value as Json, json};

use crate::rng::Rng;

/// What a value of a recursive type looks like, and how large it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No recursion: one leaf, an empty array.
    Smallest,
    /// Recursion in the first part only, this many levels.
    LeftChain(usize),
    /// Recursion in the last part only.
    RightChain(usize),
    /// Recursion in all parts.
    Balanced(usize),
    /// About this many inner nodes, split at random.
    Random(usize),
}

impl Shape {
    /// Every kind of shape in turn, of random size; `size` bounds the inner nodes.
    pub fn nth(index: usize, size: usize, rng: &mut Rng) -> Shape {
        match index % 6 {
            0 => Shape::Random(rng.between(1, size)),
            1 => Shape::Smallest,
            2 => Shape::LeftChain(rng.between(1, size)),
            3 => Shape::RightChain(rng.between(1, size)),
            4 => Shape::Balanced(rng.between(1, size.ilog2() as usize + 1)),
            _ => Shape::Random(size),
        }
    }

    fn is_leaf(self) -> bool {
        match self {
            Shape::Smallest => true,
            Shape::LeftChain(n) | Shape::RightChain(n) | Shape::Balanced(n) | Shape::Random(n) => {
                n == 0
            }
        }
    }

    /// The shapes of `count` parts of a value of this shape.
    fn split(self, count: usize, rng: &mut Rng) -> Vec<Shape> {
        let mut parts = vec![Shape::Smallest; count];
        match self {
            _ if count == 0 || self.is_leaf() => {}
            Shape::Smallest => {}
            Shape::LeftChain(n) => parts[0] = Shape::LeftChain(n - 1),
            Shape::RightChain(n) => parts[count - 1] = Shape::RightChain(n - 1),
            Shape::Balanced(n) => parts.fill(Shape::Balanced(n - 1)),
            Shape::Random(n) => {
                let mut sizes = vec![0; count];
                for _ in 1..n {
                    sizes[rng.below(count)] += 1;
                }
                for (part, size) in parts.iter_mut().zip(sizes) {
                    *part = Shape::Random(size);
                }
            }
        }
        parts
    }
}

/// Where the numbers of instances are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Some integers are the least, the largest, or next to these.
    pub integers_at_bounds: bool,
    /// Some floats are as large or as small as f32 can be.
    pub extreme_floats: bool,
}

const INTEGERS: [i32; 8] = [
    i32::MIN,
    i32::MIN + 1,
    -1,
    0,
    1,
    65536,
    i32::MAX - 1,
    i32::MAX,
];

const FLOATS: [f32; 8] = [0.0, -0.0, 1e-45, 1.2e-38, -1e30, 3.4e38, f32::MAX, f32::MIN];

/// Makes instances of a program.
#[derive(Debug)]
pub struct Instances<'p> {
    program: &'p Program,
    /// Integers are from 0 to below this.
    pub words: usize,
    /// Lengths of instance dims of the instance being made.
    lengths: BTreeMap<String, usize>,
    /// What the length of an instance dim is chosen from.
    choices: Vec<usize>,
    values: Values,
}

impl<'p> Instances<'p> {
    /// Instances of a program; integers that look up are below `words`.
    pub fn new(program: &'p Program, words: usize) -> Instances<'p> {
        Instances {
            program,
            words,
            lengths: BTreeMap::new(),
            choices: (1..=9).collect(),
            values: Values::default(),
        }
    }

    /// Makes each instance dim one of these lengths.
    pub fn lengths_from(&mut self, choices: &[usize]) {
        self.choices = choices.to_vec();
    }

    /// Takes numbers from here.
    pub fn values_from(&mut self, values: Values) {
        self.values = values;
    }

    /// One instance with an id.
    pub fn instance(&mut self, id: &str, shape: Shape, rng: &mut Rng) -> Json {
        self.lengths.clear();
        let entry = &self.program.functions[self.program.entry.0];
        let mut members = Map::from_iter([("id".to_string(), Json::from(id))]);
        for param in &entry.params {
            let var = &entry.vars[param.0];
            members.insert(var.name.clone(), self.value(&var.ty, shape, rng));
        }
        Json::Object(members)
    }

    fn value(&mut self, ty: &Type, shape: Shape, rng: &mut Rng) -> Json {
        match ty {
            Type::Scalar(elem) => self.scalar(*elem, rng),
            Type::Tensor { elem, shape: dims } => {
                let lengths: Vec<usize> = dims.iter().map(|dim| self.length(dim, rng)).collect();
                self.tensor(*elem, &lengths, rng)
            }
            Type::Tuple(types) => {
                Json::Array(types.iter().map(|ty| self.value(ty, shape, rng)).collect())
            }
            Type::Array(element) => self.array(element, shape, rng),
            Type::Str => Json::from(*rng.pick(&["", "a", "seven b", "eight by", "\u{e9}\n\"\\"])),
            Type::Adt(adt) => self.adt(*adt, shape, rng),
        }
    }

    fn scalar(&self, elem: Elem, rng: &mut Rng) -> Json {
        match elem {
            Elem::F32 if self.values.extreme_floats && rng.one_in(4) => json!(rng.pick(&FLOATS)),
            Elem::I32 if self.values.integers_at_bounds && rng.one_in(2) => {
                json!(rng.pick(&INTEGERS))
            }
            Elem::F32 => json!(rng.signed_unit()),
            Elem::I32 => json!(rng.below(self.words)),
            Elem::Bool => json!(rng.one_in(2)),
        }
    }

    fn length(&mut self, dim: &Dim, rng: &mut Rng) -> usize {
        match dim {
            Dim::Known(length) => *length as usize,
            Dim::Instance(name) => *self
                .lengths
                .entry(name.clone())
                .or_insert_with(|| *rng.pick(&self.choices)),
        }
    }

    fn tensor(&self, elem: Elem, lengths: &[usize], rng: &mut Rng) -> Json {
        match lengths {
            [] => self.scalar(elem, rng),
            [length, inner @ ..] => Json::Array(
                (0..*length)
                    .map(|_| self.tensor(elem, inner, rng))
                    .collect(),
            ),
        }
    }

    /// The length of an array is one of the ways in which a value has a shape.
    fn array(&mut self, element: &Type, shape: Shape, rng: &mut Rng) -> Json {
        if !self.is_recursive(element) {
            let length = match shape {
                Shape::Smallest => rng.below(2),
                Shape::LeftChain(n) | Shape::RightChain(n) | Shape::Random(n) => n,
                Shape::Balanced(n) => 1 << n,
            };
            return Json::Array(
                (0..length)
                    .map(|_| self.value(element, shape, rng))
                    .collect(),
            );
        }
        let length = match shape {
            _ if shape.is_leaf() => 0,
            Shape::Smallest => 0,
            Shape::LeftChain(_) | Shape::RightChain(_) => rng.between(1, 2),
            Shape::Balanced(_) => 2,
            Shape::Random(_) => rng.between(1, 3),
        };
        let parts = shape.split(length, rng);
        Json::Array(
            parts
                .into_iter()
                .map(|part| self.value(element, part, rng))
                .collect(),
        )
    }

    fn adt(&mut self, adt: AdtId, shape: Shape, rng: &mut Rng) -> Json {
        let program: &'p Program = self.program;
        let constructors = &program.adts[adt.0].constructors;
        let recursion = |index: usize| {
            let fields = &constructors[index].fields;
            fields
                .iter()
                .filter(|field| matches!(field, Type::Adt(_)))
                .count()
        };
        let through_arrays = |index: usize| {
            constructors[index].fields.iter().any(|field| match field {
                Type::Array(element) => self.is_recursive(element),
                _ => false,
            })
        };
        let mut fitting: Vec<usize> = (0..constructors.len())
            .filter(|&index| match shape.is_leaf() {
                true => recursion(index) == 0,
                false => recursion(index) > 0 || through_arrays(index),
            })
            .collect();
        if fitting.is_empty() {
            fitting = (0..constructors.len()).collect();
        }
        let chosen = *rng.pick(&fitting);
        let constructor = &constructors[chosen];
        if constructor.fields.is_empty() {
            return Json::from(constructor.name.as_str());
        }
        let mut parts = shape.split(recursion(chosen), rng).into_iter();
        let mut fields = Vec::new();
        for field in &constructor.fields {
            let part = match field {
                Type::Adt(_) => parts.next().unwrap_or(Shape::Smallest),
                _ => shape,
            };
            fields.push(self.value(field, part, rng));
        }
        json!({ &constructor.name: fields })
    }

    fn is_recursive(&self, ty: &Type) -> bool {
        match ty {
            Type::Adt(adt) => {
                let constructors = &self.program.adts[adt.0].constructors;
                let mut fields = constructors
                    .iter()
                    .flat_map(|constructor| &constructor.fields);
                fields.any(|field| matches!(field, Type::Adt(_) | Type::Array(_)))
            }
            _ => false,
        }
    }
}

/// A sequence of nodes as in `dagrnn`: a word, and indices of nodes before it. Types do not say
/// that indices must point backwards.
pub fn dag(id: &str, words: usize, length: usize, rng: &mut Rng) -> Json {
    let node = |index: usize, rng: &mut Rng| {
        let mut earlier: Vec<usize> = (0..index).collect();
        rng.shuffle(&mut earlier);
        earlier.truncate(rng.below(4));
        json!({"Node": [rng.below(words), earlier]})
    };
    let nodes: Vec<Json> = (0..length).map(|index| node(index, rng)).collect();
    json!({ "id": id, "nodes": nodes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cohort_frontend::{Sources, check};

    use super::*;

    fn program(types: &str) -> Program {
        let mut sources = Sources::new();
        let file = sources.add(
            "test.coh",
            format!("{types}\nfn main(t: Tree) -> i32 {{ 0 }}\n"),
        );
        let checked = check(&sources, file).expect("a good program");
        checked
            .bind(&BTreeMap::new(), &BTreeMap::new())
            .expect("nothing to bind")
    }

    /// The number of occurrences of a constructor.
    fn count(json: &Json, constructor: &str) -> usize {
        json.to_string()
            .matches(&format!("\"{constructor}\""))
            .count()
    }

    fn depth(json: &Json) -> usize {
        match json {
            Json::Array(elements) => elements.iter().map(depth).max().unwrap_or(0),
            Json::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn binary_trees_of_every_shape() {
        let program = program("type Tree = Leaf(i32) | Node(Tree, Tree)");
        let mut rng = Rng::new(1);
        for (shape, nodes, levels) in [
            (Shape::Smallest, 0, 1),
            (Shape::LeftChain(5), 5, 6),
            (Shape::RightChain(5), 5, 6),
            (Shape::Balanced(3), 7, 4),
            (Shape::Random(1), 1, 2),
        ] {
            let tree = Instances::new(&program, 9).instance("x", shape, &mut rng)["t"].take();
            assert_eq!(
                (count(&tree, "Node"), depth(&tree)),
                (nodes, levels),
                "{shape:?}: {tree}"
            );
        }
        let tree = Instances::new(&program, 9).instance("x", Shape::Random(50), &mut rng);
        assert_eq!((count(&tree, "Node"), count(&tree, "Leaf")), (50, 51));
    }

    #[test]
    fn trees_with_any_number_of_children() {
        let program = program("type Tree = Tree(i32, [Tree])");
        let mut rng = Rng::new(2);
        let mut make = |shape| Instances::new(&program, 9).instance("x", shape, &mut rng);
        assert_eq!(make(Shape::Smallest)["t"]["Tree"][1], json!([]));
        assert_eq!(depth(&make(Shape::LeftChain(4))["t"]), 5);
        assert_eq!(count(&make(Shape::Balanced(3)), "Tree"), 15);
        // Twenty inner nodes, each with up to three children.
        assert!((21..=61).contains(&count(&make(Shape::Random(20)), "Tree")));
    }
}
