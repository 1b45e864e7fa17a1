//! Builders of operations, which melior makes of the dialects' definitions.
#![allow(
    missing_docs,
    reason = "melior's macro writes items without documentation; the definitions have it"
)]

melior::dialect! {
    name: "cfb",
    files: ["cfb/CfbOps.td"],
    include_directories: ["./dialects/include", "./include"],
}

melior::dialect! {
    name: "ragged",
    files: ["ragged/RaggedOps.td"],
    include_directories: ["./dialects/include", "./include"],
}

// Those of upstream that melior has no builders for.
melior::dialect! {
    name: "linalg",
    files: ["mlir/Dialect/Linalg/IR/LinalgStructuredOps.td"],
}

melior::dialect! {
    name: "ml_program",
    files: ["mlir/Dialect/MLProgram/IR/MLProgramOps.td"],
}

melior::dialect! {
    name: "nvvm",
    files: ["mlir/Dialect/LLVMIR/NVVMOps.td"],
}
