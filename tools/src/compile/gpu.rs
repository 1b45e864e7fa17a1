//! Code for GPUs beside that of the host: which is wanted, and how it leaves the module.

use cohort_codegen::gpu::binary::{self, Architecture, GpuError};
use cohort_codegen::gpu::lower_gpu_to_host;
use cohort_passes::pass;
use cohort_runtime::program::artifact::{DeviceCode, DeviceFormat};
use melior::{Context, ir::Module, pass::PassManager};

use super::cache::{Cache, Key};
use crate::exit::{Stop, USAGE};

/// What LLVM does for the speed of code.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// As for the host's own code.
    Full,
    /// For the simulator: kernels that were unrolled for a GPU are long and straight, and take LLVM up to half
    /// a minute to make faster, which nobody needs. No bit depends on it.
    Little,
}

impl Effort {
    /// The number of LLVM's `-O`.
    pub fn level(self) -> u32 {
        match self {
            Effort::Full => 3,
            Effort::Little => 1,
        }
    }
}

/// What code for GPUs a program is compiled to.
#[derive(Clone, Debug, Default)]
pub struct GpuCode {
    /// For every GPU from an architecture on, each of these.
    ptx: Vec<Architecture>,
    cubins: Vec<Architecture>,
    /// For the simulator, in the host's code.
    simulator: bool,
}

impl GpuCode {
    /// For a GPU of a compute capability; without one, for any.
    pub fn for_capability(capability: Option<(u32, u32)>) -> GpuCode {
        match capability {
            Some((9, 0)) => GpuCode::of_hopper(),
            Some((9..12, _)) => GpuCode::of_ptx(Architecture::WITH_CLUSTERS),
            _ => GpuCode::of_ptx(Architecture::OLDEST),
        }
    }

    /// For a GPU that has clusters and warpgroups, as the simulator that interprets PTX does.
    pub fn of_hopper() -> GpuCode {
        GpuCode::of_ptx(Architecture::WITH_WARPGROUPS)
    }

    fn of_ptx(name: &str) -> GpuCode {
        GpuCode {
            ptx: Architecture::parse(name).into_iter().collect(),
            ..GpuCode::default()
        }
    }

    /// For the simulator alone.
    pub const SIMULATOR: GpuCode = GpuCode {
        ptx: Vec::new(),
        cubins: Vec::new(),
        simulator: true,
    };

    /// Reads `sm_90a,compute_90,ptx,sim`; PTX for all comes along with every CUBIN, for other devices.
    pub fn parse(list: Option<&str>) -> Result<GpuCode, Stop> {
        let mut code = GpuCode::default();
        let parse = |name: &str| {
            Architecture::parse(name).map_err(|error| {
                Stop::usage(format!(
                    "{error}; an artifact may also have `ptx`, for all of these, `compute_90` and the like, PTX \
                     for that one and later ones, and `sim`, for the simulator"
                ))
            })
        };
        let mut texts = Vec::new();
        let mut ptx = |architecture: Architecture| {
            if !texts.contains(&architecture) {
                texts.push(architecture);
            }
        };

        for name in list.unwrap_or_default().split(',').map(str::trim) {
            match name {
                "" => continue,
                "sim" => code.simulator = true,
                "ptx" => ptx(parse(Architecture::OLDEST)?),
                _ => match name.strip_prefix("compute_") {
                    Some(number) => ptx(parse(&format!("sm_{number}"))?),
                    None => {
                        let architecture = parse(name)?;
                        ptx(parse(Architecture::OLDEST)?);
                        if !code.cubins.contains(&architecture) {
                            code.cubins.push(architecture);
                        }
                    }
                },
            }
        }
        code.ptx = texts;
        Ok(code)
    }

    /// Whether there is code for a GPU or the simulator.
    pub fn is_wanted(&self) -> bool {
        !self.ptx.is_empty() || self.simulator
    }

    /// What LLVM does for the speed of the host's code, which is the simulator's as well.
    pub fn effort(&self) -> Effort {
        match self.simulator {
            true => Effort::Little,
            false => Effort::Full,
        }
    }

    /// Takes the code for GPUs out of a module at level 3; what the simulator runs stays, as
    /// functions of the host.
    pub fn take(
        &self,
        context: &Context,
        module: &mut Module<'_>,
        cache: Option<&Cache>,
    ) -> Result<Vec<DeviceCode>, Stop> {
        if !binary::is_there(module.as_operation()) {
            return Ok(Vec::new());
        }
        let mut codes = Vec::new();
        for architecture in &self.cubins {
            let ptx = ptx(context, module, architecture, cache)?;
            let assembler = binary::find_assembler().map_err(usage)?;
            let cubin = binary::cubin(&ptx, architecture, &assembler).map_err(usage)?;
            codes.push(DeviceCode {
                target: architecture.to_string(),
                format: DeviceFormat::Cubin,
                bytes: cubin.bytes,
            });
        }
        for architecture in &self.ptx {
            codes.push(DeviceCode {
                target: architecture.to_string(),
                format: DeviceFormat::Ptx,
                bytes: ptx(context, module, architecture, cache)?.into_bytes(),
            });
        }
        match self.simulator {
            true => {
                let manager = PassManager::new(context);
                manager.add_pass(pass::create(lower_gpu_to_host::PASS));
                manager.run(module).map_err(|_| Stop::reported(USAGE))?;
            }
            false => binary::remove(module.as_operation()),
        }
        Ok(codes)
    }
}

/// The PTX of the kernels of a module at level 3, or that which is kept in a cache.
pub fn ptx(
    context: &Context,
    module: &Module<'_>,
    architecture: &Architecture,
    cache: Option<&Cache>,
) -> Result<String, Stop> {
    let kept = cache.and_then(|cache| {
        let text = binary::text(module.as_operation())?;
        Some((cache, Key::of_ptx(&text, architecture)?))
    });
    let found = kept.as_ref().and_then(|(cache, key)| cache.find_code(key));
    if let Some(ptx) = found.and_then(|code| String::from_utf8(code).ok()) {
        return Ok(ptx);
    }
    let ptx = binary::ptx(context, module.as_operation(), architecture).map_err(usage)?;
    if let Some((cache, key)) = &kept {
        cache.keep_code(key, ptx.as_bytes());
    }
    Ok(ptx)
}

fn usage(error: GpuError) -> Stop {
    Stop::usage(error.to_string())
}
