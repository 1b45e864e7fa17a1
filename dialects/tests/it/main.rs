//! The dialects in a context: parsing, printing, verification, upstream passes over it, and the glue.

mod constraints;
mod diagnostics;
mod ragged;
mod types;
mod upstream;

use cohort_dialects::{new_context, translate};
use melior::ir::{Module, operation::OperationLike};

#[test]
fn every_operation_is_parsed_printed_and_read_again() {
    let context = new_context();
    let module = Module::parse(&context, include_str!("every_operation.mlir")).expect("parses");
    assert!(module.as_operation().verify());
    let text = module.as_operation().to_string();
    let again = Module::parse(&context, &text).expect("parses what it printed");
    assert_eq!(again.as_operation().to_string(), text);
}

#[test]
fn typed_builders_make_operations_of_the_dialect() {
    use cohort_dialects::{cfb, types};
    use melior::ir::{Location, attribute::IntegerAttribute};

    let context = new_context();
    let location = Location::unknown(&context);
    let number =
        IntegerAttribute::new(melior::ir::r#type::IntegerType::new(&context, 64).into(), 1);
    let phase: melior::ir::Operation = cfb::phase(&context, number, location).into();
    assert!(phase.verify());
    assert_eq!(phase.to_string(), "cfb.phase 1\n");

    let lazy = types::lazy(melior::ir::Type::parse(&context, "tensor<2xf32>").expect("a type"));
    let name = melior::ir::attribute::FlatSymbolRefAttribute::new(&context, "hf");
    let param: melior::ir::Operation =
        cfb::param(&context, lazy.expect("a lazy type"), name, location).into();
    assert_eq!(
        param.to_string(),
        "%0 = cfb.param @hf : !cfb.lazy<tensor<2xf32>>\n"
    );
}

#[test]
fn a_module_of_the_llvm_dialect_becomes_llvm_ir() {
    let context = new_context();
    let source = "llvm.func @f(%x: f32) -> f32 { llvm.return %x : f32 }";
    let module = Module::parse(&context, source).expect("parses");
    let text = translate::to_llvm_ir_text(&module).expect("translates");
    assert!(text.contains("define float @f(float %0)"), "{text}");
}

#[test]
fn a_module_of_another_dialect_does_not_become_llvm_ir() {
    let context = new_context();
    let handler = context.attach_diagnostic_handler(|_| true);
    let module = Module::parse(&context, "func.func private @f()").expect("parses");
    assert_eq!(
        translate::to_llvm_ir_text(&module),
        Err(translate::TranslateError)
    );
    context.detach_diagnostic_handler(handler);
}
