// A module without an entry is not a program.
// RUN: %not %batch-opt %s --lower-control 2>&1 | %FileCheck %s

// CHECK: error: no function has the attribute `cfb.entry`
func.func @main(%n: i32) -> i32 {
  return %n : i32
}
