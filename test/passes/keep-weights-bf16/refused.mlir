// Steps of training are smaller than what bf16 tells apart.
// RUN: %batch-opt %s --keep-weights-bf16 --verify-diagnostics

// expected-error @below {{weights that are trained are kept in f32; leave `--keep-weights bf16` out for gradients}}
module attributes {cfb.gradients = #cfb<gradients all>} {
}
