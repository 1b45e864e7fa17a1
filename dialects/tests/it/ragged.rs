//! The `ragged` dialect under upstream's passes, and its shapes from Rust.

use cohort_dialects::{
    new_context,
    shape::{Dim, Shape},
};
use melior::ir::{Attribute, Type};

use crate::upstream::{after_passes, count};

const DIMS: &str = "ragged.dim @batch
  ragged.dim @seq(@batch)
  ragged.dim @layer";

fn after(passes: &str, source: &str) -> String {
    after_passes(passes, &format!("{DIMS}\n{source}"))
}

/// A prelude that gives offsets and maps of the lengths `%n`, named `name`.
fn prelude(name: &str) -> String {
    format!(
        "%{name}:3 = ragged.prelude(%n) : (tensor<?xindex>)
            -> (tensor<?xindex>, tensor<?xindex>, tensor<?xindex>) {{
         ^bb0(%l: tensor<?xindex>):
           %o = ragged.offsets @seq(%l) pad 4 : tensor<?xindex> -> tensor<?xindex>
           %row, %index = ragged.fuse @seq(%o) : tensor<?xindex> -> tensor<?xindex>
           ragged.yield %o, %row, %index : tensor<?xindex>, tensor<?xindex>, tensor<?xindex>
         }}"
    )
}

#[test]
fn equal_preludes_are_shared() {
    let source = format!(
        "func.func @f(%n: tensor<?xindex>) -> (tensor<?xindex>, tensor<?xindex>) {{
           {}
           {}
           return %a#0, %b#1 : tensor<?xindex>, tensor<?xindex>
         }}",
        prelude("a"),
        prelude("b")
    );
    assert_eq!(count(&after("cse", &source), "ragged.prelude"), 1);
}

#[test]
fn preludes_that_pad_differently_are_not_shared() {
    let source = format!(
        "func.func @f(%n: tensor<?xindex>) -> (tensor<?xindex>, tensor<?xindex>) {{
           {}
           {}
           return %a#0, %b#0 : tensor<?xindex>, tensor<?xindex>
         }}",
        prelude("a"),
        prelude("b").replace("pad 4", "pad 8")
    );
    assert_eq!(count(&after("cse", &source), "ragged.prelude"), 2);
}

/// A loop over layers, each with its own prelude and a loop over rows that stores an offset.
fn layers(lengths: &str) -> String {
    format!(
        "func.func @f(%m: tensor<?xindex>, %layers: index, %out: memref<?xindex>) {{
           %zero = arith.constant 0 : index
           %one = arith.constant 1 : index
           scf.for %layer = %zero to %layers step %one {{
             {lengths}
             {}
             %x = tensor.extract %p#0[%layer] : tensor<?xindex>
             memref.store %x, %out[%layer] : memref<?xindex>
           }}
           return
         }}",
        prelude("p")
    )
}

#[test]
fn a_prelude_leaves_the_loop_over_layers() {
    let source = layers("").replace("%m: tensor<?xindex>", "%n: tensor<?xindex>");
    let text = after("func.func(loop-invariant-code-motion)", &source);
    let (outside, inside) = text.split_once("scf.for").expect("the loop stays");
    assert_eq!(count(outside, "ragged.prelude"), 1, "{text}");
    assert_eq!(count(inside, "ragged.prelude"), 0, "{text}");
}

#[test]
fn a_prelude_of_a_layers_own_lengths_stays() {
    let source = layers("%n = tensor.insert %layer into %m[%zero] : tensor<?xindex>");
    let text = after("func.func(loop-invariant-code-motion)", &source);
    let (outside, _) = text.split_once("scf.for").expect("the loop stays");
    assert_eq!(count(outside, "ragged.prelude"), 0, "{text}");
}

#[test]
fn what_does_not_depend_on_a_ragged_loop_leaves_it() {
    let source = "func.func @f(%b: index, %n: tensor<?xindex>, %out: memref<?xindex>) {
      ragged.for %s in @seq(%b) to %n : tensor<?xindex> {
        %twice = arith.addi %b, %b : index
        memref.store %twice, %out[%s] : memref<?xindex>
      }
      ragged.forall %s in @seq(%b) to %n : tensor<?xindex> {
        %three = arith.muli %b, %b : index
        memref.store %three, %out[%s] : memref<?xindex>
      }
      return
    }";
    let text = after("func.func(loop-invariant-code-motion)", source);
    let (outside, _) = text.split_once("ragged.for %").expect("the loop stays");
    assert_eq!(count(outside, "arith.addi"), 1, "{text}");
    let (outside, _) = text.split_once("ragged.forall %").expect("the loop stays");
    assert_eq!(count(outside, "arith.muli"), 1, "{text}");
}

#[test]
fn loops_that_only_compute_go_away_when_unused() {
    let source = "func.func @f(%b: index, %n: tensor<?xindex>, %x: f32) {
      %y = ragged.for %s in @seq(%b) to %n : tensor<?xindex> iter_args(%a = %x) -> (f32) {
        %t = arith.addf %a, %a : f32
        ragged.yield %t : f32
      }
      return
    }";
    assert_eq!(count(&after("canonicalize", source), "ragged.for"), 0);
}

#[test]
fn storage_and_back_moves_nothing() {
    let source = "
    !R = tensor<?x?x3xf32, #ragged.shape<@batch, @seq(@batch), _>>
    func.func @f(%x: tensor<?x3xf32>, %t: !R, %n: tensor<?xindex>, %o: tensor<?xindex>)
        -> (tensor<?x3xf32>, !R) {
      %r = ragged.from_storage %x lengths(%n) offsets(%o)
          : tensor<?x3xf32>, (tensor<?xindex>), tensor<?xindex> -> !R
      %y = ragged.to_storage %r : !R -> tensor<?x3xf32>
      %s = ragged.to_storage %t : !R -> tensor<?x3xf32>
      %u = ragged.from_storage %s lengths(%n) offsets(%o)
          : tensor<?x3xf32>, (tensor<?xindex>), tensor<?xindex> -> !R
      return %y, %u : tensor<?x3xf32>, !R
    }";
    // The type's alias is of no concern to the parser of a whole module.
    let (alias, rest) = source.split_once("func.func").expect("an alias");
    let text = after_passes("canonicalize", &format!("{alias}\n{DIMS}\nfunc.func{rest}"));
    assert_eq!(count(&text, "_storage"), 0, "{text}");
}

#[test]
fn elementwise_operations_on_ragged_tensors_fuse() {
    let shape = "tensor<?x?x3xf32, #ragged.shape<@batch, @seq(@batch), _>>";
    let map = "affine_map<(b, s, d) -> (b, s, d)>";
    let generic = |to: &str, from: &str, body: &str| {
        format!(
            "%{to} = linalg.generic {{indexing_maps = [{map}, {map}],
                 iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}}
               ins(%{from} : {shape}) outs(%e : {shape}) {{
             ^bb0(%p: f32, %q: f32):
               %r = {body} : f32
               linalg.yield %r : f32
             }} -> {shape}"
        )
    };
    let source = format!(
        "func.func @f(%x: {shape}, %b: index, %s: index) -> {shape} {{
           %e = tensor.empty(%b, %s) : {shape}
           {}
           {}
           return %z : {shape}
         }}",
        generic("y", "x", "math.tanh %p"),
        generic("z", "y", "arith.negf %p")
    );
    let text = after(
        "func.func(linalg-fuse-elementwise-ops),canonicalize,cse",
        &source,
    );
    assert_eq!(count(&text, "linalg.generic"), 1, "{text}");
    // Nothing has lost its encoding on the way.
    assert_eq!(count(&text, "tensor<?x?x3xf32>"), 0, "{text}");
}

#[test]
fn shapes_from_rust_are_those_of_the_text() {
    let context = new_context();
    let shape = Shape {
        dims: vec![
            Dim::named("batch"),
            Dim {
                max: Some(512),
                pad: 32,
                bulk: 64,
                ..Dim::ragged("seq", &["batch"])
            },
            Dim::unnamed(),
        ],
    };
    let text = "#ragged.shape<@batch, @seq(@batch) max 512 pad 32 bulk 64, _>";
    let attribute = Attribute::parse(&context, text).expect("a shape");
    assert_eq!(shape.to_attribute(&context), Some(attribute));
    assert_eq!(Shape::from_attribute(attribute), Some(shape.clone()));

    let ty = Type::parse(&context, &format!("tensor<?x?x28xf32, {text}>")).expect("a type");
    assert_eq!(Shape::of_type(ty), Some(shape));
}

#[test]
fn shapes_keep_names_of_any_letters() {
    let context = new_context();
    let shape = Shape {
        dims: vec![Dim::named("a\0b"), Dim::ragged("\"é\\\t", &["a\0b"])],
    };
    let attribute = shape.to_attribute(&context).expect("a shape");
    assert_eq!(Shape::from_attribute(attribute), Some(shape));
}

#[test]
fn other_attributes_and_types_have_no_shape() {
    let context = new_context();
    let attribute = Attribute::parse(&context, "3 : i64").expect("an attribute");
    assert_eq!(Shape::from_attribute(attribute), None);
    for text in [
        "f32",
        "tensor<3xf32>",
        "tensor<3xf32, 7 : i64>",
        "tensor<*xf32>",
    ] {
        let ty = Type::parse(&context, text).expect("a type");
        assert_eq!(Shape::of_type(ty), None, "{text}");
    }
}

#[test]
fn dims_that_make_no_shape_are_refused() {
    let context = new_context();
    let handler = context.attach_diagnostic_handler(|_| true);
    let shape = Shape {
        dims: vec![Dim::ragged("seq", &["batch"])],
    };
    assert_eq!(shape.to_attribute(&context), None);
    context.detach_diagnostic_handler(handler);
}

#[test]
fn typed_builders_make_operations_of_the_dialect() {
    use cohort_dialects::ragged;
    use melior::ir::{Location, Operation, attribute::StringAttribute, operation::OperationLike};

    let context = new_context();
    let dim: Operation = ragged::dim(
        &context,
        StringAttribute::new(&context, "batch"),
        Location::unknown(&context),
    )
    .into();
    assert!(dim.verify());
    assert_eq!(dim.to_string(), "ragged.dim @batch\n");
}
