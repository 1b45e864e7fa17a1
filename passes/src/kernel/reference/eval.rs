//! Computes a kernel that was read.

use std::collections::HashMap;
use std::sync::Arc;

use super::read::{Affine, ArgumentKind, Block, Code, Kernel, Length, Loops, Slice, Slot, Step};
use super::scalars::{Operation, Scalar, Widths};
use super::{Input, Rounding, Tensor};
use crate::kernel::rows::maps::MapResult;

#[derive(Clone)]
enum Value {
    None,
    Number(Scalar),
    Tensor(Arc<Tensor>),
    /// The lists of all entries: the rows of each.
    Lists(Arc<Vec<Vec<Vec<Scalar>>>>),
}

struct State<'a> {
    params: &'a HashMap<String, Arc<Tensor>>,
    rounding: Rounding,
    values: Vec<Value>,
    /// Where the loops around are.
    index: Vec<usize>,
}

type Done<T = ()> = Result<T, String>;

const NO_TENSOR: &str = "a value that is not a tensor";

/// The kernel's results for a number of entries.
pub fn run(
    kernel: &Kernel,
    params: &HashMap<String, Arc<Tensor>>,
    rounding: Rounding,
    entries: usize,
    inputs: &[Input],
) -> Done<Vec<Tensor>> {
    let mut state = State {
        params,
        rounding,
        values: vec![Value::None; kernel.slots],
        index: Vec::new(),
    };
    state.values[kernel.entries] = Value::Number(Scalar::Int(entries as i64));
    if inputs.len() != kernel.arguments.len() {
        return Err("it has other operands than its launch".to_owned());
    }
    let lengths = inputs.iter().filter_map(|input| match input {
        Input::Length(length) => Some(*length),
        _ => None,
    });
    let lengths: Vec<Option<usize>> = lengths.collect();
    for (argument, input) in kernel.arguments.iter().zip(inputs) {
        state.values[argument.slot] = match (&argument.kind, input) {
            (ArgumentKind::Length, Input::Length(length)) => match (length, argument.is_used) {
                (Some(length), _) => {
                    tensor(vec![entries], vec![Scalar::Int(*length as i64); entries])
                }
                (None, false) => Value::None,
                (None, true) => return Err("a length that rows are not told".to_owned()),
            },
            (ArgumentKind::Lists, Input::Lists(lists)) => Value::Lists(Arc::new(lists.clone())),
            (ArgumentKind::Numbers(dims), Input::Numbers(numbers)) => {
                let dims = dims.iter().map(|dim| match dim {
                    Length::Entries => Some(entries),
                    Length::Known(known) => Some(*known),
                    Length::Given(number) => lengths.get(*number).copied().flatten(),
                });
                let dims = dims.collect::<Option<Vec<usize>>>();
                let dims = dims.ok_or("a length that rows are not told")?;
                if dims.iter().product::<usize>() != numbers.len() {
                    return Err("an operand of another size than its type says".to_owned());
                }
                tensor(dims, numbers.clone())
            }
            _ => return Err("an operand of another kind than its type says".to_owned()),
        };
    }
    state.block(&kernel.body)?;
    let results = kernel.body.results.iter();
    let results = results.map(|slot| Ok(state.tensor(*slot)?.as_ref().clone()));
    results.collect()
}

fn tensor(shape: Vec<usize>, elements: Vec<Scalar>) -> Value {
    Value::Tensor(Arc::new(Tensor { shape, elements }))
}

/// How far apart neighbours along each dim are.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Goes to the next index of a domain; whether there is one.
fn advance(index: &mut [usize], shape: &[usize]) -> bool {
    for (at, length) in index.iter_mut().zip(shape).rev() {
        *at += 1;
        if *at < *length {
            return true;
        }
        *at = 0;
    }
    false
}

impl State<'_> {
    fn block(&mut self, block: &Block) -> Done {
        block.steps.iter().try_for_each(|step| self.step(step))
    }

    fn number(&self, slot: Slot) -> Done<Scalar> {
        match &self.values[slot] {
            Value::Number(number) => Ok(*number),
            Value::Tensor(tensor) if tensor.elements.len() == 1 => Ok(tensor.elements[0]),
            _ => Err("a value that is not a number".to_owned()),
        }
    }

    fn tensor(&self, slot: Slot) -> Done<&Arc<Tensor>> {
        match &self.values[slot] {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(NO_TENSOR.to_owned()),
        }
    }

    fn size(&self, slot: Slot) -> Done<usize> {
        usize::try_from(self.number(slot)?.int()).map_err(|_| "a negative length".to_owned())
    }

    /// Numbers, of which some are operands, in order.
    fn sizes(
        &self,
        of: &[Option<u64>],
        operands: &mut std::slice::Iter<'_, Slot>,
    ) -> Done<Vec<usize>> {
        let sizes = of.iter().map(|size| match size {
            Some(size) => Ok(*size as usize),
            None => self.size(*operands.next().ok_or("an operand is missing")?),
        });
        sizes.collect()
    }

    fn step(&mut self, step: &Step) -> Done {
        let value = match &step.code {
            Code::Elements(of, widths) => self.elements(*of, *widths, &step.operands)?,
            Code::Loops(loops) => return self.loops(loops, step),
            code => self.one(code, &step.operands)?,
        };
        self.values[step.results[0]] = value;
        Ok(())
    }

    /// The one result of an operation.
    fn one(&mut self, code: &Code, operands: &[Slot]) -> Done<Value> {
        let first = operands.first().copied().unwrap_or_default();
        Ok(match code {
            Code::Constant(number) => Value::Number(*number),
            Code::Dense(dense) => Value::Tensor(Arc::new(dense.clone())),
            Code::Param(name) => {
                let param = self.params.get(name);
                Value::Tensor(
                    param
                        .ok_or_else(|| format!("no parameter `{name}`"))?
                        .clone(),
                )
            }
            Code::Empty(shape) => {
                let shape = self.sizes(shape, &mut operands.iter())?;
                let elements = vec![Scalar::Int(0); shape.iter().product()];
                tensor(shape, elements)
            }
            Code::Splat(shape) => {
                let shape = self.sizes(shape, &mut operands[1..].iter())?;
                let elements = vec![self.number(first)?; shape.iter().product()];
                tensor(shape, elements)
            }
            Code::FromElements(shape) => {
                let elements = operands.iter().map(|operand| self.number(*operand));
                tensor(shape.clone(), elements.collect::<Done<_>>()?)
            }
            Code::Dim => {
                let axis = self.size(operands[1])?;
                let length = self.tensor(first)?.shape.get(axis).copied();
                Value::Number(Scalar::Int(length.ok_or("a dim that is not there")? as i64))
            }
            Code::Cast => self.values[first].clone(),
            Code::Collapse(groups) => {
                let source = self.tensor(first)?;
                let shape = groups
                    .iter()
                    .map(|group| group.iter().map(|axis| source.shape[*axis]).product());
                tensor(shape.collect(), source.elements.clone())
            }
            Code::Expand(shape) => {
                let shape = self.sizes(shape, &mut operands[1..].iter())?;
                tensor(shape, self.tensor(first)?.elements.clone())
            }
            Code::Extract => {
                let source = self.tensor(first)?;
                let mut at = 0;
                for (operand, (stride, length)) in operands[1..]
                    .iter()
                    .zip(strides(&source.shape).into_iter().zip(&source.shape))
                {
                    let index = self.size(*operand)?;
                    if index >= *length {
                        return Err("an index out of range".to_owned());
                    }
                    at += index * stride;
                }
                Value::Number(source.elements[at])
            }
            Code::ExtractSlice(slice) => {
                let source = self.tensor(first)?.clone();
                let (places, shape) = self.places(slice, &source.shape, &operands[1..])?;
                let elements = places.into_iter().map(|place| source.elements[place]);
                tensor(shape, elements.collect())
            }
            Code::InsertSlice(slice) => {
                let part = self.tensor(first)?.clone();
                let mut whole = self.tensor(operands[1])?.as_ref().clone();
                let (places, _) = self.places(slice, &whole.shape, &operands[2..])?;
                for (place, element) in places.into_iter().zip(&part.elements) {
                    whole.elements[place] = *element;
                }
                Value::Tensor(Arc::new(whole))
            }
            Code::Concat(axis) => {
                let parts = operands.iter().map(|operand| self.tensor(*operand));
                concatenate(&parts.collect::<Done<Vec<_>>>()?, *axis)
            }
            Code::Affine(affine) => {
                let operands = operands
                    .iter()
                    .map(|operand| Ok(self.number(*operand)?.int()));
                Value::Number(Scalar::Int(apply(
                    affine,
                    &operands.collect::<Done<Vec<_>>>()?,
                )))
            }
            Code::LoopIndex(dim) => Value::Number(Scalar::Int(self.index[*dim] as i64)),
            Code::ReduceRows(body) => self.reduce_rows(body, first, operands[1])?,
            Code::Elements(..) | Code::Loops(_) => Value::None,
        })
    }

    fn round(&self, number: Scalar) -> Scalar {
        match self.rounding {
            Rounding::None => number,
            Rounding::F32 => number.rounded(),
        }
    }

    fn elements(&self, of: Operation, widths: Widths, operands: &[Slot]) -> Done<Value> {
        let shaped = operands
            .iter()
            .find_map(|operand| match &self.values[*operand] {
                Value::Tensor(tensor) => Some(tensor),
                _ => None,
            });
        let Some(shaped) = shaped else {
            let mut numbers = [Scalar::Int(0); 3];
            for (number, operand) in numbers.iter_mut().zip(operands) {
                *number = self.number(*operand)?;
            }
            return Ok(Value::Number(
                self.round(of(&numbers[..operands.len().min(3)], widths)),
            ));
        };
        // A condition of `select` may be one number for all.
        let each = operands.iter().map(|operand| match &self.values[*operand] {
            Value::Tensor(tensor) if tensor.elements.len() == shaped.elements.len() => {
                Ok((&tensor.elements[..], 1))
            }
            Value::Number(number) => Ok((std::slice::from_ref(number), 0)),
            _ => Err("operands of different shapes".to_owned()),
        });
        let each: Vec<(&[Scalar], usize)> = each.collect::<Done<_>>()?;
        let mut numbers = vec![Scalar::Int(0); each.len()];
        let elements = (0..shaped.elements.len()).map(|at| {
            for (number, (elements, step)) in numbers.iter_mut().zip(&each) {
                *number = elements[at * step];
            }
            self.round(of(&numbers, widths))
        });
        let elements = elements.collect();
        let shape = shaped.shape.clone();
        Ok(tensor(shape, elements))
    }

    /// Where the elements of a part lie in the whole, in the part's order; and the part's shape.
    fn places(
        &self,
        slice: &Slice,
        whole: &[usize],
        operands: &[Slot],
    ) -> Done<(Vec<usize>, Vec<usize>)> {
        let mut operands = operands.iter();
        let offsets = self.sizes(&slice.offsets, &mut operands)?;
        let sizes = self.sizes(&slice.sizes, &mut operands)?;
        let steps = self.sizes(&slice.strides, &mut operands)?;
        for axis in 0..whole.len() {
            if sizes[axis] > 0 && offsets[axis] + (sizes[axis] - 1) * steps[axis] >= whole[axis] {
                return Err("a slice out of range".to_owned());
            }
        }
        let strides = strides(whole);
        let mut places = Vec::with_capacity(sizes.iter().product());
        let mut index = vec![0; sizes.len()];
        while !sizes.contains(&0) {
            let each = (0..sizes.len())
                .map(|axis| (offsets[axis] + index[axis] * steps[axis]) * strides[axis]);
            places.push(each.sum());
            if !advance(&mut index, &sizes) {
                break;
            }
        }
        let kept = sizes
            .iter()
            .zip(&slice.kept)
            .filter(|(_, is_kept)| **is_kept);
        Ok((places, kept.map(|(size, _)| *size).collect()))
    }

    fn reduce_rows(&mut self, body: &Block, lists: Slot, start: Slot) -> Done<Value> {
        let mut result = self.tensor(start)?.as_ref().clone();
        let Value::Lists(lists) = self.values[lists].clone() else {
            return Err("a list that is not one".to_owned());
        };
        let row = result.elements.len() / lists.len().max(1);
        for (entry, list) in lists.iter().enumerate() {
            for tensor in list {
                for (at, element) in tensor.iter().enumerate() {
                    let place = entry * row + at;
                    self.values[body.arguments[0]] = Value::Number(result.elements[place]);
                    self.values[body.arguments[1]] = Value::Number(*element);
                    self.block(body)?;
                    result.elements[place] = self.number(body.results[0])?;
                }
            }
        }
        Ok(Value::Tensor(Arc::new(result)))
    }

    fn loops(&mut self, loops: &Loops, step: &Step) -> Done {
        let operands = step
            .operands
            .iter()
            .map(|operand| match &self.values[*operand] {
                Value::Number(number) => Ok(Arc::new(Tensor {
                    shape: vec![],
                    elements: vec![*number],
                })),
                _ => self.tensor(*operand).cloned(),
            });
        let operands: Vec<Arc<Tensor>> = operands.collect::<Done<_>>()?;
        let domain = domain(loops, &operands)?;
        let (inputs, starts) = operands.split_at(loops.inputs);
        let mut results: Vec<Tensor> = starts.iter().map(|start| start.as_ref().clone()).collect();
        let accesses: Vec<Access> = (operands.iter().zip(&loops.maps))
            .map(|(operand, map)| Access::new(map, &operand.shape, domain.len()))
            .collect();
        let outer = std::mem::replace(&mut self.index, vec![0; domain.len()]);
        while !domain.contains(&0) {
            if loops.multiplies_and_adds {
                let [a, b, sum] =
                    [0, 1, 2].map(|operand: usize| accesses[operand].place(&self.index));
                let (a, b) = (inputs[0].elements[a], inputs[1].elements[b]);
                let sum = &mut results[0].elements[sum];
                let product = self.round(Scalar::Float(a.float() * b.float()));
                *sum = self.round(Scalar::Float(sum.float() + product.float()));
            } else {
                for (operand, access) in accesses.iter().enumerate() {
                    let place = access.place(&self.index);
                    let element = match operand.checked_sub(loops.inputs) {
                        None => inputs[operand].elements[place],
                        Some(result) => results[result].elements[place],
                    };
                    self.values[loops.body.arguments[operand]] = Value::Number(element);
                }
                self.block(&loops.body)?;
                for (result, slot) in loops.body.results.iter().enumerate() {
                    let place = accesses[loops.inputs + result].place(&self.index);
                    results[result].elements[place] = self.number(*slot)?;
                }
            }
            if !advance(&mut self.index, &domain) {
                break;
            }
        }
        self.index = outer;
        for (slot, result) in step.results.iter().zip(results) {
            self.values[*slot] = Value::Tensor(Arc::new(result));
        }
        Ok(())
    }
}

/// Where an operand of loops is read: an offset, and a step for each loop.
struct Access {
    offset: usize,
    steps: Vec<usize>,
}

impl Access {
    fn new(map: &[MapResult], shape: &[usize], loops: usize) -> Access {
        let mut access = Access {
            offset: 0,
            steps: vec![0; loops],
        };
        for (place, stride) in map.iter().zip(strides(shape)) {
            match place {
                MapResult::Loop(number) => access.steps[*number] += stride,
                MapResult::Constant(index) => access.offset += *index as usize * stride,
            }
        }
        access
    }

    fn place(&self, index: &[usize]) -> usize {
        let steps = self.steps.iter().zip(index);
        self.offset + steps.map(|(step, at)| step * at).sum::<usize>()
    }
}

/// How long the loops are: as the operands that they run over.
fn domain(loops: &Loops, operands: &[Arc<Tensor>]) -> Done<Vec<usize>> {
    let mut domain = vec![None; loops.loops];
    for (map, operand) in loops.maps.iter().zip(operands) {
        if map.len() != operand.shape.len() {
            return Err("an operand of another rank than its map".to_owned());
        }
        for (place, length) in map.iter().zip(&operand.shape) {
            match place {
                MapResult::Loop(number) if domain[*number].is_none_or(|known| known == *length) => {
                    domain[*number] = Some(*length);
                }
                MapResult::Constant(index) if (*index as usize) < *length => {}
                _ => return Err("operands of different lengths".to_owned()),
            }
        }
    }
    let domain: Option<Vec<usize>> = domain.into_iter().collect();
    domain.ok_or_else(|| "a loop over nothing".to_owned())
}

fn concatenate(parts: &[&Arc<Tensor>], axis: usize) -> Value {
    let mut shape = parts[0].shape.clone();
    shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
    let outer: usize = shape[..axis].iter().product();
    let mut elements = Vec::with_capacity(shape.iter().product());
    for at in 0..outer {
        for part in parts {
            let run: usize = part.shape[axis..].iter().product();
            elements.extend(&part.elements[at * run..(at + 1) * run]);
        }
    }
    tensor(shape, elements)
}

fn apply(affine: &Affine, operands: &[i64]) -> i64 {
    match affine {
        Affine::Operand(number) => operands.get(*number).copied().unwrap_or_default(),
        Affine::Constant(number) => *number,
        Affine::Of(of, both) => of(apply(&both[0], operands), apply(&both[1], operands)),
    }
}
