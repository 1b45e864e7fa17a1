//! Manifests with wrong fields: whatever they say, they are refused or run, and nothing breaks.
//!
//! The code behind them does nothing, as no check can tell what code does; all else is the runtime.

use std::cell::RefCell;
use std::env;
use std::process::Command;

use cohort_runtime::abi::manifest::{Elem, Kernel, Manifest, Operand, Param};
use cohort_runtime::abi::{Context, OperandRef};
use cohort_runtime::symbols::cohort_record;
use cohort_runtime::{Batch, CompiledCode, Config, Limits, Program, Session, Weights};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value as Json, json};

use crate::program::tree_manifest;
use crate::ragged_program::ragged_manifest;
use crate::walk::walk_manifest;

const CHANGES: u64 = 4000;

thread_local! {
    /// Kernels that the entry calls.
    static CALLED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Has every symbol.
struct AnyCode(String);

// SAFETY: the entry records calls of kernels without lists, with as many operands as any has, and no
// kernel touches anything.
unsafe impl CompiledCode for AnyCode {
    fn symbol(&self, name: &str) -> Option<*const ()> {
        Some(match name == self.0 {
            true => entry as *const (),
            false => nothing as *const (),
        })
    }
}

unsafe extern "C" fn entry(context: *mut Context, _: *const u64, _: *mut u64) {
    let operands = [0_u64; 1 << 10];
    // Nothing may be left on the stack that must be dropped, as an instance can end anywhere.
    let count = CALLED.with_borrow(Vec::len);
    for index in 0..count {
        let kernel = CALLED.with_borrow(|called| called[index]);
        // SAFETY: the operands are as many as any kernel has that is called, and none is a list.
        unsafe { cohort_record(context, kernel, operands.as_ptr()) };
    }
}

unsafe extern "C" fn nothing(
    _: i64,
    _: i64,
    _: *const OperandRef,
    _: *const *mut std::ffi::c_void,
    _: *const *const std::ffi::c_void,
    _: *mut std::ffi::c_void,
) {
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// The places of all values in a tree, as pointers.
pub fn places(json: &Json, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match json {
        Json::Object(fields) => {
            for (name, value) in fields {
                places(value, &format!("{at}/{name}"), all);
            }
        }
        Json::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                places(value, &format!("{at}/{index}"), all);
            }
        }
        _ => {}
    }
}

fn change(json: &mut Json, random: &mut Random) {
    let mut all = Vec::new();
    places(json, "", &mut all);
    let Some(value) = json.pointer_mut(&random.one(&all)) else {
        return;
    };
    match value {
        Json::Number(_) => {
            let numbers: [u64; 20] = [
                0,
                1,
                2,
                3,
                5,
                7,
                64,
                255,
                1 << 16,
                (1 << 20) + 1,
                (1 << 22) - 1,
                (1 << 31) - 1,
                1 << 31,
                u32::MAX.into(),
                1 << 32,
                1 << 38,
                1 << 40,
                1 << 62,
                1 << 63,
                u64::MAX,
            ];
            *value = json!(random.one(&numbers));
        }
        Json::String(_) => {
            *value =
                json!(random.one(&["", "id", "x", "t", "f32", "i32", "bool", "rows", "calls"]));
        }
        Json::Array(elements) if !elements.is_empty() => {
            let index = random.below(elements.len());
            match random.below(3) {
                0 => drop(elements.remove(index)),
                1 => elements.push(elements[index].clone()),
                _ => {
                    let other = random.below(elements.len());
                    elements.swap(index, other);
                }
            }
        }
        Json::Array(elements) => elements.push(json!(random.below(4))),
        _ => {
            let pool = random.below(4);
            *value = random.one(&[
                Json::Null,
                json!({"scalar": "f32"}),
                json!("length"),
                json!({"tensor": {"pool": pool}}),
                json!({"row": {"pool": pool}}),
                json!({"rows": {"pool": pool}}),
                json!({"array": {"tensor": {"pool": pool}}}),
                json!({"stacked": {"pool": pool, "extent": 0}}),
                json!({"ragged": {"pool": pool, "extent": 0, "dims": [{"known": 1 << 20}, "any"]}}),
                json!({"ragged": {"pool": pool, "extent": 1, "dims": [{"named": 0}]}}),
                json!({"table": {"param": 0, "pool": pool}}),
                json!({"splat": {"bits": 7, "pool": pool}}),
                json!({"adt": 0}),
            ]);
        }
    }
}

/// Weights as the manifest wants them, or none where they would be large.
fn weights(manifest: &Manifest) -> Weights {
    let bytes = |shape: &[u64], elem: Elem| {
        let bytes = shape
            .iter()
            .try_fold(elem.bytes() as u64, |all, dim| all.checked_mul(*dim));
        bytes.filter(|bytes| *bytes <= 1 << 20)
    };
    let data = vec![0; 1 << 20];
    let tensors = manifest.params.iter().map(|param| {
        let dtype = match param.elem {
            Elem::F32 => Dtype::F32,
            Elem::I32 => Dtype::I32,
            Elem::Bool => Dtype::BOOL,
        };
        let length = bytes(&param.shape, param.elem)? as usize;
        let shape = param.shape.iter().map(|dim| *dim as usize).collect();
        let view = TensorView::new(dtype, shape, &data[..length]).ok()?;
        Some((param.name.clone(), view))
    });
    // Two of one name are in no file.
    let is_first = |(index, param): (usize, &Param)| {
        manifest.params[..index]
            .iter()
            .all(|other| other.name != param.name)
    };
    let are_apart = manifest.params.iter().enumerate().all(is_first);
    let file = tensors
        .collect::<Option<Vec<_>>>()
        .filter(|_| are_apart)
        .and_then(|tensors| safetensors::serialize(tensors, None).ok());
    match file {
        Some(file) => Weights::from_bytes(file.into()).unwrap(),
        None => Weights::none(),
    }
}

/// Runs some lines; whether that came to an end without an error of the whole run.
fn run(manifest: Manifest, random: &mut Random) -> bool {
    let weights = weights(&manifest);
    let can_be_called = |kernel: &Kernel| {
        let is_list =
            |operand: &Operand| matches!(operand, Operand::Rows { .. } | Operand::Stacked { .. });
        kernel.operands.len() < 1 << 10 && !kernel.operands.iter().any(is_list)
    };
    let numbered = (0..).zip(&manifest.kernels);
    let called = numbered
        .filter(|(number, kernel)| {
            can_be_called(kernel) && !manifest.is_load_time(*number as usize)
        })
        .map(|(number, _)| number);
    let called: Vec<u32> = called.collect();
    CALLED.set(called);
    let code = AnyCode(manifest.entry.clone());
    let Ok(program) = Program::new(manifest, Box::new(code)) else {
        return false;
    };
    let config = Config {
        limits: Limits {
            max_memory: 1 << 20,
            max_depth: 100,
            ..Limits::default()
        },
        batch: random.one(&[
            Batch::Count(3),
            Batch::InFlight(2),
            Batch::Unbatched,
            Batch::All,
        ]),
        batch_memory: 1 << 22,
        keep_memory: random.one(&[0, 1000, 1 << 20]),
        allow_unused_weights: true,
        ..Config::default()
    };
    let Ok(mut session) = Session::new(program, &weights, config) else {
        return false;
    };
    session.survey();
    let lines = "{\"t\": {\"Leaf\": [1]}}\n{\"x\": [[1, 2, 3, 4]], \"y\": [1], \"kind\": 0}\n\
                 {\"seed\": 1, \"kind\": 0}\n{}\n{\"x\": [], \"y\": [], \"kind\": 1}\n";
    let mut output = Vec::new();
    match session.run_stream(lines.as_bytes(), &mut output, &mut |_| {}) {
        Ok(stats) => {
            assert!(session.explain(&stats).is_some());
            true
        }
        Err(_) => false,
    }
}

/// Set in the process that tries the manifests.
const ALONE: &str = "COHORT_CHANGED_MANIFESTS";

/// The limit on memory is a process's, and here one instance may take all of it: so a process that
/// runs no other test tries them.
#[test]
fn whatever_a_manifest_says_nothing_breaks() {
    if env::var_os(ALONE).is_some() {
        return try_changed_manifests();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "manifests::whatever_a_manifest_says_nothing_breaks",
        ])
        .env(ALONE, "")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{}\n{printed}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

fn try_changed_manifests() {
    // What a manifest asks for beyond it is refused.
    cohort_runtime::memory::set_most(4 << 30);
    let manifests = [
        tree_manifest(),
        walk_manifest(),
        ragged_manifest(false),
        ragged_manifest(true),
    ];
    let trees = manifests.map(|manifest| serde_json::to_value(manifest).unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut ran) = (0, 0);
    for _ in 0..CHANGES {
        let mut json = random.one(&trees);
        for _ in 0..=random.below(3) {
            change(&mut json, &mut random);
        }
        if let Ok(manifest) = serde_json::from_value::<Manifest>(json) {
            read += 1;
            ran += u64::from(run(manifest, &mut random));
        }
    }
    assert!(read > CHANGES / 4, "{read} could be read");
    assert!(ran > CHANGES / 40, "{ran} ran, of {read}");
}
