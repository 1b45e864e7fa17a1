//! The polynomials behind the transcendental functions, run over many values.

use cohort_codegen::math;
use cohort_dialects::{builder::Op, new_context};
use melior::{
    ExecutionEngine,
    ir::{Module, operation::OperationLike},
    pass::PassManager,
    utility::parse_pass_pipeline,
};

const INFINITY: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
const COUNT: usize = 1 << 16;

/// The function at every value, through `vector<16xf32>` and the expansion.
///
/// One list of values an operand.
fn evaluate(operation: &str, operands: &[&[f32]]) -> Vec<f32> {
    let context = new_context();
    let parameters: String = (0..operands.len())
        .map(|index| format!("%in{index}: memref<{COUNT}xf32>, "))
        .collect();
    let loads: String = (0..operands.len())
        .map(|index| {
            format!(
                "%x{index} = vector.load %in{index}[%i] : memref<{COUNT}xf32>, vector<16xf32>\n"
            )
        })
        .collect();
    let names: Vec<_> = (0..operands.len())
        .map(|index| format!("%x{index}"))
        .collect();
    let names = names.join(", ");
    let source = format!(
        "func.func @f({parameters}%out: memref<{COUNT}xf32>)
            attributes {{llvm.emit_c_interface}} {{
          %zero = arith.constant 0 : index
          %step = arith.constant 16 : index
          %end = arith.constant {COUNT} : index
          scf.for %i = %zero to %end step %step {{
            {loads}
            %y = {operation} {names} : vector<16xf32>
            vector.store %y, %out[%i] : memref<{COUNT}xf32>, vector<16xf32>
          }}
          return
        }}"
    );
    let mut module = Module::parse(&context, &source).expect("parses");
    assert!(math::expand_polynomials(module.as_operation()));
    assert!(
        !module.as_operation().to_string().contains(operation),
        "{operation} is still there"
    );

    let manager = PassManager::new(&context);
    parse_pass_pipeline(
        manager.as_operation_pass_manager(),
        "builtin.module(convert-vector-to-llvm,convert-scf-to-cf,convert-cf-to-llvm,\
         convert-math-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,convert-func-to-llvm,\
         reconcile-unrealized-casts)",
    )
    .expect("a pipeline");
    manager.run(&mut module).expect("lowers");
    assert!(module.as_operation().verify());

    let mut result = vec![0.0f32; COUNT];
    let engine = ExecutionEngine::new(&module, 2, &[], false, false);
    let mut descriptors: Vec<_> = operands
        .iter()
        .map(|values| {
            assert_eq!(values.len(), COUNT);
            descriptor(values.as_ptr().cast_mut())
        })
        .chain([descriptor(result.as_mut_ptr())])
        .collect();
    let mut arguments: Vec<*mut Descriptor> = descriptors
        .iter_mut()
        .map(|descriptor| descriptor as *mut _)
        .collect();
    let mut packed: Vec<*mut ()> = arguments
        .iter_mut()
        .map(|pointer| (pointer as *mut *mut Descriptor).cast())
        .collect();
    // SAFETY: the function takes memrefs of `COUNT` values, which the descriptors describe.
    unsafe { engine.invoke_packed("f", &mut packed).expect("runs") };
    result
}

/// A memref of one dim, as MLIR passes it.
#[repr(C)]
struct Descriptor {
    allocated: *mut f32,
    aligned: *mut f32,
    offset: i64,
    size: i64,
    stride: i64,
}

fn descriptor(values: *mut f32) -> Descriptor {
    Descriptor {
        allocated: values,
        aligned: values,
        offset: 0,
        size: COUNT as i64,
        stride: 1,
    }
}

/// The distance from the true value in units of the last place of the nearest `f32`.
fn ulps(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    let ulp = f64::from(f32::from_bits(nearest.abs().to_bits() + 1)) - f64::from(nearest.abs());
    (f64::from(got) - exact).abs() / ulp
}

/// The largest error over a range, in units of the last place; NaN when a result is.
fn worst(operation: &str, range: std::ops::Range<f32>, exact: fn(f64) -> f64) -> f64 {
    let width = (range.end - range.start) / COUNT as f32;
    let values: Vec<f32> = (0..COUNT)
        .map(|index| range.start + width * index as f32)
        .collect();
    let results = evaluate(operation, &[&values]);
    largest(
        values
            .iter()
            .zip(results)
            .map(|(value, got)| ulps(got, exact(f64::from(*value)))),
    )
}

fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.fold(0.0, |worst, error| {
        if error > worst || error.is_nan() {
            error
        } else {
            worst
        }
    })
}

/// The results at a few values, given and expected in pairs; NaN equals itself and -0 is not 0.
fn check_at(operation: &str, pairs: &[(f32, f32)]) {
    let mut values = vec![0.5; COUNT];
    for (slot, (value, _)) in values.iter_mut().zip(pairs) {
        *slot = *value;
    }
    let results = evaluate(operation, &[&values]);
    for ((value, expected), got) in pairs.iter().zip(results) {
        let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
        assert!(
            same,
            "{operation} of {value}: expected {expected}, but got {got}"
        );
    }
}

#[test]
fn exp_is_accurate() {
    assert!(worst("math.exp", -87.0..88.0, f64::exp) < 1.0);
    check_at(
        "math.exp",
        &[
            (0.0, 1.0),
            (100.0, INFINITY),
            (-200.0, 0.0),
            (-INFINITY, 0.0),
            (NAN, NAN),
        ],
    );
}

#[test]
fn log_is_accurate() {
    assert!(worst("math.log", 1e-6..10.0, f64::ln) < 1.0);
    assert!(worst("math.log", 0.9..1.1, f64::ln) < 1.0);
    check_at(
        "math.log",
        &[
            (0.0, -INFINITY),
            (-1.0, NAN),
            (INFINITY, INFINITY),
            (NAN, NAN),
        ],
    );
}

#[test]
fn tanh_is_accurate() {
    assert!(worst("math.tanh", -10.0..10.0, f64::tanh) < 5.0);
    assert!(worst("math.tanh", -0.01..0.01, f64::tanh) < 5.0);
    check_at(
        "math.tanh",
        &[(1000.0, 1.0), (-INFINITY, -1.0), (-0.0, -0.0), (NAN, NAN)],
    );
}

#[test]
fn erf_is_accurate() {
    assert!(worst("math.erf", -4.0..4.0, erf) < 5.0);
    assert!(worst("math.erf", -0.1..0.1, erf) < 5.0);
    assert!(worst("math.erf", 1e-30..1e-29, erf) < 5.0);
    check_at(
        "math.erf",
        &[(10.0, 1.0), (-INFINITY, -1.0), (-0.0, -0.0), (NAN, NAN)],
    );
}

#[test]
fn erf_stays_in_bounds() {
    let values: Vec<f32> = (0..COUNT)
        .map(|index| 3.0 + index as f32 / COUNT as f32)
        .collect();
    let results = evaluate("math.erf", &[&values]);
    assert!(results.iter().all(|value| *value <= 1.0));
}

/// The error function by its Taylor series; good to 1e-9 up to 4.
fn erf(x: f64) -> f64 {
    let mut power = x;
    let mut sum = x;
    for n in 1..100 {
        power *= -x * x / f64::from(n);
        sum += power / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

#[test]
fn sin_and_cos_are_accurate_far_from_zero() {
    for range in [-4.0..4.0, -100.0..100.0, 1e6..1.1e6, 1e12..1.1e12] {
        assert!(
            worst("math.sin", range.clone(), f64::sin) < 1.0,
            "sin on {range:?}"
        );
        assert!(
            worst("math.cos", range.clone(), f64::cos) < 1.0,
            "cos on {range:?}"
        );
    }
    check_at(
        "math.sin",
        &[(0.0, 0.0), (-0.0, -0.0), (INFINITY, NAN), (NAN, NAN)],
    );
    check_at(
        "math.cos",
        &[(0.0, 1.0), (-0.0, 1.0), (-INFINITY, NAN), (NAN, NAN)],
    );
}

#[test]
fn sin_and_cos_stay_in_bounds_for_any_angle() {
    let values: Vec<f32> = (0..COUNT)
        .map(|index| f32::MAX / (1.0 + index as f32))
        .collect();
    for operation in ["math.sin", "math.cos"] {
        let results = evaluate(operation, &[&values]);
        assert!(
            results.iter().all(|value| value.abs() <= 1.0),
            "{operation}"
        );
    }
}

#[test]
fn powf_is_accurate() {
    let bases: Vec<f32> = (0..COUNT)
        .map(|index| 0.01 + (index % 256) as f32 * 0.037)
        .collect();
    let powers: Vec<f32> = (0..COUNT)
        .map(|index| (index / 256) as f32 * 0.0713 - 9.0)
        .collect();
    let results = evaluate("math.powf", &[&bases, &powers]);
    let errors = bases
        .iter()
        .zip(&powers)
        .zip(results)
        .map(|((base, power), got)| ulps(got, f64::from(*base).powf(f64::from(*power))));
    assert!(largest(errors) < 1.0);
}

#[test]
fn powf_agrees_with_ieee_in_every_special_case() {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.5,
        -0.5,
        1e-40,
        -1e-40,
        1e30,
        -1e30,
        f32::MAX,
        1e-3,
        INFINITY,
        -INFINITY,
        NAN,
    ];
    let pairs: Vec<_> = special
        .iter()
        .flat_map(|base| special.iter().map(move |power| (*base, *power)))
        .collect();
    let (mut bases, mut powers) = (vec![1.0; COUNT], vec![1.0; COUNT]);
    for (index, (base, power)) in pairs.iter().enumerate() {
        (bases[index], powers[index]) = (*base, *power);
    }
    let results = evaluate("math.powf", &[&bases, &powers]);
    for ((base, power), got) in pairs.iter().zip(results) {
        let expected = f64::from(*base).powf(f64::from(*power)) as f32;
        let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
        assert!(
            same,
            "{base} to the {power}: expected {expected}, but got {got}"
        );
    }
}

#[test]
fn only_what_was_asked_for_is_expanded() {
    let context = new_context();
    let source = "func.func @f(%x: f32, %y: f64) -> (f32, f32, f64) {
      %a = math.exp %x : f32
      %b = math.sin %x : f32
      %c = math.sin %y : f64
      return %a, %b, %c : f32, f32, f64
    }";
    let module = Module::parse(&context, source).expect("parses");
    assert!(math::expand(module.as_operation(), &[Op::MathSin]));
    assert!(module.as_operation().verify());
    let text = module.as_operation().to_string();
    assert!(text.contains("math.exp"), "{text}");
    assert!(!text.contains("math.sin %arg0 : f32"), "{text}");
    assert!(text.contains("math.sin %arg1 : f64"), "{text}");
}
