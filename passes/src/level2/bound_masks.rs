//! `bound-masks`: a fold that a mask makes a triangle ends where the mask begins.
//!
//! In a kernel over calls, `Σ_k select(i >= k, a, 0) · b` has `i + 1` terms in row `i` that are not
//! zero, and a softmax-like fold of scores that are masked by a large negative constant as many
//! weights. That end is declared as a dim of rows, and the product that folds names it:
//!
//! ```mlir
//! ragged.dim @n(@batch)
//! ragged.dim @n.until.1(@n) lengths (d0) -> (d0 + 1)
//! …
//! %r = arith.cmpi sge, %rows, %columns : tensor<?x?x?xi32, #s>
//! %t = arith.select %r, %a, %zeros : tensor<?x?x?xi1, #s>, tensor<?x?x?xf32, #s>
//! %p = linalg.batch_matmul {ragged.until = @n.until.1} ins(%t, %b : …) outs(%z : …) -> …
//! ```
//!
//! `lower-kernels` computes such products tile by tile up to the end; within the tiles that the
//! diagonal cuts, the mask stays. Of scores, `ragged.online` products alone (`online-folds`) are
//! bounded, and the constant need not be minus infinity: where a row's scores are so low that masked
//! ones would have weight beside them, the rows of its block are computed in full. A product skips
//! zeros times whatever the other factor holds, so infinities behind the diagonal are not seen.
//!
//! After CoRa (Fegade et al., MLSys 2022), §4: triangles are ragged, with lengths that are a function
//! of the row. Requires: level 2, after `online-folds`. Leaves: level 2.

use cohort_dialects::builder::{Builder, name_of};
use melior::ir::{AffineExpr, AffineMap};
use melior::{
    Context,
    ir::{OperationRef, attribute::FlatSymbolRefAttribute},
};

use crate::kernel::calls;
use crate::pass::{Outcome, PassInfo, error};
use crate::support::ir::{name_attribute, set_attribute, top_level};

pub const PASS: PassInfo = PassInfo {
    name: "bound-masks",
    summary: "End folds where a mask makes them triangles",
    description: include_str!("bound_masks.rs"),
    run,
};

fn run<'c>(context: &'c Context, module: OperationRef<'c, 'c>) -> Outcome {
    for kernel in top_level(module) {
        if name_of(kernel) != "cfb.kernel" || !calls::is_over_calls(kernel) {
            continue;
        }
        for bound in calls::bounded_folds(kernel)? {
            let name = format!("{}.until.{}", bound.row, bound.after);
            declare(context, module, kernel, &name, &bound)?;
            let symbol = FlatSymbolRefAttribute::new(context, &name).into();
            set_attribute(bound.operation, calls::UNTIL, symbol);
        }
    }
    Ok(())
}

fn declare<'c>(
    context: &'c Context,
    module: OperationRef<'c, 'c>,
    kernel: OperationRef<'c, 'c>,
    name: &str,
    bound: &calls::Bound<'c>,
) -> Outcome {
    let known = top_level(module)
        .into_iter()
        .any(|op| name_attribute(op, "sym_name").as_deref() == Some(name));
    if known {
        return Ok(());
    }
    let top = Builder::before(context, kernel)
        .ok_or_else(|| error(kernel, "expected a kernel in a module"))?;
    let rule = AffineExpr::dim(context, 0) + AffineExpr::constant(context, bound.after);
    let attributes = [
        ("sym_name", top.string(name)),
        ("outer", top.array(&[top.symbol(&bound.row)])),
        ("rule", top.map(AffineMap::new(context, 1, 0, &[rule]))),
    ];
    top.op("ragged.dim", &[], &[], &attributes, vec![]);
    Ok(())
}
