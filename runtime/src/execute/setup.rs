//! How an executor comes to be: alone, or beside another one whose parameters it shares; and other parameters for it.

use std::sync::Arc;

use crate::call_cache::sharing::SharedCalls;
use crate::device::Device;
use crate::device::runner::Runner;
use crate::error::Error;
use crate::late::Interrupt;
use crate::memory::AlignedBuffer;
use crate::memory::arena::Arena;
use crate::program::call_form::CallForm;
use crate::program::code::Program;
use crate::program::numbering::Numbering;
use crate::program::pack::{Changed, Constants, fill_sources, update_sources};
use crate::program::parameters::Parameters;
use crate::report::stats::Launches;
use crate::schedule::Scheduler;
use crate::schedule::groups::Groups;

use super::bucket_rows::BucketRows;
use super::cached::CachedRows;
use super::division::Division;
use super::kernel::Kernel;
use super::lists::Lists;
use super::ragged::RaggedLaunches;
use super::tables::{TableRule, Tables};
use super::work_items::Rule;
use super::workers::Workers;
use super::{Executor, Settings, launch};

/// Packed constants of up to this many bytes are copied for each further executor; several such copies fit the third-level cache
/// of most machines.
const MOST_COPIED: u64 = 8 << 20;

/// What an executor begins with: parameters, constants of its own, and an arena with the rows of sources.
type Own = (Arc<Parameters>, Option<Constants>, Arena, Vec<u32>);

impl Executor {
    /// `params` holds the bytes of each parameter; they are packed here and not needed later.
    /// Of each kernel up to `cached` calls are kept for later batches. With a device, and perhaps a limit of the bytes of
    /// its memory, kernels run there.
    pub fn new(
        program: &Program,
        params: &[&[u8]],
        settings: Settings,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
        device: Option<(Box<dyn Device>, Option<u64>)>,
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let parameters = Arc::new(Parameters::new(program, params)?);
        let weights = parameters.weights(params);
        let mut arena = Arena::new(manifest);
        let source_rows = fill_sources(manifest, &weights, &mut arena)?;
        let is_on_device = device.is_some();
        let own = (parameters.clone(), None, arena, source_rows);
        let mut executor = Executor::of(program, own, settings, scheduler, cached, is_on_device)?;
        if let Some((device, limit)) = device {
            let runner = Runner::new(device, manifest, &weights, limit)?;
            executor.move_to(runner, manifest);
        }
        Ok(executor)
    }

    /// Another one, of one thread, to be dropped before parameters are replaced. Rows of parameters it has of
    /// its own, and packed constants where that is not too much: two cores that read the same ones from the
    /// third cache take them from each other. Where kernels run on a device, its kernels do so beside them.
    pub fn beside(
        &mut self,
        program: &Program,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let runner = match &mut self.device {
            Some(runner) => Some(runner.beside(manifest)?.ok_or_else(|| {
                Error::Unsupported("batches beside each other on this device".to_owned())
            })?),
            None => None,
        };
        let arena = self.arena.with_sources()?;
        let constants = self.parameters.constants();
        let constants = match constants.bytes() {
            0..=MOST_COPIED if runner.is_none() => Some(constants.copy()?),
            _ => None,
        };
        let source_rows = self.source_rows.clone();
        let own = (self.parameters.clone(), constants, arena, source_rows);
        let settings = Settings {
            threads: 1,
            ..self.settings
        };
        let is_on_device = runner.is_some();
        let mut executor = Executor::of(program, own, settings, scheduler, cached, is_on_device)?;
        if let Some(runner) = runner {
            executor.move_to(runner, manifest);
        }
        Ok(executor)
    }

    fn of(
        program: &Program,
        (parameters, constants, mut arena, source_rows): Own,
        settings: Settings,
        scheduler: Box<dyn Scheduler>,
        cached: &[u32],
        is_on_device: bool,
    ) -> Result<Executor, Error> {
        let manifest = program.manifest();
        let read = constants.as_ref().unwrap_or(parameters.constants());
        let kernels = Kernel::all(manifest, &program.kernels, read);
        let forms: Vec<CallForm> = manifest.kernels.iter().map(CallForm::of).collect();
        let workers = Workers::new(settings.threads)?;
        let cached = CachedRows::new(manifest, cached, &mut arena)?;
        let most_results = manifest.kernels.iter().map(|kernel| kernel.results.len());
        let launches = manifest
            .kernels
            .iter()
            .map(|kernel| Launches::new(kernel.operands.len()))
            .collect();
        Ok(Executor {
            settings,
            has_ragged: forms.iter().any(|form| form.is_ragged),
            has_padding: forms.iter().any(|form| form.padding.is_some()),
            forms,
            kernels,
            parameters,
            _constants: constants,
            arena,
            workers,
            interrupt: Interrupt::default(),
            scheduler,
            source_rows,
            cached,
            numbering: Numbering::of(manifest),
            chunks: Vec::new(),
            next_rows: Vec::new(),
            rows: BucketRows::new(most_results.max().unwrap_or(0)),
            plans: Vec::new(),
            ready: Vec::new(),
            ghosts: Vec::new(),
            groups: Groups::default(),
            placed: Vec::new(),
            result_rows: Vec::new(),
            index: AlignedBuffer::default(),
            lists: Lists::default(),
            of_references: Vec::new(),
            targets: Vec::new(),
            division: Division::default(),
            may_share: (0..manifest.kernels.len())
                .map(|kernel| SharedCalls::of(manifest, kernel).is_some())
                .collect(),
            ragged: RaggedLaunches::default(),
            tables: Tables::new(TableRule {
                items: Rule {
                    threads: settings.threads,
                    remapping: settings.remapping,
                    most_work: match settings.is_timed {
                        true => launch::MOST_WORK,
                        false => u64::MAX,
                    },
                },
                is_padded: !settings.ragged_storage && !is_on_device,
                keeps_padding: !is_on_device,
                is_shared: settings.shared_prelude,
                has_pieces: settings.gather_fusion && !is_on_device,
            }),
            ragged_storage: settings.ragged_storage,
            identity: AlignedBuffer::default(),
            identity_length: 0,
            copies: AlignedBuffer::default(),
            gather_fusion: settings.gather_fusion,
            lends_from: settings.lends_from,
            schedule_nanoseconds: 0,
            prelude_nanoseconds: 0,
            bases: Vec::new(),
            buffers: launch::Buffers::default(),
            launches,
            survey: None,
            profile: None,
            inspector: None,
            device: None,
            deciding: Vec::new(),
        })
    }

    /// Replaces parameters, between two runs; `changed` says of each whether it is another one. What is
    /// kept of earlier runs is not of these.
    pub fn set_params(
        &mut self,
        program: &Program,
        params: &[&[u8]],
        changed: &[Changed<'_>],
    ) -> Result<(), Error> {
        if self.device.is_some() {
            return Err(Error::Unsupported(
                "parameters on a device are not replaced: load the program anew".to_owned(),
            ));
        }
        let Some(parameters) = Arc::get_mut(&mut self.parameters) else {
            return Err(Error::Internal("parameters that others read".to_owned()));
        };
        let changed = parameters.update(program, params, changed)?;
        let weights = self.parameters.weights(params);
        let sources = &self.source_rows;
        update_sources(
            program.manifest(),
            &weights,
            &changed,
            sources,
            &mut self.arena,
        )
    }
}
