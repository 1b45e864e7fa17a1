// What the command line or a file gets wrong is an error of the call (2), told on stderr; what a pass
// finds is a failure (1).
// RUN: %batch-opt %s --no-such-pass > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=OPTION < %t
// RUN: %batch-opt %t.missing.mlir > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=MISSING < %t
// RUN: %batch-opt %s --emit=nonsense > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=LEVEL < %t
// RUN: %batch-opt %s --emit=batched --gpu-arch=sm_90 > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=ARCH < %t
// RUN: %batch-opt %s --emit=batched --target-cpu=native > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=CPU < %t
// RUN: %batch-opt %s --emit=artifact --precision=tf32 > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=PRECISION < %t
// RUN: %batch-opt %s --emit=ptx --precision=f16 > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=UNKNOWN < %t
// RUN: %batch-opt %s --input-format=toml > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=FORMAT < %t
// RUN: %batch-opt %s -o /no/such/folder/x > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=OUTPUT < %t
// RUN: %batch-opt %s --lower-control > %t 2>&1; test $? -eq 1
// RUN: %FileCheck %s --check-prefix=PASS < %t

// OPTION: error: {{.*}}--no-such-pass
// MISSING: error: cannot read `{{.*}}missing.mlir`: No such file
// LEVEL: error: unknown level `nonsense`
// ARCH: error: `--gpu-arch` is what `--emit=loops`, `--emit=ptx`, `--emit=cubin` and `--emit=artifact`
// CPU: error: `--target-cpu` is what `--emit=object` and `--emit=artifact` compile for
// PRECISION: error: `--precision` is of products on a GPU
// UNKNOWN: error: unknown precision `f16`; a GPU knows f32, tf32 and bf16
// FORMAT: error: unknown input format `toml`
// OUTPUT: error: cannot write `/no/such/folder/x`
// PASS: error: no function has the attribute `cfb.entry`
func.func private @f()
