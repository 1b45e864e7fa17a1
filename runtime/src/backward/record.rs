//! The backward of one instance, recorded.

use cohort_abi::manifest::{
    Elem, GradientFunction, Kernel, LeadingDim, Manifest, OfCall, Operand, SiteValue, Type,
};
use cohort_abi::{Context, EntryFn, Handle};
use smallvec::SmallVec;

use super::readers::Reader;
use super::recording::{Cotangent, Recording, SiteRows};
use super::{Functions, Gradient, Takes, Taped};
use crate::error::Error;
use crate::execute::Wanted;
use crate::program::call_form::CallForm;
use crate::program::slot::slot_count;

/// What [`entry`] is called with.
pub struct Instance<'a> {
    pub manifest: &'a Manifest,
    pub functions: &'a Functions,
    pub recording: &'a mut Recording,
    pub taped: &'a Taped,
    /// The tensors of its inputs whose gradients are wanted.
    pub inputs: &'a [Wanted],
    pub problem: Option<Error>,
}

/// An [`EntryFn`] that records the backward of one instance.
///
/// # Safety
///
/// The arguments are an [`Instance`]; the context is that of a recorder on which an instance runs.
pub unsafe extern "C" fn entry(context: *mut Context, arguments: *const u64, _: *mut u64) {
    // SAFETY: the caller's promise.
    let instance = unsafe { &mut *arguments.cast_mut().cast::<Instance<'_>>() };
    let mut walk = Walk {
        context,
        manifest: instance.manifest,
        functions: instance.functions,
        recording: instance.recording,
    };
    instance.problem = walk.back_over(instance.taped, instance.inputs).err();
}

/// Recording a call may stop the instance, whose frames are thrown away then without being dropped. So what grows with the tape
/// belongs to the recording.
struct Walk<'a> {
    context: *mut Context,
    manifest: &'a Manifest,
    functions: &'a Functions,
    recording: &'a mut Recording,
}

/// A call on the tape.
#[derive(Clone, Copy)]
struct Call<'t> {
    kernel: usize,
    handle: Handle,
    /// As in the recorder's log, behind the bucket.
    entry: &'t [u64],
}

impl<'t> Call<'t> {
    /// What a call on the tape begins with: its kernel, its handle, and how long its entry is.
    const HEADER: usize = 3;

    /// The call that begins there on a tape.
    fn at(tape: &'t [u64], at: usize) -> Call<'t> {
        let first = at + Call::HEADER;
        Call {
            kernel: tape[at] as usize,
            handle: Handle(tape[at + 1]),
            entry: &tape[first..first + tape[at + 2] as usize],
        }
    }

    /// The handles of a list operand.
    fn list(&self, form: &CallForm, operand: usize) -> &'t [u64] {
        let lists = form.slots.iter().enumerate();
        let mut lists = lists.filter(|(_, slot)| **slot == crate::program::slot::Slot::List);
        let mut first = form.slots.len();
        loop {
            let Some((number, _)) = lists.next() else {
                return &[];
            };
            let end = first + self.entry[number] as usize;
            if number == operand {
                return self.entry.get(first..end).unwrap_or(&[]);
            }
            first = end;
        }
    }
}

impl Walk<'_> {
    fn back_over(&mut self, taped: &Taped, inputs: &[Wanted]) -> Result<(), Error> {
        let tape = &taped.tape[..];
        self.recording.begin_instance();
        let mut at = 0;
        while at < tape.len() {
            self.recording.calls.push(at);
            let call = Call::at(tape, at);
            if call.kernel == self.manifest.kernels.len() {
                let of = self.real(call.entry[0]);
                self.recording.ghosts.insert(call.handle.0, of);
            }
            at += Call::HEADER + call.entry.len();
        }
        let first_source = self.recording.sources.len();
        for seed in &taped.seeds {
            let cotangent = match seed.cotangent {
                Some(cotangent) => cotangent.0,
                None => self.one(),
            };
            self.read(seed.handle.0, seed.rows, cotangent);
        }
        for number in (0..self.recording.calls.len()).rev() {
            let call = Call::at(tape, self.recording.calls[number]);
            if call.kernel < self.manifest.kernels.len() {
                self.call(call)?;
            }
        }
        for input in inputs {
            let cotangent = self.cotangent(input.pool, input.handle.0, input.rows)?;
            let whole = self.whole(input.pool, cotangent, input.rows)?;
            self.recording.of_inputs.push((*input, whole));
        }
        let of_inputs = std::mem::take(&mut self.recording.of_inputs);
        self.recording.inputs.push(of_inputs);
        // What is left are rows of parameters, constants and inputs that nobody asked for.
        let numbering = self.recording.numbering;
        let sources = numbering.map_or(0, |numbering| numbering.sources);
        for (row, readers) in self.recording.readers.take_all() {
            let source = Handle(row).bucket() as usize;
            if source >= sources {
                continue;
            }
            for reader in readers {
                for offset in 0..reader.rows {
                    let row = Handle(row + offset).position();
                    let cotangent = reader.cotangent + offset;
                    self.recording.sources.push((source, row, cotangent));
                }
            }
        }
        // The calls were gone over from the last to the first; sums go the other way.
        let Recording { sites, marks, .. } = &mut *self.recording;
        for (rows, mark) in sites.iter_mut().flatten().zip(marks) {
            rows[*mark..].reverse();
        }
        self.recording.sources[first_source..].reverse();
        Ok(())
    }

    /// The row that a handle names, whether through a ghost or not.
    fn real(&self, handle: u64) -> u64 {
        let ghosts = &self.recording.ghosts;
        match ghosts.is_empty() {
            true => handle,
            false => ghosts.get(&handle).copied().unwrap_or(handle),
        }
    }

    fn read(&mut self, handle: u64, rows: u64, cotangent: u64) {
        if rows > 0 {
            let handle = self.real(handle);
            self.recording
                .readers
                .add(handle, Reader { rows, cotangent });
        }
    }

    fn call(&mut self, call: Call<'_>) -> Result<(), Error> {
        let kernel = &self.manifest.kernels[call.kernel];
        let rows = self.recording.forms[call.kernel].rows(call.entry);
        self.recording.cotangents.clear();
        let mut any = false;
        for (number, pool) in kernel.results.iter().enumerate() {
            let first = call.handle.result_handle(number as u8).0;
            let cotangent = match self.manifest.row_pools[*pool].elem {
                Elem::F32 => self.cotangent(*pool, first, rows)?,
                Elem::I32 | Elem::Bool => Cotangent::Nothing,
            };
            any |= !matches!(cotangent, Cotangent::Nothing);
            self.recording.cotangents.push(cotangent);
        }
        if !any {
            return Ok(());
        }
        let (functions, gradients) = (self.functions, self.manifest.gradients.as_ref());
        let Some(mut gradient) = functions.gradients[call.kernel].as_ref() else {
            let first = self.recording.cotangents[0];
            let first = self.whole(kernel.results[0], first, rows)?;
            return self.without_function(call, kernel, first);
        };
        if let Some(in_parts) = &functions.in_parts[call.kernel] {
            let mut both = in_parts.takes.iter().zip(&self.recording.cotangents);
            let fits = |(takes, own): (&Takes, &Cotangent)| {
                *takes != Takes::Parts || matches!(own, Cotangent::Parts(..))
            };
            if both.all(fits) {
                gradient = in_parts;
            }
        }
        let Some(function) = gradients.and_then(|all| all.functions.get(gradient.number)) else {
            return Err(Error::Internal("a gradient of no kernel".to_owned()));
        };
        for (result, (takes, pool)) in gradient.takes.iter().zip(&kernel.results).enumerate() {
            if *takes != Takes::Parts {
                let cotangent = self.recording.cotangents[result];
                let cotangent = match self.whole(*pool, cotangent, rows)? {
                    Some(whole) => Cotangent::Whole(whole),
                    None if *takes == Takes::Whole => Cotangent::Whole(self.zeros(*pool, rows)?),
                    None => Cotangent::Nothing,
                };
                self.recording.cotangents[result] = cotangent;
            }
        }
        self.take(call, function);
        let results = gradient.result_slots.last().copied().unwrap_or(0);
        self.recording.buffers.results.clear();
        self.recording.buffers.results.resize(results, 0);
        self.invoke(gradient.function);
        self.hand_out(call, kernel, function);
        self.note_sites(gradient, function);
        Ok(())
    }

    /// Of a call whose kernel only stacks rows, or has no derivative.
    fn without_function(
        &mut self,
        call: Call<'_>,
        kernel: &Kernel,
        cotangent: Option<u64>,
    ) -> Result<(), Error> {
        let stacked = kernel
            .operands
            .iter()
            .position(|operand| matches!(operand, Operand::Stacked { .. }));
        if let (Some(operand), Some(cotangent)) = (stacked, cotangent) {
            let list = call.list(&self.recording.forms[call.kernel], operand);
            for (row, handle) in list.iter().enumerate() {
                self.read(*handle, 1, cotangent + row as u64);
            }
            return Ok(());
        }
        let gradients = self
            .manifest
            .gradients
            .iter()
            .flat_map(|all| &all.functions);
        let refused = gradients
            .filter(|function| function.kernel == call.kernel)
            .find_map(|function| function.refused.clone());
        Err(Error::Unsupported(match refused {
            Some(what) => format!("no gradient goes through {what}"),
            None => format!(
                "no gradient goes through `{}`, {}",
                kernel.name, kernel.location
            ),
        }))
    }

    /// Writes the arguments of a gradient function.
    fn take(&mut self, call: Call<'_>, described: &GradientFunction) {
        let Recording {
            forms,
            buffers,
            cotangents,
            ..
        } = &mut *self.recording;
        let form = &forms[call.kernel];
        buffers.arguments.clear();
        buffers.arrays.clear();
        buffers.addresses.clear();
        for argument in &described.arguments {
            let slot = match argument.of {
                OfCall::Operand(operand) => call.entry[operand],
                OfCall::Result(result) => call.handle.result_handle(result as u8).0,
                OfCall::Cotangent(result) => match cotangents[result] {
                    Cotangent::Whole(first) | Cotangent::Parts(first, _) => first,
                    Cotangent::Nothing => 0,
                },
                OfCall::Addend(result) => match cotangents[result] {
                    Cotangent::Parts(_, second) => second,
                    Cotangent::Whole(_) | Cotangent::Nothing => 0,
                },
            };
            if let (Type::Array(_), OfCall::Operand(operand)) = (&argument.ty, argument.of) {
                let list = call.list(form, operand);
                let place = (buffers.arguments.len(), buffers.arrays.len());
                buffers.addresses.push(place);
                buffers.arrays.push(list.len() as u64);
                buffers.arrays.extend(list);
            }
            buffers.arguments.push(slot);
            for length in &argument.lengths {
                buffers.arguments.push(call.entry[*length]);
            }
        }
        for (argument, array) in &buffers.addresses {
            buffers.arguments[*argument] = buffers.arrays[*array..].as_ptr() as u64;
        }
    }

    /// Gives the cotangents of operands to what computed them.
    fn hand_out(&mut self, call: Call<'_>, kernel: &Kernel, described: &GradientFunction) {
        let mut at = 0;
        for result in &described.results {
            let cotangent = self.recording.buffers.results[at];
            at += slot_count(&result.ty);
            let Some(operand) = result.operand else {
                continue;
            };
            let handle = call.entry[operand];
            match kernel.operands[operand] {
                Operand::Row { .. } => self.read(handle, 1, cotangent),
                Operand::Ragged { extent, .. } => {
                    let form = &self.recording.forms[call.kernel];
                    let rows = form.extent(extent, call.entry);
                    self.read(handle, rows, cotangent);
                }
                Operand::Rows { .. } | Operand::Stacked { .. } => {
                    let list = call.list(&self.recording.forms[call.kernel], operand);
                    for handle in list {
                        self.read(*handle, 1, cotangent);
                    }
                }
                Operand::Scalar(_) | Operand::Length => {}
            }
        }
    }

    /// Notes the rows of the sites of a call.
    fn note_sites(&mut self, gradient: &Gradient, described: &GradientFunction) {
        let buffers = &self.recording.buffers;
        let first = |value: SiteValue| {
            let (ty, slots) = match value {
                SiteValue::Argument(index) => (
                    &described.arguments[index].ty,
                    &buffers.arguments[gradient.argument_slots[index]..],
                ),
                SiteValue::Result(index) => (
                    &described.results[index].ty,
                    &buffers.results[gradient.result_slots[index]..],
                ),
            };
            (slots[0], rows_of(ty, &slots[1..]))
        };
        for (site, noted) in described
            .sites
            .iter()
            .zip(&mut self.recording.sites[gradient.sites])
        {
            let (right, rows) = first(site.right);
            let left = site.left.map_or(0, |left| first(left).0);
            if rows > 0 {
                noted.push(SiteRows { left, right, rows });
            }
        }
    }

    /// The cotangent of consecutive rows from what reads them.
    fn cotangent(&mut self, pool: usize, first: u64, rows: u64) -> Result<Cotangent, Error> {
        if rows == 0 {
            return Ok(Cotangent::Nothing);
        }
        // What most values are: one row.
        if rows == 1
            && let Some(own) = self.recording.readers.take_row(first)
        {
            return self.sum(pool, &own, 1);
        }
        let own = self.recording.readers.take_rows(first, rows);
        match &own[..] {
            [] => Ok(Cotangent::Nothing),
            [(key, only)] if *key == first && only.iter().all(|reader| reader.rows == rows) => {
                self.sum(pool, only, rows)
            }
            _ => {
                let mut of_row: Vec<Vec<Reader>> = vec![Vec::new(); rows as usize];
                for (key, readers) in &own {
                    for reader in readers {
                        for offset in 0..reader.rows {
                            if let Some(row) = of_row.get_mut((key - first + offset) as usize) {
                                row.push(Reader {
                                    rows: 1,
                                    cotangent: reader.cotangent + offset,
                                });
                            }
                        }
                    }
                }
                let mut handles = Vec::with_capacity(of_row.len());
                for row in of_row {
                    let sum = self.sum(pool, &row, 1)?;
                    handles.push(match self.whole(pool, sum, 1)? {
                        Some(whole) => whole,
                        None => self.zero(pool)?,
                    });
                }
                self.stack(pool, &handles).map(Cotangent::Whole)
            }
        }
    }

    /// The sum of several runs of cotangents, all of this length, pair by pair up to the last two.
    fn sum(&mut self, pool: usize, readers: &[Reader], rows: u64) -> Result<Cotangent, Error> {
        let mut cotangents: SmallVec<[u64; 4]> =
            readers.iter().map(|reader| reader.cotangent).collect();
        while cotangents.len() > 2 {
            for pair in 0..cotangents.len() / 2 {
                let (left, right) = (cotangents[2 * pair], cotangents[2 * pair + 1]);
                cotangents[pair] = self.add(pool, left, right, rows)?;
            }
            if cotangents.len() % 2 == 1 {
                let pairs = cotangents.len() / 2;
                cotangents[pairs] = cotangents[2 * pairs];
            }
            cotangents.truncate(cotangents.len().div_ceil(2));
        }
        Ok(match cotangents[..] {
            [] => Cotangent::Nothing,
            [only] => Cotangent::Whole(only),
            [first, second, ..] => Cotangent::Parts(first, second),
        })
    }

    /// A cotangent with its last addition done.
    fn whole(&mut self, pool: usize, of: Cotangent, rows: u64) -> Result<Option<u64>, Error> {
        match of {
            Cotangent::Nothing => Ok(None),
            Cotangent::Whole(whole) => Ok(Some(whole)),
            Cotangent::Parts(first, second) => self.add(pool, first, second, rows).map(Some),
        }
    }

    fn add(&mut self, pool: usize, left: u64, right: u64, rows: u64) -> Result<u64, Error> {
        let helpers = self.functions.helpers[pool];
        match rows {
            1 => self.help(helpers.add, &[left, right]),
            _ => self.help(helpers.add_runs, &[left, rows, right, rows]),
        }
    }

    fn zero(&mut self, pool: usize) -> Result<u64, Error> {
        self.help(self.functions.helpers[pool].zero, &[])
    }

    fn zeros(&mut self, pool: usize, rows: u64) -> Result<u64, Error> {
        let zero = self.zero(pool)?;
        match rows {
            1 => Ok(zero),
            _ => self.stack(pool, &vec![zero; rows as usize]),
        }
    }

    /// Rows from anywhere as consecutive ones.
    fn stack(&mut self, pool: usize, handles: &[u64]) -> Result<u64, Error> {
        if let [only] = handles {
            return Ok(*only);
        }
        let mut array = vec![handles.len() as u64];
        array.extend(handles);
        self.help(self.functions.helpers[pool].stack, &[array.as_ptr() as u64])
    }

    fn one(&mut self) -> u64 {
        self.help(Some(self.functions.one), &[]).unwrap_or(0)
    }

    /// Calls one of the module's own functions; gives its first slot.
    fn help(&mut self, function: Option<EntryFn>, arguments: &[u64]) -> Result<u64, Error> {
        let lacking = || Error::Internal("a function that gradients need is missing".to_owned());
        let function = function.ok_or_else(lacking)?;
        let mut results = [0; 2];
        // SAFETY: the function was found by the manifest; its arguments are the slots that its kind
        // has, and it gives one tensor. An instance runs on the context's recorder.
        unsafe { function(self.context, arguments.as_ptr(), results.as_mut_ptr()) };
        Ok(results[0])
    }

    /// Calls a gradient function with what is in the buffers.
    fn invoke(&mut self, function: EntryFn) {
        let buffers = &mut self.recording.buffers;
        let (arguments, results) = (buffers.arguments.as_ptr(), buffers.results.as_mut_ptr());
        // SAFETY: the buffers have the slots that the manifest says of the function, and an instance
        // runs on the context's recorder.
        unsafe { function(self.context, arguments, results) };
    }
}

/// The rows of a tensor whose lengths these slots begin with.
fn rows_of(ty: &Type, lengths: &[u64]) -> u64 {
    let Type::Ragged { dims, .. } = ty else {
        return 1;
    };
    let mut lengths = lengths.iter();
    let sizes = dims.iter().map(|dim| match dim {
        LeadingDim::Known(size) => *size,
        LeadingDim::Named(_) | LeadingDim::Any => lengths.next().copied().unwrap_or(0),
    });
    sizes.product()
}
