//! Gradients: the functions that compute them, and what these take and give.

use serde::{Deserialize, Serialize};

use super::Type;

/// The functions of the control program that gradients are computed by. They are called like the entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gradients {
    /// One for each kernel that is recorded. Some have a second one, which takes results' cotangents in two
    /// parts ([`GradientFunction::takes_parts`]) and has the same sites.
    pub functions: Vec<GradientFunction>,
    /// What cotangents are added up and begun by.
    pub helpers: Vec<GradientHelper>,
    /// Whether only those of parameters are computed, and none of inputs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parameters_only: bool,
}

/// The backward of a kernel's calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientFunction {
    /// Index into [`super::Manifest::kernels`].
    pub kernel: usize,
    /// Symbol of an [`crate::EntryFn`], which records what one call's backward takes.
    pub symbol: String,
    /// What it is called with.
    pub arguments: Vec<GradientArgument>,
    /// What it gives.
    pub results: Vec<GradientResult>,
    /// How the gradients of parameters follow from these.
    pub sites: Vec<Site>,
    /// What of the kernel has no derivative, and where; then there is no function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Gradients {
    /// The number of the function of the same kernel that takes each cotangent whole.
    pub fn whole(&self, function: &GradientFunction) -> Option<usize> {
        let mut functions = self.functions.iter();
        functions.position(|own| own.kernel == function.kernel && !own.takes_parts())
    }
}

impl GradientFunction {
    /// Whether it takes some cotangent in two parts.
    pub fn takes_parts(&self) -> bool {
        self.addends().next().is_some()
    }

    /// The results whose cotangents it takes in two parts.
    pub fn addends(&self) -> impl Iterator<Item = usize> {
        let addends = self.arguments.iter().map(|argument| argument.of);
        addends.filter_map(|of| match of {
            OfCall::Addend(result) => Some(result),
            _ => None,
        })
    }
}

/// An argument of a gradient function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientArgument {
    /// Where it comes from.
    pub of: OfCall,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Of a tensor with instance dims, the operand of the call that is the length of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<usize>,
}

/// What of a call an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OfCall {
    /// What the call took, by its number.
    Operand(usize),
    /// What the call gave, by its number.
    Result(usize),
    /// The cotangent of a result; where there is an [`OfCall::Addend`], one part of it.
    Cotangent(usize),
    /// The other part of it, which is added: what another reader of the result gives.
    Addend(usize),
}

/// A result of a gradient function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientResult {
    /// Its type.
    #[serde(rename = "type")]
    pub ty: Type,
    /// The operand whose cotangent it is, of a list that of each tensor in it; none for what only sites
    /// need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operand: Option<usize>,
}

/// A use of a parameter: the gradient of these elements is, over all calls of the kernel, the sum of
/// `leftᵀ right` over the rows of both, or of the rows of `right` alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// A parameter, as everywhere.
    pub param: usize,
    /// Where the first element is, in elements from the parameter's first.
    pub offset: u64,
    /// The number of elements along each dim.
    pub shape: Vec<u64>,
    /// How many elements lie between neighbours along each dim.
    pub strides: Vec<u64>,
    /// The left factor, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<SiteValue>,
    /// The right factor.
    pub right: SiteValue,
}

impl Site {
    /// The numbers of a row of the left factor, if there is one, and of the right one.
    pub fn sides(&self) -> (Option<u64>, u64) {
        match (self.left, &self.shape[..]) {
            (Some(_), [height, width]) => (Some(*height), *width),
            _ => (None, self.shape.iter().product()),
        }
    }
}

/// A value that a gradient function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SiteValue {
    /// An argument, by its number.
    Argument(usize),
    /// A result, by its number.
    Result(usize),
}

/// A function that backward needs besides, for each row pool that has cotangents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GradientHelper {
    /// What it computes.
    pub kind: HelperKind,
    /// The row pool whose rows it takes and gives.
    pub pool: usize,
    /// Symbol of an [`crate::EntryFn`].
    pub symbol: String,
}

/// What a helper of backward computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperKind {
    /// Of two rows their sum.
    Add,
    /// Of two runs of rows of one length their sum.
    AddRuns,
    /// Of an array of rows a run of them.
    Stack,
    /// A row of zeros, of nothing.
    Zero,
    /// The number 1, of nothing.
    One,
}
