//! The shared code of products over calls: micro-kernels on register blocks, and the loops around.
//!
//! `cohort_block` computes `c = s + a · b` for a block: `a` has rows of a fixed stride, `b` is in
//! panels of 32 columns, each `[k][32]`. Every element is its start followed by one fused
//! multiply-add for each `k` in order, whichever micro-kernel computes it. Tiles at the edge are
//! computed in a tile of their own, and what is valid is copied.
//!
//! `%bound` lets the left side be a triangle: row tile `i` has `k` up to `bound + i` only.

use std::fmt::Write;

use crate::codegen::cpu::registers;

/// Rows of the micro-kernels.
const ROWS: [usize; 6] = [1, 2, 4, 6, 8, 12];

/// Rows and columns of a tile.
pub const TILE_ROWS: i64 = 12;
pub const PANEL: i64 = 32;

/// The symbol of the whole.
pub const BLOCK: &str = "cohort_block";
/// The symbol of the same with every tile treated as one at the edge, of loops that are not split.
pub const CHECKED_BLOCK: &str = "cohort_block_checked";

const ARGUMENTS: &str = "%a: !llvm.ptr, %a_row: i64, %b: !llvm.ptr, %k: i64, %c: !llvm.ptr, \
                         %c_row: i64, %s: !llvm.ptr, %s_row: i64";
const TYPES: &str = "(!llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr, i64) -> ()";

macro_rules! line {
    // Writing to a string cannot fail.
    ($text:expr, $($format:tt)*) => {{ let _ = writeln!($text, $($format)*); }};
}

/// The module as text, for a processor whose registers hold `registers` vectors.
pub fn module(registers: usize) -> String {
    let mut text = String::from("module {\n");
    let tiles = ROWS.into_iter().flat_map(|rows| [(rows, 1), (rows, 2)]);
    for tile in tiles.clone() {
        match registers::part(registers, tile, tiles.clone()) {
            part if part == tile => micro_kernel(&mut text, tile),
            part => in_parts(&mut text, tile, part),
        }
    }
    text += COPY;
    block(&mut text, BLOCK, true);
    block(&mut text, CHECKED_BLOCK, false);
    text.push_str("}\n");
    text
}

fn gep(text: &mut String, result: &str, base: &str, offset: &str) {
    line!(
        text,
        "{result} = llvm.getelementptr {base}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8"
    );
}

/// `{prefix}0`, `{prefix}1`, …: addresses of rows.
fn row_addresses(text: &mut String, prefix: &str, base: &str, stride: &str, rows: usize) {
    line!(
        text,
        "{prefix}0 = llvm.getelementptr {base}[0] : (!llvm.ptr) -> !llvm.ptr, i8"
    );
    for row in 1..rows {
        let before = format!("{prefix}{}", row - 1);
        gep(text, &format!("{prefix}{row}"), &before, stride);
    }
}

/// A tile that registers do not hold, by one that they do.
fn in_parts(text: &mut String, (rows, vectors): (usize, usize), part: (usize, usize)) {
    line!(
        text,
        "llvm.func internal @{BLOCK}_r{rows}_v{vectors}({ARGUMENTS}) attributes {{no_inline}} {{"
    );
    for vector in (0..vectors).step_by(part.1) {
        for row in (0..rows).step_by(part.0) {
            let at = format!("{row}_{vector}");
            let bytes = vector * 64;
            line!(text, "%row{at} = arith.constant {row} : i64");
            for side in ["a", "c", "s"] {
                line!(
                    text,
                    "%{side}_skip{at} = arith.muli %{side}_row, %row{at} : i64"
                );
                let (start, skip) = (format!("%{side}_start{at}"), format!("%{side}_skip{at}"));
                gep(text, &start, &format!("%{side}"), &skip);
            }
            for (to, from) in [
                ("b", "b".to_owned()),
                ("c", format!("c_start{at}")),
                ("s", format!("s_start{at}")),
            ] {
                line!(
                    text,
                    "%{to}{at} = llvm.getelementptr %{from}[{bytes}] : (!llvm.ptr) -> !llvm.ptr, i8"
                );
            }
            line!(
                text,
                "llvm.call @{BLOCK}_r{}_v{}(%a_start{at}, %a_row, %b{at}, %k, %c{at}, %c_row, %s{at}, %s_row) : {TYPES}",
                part.0,
                part.1
            );
        }
    }
    line!(text, "llvm.return\n}}");
}

fn micro_kernel(text: &mut String, (rows, vectors): (usize, usize)) {
    line!(
        text,
        "llvm.func internal @{BLOCK}_r{rows}_v{vectors}({ARGUMENTS}) attributes {{no_inline}} {{"
    );
    line!(
        text,
        "%zero = arith.constant 0 : i64\n%one = arith.constant 1 : i64\n%line = arith.constant 128 : i64"
    );
    row_addresses(text, "%a", "%a", "%a_row", rows);
    row_addresses(text, "%s_at", "%s", "%s_row", rows);
    let vector = "vector<16xf32>";
    let each = |f: &dyn Fn(usize, usize) -> String| {
        let all = (0..rows).flat_map(|row| (0..vectors).map(move |vector| (row, vector)));
        all.map(|(row, vector)| f(row, vector))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for row in 0..rows {
        for v in 0..vectors {
            line!(
                text,
                "%s{row}_{v}_at = llvm.getelementptr %s_at{row}[{}] : (!llvm.ptr) -> !llvm.ptr, i8\n\
                 %s{row}_{v} = llvm.load %s{row}_{v}_at {{alignment = 4 : i64}} : !llvm.ptr -> {vector}",
                v * 64
            );
        }
    }
    // LLVM would unroll the loop, and then there are not enough registers.
    let types = format!("i64, {}", each(&|_, _| vector.into()));
    line!(
        text,
        "llvm.br ^head(%zero, {} : {types})\n\
         ^head(%i: i64, {}):\n\
         %more = llvm.icmp \"slt\" %i, %k : i64\n\
         llvm.cond_br %more, ^body, ^end\n\
         ^body:",
        each(&|row, v| format!("%s{row}_{v}")),
        each(&|row, v| format!("%x{row}_{v}: {vector}"))
    );
    line!(text, "%b_offset = arith.muli %i, %line : i64");
    gep(text, "%p", "%b", "%b_offset");
    for v in 0..vectors {
        line!(
            text,
            "%w{v}_at = llvm.getelementptr %p[{}] : (!llvm.ptr) -> !llvm.ptr, i8\n\
             %w{v} = llvm.load %w{v}_at {{alignment = 4 : i64}} : !llvm.ptr -> {vector}",
            v * 64
        );
    }
    for row in 0..rows {
        line!(
            text,
            "%e{row}_at = llvm.getelementptr %a{row}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n\
             %e{row} = llvm.load %e{row}_at : !llvm.ptr -> f32\n\
             %f{row} = vector.broadcast %e{row} : f32 to {vector}"
        );
        for v in 0..vectors {
            line!(
                text,
                "%y{row}_{v} = vector.fma %f{row}, %w{v}, %x{row}_{v} : {vector}"
            );
        }
    }
    line!(
        text,
        "%next = arith.addi %i, %one : i64\n\
         llvm.br ^head(%next, {} : {types}) \
         {{loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}}\n\
         ^end:",
        each(&|row, v| format!("%y{row}_{v}"))
    );
    row_addresses(text, "%c_at", "%c", "%c_row", rows);
    for row in 0..rows {
        for v in 0..vectors {
            line!(
                text,
                "%c{row}_{v} = llvm.getelementptr %c_at{row}[{}] : (!llvm.ptr) -> !llvm.ptr, i8\n\
                 llvm.store %x{row}_{v}, %c{row}_{v} {{alignment = 4 : i64}} : {vector}, !llvm.ptr",
                v * 64
            );
        }
    }
    line!(text, "llvm.return\n}}");
}

/// Copies the valid part of a tile.
const COPY: &str = "
llvm.func internal @cohort_block_copy(%from: !llvm.ptr, %from_row: i64, %to: !llvm.ptr,
    %to_row: i64, %rows: i64, %columns: i64) attributes {no_inline} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %lanes = arith.constant 16 : i64
  %none = arith.constant dense<0.0> : vector<16xf32>
  %left = arith.subi %columns, %lanes : i64
  %first = arith.index_cast %columns : i64 to index
  %second = arith.index_cast %left : i64 to index
  %mask0 = vector.create_mask %first : vector<16xi1>
  %mask1 = vector.create_mask %second : vector<16xi1>
  scf.for %row = %zero to %rows step %one : i64 {
    %from_skip = arith.muli %row, %from_row : i64
    %to_skip = arith.muli %row, %to_row : i64
    %from0 = llvm.getelementptr %from[%from_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %to0 = llvm.getelementptr %to[%to_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %from1 = llvm.getelementptr %from0[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %to1 = llvm.getelementptr %to0[64] : (!llvm.ptr) -> !llvm.ptr, i8
    %x0 = llvm.intr.masked.load %from0, %mask0, %none {alignment = 4 : i32}
        : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
    %x1 = llvm.intr.masked.load %from1, %mask1, %none {alignment = 4 : i32}
        : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>
    llvm.intr.masked.store %x0, %to0, %mask0 {alignment = 4 : i32}
        : vector<16xf32>, vector<16xi1> into !llvm.ptr
    llvm.intr.masked.store %x1, %to1, %mask1 {alignment = 4 : i32}
        : vector<16xf32>, vector<16xi1> into !llvm.ptr
  }
  llvm.return
}
";

/// The loops over tiles; with `split`, those that are whole are written where the result lies.
fn block(text: &mut String, symbol: &str, split: bool) {
    line!(text, "llvm.func internal @{symbol}(");
    text.push_str(
        "%a: !llvm.ptr, %a_row: i64, %b: !llvm.ptr, %panel: i64,
    %k: i64, %c: !llvm.ptr, %c_row: i64, %s: !llvm.ptr, %s_row: i64, %rows: i64, %columns: i64,
    %bound: i64, %tile: !llvm.ptr) attributes {no_inline} {
  %zero = arith.constant 0 : i64
  %four = arith.constant 4 : i64
  %half = arith.constant 16 : i64
  %wide = arith.constant 32 : i64
  %high = arith.constant 12 : i64
  %line = arith.constant 128 : i64
  %zeros = arith.cmpi eq, %s_row, %zero : i64
  scf.for %j = %zero to %columns step %wide : i64 {
    %panels = arith.divui %j, %wide : i64
    %b_skip = arith.muli %panels, %panel : i64
    %b_j = llvm.getelementptr %b[%b_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %j_bytes = arith.muli %j, %four : i64
    %c_j = llvm.getelementptr %c[%j_bytes] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %s_skip = arith.select %zeros, %zero, %j_bytes : i64
    %s_j = llvm.getelementptr %s[%s_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %more = arith.subi %columns, %j : i64
    %valid_columns = arith.minsi %more, %wide : i64
    %all_columns = arith.cmpi sge, %more, %wide : i64
    %narrow = arith.cmpi sle, %more, %half : i64
    scf.for %i = %zero to %rows step %high : i64 {
      %left = arith.subi %rows, %i : i64
      %valid_rows = arith.minsi %left, %high : i64
      %all_rows = arith.cmpi sge, %left, %high : i64
      %until = arith.addi %bound, %i : i64
      %most = arith.minsi %until, %k : i64
      %depth = arith.maxsi %most, %zero : i64
      %a_skip = arith.muli %i, %a_row : i64
      %a_i = llvm.getelementptr %a[%a_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %c_skip = arith.muli %i, %c_row : i64
      %c_i = llvm.getelementptr %c_j[%c_skip] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %s_rows = arith.muli %i, %s_row : i64
      %s_i = llvm.getelementptr %s_j[%s_rows] : (!llvm.ptr, i64) -> !llvm.ptr, i8
",
    );
    match split {
        true => text.push_str("%whole = arith.andi %all_rows, %all_columns : i1\n"),
        false => text.push_str("%whole = arith.constant false\n"),
    }
    text.push_str("scf.if %whole {\n");
    line!(
        text,
        "llvm.call @{BLOCK}_r12_v2(%a_i, %a_row, %b_j, %depth, %c_i, %c_row, %s_i, %s_row) : {TYPES}"
    );
    text.push_str(
        "} else {
        scf.if %zeros {
        } else {
          llvm.call @cohort_block_copy(%s_i, %s_row, %tile, %line, %valid_rows, %valid_columns)
              : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64) -> ()
        }
        %start = llvm.select %zeros, %s, %tile : i1, !llvm.ptr
        %start_row = arith.select %zeros, %zero, %line : i64
        scf.if %narrow {
",
    );
    edge(text, 1);
    text.push_str("} else {\n");
    edge(text, 2);
    text.push_str(
        "}
        llvm.call @cohort_block_copy(%tile, %line, %c_i, %c_row, %valid_rows, %valid_columns)
            : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64) -> ()
      }
    }
  }
  llvm.return
}
",
    );
}

/// The smallest micro-kernel that has all valid rows.
fn edge(text: &mut String, vectors: usize) {
    for rows in ROWS {
        let call = format!(
            "llvm.call @{BLOCK}_r{rows}_v{vectors}(%a_i, %a_row, %b_j, %depth, %tile, %line, \
             %start, %start_row) : {TYPES}"
        );
        if rows == 12 {
            line!(text, "{call}{}", "}".repeat(ROWS.len() - 1));
        } else {
            line!(
                text,
                "%rows{rows} = arith.constant {rows} : i64\n\
                 %fits{rows} = arith.cmpi sle, %valid_rows, %rows{rows} : i64\n\
                 scf.if %fits{rows} {{\n{call}\n}} else {{"
            );
        }
    }
}
