//! What kernels read of a program's parameters, made when they are loaded or replaced.
//!
//! | made of them | where it is |
//! |---|---|
//! | what is computed from weights alone | [`ComputedWeights`] |
//! | packed constants of kernels | [`Constants`], whose addresses kernels have |
//! | rows of tables and of whole parameters | in the arena, as sources |
//! | calls that are kept | rows in the arena; the recorder forgets which |

use crate::code::Program;
use crate::computed::ComputedWeights;
use crate::error::Error;
use crate::pack::{Constants, pack_constants};

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
}
