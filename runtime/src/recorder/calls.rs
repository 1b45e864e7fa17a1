//! A call of a kernel: an entry in the log, and a place in a bucket.

use cohort_abi::{Failure, Handle};

use super::costs::{list_at, special_costs};
use super::replay::SHARED_KEY;
use super::{Recorder, Stopped};
use crate::failure::StoppedAt;
use crate::program::slot::Slot;

impl Recorder {
    /// Appends a call; see [`cohort_abi::symbols::RECORD`].
    ///
    /// # Safety
    ///
    /// `operands` points to as many slots as the manifest says for the kernel, and an instance
    /// runs on this recorder.
    #[inline]
    pub(crate) unsafe fn record(&mut self, kernel: u32, operands: *const u64) -> u64 {
        if self.state.nodes_left == 0 {
            self.more_calls(kernel);
        }
        let Some(calls) = self.kernels.get_mut(kernel as usize) else {
            self.stop(Stopped::Broken(format!("a call of kernel {kernel}")));
        };
        if self.state.memory_left < calls.call_bytes {
            self.stop_because(Failure::MemoryLimit, StoppedAt::Kernel(kernel));
        }
        self.state.nodes_left -= 1;
        self.state.memory_left -= calls.call_bytes;

        let mut remember = None;
        let since = self.state.first_epoch.max(self.known_epoch);
        if let Some(shared) = &mut calls.shared {
            // SAFETY: a kernel with shared calls has one operand.
            remember = shared.row(unsafe { *operands });
            let known = remember.and_then(|row| shared.get(row, since));
            self.shared_calls += u64::from(known.is_some());
            let handle = known.or_else(|| {
                let cached = shared.cached.add(remember?)?;
                self.new_cached.push(kernel);
                Some(cached.0)
            });
            if let Some(handle) = handle {
                if let Some(tracer) = &mut self.tracer {
                    tracer.call(kernel, handle, 1);
                }
                return handle;
            }
        }
        // SAFETY: the caller's promise.
        let handle = unsafe {
            match calls.is_special {
                false => self.append::<false>(kernel, operands, 1),
                true => self.append_special(kernel, operands),
            }
        };
        if let Some(row) = remember
            && let Some(shared) = &mut self.kernels[kernel as usize].shared
        {
            shared.set(row, self.epoch, handle);
            let key = self.buckets.key(Handle(handle).bucket() as usize);
            self.shares_late |= key != SHARED_KEY;
        }
        if self.tracer.is_some() {
            // SAFETY: the caller's promise.
            unsafe { self.trace_call(kernel, operands, handle) };
        }
        handle
    }

    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[cold]
    unsafe fn trace_call(&mut self, kernel: u32, operands: *const u64, handle: u64) {
        let form = &self.kernels[kernel as usize].form;
        // SAFETY: the caller's promise.
        let entry = unsafe { std::slice::from_raw_parts(operands, form.slots.len()) };
        if let Some(tracer) = &mut self.tracer {
            tracer.call(kernel, handle, form.rows(entry) as u32);
        }
    }

    /// As [`Recorder::append`], for a call with lists or of a ragged kernel.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[inline(never)]
    unsafe fn append_special(&mut self, kernel: u32, operands: *const u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.append::<true>(kernel, operands, 1) }
    }

    /// Appends an entry whose key is `levels` more than its operands', at least one; gives its
    /// handle.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`]; there is a kernel of that number.
    #[inline(always)]
    pub(super) unsafe fn append<const IS_SPECIAL: bool>(
        &mut self,
        kernel: u32,
        operands: *const u64,
        levels: u32,
    ) -> u64 {
        // Operands of earlier phases have smaller keys than this.
        let mut key = self.phase_key().max(self.state.floor);
        let calls = &self.kernels[kernel as usize];
        let count = calls.slots.len();
        let (mut size, mut rows) = (1 + count, 1);
        if IS_SPECIAL {
            // SAFETY: the caller's promise.
            let (listed, of_call) = unsafe { self.take_special(kernel, operands) };
            size += listed;
            rows = of_call;
        }
        if self.log.capacity() - self.log.len() < size && self.log.try_reserve(size).is_err() {
            self.stop(Stopped::OutOfMemory);
        }
        let calls = &self.kernels[kernel as usize];
        let length = self.log.len();
        let key_of = |handle: u64| self.buckets.key((handle >> Handle::BUCKET_SHIFT) as usize);
        // SAFETY: the log has room for `size` more slots, all of which are written before its
        // length says so; the caller promises `count` readable slots, and where one is the address
        // of an array, its length and as many handles.
        let entry = unsafe {
            let entry = self.log.as_mut_ptr().add(length);
            let mut tail = entry.add(1 + count);
            for (index, slot) in calls.slots.iter().enumerate() {
                let operand = *operands.add(index);
                *entry.add(1 + index) = operand;
                match slot {
                    Slot::Scalar => {}
                    Slot::Row => key = key.max(key_of(operand)),
                    Slot::List if !IS_SPECIAL => {}
                    Slot::List => {
                        let list = list_at(operand);
                        *entry.add(1 + index) = list.len() as u64;
                        for handle in list {
                            *tail = *handle;
                            tail = tail.add(1);
                            key = key.max(key_of(*handle));
                        }
                    }
                }
            }
            entry
        };
        key += u64::from(levels);
        let Some(bucket) = self.buckets.at(kernel, key) else {
            self.stop(Stopped::BatchFull);
        };
        let handle = Handle::new(bucket, 0, self.buckets.append(bucket, rows));
        if IS_SPECIAL && self.kernels[kernel as usize].form.is_ragged {
            self.buckets.add_calls(bucket, 1);
        }
        // SAFETY: `entry` is the first slot past the log's length, in its capacity, and opening a
        // bucket does not touch the log; now all `size` slots are written.
        unsafe {
            *entry = u64::from(bucket);
            self.log.set_len(length + size);
        }
        if let Some(tape) = &mut self.state.tape {
            // The tape is the instance's until its backward is done.
            let bytes = 8 * (size as u64 + 2);
            if self.state.memory_left < bytes {
                self.stop_because(Failure::MemoryLimit, StoppedAt::Kernel(kernel));
            }
            self.state.memory_left -= bytes;
            tape.extend([u64::from(kernel), handle.0, size as u64 - 1]);
            tape.extend(&self.log[length + 1..]);
        }
        handle.0
    }

    /// Pays for the lists and the rows of a call; how many handles its lists have together, and how
    /// many rows it makes.
    ///
    /// # Safety
    ///
    /// As [`Recorder::record`].
    #[inline(never)]
    unsafe fn take_special(&mut self, kernel: u32, operands: *const u64) -> (usize, u32) {
        let calls = &self.kernels[kernel as usize];
        // SAFETY: the caller's promise.
        match unsafe { special_costs(calls, kernel, operands, &self.state) } {
            Ok(costs) => {
                self.state.memory_left -= costs.bytes;
                self.state.rows_left -= i64::from(costs.rows) - 1;
                (costs.listed, costs.rows)
            }
            Err(stop) => self.stop(Stopped::Failure(stop)),
        }
    }
}
