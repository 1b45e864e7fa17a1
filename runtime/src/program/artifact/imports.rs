//! The functions that host code may call: those of the ABI, and what LLVM makes of memory copies and
//! of mathematics that it has no instruction for.

use std::ffi::c_void;

use crate::symbols::abi_symbols;

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, bytes: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: i32, bytes: usize) -> *mut c_void;
    fn memcmp(a: *const c_void, b: *const c_void, bytes: usize) -> i32;
}

macro_rules! math {
    ($($name:ident($($argument:ident),*)),* $(,)?) => {
        unsafe extern "C" {
            $(fn $name($($argument: f32),*) -> f32;)*
        }

        fn math() -> Vec<(&'static str, *const ())> {
            vec![$((stringify!($name), $name as *const ())),*]
        }
    };
}

math! {
    acosf(x), asinf(x), atanf(x), atan2f(y, x), cbrtf(x), ceilf(x), cosf(x), coshf(x), erff(x),
    erfcf(x), exp2f(x), expf(x), expm1f(x), fabsf(x), floorf(x), fmaf(x, y, z), fmaxf(x, y),
    fminf(x, y), fmodf(x, y), log10f(x), log1pf(x), log2f(x), logf(x), nearbyintf(x), powf(x, y),
    rintf(x), roundf(x), sinf(x), sinhf(x), sqrtf(x), tanf(x), tanhf(x), truncf(x),
}

/// What polynomials in f64 need, where the processor has no instruction for it: x86-64 before SSE4.1.
extern "C" fn floor(x: f64) -> f64 {
    x.floor()
}

extern "C" fn roundeven(x: f64) -> f64 {
    x.round_ties_even()
}

/// Names and addresses.
pub fn imports() -> Vec<(&'static str, *const ())> {
    let memory = [
        ("memcpy", memcpy as *const ()),
        ("memmove", memmove as *const ()),
        ("memset", memset as *const ()),
        ("memcmp", memcmp as *const ()),
    ];
    let wide = [
        ("floor", floor as *const ()),
        ("roundeven", roundeven as *const ()),
    ];
    abi_symbols()
        .into_iter()
        .chain(memory)
        .chain(wide)
        .chain(math())
        .collect()
}
