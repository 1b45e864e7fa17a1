//! Flushes as graphs: one call of the driver for all launches of a flush, where its form came before.
//!
//! A flush's *form* is how many waves it has, how many calls each wave, how many launches each
//! call, and which of these are beside each other. The first flush of a form is launched plainly. The second makes a graph: every launch a
//! node, every wave behind the one before it. From then on the graph is launched, after the nodes
//! were changed that have another function, other blocks or other arguments than the time before;
//! where rows lie and how many there are is arguments, so most have. The index lists are not in the
//! graph: they are copied to where they always are.
//!
//! Graphs are a matter of speed alone. Where one cannot be made, launches are plain.

use std::collections::HashMap;
use std::ffi::c_void;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use super::driver::Function;
use crate::device::queue::{Launch, Queue, waves_of};
use crate::report::stats::GraphStats;

/// Launches of a flush that are worth a graph, and those that are too many for one.
const LAUNCHES: std::ops::RangeInclusive<usize> = 4..=4096;
/// Forms that are known at once, and graphs that are kept. What was not used for the longest time
/// goes first.
const MOST_FORMS: usize = 1024;
const MOST_GRAPHS: usize = 64;

#[derive(Default)]
pub struct Graphs {
    forms: HashMap<Vec<u32>, Known>,
    /// Flushes so far.
    now: u64,
    /// The driver refused one.
    is_refused: bool,
    pub stats: GraphStats,
}

struct Known {
    /// When it was used last.
    used: u64,
    graph: Option<Graph>,
}

/// A graph, and what its nodes launch at present.
struct Graph {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: Vec<Node>,
}

struct Node {
    node: sys::CUgraphNode,
    launch: Launch,
    arguments: Vec<u64>,
}

impl Graphs {
    /// Launches a flush as a graph, unless its form is new; returns whether it was.
    ///
    /// # Safety
    ///
    /// As for [`crate::device::Device::run`]; the functions are those of the queue's numbers.
    pub unsafe fn launch(
        &mut self,
        queue: &Queue,
        functions: &[Function],
        stream: sys::CUstream,
    ) -> Result<bool, DriverError> {
        if self.is_refused || !LAUNCHES.contains(&queue.launch_count()) {
            return Ok(false);
        }
        self.now += 1;
        let form = queue.form();
        let Some(known) = self.forms.get_mut(&form) else {
            self.make_room(MOST_FORMS, stream, |_| true)?;
            let (used, graph) = (self.now, None);
            self.forms.insert(form, Known { used, graph });
            return Ok(false);
        };
        known.used = self.now;
        let ready = match &mut known.graph {
            Some(graph) => {
                self.stats.replayed += 1;
                // SAFETY: the caller's promise.
                unsafe { graph.change(queue, functions, &mut self.stats.changed_launches) }
            }
            none => {
                self.stats.made += 1;
                // SAFETY: the caller's promise.
                unsafe { Graph::new(queue, functions) }.map(|graph| *none = Some(graph))
            }
        };
        let (Ok(()), Some(graph)) = (ready, &known.graph) else {
            // What is wrong with the device itself, if anything is, plain launches will tell.
            self.is_refused = true;
            return Ok(false);
        };
        // SAFETY: graph and stream are alive.
        unsafe { result::graph::launch(graph.executable, stream)? };
        self.make_room(MOST_GRAPHS + 1, stream, |known| known.graph.is_some())?;
        Ok(true)
    }

    /// Forgets the least recently used graph of a kind that has as many as it may have.
    fn make_room(
        &mut self,
        many: usize,
        stream: sys::CUstream,
        of_kind: impl Fn(&Known) -> bool,
    ) -> Result<(), DriverError> {
        // Most times there are few of any kind.
        if self.forms.len() < many {
            return Ok(());
        }
        let all = self.forms.iter().filter(|(_, known)| of_kind(known));
        if all.clone().count() < many {
            return Ok(());
        }
        let oldest = all.min_by_key(|(_, known)| known.used);
        let oldest = oldest.map(|(form, _)| form.clone()).unwrap_or_default();
        if let Some(Known {
            graph: Some(graph), ..
        }) = self.forms.remove(&oldest)
        {
            // SAFETY: the graph is alive, and nothing runs it once the stream was waited for.
            unsafe {
                result::stream::synchronize(stream)?;
                graph.destroy();
            }
        }
        Ok(())
    }

    /// Gives all graphs back.
    ///
    /// # Safety
    ///
    /// None of them runs.
    pub unsafe fn destroy(&mut self) {
        for (_, known) in self.forms.drain() {
            if let Some(graph) = known.graph {
                // SAFETY: the caller's promise.
                unsafe { graph.destroy() };
            }
        }
    }
}

impl Graph {
    /// A graph of all launches of a flush.
    ///
    /// # Safety
    ///
    /// As for [`Graphs::launch`].
    unsafe fn new(queue: &Queue, functions: &[Function]) -> Result<Graph, DriverError> {
        let mut made = Graph {
            graph: std::ptr::null_mut(),
            executable: std::ptr::null_mut(),
            nodes: Vec::with_capacity(queue.launch_count()),
        };
        // SAFETY: the place for the graph is valid; the nodes are made of the caller's launches.
        let done = unsafe {
            sys::cuGraphCreate(&mut made.graph, 0)
                .result()
                .and_then(|()| made.add_nodes(queue, functions))
        };
        if let Err(error) = done {
            // SAFETY: nothing runs it.
            unsafe { made.destroy() };
            return Err(error);
        }
        Ok(made)
    }

    /// # Safety
    ///
    /// As for [`Graphs::launch`]; the graph has no nodes so far.
    unsafe fn add_nodes(
        &mut self,
        queue: &Queue,
        functions: &[Function],
    ) -> Result<(), DriverError> {
        // What the calls of a wave wait for: the last launches of the wave before.
        let mut before: Vec<sys::CUgraphNode> = Vec::new();
        for wave in queue.waves() {
            // Many calls behind many would be many edges: they meet in an empty node.
            if before.len() > 1 && wave.len() > 1 {
                let mut node = std::ptr::null_mut();
                // SAFETY: the graph and its nodes are alive.
                unsafe {
                    sys::cuGraphAddEmptyNode(&mut node, self.graph, before.as_ptr(), before.len())
                }
                .result()?;
                before = vec![node];
            }
            let mut ends = Vec::with_capacity(wave.len());
            for (_, launches, arguments) in wave {
                let mut behind = before.clone();
                for beside in waves_of(launches) {
                    let mut these = Vec::with_capacity(beside.len());
                    for launch in beside {
                        let mut node = std::ptr::null_mut();
                        // SAFETY: the graph and its nodes are alive, and so are the arguments, which the
                        // driver copies.
                        unsafe {
                            with_parameters(functions, launch, arguments, |parameters| {
                                sys::cuGraphAddKernelNode_v2(
                                    &mut node,
                                    self.graph,
                                    behind.as_ptr(),
                                    behind.len(),
                                    parameters,
                                )
                            })?;
                        }
                        self.nodes.push(Node {
                            node,
                            launch: *launch,
                            arguments: arguments.to_vec(),
                        });
                        these.push(node);
                    }
                    behind = these;
                }
                ends.extend(behind);
            }
            before = ends;
        }
        // SAFETY: the graph is complete.
        self.executable =
            unsafe { result::graph::instantiate(self.graph, sys::CUgraphInstantiate_flags(0))? };
        Ok(())
    }

    /// Makes the nodes launch a flush of the same form; counts those that it changes.
    ///
    /// # Safety
    ///
    /// As for [`Graphs::launch`].
    unsafe fn change(
        &mut self,
        queue: &Queue,
        functions: &[Function],
        changed: &mut u64,
    ) -> Result<(), DriverError> {
        let calls = queue.waves().flatten();
        let launches = calls.flat_map(|(_, launches, arguments)| {
            launches.iter().map(move |launch| (launch, arguments))
        });
        for (node, (launch, arguments)) in self.nodes.iter_mut().zip(launches) {
            if node.launch == *launch && node.arguments == arguments {
                continue;
            }
            // SAFETY: the node is one of the graph that the executable one was made of; the driver
            // copies the arguments.
            unsafe {
                with_parameters(functions, launch, arguments, |parameters| {
                    sys::cuGraphExecKernelNodeSetParams_v2(self.executable, node.node, parameters)
                })?;
            }
            node.launch = *launch;
            node.arguments.clear();
            node.arguments.extend_from_slice(arguments);
            *changed += 1;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// It does not run.
    unsafe fn destroy(self) {
        // SAFETY: both are this one's, and not used after this.
        unsafe {
            if !self.executable.is_null() {
                let _ = result::graph::exec_destroy(self.executable);
            }
            if !self.graph.is_null() {
                let _ = result::graph::destroy(self.graph);
            }
        }
    }
}

/// Calls the driver with a launch as it wants to be told.
///
/// # Safety
///
/// As for `call`; what its parameters point to is alive until it returns.
unsafe fn with_parameters(
    functions: &[Function],
    launch: &Launch,
    arguments: &[u64],
    call: impl FnOnce(*const sys::CUDA_KERNEL_NODE_PARAMS) -> sys::CUresult,
) -> Result<(), DriverError> {
    let mut pointers = pointers_to(arguments);
    let function = functions[launch.function];
    let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.handle,
        gridDimX: launch.grid.0,
        gridDimY: launch.grid.1,
        gridDimZ: 1,
        blockDimX: launch.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: function.shared,
        kernelParams: pointers.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    };
    call(&raw const parameters).result()
}

/// Where each argument is, as the driver wants to be told.
pub fn pointers_to(arguments: &[u64]) -> Vec<*mut c_void> {
    let pointer = |argument| std::ptr::from_ref::<u64>(argument).cast_mut().cast();
    arguments.iter().map(pointer).collect()
}
