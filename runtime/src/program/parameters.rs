//! What kernels read of a program's parameters, made when they are loaded or replaced.
//!
//! | made of them | where it is |
//! |---|---|
//! | what is computed from weights alone | [`ComputedWeights`] |
//! | packed constants of kernels | [`Constants`], whose addresses kernels have |
//! | rows of tables and of whole parameters | in the arena, as sources |
//! | calls that are kept | rows in the arena; the recorder forgets which |

use crate::error::Error;
use crate::program::code::Program;
use crate::program::computed::ComputedWeights;
use crate::program::pack::{Changed, Constants, pack_constants};

pub struct Parameters {
    computed: ComputedWeights,
    constants: Constants,
}

impl Parameters {
    /// `params` holds the bytes of each parameter, checked against the manifest.
    pub fn new(program: &Program, params: &[&[u8]]) -> Result<Parameters, Error> {
        let computed = ComputedWeights::new(program, params)?;
        let constants = pack_constants(program.manifest(), &computed.behind(params))?;
        Ok(Parameters {
            computed,
            constants,
        })
    }

    /// The bytes of all weights as [`Manifest::weight`](cohort_abi::manifest::Manifest::weight) counts them.
    pub fn weights<'a>(&'a self, params: &[&'a [u8]]) -> Vec<&'a [u8]> {
        self.computed.behind(params)
    }

    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// Makes anew, in its place, what is made of changed parameters; `changed` is of each parameter. Gives
    /// what changed of all weights, the computed ones included.
    pub fn update<'a>(
        &mut self,
        program: &Program,
        params: &[&[u8]],
        changed: &[Changed<'a>],
    ) -> Result<Vec<Changed<'a>>, Error> {
        let manifest = program.manifest();
        let mut all = changed.to_vec();
        let is_same = changed.iter().all(|changed| *changed == Changed::Nothing);
        all.resize(
            changed.len() + manifest.computed.len(),
            if is_same {
                Changed::Nothing
            } else {
                Changed::Whole
            },
        );
        if !is_same && !manifest.computed.is_empty() {
            self.computed.update(program, params)?;
        }
        let weights = self.computed.behind(params);
        self.constants.update(manifest, &weights, &all);
        Ok(all)
    }
}
