//! Weights files: what is read from them, and what does not fit.

use std::collections::BTreeMap;

use cohort_frontend::program::{Elem, ExprKind, ParamId};
use cohort_oracle::{
    Data, Oracle, Tensor, WeightsError, parse_weights, unused_weights, weight_shapes,
};
use safetensors::tensor::{Dtype, TensorView, serialize};

use crate::build::*;

fn file(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (
            *name,
            TensorView::new(*dtype, shape.clone(), bytes).unwrap(),
        )
    });
    serialize(views, None).unwrap()
}

#[test]
fn every_type_that_a_parameter_can_have_is_read() {
    let floats: Vec<u8> = [0.5_f32, -2.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let ints: Vec<u8> = [7_i32].iter().flat_map(|x| x.to_le_bytes()).collect();
    let bytes = file(&[
        ("f", Dtype::F32, vec![1, 2], floats),
        ("i", Dtype::I32, vec![1], ints),
        ("b", Dtype::BOOL, vec![2], vec![1, 0]),
    ]);
    let weights = parse_weights(&bytes).unwrap();
    assert_eq!(weights["f"], Tensor::f32(&[1, 2], vec![0.5, -2.0]));
    assert_eq!(weights["i"], Tensor::i32(&[1], vec![7]));
    assert_eq!(weights["b"].data, Data::Bool(vec![true, false]));
    assert_eq!(weight_shapes(&weights)["f"], (Elem::F32, vec![1, 2]));
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let unsigned = file(&[("u", Dtype::U64, vec![1], vec![0; 8])]);
    assert!(matches!(
        parse_weights(&unsigned),
        Err(WeightsError::UnsupportedType { .. })
    ));
    let good = file(&[("b", Dtype::BOOL, vec![2], vec![1, 0])]);
    assert!(matches!(
        parse_weights(&good[..good.len() - 1]),
        Err(WeightsError::Format(_))
    ));
    assert!(matches!(parse_weights(b""), Err(WeightsError::Format(_))));
}

#[test]
fn parameters_are_checked_by_name_shape_and_type() {
    let build = Build::new("main", &[]);
    let body = expr(f32s(&["2"]), ExprKind::Param(ParamId(0)));
    let program = with_param(program(vec![build.finish(body)]), "b", Elem::F32, &[2]);
    let weights = |name: &str, tensor: Tensor| BTreeMap::from([(name.to_string(), tensor)]);
    let message = |weights| Oracle::new(&program, weights).unwrap_err().to_string();
    let right = Tensor::f32(&[2], vec![1.0, 2.0]);
    assert_eq!(
        message(weights("c", right.clone())),
        "the weights have no tensor `b`"
    );
    assert_eq!(
        message(weights("b", Tensor::f32(&[1, 2], vec![1.0, 2.0]))),
        "tensor `b` is f32[1, 2], but the program declares f32[2]"
    );
    assert_eq!(
        message(weights("b", Tensor::i32(&[2], vec![1, 2]))),
        "tensor `b` is i32[2], but the program declares f32[2]"
    );
    assert!(Oracle::new(&program, weights("b", right.clone())).is_ok());
    assert_eq!(unused_weights(&program, &weights("c", right)), ["c"]);
}
