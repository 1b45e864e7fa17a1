//! The shared code of products: micro-kernels on register blocks, and the loops that call them.
//!
//! A product computes `c[i] = start[i] + a[i] · b` for rows `i`. The left side comes as a table of
//! row addresses, so that gathered rows cost nothing extra; `b` as panels of 32 columns, each
//! `[k][32]`. A micro-kernel `cohort_product_r12_v2` holds 12 rows × 2 vectors of the result in
//! registers, and every element is its start followed by one fused multiply-add for each `k` in
//! order. So an element's bits do not depend on which micro-kernel computed it. Where registers hold less,
//! it is calls of a smaller one.
//!
//! With many rows, the loop over column panels is outside and the rows' tiles inside, and a panel
//! stays in the first-level cache; with few, wide micro-kernels keep enough accumulators to hide
//! the latency of the multiply-add. The last tile is the smallest that holds the rows left; where there
//! is none of their number, they repeat the table's last entries.
//!
//! A product of few columns (`cohort_narrow_product`) would leave most lanes of such a vector
//! unused. It takes panels of one column, `[k][1]`, and has its lanes along `k`: every lane adds up
//! each sixteenth term in order, then the lanes are added in a fixed tree, then the start. Which of
//! the two a product uses depends on the weight's shape alone.

use std::fmt::Write;

use crate::codegen::cpu::registers;

/// Rows that the largest micro-kernel takes at once.
pub const ROW_TILE: i64 = 12;

/// Rows of each micro-kernel and the widths, in vectors, of its instances: widest first.
const INSTANCES: &[(usize, &[usize])] = &[
    (12, &[2, 1]),
    (8, &[2, 1]),
    (6, &[4, 2, 1]),
    (4, &[4, 2, 1]),
    (2, &[4, 2, 1]),
    (1, &[8, 4, 2, 1]),
];

/// What every function here takes: rows' addresses, panels and the bytes between two of them,
/// `k`, the result and its bytes a row, the start and its bytes a row and a vector of columns.
const SIGNATURE: &str = "%a: !llvm.ptr, %b: !llvm.ptr, %panel: i64, %k: i64, %c: !llvm.ptr, \
                         %c_row: i64, %s: !llvm.ptr, %s_row: i64, %s_vector: i64";
const TYPES: &str = "!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64, i64";

/// The symbol of the whole product.
pub const PRODUCT: &str = "cohort_product";

/// The symbol of the whole product for panels of one column; the last argument counts columns.
pub const NARROW_PRODUCT: &str = "cohort_narrow_product";

/// Rows that a narrow product computes together.
const NARROW_ROWS: usize = 4;

/// The module as text, for a processor whose registers hold `registers` vectors.
pub fn module(registers: usize) -> String {
    let mut text = String::from("module {\n");
    let instances = INSTANCES
        .iter()
        .flat_map(|(rows, widths)| widths.iter().map(|width| (*rows, *width)));
    for instance in instances.clone() {
        match registers::part(registers, instance, instances.clone()) {
            part if part == instance => micro_kernel(&mut text, instance),
            part => in_parts(&mut text, instance, part),
        }
    }
    columns(&mut text);
    product(&mut text);
    narrow_product(&mut text);
    text.push_str("}\n");
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}

macro_rules! line {
    ($text:expr, $($format:tt)*) => { line($text, format_args!($($format)*)) };
}

fn gep(text: &mut String, result: &str, base: &str, offset: &str) {
    line!(
        text,
        "{result} = llvm.getelementptr {base}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, i8"
    );
}

/// A tile that registers do not hold, by one that they do.
fn in_parts(text: &mut String, (rows, vectors): (usize, usize), part: (usize, usize)) {
    line!(
        text,
        "llvm.func internal @cohort_product_r{rows}_v{vectors}({SIGNATURE}) attributes {{no_inline}} {{"
    );
    for vector in (0..vectors).step_by(part.1) {
        for row in (0..rows).step_by(part.0) {
            let at = format!("{row}_{vector}");
            line!(
                text,
                "%row{at} = arith.constant {row} : i64\n%vector{at} = arith.constant {vector} : i64\n\
                 %panel{at} = arith.constant {} : i64\n\
                 %a{at} = llvm.getelementptr %a[{row}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n\
                 %b_skip{at} = arith.muli %panel, %panel{at} : i64\n\
                 %c_skip{at} = arith.muli %c_row, %row{at} : i64\n\
                 %s_skip{at} = arith.muli %s_row, %row{at} : i64\n\
                 %s_wide{at} = arith.muli %s_vector, %vector{at} : i64",
                vector / 2
            );
            for (to, from, offset) in [
                ("b_panel", "b", "b_skip"),
                ("c_start", "c", "c_skip"),
                ("s_start", "s", "s_skip"),
            ] {
                gep(
                    text,
                    &format!("%{to}{at}"),
                    &format!("%{from}"),
                    &format!("%{offset}{at}"),
                );
            }
            gep(
                text,
                &format!("%s{at}"),
                &format!("%s_start{at}"),
                &format!("%s_wide{at}"),
            );
            line!(
                text,
                "%b{at} = llvm.getelementptr %b_panel{at}[{}] : (!llvm.ptr) -> !llvm.ptr, i8\n\
                 %c{at} = llvm.getelementptr %c_start{at}[{}] : (!llvm.ptr) -> !llvm.ptr, i8\n\
                 llvm.call @cohort_product_r{}_v{}(%a{at}, %b{at}, %panel, %k, %c{at}, %c_row, %s{at}, %s_row, \
                 %s_vector) : ({TYPES}) -> ()",
                vector % 2 * 64,
                vector * 64,
                part.0,
                part.1
            );
        }
    }
    line!(text, "llvm.return\n}}");
}

fn micro_kernel(text: &mut String, (rows, vectors): (usize, usize)) {
    let panels = vectors.div_ceil(2);
    line!(
        text,
        "llvm.func internal @cohort_product_r{rows}_v{vectors}({SIGNATURE}) attributes {{no_inline}} {{"
    );
    line!(
        text,
        "%zero = arith.constant 0 : i64\n%one = arith.constant 1 : i64"
    );
    for row in 0..rows {
        line!(
            text,
            "%a_at{row} = llvm.getelementptr %a[{row}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        );
        line!(
            text,
            "%a{row} = llvm.load %a_at{row} : !llvm.ptr -> !llvm.ptr"
        );
    }
    line!(
        text,
        "%b0 = llvm.getelementptr %b[0] : (!llvm.ptr) -> !llvm.ptr, i8"
    );
    for panel in 1..panels {
        gep(
            text,
            &format!("%b{panel}"),
            &format!("%b{}", panel - 1),
            "%panel",
        );
    }
    // The start.
    line!(
        text,
        "%s_at0 = llvm.getelementptr %s[0] : (!llvm.ptr) -> !llvm.ptr, i8"
    );
    for row in 0..rows {
        if row > 0 {
            gep(
                text,
                &format!("%s_at{row}"),
                &format!("%s_at{}", row - 1),
                "%s_row",
            );
        }
        for vector in 0..vectors {
            let at = if vector == 0 {
                format!("%s_at{row}")
            } else {
                let before = if vector == 1 {
                    format!("%s_at{row}")
                } else {
                    format!("%s_at{row}_{}", vector - 1)
                };
                gep(text, &format!("%s_at{row}_{vector}"), &before, "%s_vector");
                format!("%s_at{row}_{vector}")
            };
            line!(
                text,
                "%s{row}_{vector} = llvm.load {at} {{alignment = 4 : i64}} : !llvm.ptr -> vector<16xf32>"
            );
        }
    }
    let each = |f: &dyn Fn(usize, usize) -> String| {
        let all: Vec<_> = (0..rows)
            .flat_map(|r| (0..vectors).map(move |v| (r, v)))
            .collect();
        all.iter()
            .map(|(r, v)| f(*r, *v))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let count = rows * vectors;
    line!(
        text,
        "%r:{count} = scf.for %i = %zero to %k step %one iter_args({}) -> ({}) : i64 {{",
        each(&|r, v| format!("%x{r}_{v} = %s{r}_{v}")),
        each(&|_, _| "vector<16xf32>".into())
    );
    line!(
        text,
        "%row = arith.constant 128 : i64\n%b_offset = arith.muli %i, %row : i64"
    );
    for vector in 0..vectors {
        let panel = vector / 2;
        if vector % 2 == 0 {
            gep(
                text,
                &format!("%p{panel}"),
                &format!("%b{panel}"),
                "%b_offset",
            );
        }
        let half = vector % 2 * 64;
        line!(
            text,
            "%q{vector} = llvm.getelementptr %p{panel}[{half}] : (!llvm.ptr) -> !llvm.ptr, i8"
        );
        line!(
            text,
            "%w{vector} = llvm.load %q{vector} {{alignment = 4 : i64}} : !llvm.ptr -> vector<16xf32>"
        );
    }
    for row in 0..rows {
        line!(
            text,
            "%e_at{row} = llvm.getelementptr %a{row}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32"
        );
        line!(text, "%e{row} = llvm.load %e_at{row} : !llvm.ptr -> f32");
        line!(
            text,
            "%f{row} = vector.broadcast %e{row} : f32 to vector<16xf32>"
        );
        for vector in 0..vectors {
            line!(
                text,
                "%y{row}_{vector} = vector.fma %f{row}, %w{vector}, %x{row}_{vector} : vector<16xf32>"
            );
        }
    }
    line!(
        text,
        "scf.yield {} : {}\n}}",
        each(&|r, v| format!("%y{r}_{v}")),
        each(&|_, _| "vector<16xf32>".into())
    );
    line!(
        text,
        "%c_at0 = llvm.getelementptr %c[0] : (!llvm.ptr) -> !llvm.ptr, i8"
    );
    for row in 0..rows {
        if row > 0 {
            gep(
                text,
                &format!("%c_at{row}"),
                &format!("%c_at{}", row - 1),
                "%c_row",
            );
        }
        for vector in 0..vectors {
            let result = row * vectors + vector;
            let bytes = vector * 64;
            line!(
                text,
                "%c{row}_{vector} = llvm.getelementptr %c_at{row}[{bytes}] : (!llvm.ptr) -> !llvm.ptr, i8"
            );
            line!(
                text,
                "llvm.store %r#{result}, %c{row}_{vector} {{alignment = 4 : i64}} : vector<16xf32>, !llvm.ptr"
            );
        }
    }
    line!(text, "llvm.return\n}}");
}

/// For few rows: one row tile, all columns, from the widest instance to the narrowest.
fn columns(text: &mut String) {
    for (rows, widths) in INSTANCES.iter().filter(|(rows, _)| *rows <= 8) {
        line!(
            text,
            "llvm.func internal @cohort_product_r{rows}({SIGNATURE}, %n: i64) attributes {{no_inline}} {{"
        );
        line!(text, "%from0 = arith.constant 0 : i64");
        for (step, width) in widths.iter().enumerate() {
            let next = step + 1;
            line!(text, "%width{step} = arith.constant {width} : i64");
            line!(text, "%left{step} = arith.subi %n, %from{step} : i64");
            line!(
                text,
                "%times{step} = arith.divui %left{step}, %width{step} : i64"
            );
            line!(
                text,
                "%part{step} = arith.muli %times{step}, %width{step} : i64"
            );
            line!(
                text,
                "%from{next} = arith.addi %from{step}, %part{step} : i64"
            );
            line!(
                text,
                "scf.for %v = %from{step} to %from{next} step %width{step} : i64 {{"
            );
            call(text, *rows, *width, "%a", "%c", "%s");
            line!(text, "}}");
        }
        line!(text, "llvm.return\n}}");
    }
}

/// A call of one micro-kernel for the columns from vector `%v` on.
fn call(text: &mut String, rows: usize, vectors: usize, a: &str, c: &str, s: &str) {
    line!(
        text,
        "%two = arith.constant 2 : i64\n%bytes = arith.constant 64 : i64"
    );
    line!(text, "%panels = arith.divui %v, %two : i64");
    line!(text, "%b_offset = arith.muli %panels, %panel : i64");
    gep(text, "%b_v", "%b", "%b_offset");
    line!(text, "%c_offset = arith.muli %v, %bytes : i64");
    gep(text, "%c_v", c, "%c_offset");
    line!(text, "%s_offset = arith.muli %v, %s_vector : i64");
    gep(text, "%s_v", s, "%s_offset");
    line!(
        text,
        "llvm.call @cohort_product_r{rows}_v{vectors}({a}, %b_v, %panel, %k, %c_v, %c_row, %s_v, \
         %s_row, %s_vector) : ({TYPES}) -> ()"
    );
}

/// All rows, all columns.
fn product(text: &mut String) {
    line!(
        text,
        "llvm.func internal @{PRODUCT}({SIGNATURE}, %rows: i64, %n: i64) attributes {{no_inline}} {{"
    );
    line!(text, "%zero = arith.constant 0 : i64");
    // One tile of few rows.
    let mut depth = 0;
    for rows in [1, 2, 4, 6, 8] {
        line!(text, "%few{rows} = arith.constant {rows} : i64");
        line!(
            text,
            "%fits{rows} = arith.cmpi sle, %rows, %few{rows} : i64"
        );
        line!(text, "scf.if %fits{rows} {{");
        line!(
            text,
            "llvm.call @cohort_product_r{rows}(%a, %b, %panel, %k, %c, %c_row, %s, %s_row, \
             %s_vector, %n) : ({TYPES}, i64) -> ()"
        );
        line!(text, "}} else {{");
        depth += 1;
    }
    // Columns outside, tiles of rows inside.
    line!(
        text,
        "%two_ = arith.constant 2 : i64\n%one = arith.constant 1 : i64"
    );
    line!(text, "%pairs = arith.divui %n, %two_ : i64");
    line!(text, "%even = arith.muli %pairs, %two_ : i64");
    line!(text, "scf.for %v = %zero to %even step %two_ : i64 {{");
    tiles(text, 2);
    line!(text, "}}\nscf.for %v = %even to %n step %one : i64 {{");
    tiles(text, 1);
    line!(text, "}}{}", "}".repeat(depth));
    line!(text, "llvm.return\n}}");
}

fn tiles(text: &mut String, vectors: usize) {
    line!(
        text,
        "%tile = arith.constant 12 : i64\n%entry = arith.constant 8 : i64"
    );
    line!(text, "scf.for %row = %zero to %rows step %tile : i64 {{");
    line!(text, "%a_offset = arith.muli %row, %entry : i64");
    gep(text, "%a_t", "%a", "%a_offset");
    line!(text, "%c_skip = arith.muli %row, %c_row : i64");
    gep(text, "%c_t", "%c", "%c_skip");
    line!(text, "%s_skip = arith.muli %row, %s_row : i64");
    gep(text, "%s_t", "%s", "%s_skip");
    line!(text, "%rest = arith.subi %rows, %row : i64");
    let fewer = [2, 4, 6, 8];
    for rows in fewer {
        line!(text, "%limit{rows} = arith.constant {rows} : i64");
        line!(
            text,
            "%is{rows} = arith.cmpi sle, %rest, %limit{rows} : i64"
        );
        line!(text, "scf.if %is{rows} {{");
        call(text, rows, vectors, "%a_t", "%c_t", "%s_t");
        line!(text, "}} else {{");
    }
    call(text, 12, vectors, "%a_t", "%c_t", "%s_t");
    line!(text, "}}{}", "}".repeat(fewer.len()));
}

/// All rows, column by column, with the lanes along `k`.
fn narrow_product(text: &mut String) {
    let rows = 0..NARROW_ROWS;
    let each = |f: &dyn Fn(usize) -> String| rows.clone().map(f).collect::<Vec<_>>().join(", ");
    let vectors = each(&|_| "vector<16xf32>".into());
    line!(
        text,
        "llvm.func internal @{NARROW_PRODUCT}({SIGNATURE}, %rows: i64, %n: i64) attributes {{no_inline}} {{"
    );
    line!(
        text,
        "%zero = arith.constant 0 : i64\n%one = arith.constant 1 : i64\n\
         %four = arith.constant 4 : i64\n%eight = arith.constant 8 : i64\n\
         %lanes = arith.constant 16 : i64\n\
         %none = arith.constant dense<0.0> : vector<16xf32>\n\
         %tile = arith.constant {NARROW_ROWS} : i64"
    );
    line!(
        text,
        "%left = arith.remui %k, %lanes : i64\n%whole = arith.subi %k, %left : i64\n\
         %rest = arith.index_cast %left : i64 to index\n\
         %mask = vector.create_mask %rest : vector<16xi1>\n\
         %ragged = arith.cmpi ne, %left, %zero : i64"
    );
    line!(text, "scf.for %row = %zero to %rows step %tile : i64 {{");
    line!(text, "%a_offset = arith.muli %row, %eight : i64");
    gep(text, "%a_t", "%a", "%a_offset");
    for row in rows.clone() {
        line!(
            text,
            "%a_at{row} = llvm.getelementptr %a_t[{row}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n\
             %a{row} = llvm.load %a_at{row} : !llvm.ptr -> !llvm.ptr"
        );
    }
    line!(text, "%c_skip = arith.muli %row, %c_row : i64");
    gep(text, "%c_t", "%c", "%c_skip");
    line!(text, "%s_skip = arith.muli %row, %s_row : i64");
    gep(text, "%s_t", "%s", "%s_skip");
    line!(text, "scf.for %j = %zero to %n step %one : i64 {{");
    line!(text, "%b_skip = arith.muli %j, %panel : i64");
    gep(text, "%b_j", "%b", "%b_skip");
    line!(
        text,
        "%x:{NARROW_ROWS} = scf.for %i = %zero to %whole step %lanes iter_args({}) -> ({vectors}) : i64 {{",
        each(&|row| format!("%x{row} = %none"))
    );
    line!(
        text,
        "%w_at = llvm.getelementptr %b_j[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n\
         %w = llvm.load %w_at {{alignment = 4 : i64}} : !llvm.ptr -> vector<16xf32>"
    );
    for row in rows.clone() {
        line!(
            text,
            "%e_at{row} = llvm.getelementptr %a{row}[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n\
             %e{row} = llvm.load %e_at{row} {{alignment = 4 : i64}} : !llvm.ptr -> vector<16xf32>\n\
             %y{row} = vector.fma %e{row}, %w, %x{row} : vector<16xf32>"
        );
    }
    line!(
        text,
        "scf.yield {} : {vectors}\n}}",
        each(&|row| format!("%y{row}"))
    );
    // The last terms, under a mask: what lies behind a row may be anything.
    line!(text, "%t:{NARROW_ROWS} = scf.if %ragged -> ({vectors}) {{");
    let masked =
        "{alignment = 4 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xf32>) -> vector<16xf32>";
    line!(
        text,
        "%w_at = llvm.getelementptr %b_j[%whole] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n\
         %w = llvm.intr.masked.load %w_at, %mask, %none {masked}"
    );
    for row in rows.clone() {
        line!(
            text,
            "%e_at{row} = llvm.getelementptr %a{row}[%whole] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n\
             %e{row} = llvm.intr.masked.load %e_at{row}, %mask, %none {masked}\n\
             %y{row} = vector.fma %e{row}, %w, %x#{row} : vector<16xf32>"
        );
    }
    line!(
        text,
        "scf.yield {} : {vectors}\n}} else {{\nscf.yield {} : {vectors}\n}}",
        each(&|row| format!("%y{row}")),
        each(&|row| format!("%x#{row}"))
    );
    line!(text, "%j_skip = arith.muli %j, %four : i64");
    gep(text, "%c_at0", "%c_t", "%j_skip");
    gep(text, "%s_at0", "%s_t", "%j_skip");
    for row in rows {
        if row > 0 {
            for side in ["c", "s"] {
                let before = format!("%{side}_at{}", row - 1);
                gep(
                    text,
                    &format!("%{side}_at{row}"),
                    &before,
                    &format!("%{side}_row"),
                );
            }
        }
        let mut sum = format!("%t#{row}");
        for half in [8, 4, 2, 1] {
            let lanes: Vec<_> = (0..16)
                .map(|lane| ((lane + half) % 16).to_string())
                .collect();
            line!(
                text,
                "%turned{row}_{half} = vector.shuffle {sum}, {sum} [{}] : vector<16xf32>, vector<16xf32>\n\
                 %sum{row}_{half} = arith.addf {sum}, %turned{row}_{half} : vector<16xf32>",
                lanes.join(", ")
            );
            sum = format!("%sum{row}_{half}");
        }
        line!(
            text,
            "%all{row} = vector.extract {sum}[0] : f32 from vector<16xf32>\n\
             %s{row} = llvm.load %s_at{row} : !llvm.ptr -> f32\n\
             %r{row} = arith.addf %s{row}, %all{row} : f32\n\
             llvm.store %r{row}, %c_at{row} : f32, !llvm.ptr"
        );
    }
    line!(text, "}}\n}}\nllvm.return\n}}");
}
