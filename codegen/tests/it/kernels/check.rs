//! One kernel, its operands at random, and what has to hold of its results.

use std::collections::HashMap;

use cohort_abi::manifest::Elem;
use cohort_passes::kernel::description::{KernelDescription, OperandDescription, RowType};

use crate::jit::{Bits, Jit, Operand};
use crate::simulator::{Call, How, Order, Simulator, Tiles, gpu_text};

/// Repeatable numbers.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as u32
    }

    fn bits(&mut self, elem: Elem) -> u32 {
        match elem {
            Elem::F32 => ((self.next() % 20001) as f32 / 10000.0 - 1.0).to_bits(),
            Elem::I32 => (self.next() % 21).wrapping_sub(10),
            Elem::Bool => self.next() % 2,
        }
    }

    pub fn floats(&mut self, count: usize) -> Bits {
        (0..count).map(|_| self.bits(Elem::F32)).collect()
    }
}

fn value(elem: Elem, bits: u32) -> f64 {
    match elem {
        Elem::F32 => f64::from(f32::from_bits(bits)),
        Elem::I32 => f64::from(bits as i32),
        Elem::Bool => f64::from(bits),
    }
}

pub fn f64s(bits: &[u32]) -> Vec<f64> {
    bits.iter().map(|bits| value(Elem::F32, *bits)).collect()
}

impl Operand {
    /// What a row of the kernel reads: one entry of the index, or those of its list.
    pub fn entries(&self, row: usize) -> &[u32] {
        match self.offsets[..] {
            [] => &self.index[row..row + 1],
            _ => &self.index[self.offsets[row] as usize..self.offsets[row + 1] as usize],
        }
    }

    /// The same with the kernel's rows in another order.
    pub fn in_order(&self, order: &[usize]) -> Operand {
        let lists: Vec<_> = order.iter().map(|row| self.entries(*row)).collect();
        let mut offsets = self.offsets.clone();
        for (at, list) in lists.iter().enumerate() {
            if let Some(offset) = offsets.get(at).copied() {
                offsets[at + 1] = offset + list.len() as u32;
            }
        }
        Operand {
            pool: self.pool.clone(),
            index: lists.concat(),
            offsets,
        }
    }
}

/// A module with one kernel `k`. Parameters are `name type`; operands `%name: type`; a host scalar
/// is an operand in `scalars`, which the record then passes as such.
pub struct Kernel<'a> {
    pub params: &'a [(&'a str, &'a str)],
    pub operands: &'a [(&'a str, &'a str)],
    pub scalars: &'a [&'a str],
    pub body: &'a str,
}

impl Kernel<'_> {
    fn text(&self) -> String {
        let globals: String = self
            .params
            .iter()
            .map(|(name, ty)| {
                format!("ml_program.global private @{name}(#ml_program.extern<{ty}>) : {ty}\n")
            })
            .collect();
        let loads: String = self
            .params
            .iter()
            .map(|(name, ty)| format!("%{name} = ml_program.global_load_const @{name} : {ty}\n"))
            .collect();
        let arguments: String = self
            .operands
            .iter()
            .map(|(name, ty)| format!(", %{name}: {ty}"))
            .collect();
        let record = self.record();
        format!(
            "{globals}cfb.kernel @k {{\n^bb0(%rows: index{arguments}):\n{loads}{}\n}}\n{record}",
            self.body
        )
    }

    /// A function that records the kernel once.
    fn record(&self) -> String {
        if self.scalars.is_empty() {
            return String::new();
        }
        let types: Vec<String> = self
            .operands
            .iter()
            .map(|(name, ty)| {
                let row = ty.replacen("?x", "", 1);
                if self.scalars.contains(name) {
                    row.trim_start_matches("tensor<")
                        .trim_end_matches('>')
                        .to_owned()
                } else {
                    format!("!cfb.lazy<{row}>")
                }
            })
            .collect();
        let arguments: Vec<_> = types
            .iter()
            .enumerate()
            .map(|(at, ty)| format!("%a{at}: {ty}"))
            .collect();
        let names: Vec<_> = (0..types.len()).map(|at| format!("%a{at}")).collect();
        let results: Vec<String> = self
            .body
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix("cfb.yield")?.split_once(" : "))
            .map(|(_, types)| {
                types
                    .split(", ")
                    .map(|ty| ty.replacen("?x", "", 1))
                    .collect()
            })
            .unwrap_or_default();
        let results: Vec<_> = results
            .iter()
            .map(|ty| format!("!cfb.lazy<{ty}>"))
            .collect();
        format!(
            "func.func private @record({}) {{\n%r:{} = cfb.record @k({}) : ({}) -> ({})\nreturn\n}}\n",
            arguments.join(", "),
            results.len(),
            names.join(", "),
            types.join(", "),
            results.join(", ")
        )
    }

    /// Compiles, runs and compares: `reference` maps a row's operands to its results.
    pub fn check(
        &self,
        params: &[(&str, &Bits)],
        tolerance: f64,
        reference: impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        let text = self.text();
        let jit = Jit::new(&text);
        let gpu = gpu_text(&text).expect("the kernel lowers to the GPU");
        let simulator = Simulator::new(&gpu);
        let params: HashMap<&str, Bits> = params
            .iter()
            .map(|(name, bits)| (*name, (*bits).clone()))
            .collect();
        for rows in [1, 2, 5, 13, 29, 110] {
            self.check_rows(&jit, &simulator, &params, rows, tolerance, &reference);
        }
    }

    fn check_rows(
        &self,
        jit: &Jit,
        simulator: &Simulator,
        params: &HashMap<&str, Bits>,
        rows: usize,
        tolerance: f64,
        reference: &impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        let mut random = Random(rows as u64);
        let description = &jit.kernels["k"];
        let operands: Vec<_> = description
            .operands
            .iter()
            .map(|operand_of| match operand_of {
                OperandDescription::Scalar(elem) => Operand {
                    index: (0..rows).map(|_| random.bits(*elem)).collect(),
                    ..Operand::default()
                },
                OperandDescription::Row { pool: row } | OperandDescription::Rows { pool: row } => {
                    let elements = row.shape.iter().product::<u64>() as usize;
                    let row_pools = rows + 3;
                    let mut operand = Operand {
                        pool: (0..row_pools * elements)
                            .map(|_| random.bits(row.elem))
                            .collect(),
                        ..Operand::default()
                    };
                    let mut entries = rows;
                    if matches!(operand_of, OperandDescription::Rows { .. }) {
                        // Empty lists, short ones, and now and then a long one.
                        let lengths = (0..rows).map(|row| match row % 7 {
                            3 => 5000 / rows as u32,
                            _ => random.next() % 4,
                        });
                        operand.offsets.push(0);
                        operand.offsets.extend(lengths.scan(0, |sum, length| {
                            *sum += length;
                            Some(*sum)
                        }));
                        entries = operand.offsets[rows] as usize;
                    }
                    operand.index = (0..entries)
                        .map(|_| random.next() % row_pools as u32)
                        .collect();
                    operand
                }
                ragged => unreachable!("{ragged:?} in a kernel of one row a call"),
            })
            .collect();
        let mut call = jit.call("k", params, &operands);
        let whole = call.run(rows, &[(0, rows)]);

        let compare = |whole: &[Bits]| {
            self.compare(description, &operands, rows, whole, tolerance, reference);
        };
        compare(&whole);
        self.check_gpu(description, simulator, params, &operands, rows, &compare);

        // Other cuts of the rows.
        let one_by_one: Vec<_> = (0..rows).map(|row| (row, row + 1)).collect();
        assert_eq!(call.run(rows, &one_by_one), whole, "rows one at a time");
        let cut = rows / 3;
        let parts = [(cut, rows), (0, 0), (0, cut)];
        assert_eq!(call.run(rows, &parts), whole, "rows in two ranges");

        // Another order of the rows.
        let order: Vec<usize> = (0..rows).rev().collect();
        let turned: Vec<_> = operands
            .iter()
            .map(|operand| operand.in_order(&order))
            .collect();
        let turned = jit.call("k", params, &turned).run(rows, &[(0, rows)]);
        for (whole, turned) in whole.iter().zip(&turned) {
            let elements = whole.len() / rows;
            for (at, row) in order.iter().enumerate() {
                assert_eq!(
                    turned[at * elements..(at + 1) * elements],
                    whole[row * elements..(row + 1) * elements],
                    "rows in another order"
                );
            }
        }
    }

    /// Compares results with the reference, row by row.
    fn compare(
        &self,
        description: &KernelDescription,
        operands: &[Operand],
        rows: usize,
        whole: &[Bits],
        tolerance: f64,
        reference: &impl Fn(&[Vec<f64>]) -> Vec<Vec<f64>>,
    ) {
        for row in 0..rows {
            let inputs: Vec<Vec<f64>> = operands
                .iter()
                .zip(&description.operands)
                .map(|(operand, of)| match of {
                    OperandDescription::Scalar(elem) => vec![value(*elem, operand.index[row])],
                    OperandDescription::Row { pool: ty }
                    | OperandDescription::Rows { pool: ty } => {
                        let elements = ty.shape.iter().product::<u64>() as usize;
                        let entries = operand.entries(row);
                        let rows = entries.iter().map(|entry| *entry as usize * elements);
                        rows.flat_map(|start| &operand.pool[start..start + elements])
                            .map(|bits| value(ty.elem, *bits))
                            .collect()
                    }
                    ragged => unreachable!("{ragged:?} in a kernel of one row a call"),
                })
                .collect();
            let wanted = reference(&inputs);
            assert_eq!(wanted.len(), whole.len());
            for (result, (wanted, ty)) in wanted.iter().zip(&description.results).enumerate() {
                let elements = ty.shape.iter().product::<u64>() as usize;
                assert_eq!(wanted.len(), elements, "result {result} of the reference");
                for (at, wanted) in wanted.iter().enumerate() {
                    let got = value(ty.elem, whole[result][row * elements + at]);
                    let error = (got - wanted).abs();
                    assert!(
                        error <= tolerance * (1.0 + wanted.abs()),
                        "result {result}, row {row} of {rows}, element {at}: {got}, not {wanted}"
                    );
                }
            }
        }
    }

    /// The same on the simulated GPU: threads in any order, rows in any order and number.
    fn check_gpu(
        &self,
        description: &KernelDescription,
        simulator: &Simulator,
        params: &HashMap<&str, Bits>,
        operands: &[Operand],
        rows: usize,
        compare: &impl Fn(&[Bits]),
    ) {
        use cohort_abi::manifest::Operand::{Row, Rows};
        let size = |row: &RowType| {
            let elements = row.shape.iter().product::<u64>() as usize;
            (row.elem, elements)
        };
        let types: Vec<_> = (description.operands.iter())
            .map(|operand| match operand {
                Row { pool: row } | Rows { pool: row } => Some(size(row)),
                _ => None,
            })
            .collect();
        let results: Vec<_> = description.results.iter().map(size).collect();
        let run = |operands: &[Operand], rows, order, tiles| {
            let call = Call {
                kernel: "k",
                params,
                operands,
                types: &types,
                results: &results,
            };
            simulator.run(&call, rows, How { order, tiles })
        };
        let whole = run(operands, rows, Order::Forward, Tiles::ByRows);
        compare(&whole);
        for order in [Order::Backward, Order::Shuffled] {
            assert_eq!(
                run(operands, rows, order, Tiles::ByRows),
                whole,
                "threads {order:?}"
            );
        }
        let large = run(operands, rows, Order::Backward, Tiles::Largest);
        assert_eq!(large, whole, "larger tiles");
        // Some rows alone, in another order.
        let order: Vec<usize> = (0..rows).rev().step_by(3).collect();
        let some: Vec<_> = (operands.iter())
            .map(|operand| operand.in_order(&order))
            .collect();
        let some = run(&some, order.len(), Order::Forward, Tiles::ByRows);
        for (whole, some) in whole.iter().zip(&some) {
            let elements = whole.len() / rows;
            for (at, row) in order.iter().enumerate() {
                assert_eq!(
                    some[at * elements..(at + 1) * elements],
                    whole[row * elements..(row + 1) * elements],
                    "rows in another order on the GPU"
                );
            }
        }
    }
}

pub fn vecmat(x: &[f64], w: &[f64], columns: usize) -> Vec<f64> {
    let mut y = vec![0.0; columns];
    for (k, x) in x.iter().enumerate() {
        for (column, y) in y.iter_mut().enumerate() {
            *y += x * w[k * columns + column];
        }
    }
    y
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
