//! The `ragged` dialect under upstream's passes, and its shapes from Rust.

use cohort_dialects::{
    new_context,
    shape::{Dim, Shape},
};
use melior::ir::{Attribute, Type};

use crate::upstream::{after_passes, count};

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
    let text = after_passes(
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
