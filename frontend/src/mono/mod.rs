//! Makes a checked program monomorphic: one function for each set of argument types and dims.
//!
//! Type arguments and dims are put in place, nested patterns become flat matches ([`matching`]) and
//! built-ins the nodes of [`crate::program`] ([`expr`]). All scalars are host scalars afterwards;
//! `stage` settles which of them are tensors.

mod arms;
mod decide;
mod expr;
mod function;
mod known;
mod matching;
mod ops;
mod slices;

use rustc_hash::FxHashMap;

use crate::bind::param_shape;
use crate::check::Checked;
use crate::diagnostic::Diagnostic;
use crate::program::{
    Adt, AdtId, Constructor, Dim, Function, FunctionId, Program, ProgramDim, Span, Type,
};
use crate::types::Ty;

use self::function::Instance;

/// More instances than any sensible program needs; polymorphic recursion would make endless ones.
const MAX_INSTANCES: usize = 2000;

/// Parts of the type arguments of one instance.
const MAX_TYPE_SIZE: usize = 1000;

/// Expressions of the whole program; nested matches could make exponentially many.
const MAX_EXPRESSIONS: usize = 1_000_000;

pub fn monomorphise(checked: &Checked, values: &[u64]) -> Result<Program, Vec<Diagnostic>> {
    let mut mono = Mono {
        checked,
        values,
        adts: Vec::new(),
        adt_ids: FxHashMap::default(),
        adts_to_fill: Vec::new(),
        functions: Vec::new(),
        lowered: None,
        function_ids: FxHashMap::default(),
        names: FxHashMap::default(),
        expressions: 0,
        diagnostics: Vec::new(),
    };
    let entry_dims = mono.own_dims(checked.entry);
    let entry = mono.function(checked.entry, Vec::new(), entry_dims);
    let mut done = 0;
    while let Some(slot) = mono.functions.get(done) {
        if let Some(request) = slot.request.clone() {
            mono.lowered = Some(done);
            let function = Instance::lower(&mut mono, &request);
            mono.fill_adts();
            mono.functions[done].function = Some(function);
        }
        done += 1;
        if !mono.diagnostics.is_empty() && done > 50 {
            break;
        }
    }
    let mut params = Vec::new();
    for param in &checked.items.params {
        match param_shape(param, values) {
            Ok(param) => params.push(param),
            Err(diagnostic) => mono.diagnostics.push(diagnostic),
        }
    }
    if !mono.diagnostics.is_empty() {
        return Err(mono.diagnostics);
    }
    let dims = checked.items.dims.iter().zip(values);
    Ok(Program {
        dims: dims
            .map(|(dim, size)| ProgramDim {
                name: dim.name.clone(),
                size: *size,
            })
            .collect(),
        params,
        adts: mono.adts,
        functions: mono
            .functions
            .into_iter()
            .filter_map(|slot| slot.function)
            .collect(),
        entry,
    })
}

/// A function of the source with the types and dims it is instantiated at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    pub function: usize,
    pub types: Vec<Type>,
    /// One a dim variable of the signature.
    pub dims: Vec<Dim>,
}

impl Request {
    /// Whether it is the other's function with a larger dim.
    fn outgrows(&self, other: &Request) -> bool {
        let is_larger = |(own, other): (&Dim, &Dim)| match (own, other) {
            (Dim::Known(own), Dim::Known(other)) => own > other,
            _ => false,
        };
        self.function == other.function && self.dims.iter().zip(&other.dims).any(is_larger)
    }
}

struct Slot {
    /// `None` for an arm of a match that became a function.
    request: Option<Request>,
    /// The function that was lowered when this one was first called.
    caller: Option<usize>,
    function: Option<Function>,
}

pub struct Mono<'a> {
    pub checked: &'a Checked,
    /// The numbers of the program's dims.
    pub values: &'a [u64],
    adts: Vec<Adt>,
    adt_ids: FxHashMap<(usize, Vec<Type>), AdtId>,
    /// Types whose constructors are not yet converted.
    adts_to_fill: Vec<(AdtId, usize, Vec<Type>)>,
    functions: Vec<Slot>,
    /// The function that is lowered, by its place in `functions`.
    lowered: Option<usize>,
    function_ids: FxHashMap<Request, FunctionId>,
    /// How often each name was taken, to tell instances apart.
    names: FxHashMap<String, usize>,
    expressions: usize,
    pub diagnostics: Vec<Diagnostic>,
}

impl Mono<'_> {
    /// The name of a dim variable; `_` gets one that no source can hold.
    pub fn variable_name(&self, function: usize, variable: usize) -> String {
        let signature = self.checked.items.functions.get(function);
        match signature.and_then(|signature| signature.variables.get(variable)) {
            Some(variable) if variable.name != "_" => variable.name.clone(),
            _ => format!("any.{}", variable + 1),
        }
    }

    /// Every dim variable of a function as an instance dim of its own name.
    fn own_dims(&self, function: usize) -> Vec<Dim> {
        let count = self
            .checked
            .items
            .functions
            .get(function)
            .map_or(0, |signature| signature.variables.len());
        (0..count)
            .map(|variable| Dim::Instance(self.variable_name(function, variable)))
            .collect()
    }

    /// The function at these types and dims; it is lowered later if it is new.
    pub fn function(&mut self, function: usize, types: Vec<Type>, dims: Vec<Dim>) -> FunctionId {
        // Inside, an instance dim goes by the function's own name, whatever the caller calls it.
        let dims = dims
            .into_iter()
            .enumerate()
            .map(|(variable, dim)| match dim {
                Dim::Known(size) => Dim::Known(size),
                Dim::Instance(_) => Dim::Instance(self.variable_name(function, variable)),
            })
            .collect();
        let mut renamed = Vec::new();
        let types = types
            .into_iter()
            .map(|ty| rename_dims(ty, &mut renamed))
            .collect();
        let request = Request {
            function,
            types,
            dims,
        };
        if let Some(id) = self.function_ids.get(&request) {
            return *id;
        }
        let too_large = request.types.iter().map(size).sum::<usize>() > MAX_TYPE_SIZE;
        if self.functions.len() >= MAX_INSTANCES || too_large {
            self.too_many(function);
            return FunctionId(0);
        }
        let id = FunctionId(self.functions.len());
        self.function_ids.insert(request.clone(), id);
        self.functions.push(Slot {
            request: Some(request),
            caller: self.lowered,
            function: None,
        });
        id
    }

    /// Adds a function that is written already.
    pub fn add_function(&mut self, function: Function) -> FunctionId {
        self.functions.push(Slot {
            request: None,
            caller: None,
            function: Some(function),
        });
        FunctionId(self.functions.len() - 1)
    }

    /// Reports a dim or a tensor that is too large; in a recursion that made it so, the recursion.
    pub fn too_large(&mut self, diagnostic: Diagnostic) {
        match self.growing() {
            Some(function) => self.too_many(function),
            None => self.diagnostics.push(diagnostic),
        }
    }

    /// A function that the calls which led to what is lowered enter again with a larger dim.
    fn growing(&self) -> Option<usize> {
        let caller = |place: &usize| self.functions.get(*place)?.caller;
        let calls: Vec<&Request> = std::iter::successors(self.lowered, caller)
            .filter_map(|place| self.functions.get(place)?.request.as_ref())
            .collect();
        let inner = |place: usize| calls.iter().take(place);
        let grows =
            |(place, outer): &(usize, &&Request)| inner(*place).any(|inner| inner.outgrows(outer));
        calls
            .iter()
            .enumerate()
            .find(grows)
            .map(|(_, outer)| outer.function)
    }

    fn too_many(&mut self, function: usize) {
        if self
            .diagnostics
            .iter()
            .any(|diagnostic| diagnostic.code == "E0707")
        {
            return;
        }
        let Some(signature) = self.checked.items.functions.get(function) else {
            return;
        };
        self.diagnostics.push(
            Diagnostic::error("E0707", "the program has endlessly many functions")
                .at(&signature.name.span, "called with ever new types or dims")
                .note("a recursive call should pass values of the types and dims it was given"),
        );
    }

    /// Counts an expression; `false`, once reported, when there are too many.
    pub fn count_expression(&mut self, span: &Span) -> bool {
        self.expressions += 1;
        if self.expressions == MAX_EXPRESSIONS {
            self.diagnostics.push(
                Diagnostic::error("E0707", "the program becomes too large")
                    .at(span, "more than a million expressions")
                    .note("match on one value after the other instead of on all at once"),
            );
        }
        self.expressions < MAX_EXPRESSIONS
    }

    /// A name that no other function of the program has.
    pub fn unique_name(&mut self, base: &str) -> String {
        let count = self.names.entry(base.to_owned()).or_insert(0);
        *count += 1;
        if *count == 1 {
            base.to_owned()
        } else {
            format!("{base}.{count}")
        }
    }

    pub fn adt(&mut self, adt: usize, args: Vec<Type>) -> AdtId {
        let args: Vec<Type> = args.into_iter().map(forget_dims).collect();
        let key = (adt, args.clone());
        if let Some(id) = self.adt_ids.get(&key) {
            return *id;
        }
        let id = AdtId(self.adts.len());
        let Some(decl) = self.checked.items.types.get(adt) else {
            return id;
        };
        if self.adts.len() >= MAX_INSTANCES || args.iter().map(size).sum::<usize>() > MAX_TYPE_SIZE
        {
            if !self
                .diagnostics
                .iter()
                .any(|diagnostic| diagnostic.code == "E0707")
            {
                self.diagnostics.push(
                    Diagnostic::error("E0707", "the program has endlessly many types")
                        .at(&decl.name.span, "its fields use it with ever new types")
                        .note("a recursive type should use itself with the arguments it was given"),
                );
            }
            return AdtId(0);
        }
        let name = if args.is_empty() {
            decl.name.name.clone()
        } else {
            let shown: Vec<String> = args.iter().map(|arg| self.show(arg)).collect();
            let full = format!("{}<{}>", decl.name.name, shown.join(", "));
            // A name is for people; what nobody would read is numbered.
            if full.len() > 200 {
                format!("{}<#{}>", decl.name.name, id.0)
            } else {
                full
            }
        };
        self.adts.push(Adt {
            name,
            constructors: Vec::new(),
            span: decl.name.span.clone(),
        });
        self.adt_ids.insert(key, id);
        self.adts_to_fill.push((id, adt, args));
        id
    }

    /// Converts the fields of new types, and of those that come up on the way.
    fn fill_adts(&mut self) {
        let checked = self.checked;
        while let Some((id, adt, args)) = self.adts_to_fill.pop() {
            let Some(decl) = checked.items.types.get(adt) else {
                continue;
            };
            let constructors = decl
                .constructors
                .iter()
                .map(|constructor| Constructor {
                    name: constructor.name.name.clone(),
                    fields: constructor
                        .fields
                        .iter()
                        .map(|field| self.field_type(field, &args, &constructor.name.span))
                        .collect(),
                    names: constructor
                        .names
                        .iter()
                        .map(|name| name.name.clone())
                        .collect(),
                })
                .collect();
            if let Some(adt) = self.adts.get_mut(id.0) {
                adt.constructors = constructors;
            }
        }
    }

    fn field_type(&mut self, field: &Ty, args: &[Type], span: &Span) -> Type {
        function::convert(self, field, args, &[], None, span)
    }

    pub fn show(&self, ty: &Type) -> String {
        let list = |types: &[Type]| {
            types
                .iter()
                .map(|ty| self.show(ty))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match ty {
            Type::Tuple(elements) => format!("({})", list(elements)),
            Type::Array(element) => format!("[{}]", self.show(element)),
            Type::Adt(id) => self
                .adts
                .get(id.0)
                .map_or_else(String::new, |adt| adt.name.clone()),
            scalar_or_tensor => crate::dump_program::show_type(scalar_or_tensor, &[]),
        }
    }
}

/// How many parts a type has.
fn size(ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) | Type::Tensor { .. } | Type::Adt(_) | Type::Str => 1,
        Type::Tuple(parts) => 1 + parts.iter().map(size).sum::<usize>(),
        Type::Array(element) => 1 + size(element),
    }
}

/// Replaces each instance dim by one that is numbered by first use.
fn rename_dims(ty: Type, seen: &mut Vec<String>) -> Type {
    map_dims(ty, &mut |name| {
        if name == "_" {
            return name;
        }
        let place = seen
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                seen.push(name);
                seen.len() - 1
            });
        format!("arg.{}", place + 1)
    })
}

/// Type arguments of a type say nothing of lengths: each value of it may have its own.
fn forget_dims(ty: Type) -> Type {
    map_dims(ty, &mut |_| "_".to_owned())
}

fn map_dims(ty: Type, rename: &mut dyn FnMut(String) -> String) -> Type {
    match ty {
        Type::Tensor { elem, shape } => {
            let shape = shape
                .into_iter()
                .map(|dim| match dim {
                    Dim::Instance(name) => Dim::Instance(rename(name)),
                    known @ Dim::Known(_) => known,
                })
                .collect();
            Type::Tensor { elem, shape }
        }
        Type::Tuple(parts) => Type::Tuple(
            parts
                .into_iter()
                .map(|part| map_dims(part, rename))
                .collect(),
        ),
        Type::Array(element) => Type::Array(Box::new(map_dims(*element, rename))),
        other @ (Type::Scalar(_) | Type::Adt(_) | Type::Str) => other,
    }
}
