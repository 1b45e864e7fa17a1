// Whatever the bytes, the tool says what is wrong and ends by itself: no crash, no abort.
// RUN: printf '\377\376\000\001' > %t.bin; %batch-opt %t.bin > /dev/null 2>&1; test $? -eq 1
// RUN: printf 'ML\357R\001garbage' > %t.bin; %batch-opt %t.bin > /dev/null 2>&1; test $? -eq 1
// RUN: printf 'fn \377' > %t.coh; %batch-opt %t.coh > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s < %t
// RUN: printf '\377\376' > %t.bin; %batch-run --allow-ir %t.bin --input /dev/null > /dev/null 2>&1; test $? -eq 2
// RUN: printf "module {}" > %t.mlir; %batch-run --allow-ir %t.mlir --input /dev/null > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=EMPTY < %t

// RUN: printf "module {" > %t.mlir; %batch-run --allow-ir %t.mlir --input /dev/null > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=BROKEN < %t
// RUN: printf "func.func private @f()" | %batch-run --allow-ir - --input /dev/null > %t 2>&1; test $? -eq 2
// RUN: %FileCheck %s --check-prefix=EMPTY < %t

// BROKEN: error: {{.*}}.mlir is not a valid MLIR module
// CHECK: error: {{.*}}.coh is not UTF-8 text, see byte 3
// EMPTY: error: no function has the attribute `cfb.entry`
