//! Programs as a compiler would make them, written by hand.
//!
//! * `trees`: `Tree = Leaf(i32) | Node(Tree, Tree) | Empty`, `main(t: Tree) -> (f32[4], i32)`. A
//!   leaf looks a row up and scales it by a host scalar, a node multiplies by a matrix. Some
//!   numbers in a leaf make the program misbehave.
//! * `echo`: returns its arguments, of any types.

use std::ffi::c_void;
use std::path::Path;

use cohort_runtime::abi::manifest::*;
use cohort_runtime::abi::{Context, Failure, Handle, OperandRef, VERSION};
use cohort_runtime::symbols::{cohort_alloc, cohort_fail, cohort_record, cohort_step};
use cohort_runtime::{CompiledCode, Config, Error, Program, Session, Stats, Weights};
use safetensors::tensor::{Dtype, TensorView};

pub const WIDTH: usize = 4;
pub const WORDS: usize = 10;

/// Leaves that make `trees` use up a limit.
pub const ALLOCATE_FOREVER: i32 = -7;
pub const RECORD_FOREVER: i32 = -8;
pub const LOOP_FOREVER: i32 = -9;
pub const RECURSE_FOREVER: i32 = -10;
/// Makes `trees` pass on a handle that does not exist.
pub const FORGE_A_HANDLE: i32 = -11;
/// Makes `trees` fail with a code that does not exist.
pub const FORGE_A_FAILURE: i32 = -12;

pub struct Functions(pub Vec<(&'static str, *const ())>);

// SAFETY: the tests give functions of the right type, which live forever.
unsafe impl CompiledCode for Functions {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        let found = self.0.iter().find(|(symbol, _)| *symbol == name);
        found.map(|(_, address)| *address)
    }
}

pub fn tree_manifest() -> Manifest {
    let tree = || Type::Adt(0);
    Manifest {
        version: VERSION,
        entry: "trees".to_owned(),
        arguments: vec![Argument {
            name: "t".to_owned(),
            ty: tree(),
        }],
        result: Type::Tuple(vec![Type::Tensor { pool: 0 }, Type::Scalar(Elem::I32)]),
        adts: vec![Adt {
            name: "Tree".to_owned(),
            constructors: vec![
                Constructor {
                    names: vec![],
                    name: "Leaf".to_owned(),
                    fields: vec![Type::Scalar(Elem::I32)],
                },
                Constructor {
                    names: vec![],
                    name: "Node".to_owned(),
                    fields: vec![tree(), tree()],
                },
                Constructor {
                    names: vec![],
                    name: "Empty".to_owned(),
                    fields: vec![],
                },
            ],
        }],
        params: vec![
            Param {
                name: "emb".to_owned(),
                elem: Elem::F32,
                shape: vec![WORDS as u64, WIDTH as u64],
                stored: None,
            },
            Param {
                name: "w".to_owned(),
                elem: Elem::F32,
                shape: vec![WIDTH as u64, WIDTH as u64],
                stored: None,
            },
        ],
        row_pools: vec![RowPool {
            elem: Elem::F32,
            shape: vec![WIDTH as u64],
        }],
        sources: vec![
            Source::Splat {
                bits: 0.5_f32.to_bits(),
                pool: 0,
            },
            Source::Table { param: 0, pool: 0 },
        ],
        kernels: vec![
            Kernel {
                name: "leaf".to_owned(),
                symbol: "leaf".to_owned(),
                location: "trees.coh:3:5".to_owned(),
                operands: vec![Operand::Row { pool: 0 }, Operand::Scalar(Elem::I32)],
                results: vec![0],
                constants: vec![],
                scratch_bytes: 0,
                row_tile: 4,
                flops_per_row: 0,
                row_products: vec![],
                call: Default::default(),
                gpu: None,
            },
            Kernel {
                name: "node".to_owned(),
                symbol: "node".to_owned(),
                location: "trees.coh:4:5".to_owned(),
                operands: vec![Operand::Row { pool: 0 }, Operand::Row { pool: 0 }],
                results: vec![0, 0],
                constants: vec![
                    Constant::Panels {
                        param: 1,
                        width: 3,
                        format: WeightFormat::F32,
                    },
                    Constant::Dense {
                        elem: Elem::F32,
                        bits: vec![0.25_f32.to_bits()],
                    },
                ],
                scratch_bytes: 64,
                row_tile: 4,
                // A lie, so that even small launches are split over threads.
                flops_per_row: 1_000_000,
                row_products: vec![],
                call: Default::default(),
                gpu: None,
            },
        ],
        locations: vec![
            "trees.coh:12:9".to_owned(),
            "trees.coh:1:1".to_owned(),
            "trees.coh:2:2".to_owned(),
        ],
        debugs: vec![],
        forces: vec![],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec![],
    }
}

pub fn tree_functions() -> Functions {
    Functions(vec![
        ("trees", trees as *const ()),
        ("leaf", leaf as *const ()),
        ("node", node as *const ()),
    ])
}

pub fn embedding(word: usize) -> [f32; WIDTH] {
    std::array::from_fn(|column| ((word * 31 + column * 17) % 23) as f32 / 11.0 - 1.0)
}

pub fn weight(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 13) % 19) as f32 / 9.0 - 1.0
}

/// Writes a file with the tensors, all f32.
pub fn write_weights(path: &Path, tensors: &[(&str, Vec<usize>, Vec<f32>)]) {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, _, values)| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        })
        .collect();
    let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
        (
            *name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    let file = safetensors::serialize(views, None).unwrap();
    std::fs::write(path, file).unwrap();
}

pub fn tree_tensors() -> Vec<(&'static str, Vec<usize>, Vec<f32>)> {
    let emb = (0..WORDS).flat_map(embedding).collect();
    let w = (0..WIDTH * WIDTH)
        .map(|index| weight(index / WIDTH, index % WIDTH))
        .collect();
    vec![
        ("emb", vec![WORDS, WIDTH], emb),
        ("w", vec![WIDTH, WIDTH], w),
    ]
}

pub fn tree_weights() -> Weights {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("w.safetensors");
    write_weights(&path, &tree_tensors());
    Weights::open(&path).unwrap()
}

pub fn tree_session(config: Config) -> Session {
    let program = Program::new(tree_manifest(), Box::new(tree_functions())).unwrap();
    Session::new(program, &tree_weights(), config).unwrap()
}

/// Runs the lines; gives the output's lines.
pub fn run(session: &mut Session, input: &str) -> (Vec<String>, Stats) {
    try_run(session, input.as_bytes()).unwrap()
}

pub fn try_run(session: &mut Session, input: &[u8]) -> Result<(Vec<String>, Stats), Error> {
    let mut output = Vec::new();
    let stats = session.run_stream(input, &mut output, &mut |_| {})?;
    let text = String::from_utf8(output).unwrap();
    Ok((text.lines().map(str::to_owned).collect(), stats))
}

/// `main` of `trees`.
unsafe extern "C" fn trees(context: *mut Context, arguments: *const u64, results: *mut u64) {
    // SAFETY: one argument, a tree; two results.
    unsafe {
        let mut leaves = 0;
        let handle = tree(context, arguments.read() as *const u64, &mut leaves);
        results.write(handle);
        results.add(1).write(u64::from(leaves as u32));
    }
}

unsafe fn enter(context: *mut Context) {
    let here = 0_u8;
    // SAFETY: the context of the running instance.
    unsafe {
        let stack_pointer = &raw const here as u64;
        if (*context).depth >= (*context).max_depth || stack_pointer < (*context).stack_limit {
            cohort_fail(context, Failure::DepthLimit as u32, 0, 0, 1);
        }
        (*context).depth += 1;
    }
}

unsafe fn tree(context: *mut Context, tree: *const u64, leaves: &mut i32) -> u64 {
    // SAFETY: the pointer is to a node as the manifest describes it.
    unsafe {
        enter(context);
        let handle = match tree.read() {
            0 => {
                *leaves += 1;
                leaf_of(context, tree.add(1).read() as u32 as i32)
            }
            1 => {
                let left = self::tree(context, tree.add(1).read() as *const u64, leaves);
                let right = self::tree(context, tree.add(2).read() as *const u64, leaves);
                let operands = [left, right];
                let call = Handle(cohort_record(context, 1, operands.as_ptr()));
                // The second result is what goes on.
                call.result_handle(1).0
            }
            _ => Handle::new(0, 0, 0).0,
        };
        (*context).depth -= 1;
        handle
    }
}

unsafe fn leaf_of(context: *mut Context, word: i32) -> u64 {
    // SAFETY: the context of the running instance; two operands.
    unsafe {
        match word {
            ALLOCATE_FOREVER => loop {
                let block = cohort_alloc(context, 1000);
                block.add(999).write(1);
            },
            RECORD_FOREVER => {
                let mut handle = Handle::new(0, 0, 0).0;
                loop {
                    let operands = [handle, 3];
                    handle = cohort_record(context, 0, operands.as_ptr());
                }
            }
            LOOP_FOREVER => loop {
                cohort_step(context, 1);
            },
            RECURSE_FOREVER => return recurse(context, 0),
            FORGE_A_HANDLE => return Handle::new(77, 0, 5).0,
            FORGE_A_FAILURE => cohort_fail(context, 99, 0, 0, 0),
            0.. if word < WORDS as i32 => {}
            _ => cohort_fail(
                context,
                Failure::IndexOutOfRange as u32,
                i64::from(word),
                WORDS as i64,
                0,
            ),
        }
        let operands = [Handle::new(1, 0, word as u32).0, u64::from(word as u32)];
        cohort_record(context, 0, operands.as_ptr())
    }
}

/// Counts no depth, so that only the stack ends it.
unsafe fn recurse(context: *mut Context, level: u64) -> u64 {
    let frame = std::hint::black_box([level; 64]);
    // SAFETY: the context of the running instance.
    unsafe {
        if (frame.as_ptr() as u64) < (*context).stack_limit {
            cohort_fail(context, Failure::DepthLimit as u32, 0, 0, 1);
        }
        recurse(context, level + 1) + std::hint::black_box(frame)[3]
    }
}

/// `row * 0.125 + word`.
pub unsafe extern "C" fn leaf(
    begin: i64,
    end: i64,
    operands: *const OperandRef,
    results: *const *mut c_void,
    _constants: *const *const c_void,
    _scratch: *mut c_void,
) {
    // SAFETY: operands and results as the manifest lists them.
    unsafe {
        let (table, words) = (*operands, *operands.add(1));
        let out = (*results).cast::<f32>();
        for row in begin as usize..end as usize {
            let from = (table.base as *const f32).add(*table.index.add(row) as usize * WIDTH);
            let word = *words.index.add(row) as i32 as f32;
            for column in 0..WIDTH {
                *out.add(row * WIDTH + column) = *from.add(column) * 0.125 + word;
            }
        }
    }
}

/// `(l @ w, (l @ w) * 0.25 + r)`; the matrix is in panels of three columns.
unsafe extern "C" fn node(
    begin: i64,
    end: i64,
    operands: *const OperandRef,
    results: *const *mut c_void,
    constants: *const *const c_void,
    scratch: *mut c_void,
) {
    // SAFETY: operands, results, constants and scratch as the manifest lists them.
    unsafe {
        let (left, right) = (*operands, *operands.add(1));
        let panels = (*constants).cast::<f32>();
        let quarter = *(*constants.add(1)).cast::<f32>();
        let product = scratch.cast::<f32>();
        let first = (*results).cast::<f32>();
        let second = (*results.add(1)).cast::<f32>();
        for row in begin as usize..end as usize {
            let l = (left.base as *const f32).add(*left.index.add(row) as usize * WIDTH);
            let r = (right.base as *const f32).add(*right.index.add(row) as usize * WIDTH);
            for column in 0..WIDTH {
                let panel = panels.add(column / 3 * WIDTH * 3 + column % 3);
                *product.add(column) = 0.0;
                for k in 0..WIDTH {
                    *product.add(column) += *l.add(k) * *panel.add(k * 3);
                }
            }
            for column in 0..WIDTH {
                let value = *product.add(column);
                *first.add(row * WIDTH + column) = value;
                *second.add(row * WIDTH + column) = value * quarter + *r.add(column);
            }
        }
    }
}

/// The value of a tree, computed without any of the above.
pub fn expected(tree: &Tree) -> [f32; WIDTH] {
    match tree {
        Tree::Leaf(word) => embedding(*word as usize).map(|x| x * 0.125 + *word as f32),
        Tree::Node(left, right) => {
            let (l, r) = (expected(left), expected(right));
            std::array::from_fn(|column| {
                let mut sum = 0.0;
                for (k, l) in l.iter().enumerate() {
                    sum += l * weight(k, column);
                }
                sum * 0.25 + r[column]
            })
        }
        Tree::Empty => [0.5; WIDTH],
    }
}

#[derive(Clone)]
pub enum Tree {
    Leaf(i32),
    Node(Box<Tree>, Box<Tree>),
    Empty,
}

impl Tree {
    pub fn json(&self) -> String {
        match self {
            Tree::Leaf(word) => format!("{{\"Leaf\": [{word}]}}"),
            Tree::Node(l, r) => format!("{{\"Node\": [{}, {}]}}", l.json(), r.json()),
            Tree::Empty => "\"Empty\"".to_owned(),
        }
    }

    pub fn nodes(&self) -> u64 {
        match self {
            Tree::Leaf(_) => 1,
            Tree::Node(l, r) => 1 + l.nodes() + r.nodes(),
            Tree::Empty => 0,
        }
    }

    /// A tree of about `size` leaves, different for each seed.
    pub fn random(seed: &mut u64, size: u32) -> Tree {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let number = (*seed >> 33) as u32;
        if size <= 1 {
            return match number % 8 {
                0 => Tree::Empty,
                _ => Tree::Leaf((number % WORDS as u32) as i32),
            };
        }
        let left = 1 + number % (size - 1).max(1);
        Tree::Node(
            Box::new(Tree::random(seed, left)),
            Box::new(Tree::random(seed, size - left)),
        )
    }
}

/// A program that returns its arguments.
pub fn echo_session(
    types: Vec<Type>,
    adts: Vec<Adt>,
    row_pools: Vec<RowPool>,
    config: Config,
) -> Session {
    let names = ["a", "b", "c", "d", "e", "f"];
    let manifest = Manifest {
        version: VERSION,
        // The entry does not know how many slots there are.
        entry: match slots(&Type::Tuple(types.clone())) {
            1 => "echo1",
            2 => "echo2",
            3 => "echo3",
            4 => "echo4",
            5 => "echo5",
            6 => "echo6",
            7 => "echo7",
            8 => "echo8",
            _ => panic!("add an entry for this number of slots"),
        }
        .to_owned(),
        arguments: types
            .iter()
            .zip(names)
            .map(|(ty, name)| Argument {
                name: name.to_owned(),
                ty: ty.clone(),
            })
            .collect(),
        result: Type::Tuple(types),
        adts,
        params: vec![],
        row_pools,
        sources: vec![],
        kernels: vec![],
        locations: vec![],
        debugs: vec![],
        forces: vec![],
        computed: vec![],
        grows_in_place: false,
        gradients: None,
        structure: None,
        gpu_flush: None,
        dims: vec!["n".to_owned(), "m".to_owned()],
    };
    let functions = Functions(vec![
        ("echo1", echo::<1> as *const ()),
        ("echo2", echo::<2> as *const ()),
        ("echo3", echo::<3> as *const ()),
        ("echo4", echo::<4> as *const ()),
        ("echo5", echo::<5> as *const ()),
        ("echo6", echo::<6> as *const ()),
        ("echo7", echo::<7> as *const ()),
        ("echo8", echo::<8> as *const ()),
    ]);
    let program = Program::new(manifest, Box::new(functions)).unwrap();
    Session::new(program, &Weights::none(), config).unwrap()
}

fn slots(ty: &Type) -> usize {
    match ty {
        Type::Tuple(types) => types.iter().map(slots).sum(),
        Type::Ragged { dims, .. } => {
            let is_free = |dim: &&LeadingDim| !matches!(dim, LeadingDim::Known(_));
            1 + dims.iter().filter(is_free).count()
        }
        _ => 1,
    }
}

unsafe extern "C" fn echo<const SLOTS: usize>(
    _context: *mut Context,
    arguments: *const u64,
    results: *mut u64,
) {
    // SAFETY: as many slots as the manifest's types have.
    unsafe { std::ptr::copy_nonoverlapping(arguments, results, SLOTS) }
}
