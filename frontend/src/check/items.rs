//! What a program declares, and where names are looked up.

use rustc_hash::FxHashMap;

use crate::dims::{Atom, Poly};
use crate::program::{Elem, Literal, Span, Stored};
use crate::source::PRELUDE_FILE;
use crate::syntax::ast::Ident;
use crate::types::{Names, Ty};

/// `param wx: f32[D, 3*H]`, before its dims are known.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: Ident,
    pub elem: Elem,
    pub shape: Vec<Poly>,
    pub stored: Option<Stored>,
}

#[derive(Clone, Debug)]
pub struct TypeDecl {
    pub name: Ident,
    pub generics: Vec<String>,
    pub constructors: Vec<ConstructorDecl>,
}

#[derive(Clone, Debug)]
pub struct ConstructorDecl {
    pub name: Ident,
    pub fields: Vec<Ty>,
    /// One a field, or none at all.
    pub names: Vec<Ident>,
}

impl ConstructorDecl {
    /// The place of a field by its name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own.name == name)
    }
}

/// `type Row = f32[H]`: another name of a type.
#[derive(Clone, Debug)]
pub struct Alias {
    pub name: Ident,
    pub generics: Vec<String>,
    /// `None` until it is resolved, and for one that stands for itself.
    pub ty: Option<Ty>,
}

/// A dim name of a signature that is not a dim of the program.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub span: Span,
    /// Whether a parameter tells its length; if not, a call's result has some length of its own.
    pub bound: bool,
}

#[derive(Clone, Debug)]
pub struct Signature {
    pub name: Ident,
    pub generics: Vec<String>,
    pub variables: Vec<Variable>,
    pub params: Vec<(Ident, Ty)>,
    pub result: Ty,
    pub result_span: Span,
}

#[derive(Clone, Debug)]
pub struct Const {
    pub name: Ident,
    pub value: Literal,
}

/// The names of one file.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    pub dims: FxHashMap<String, usize>,
    pub params: FxHashMap<String, usize>,
    pub consts: FxHashMap<String, usize>,
    pub types: FxHashMap<String, usize>,
    pub aliases: FxHashMap<String, usize>,
    /// The type, and the constructor's place in it.
    pub constructors: FxHashMap<String, (usize, usize)>,
    /// A function may be defined once for each number and rank of its parameters.
    pub functions: FxHashMap<String, Vec<usize>>,
}

/// All declarations of a program and the prelude. The prelude never sees the program's.
#[derive(Clone, Debug, Default)]
pub struct Items {
    pub dims: Vec<Ident>,
    pub params: Vec<Param>,
    pub consts: Vec<Const>,
    pub types: Vec<TypeDecl>,
    pub aliases: Vec<Alias>,
    pub functions: Vec<Signature>,
    pub prelude: Scope,
    pub user: Scope,
}

impl Items {
    pub fn scope_mut(&mut self, file: usize) -> &mut Scope {
        if file == PRELUDE_FILE {
            &mut self.prelude
        } else {
            &mut self.user
        }
    }

    /// The scopes that a file sees, the nearest first.
    fn scopes(&self, file: usize) -> impl Iterator<Item = &Scope> {
        let user = (file != PRELUDE_FILE).then_some(&self.user);
        user.into_iter().chain(std::iter::once(&self.prelude))
    }

    pub fn dim(&self, file: usize, name: &str) -> Option<usize> {
        self.scopes(file)
            .find_map(|scope| scope.dims.get(name).copied())
    }

    pub fn param(&self, file: usize, name: &str) -> Option<usize> {
        self.scopes(file)
            .find_map(|scope| scope.params.get(name).copied())
    }

    pub fn constant(&self, file: usize, name: &str) -> Option<&Const> {
        let index = self
            .scopes(file)
            .find_map(|scope| scope.consts.get(name).copied())?;
        self.consts.get(index)
    }

    pub fn type_named(&self, file: usize, name: &str) -> Option<usize> {
        self.scopes(file)
            .find_map(|scope| scope.types.get(name).copied())
    }

    pub fn alias(&self, file: usize, name: &str) -> Option<usize> {
        self.scopes(file)
            .find_map(|scope| scope.aliases.get(name).copied())
    }

    pub fn constructor(&self, file: usize, name: &str) -> Option<(usize, usize)> {
        self.scopes(file)
            .find_map(|scope| scope.constructors.get(name).copied())
    }

    pub fn functions_named(&self, file: usize, name: &str) -> &[usize] {
        self.scopes(file)
            .find_map(|scope| scope.functions.get(name))
            .map_or(&[], |functions| functions.as_slice())
    }

    /// Every name that can stand for a value, for suggestions.
    pub fn value_names(&self, file: usize) -> Vec<&str> {
        self.scopes(file)
            .flat_map(|s| s.params.keys().chain(s.dims.keys()).chain(s.consts.keys()))
            .map(String::as_str)
            .collect()
    }

    pub fn function_names(&self, file: usize) -> Vec<&str> {
        self.scopes(file)
            .flat_map(|s| s.functions.keys())
            .map(String::as_str)
            .collect()
    }

    pub fn constructor_names(&self, file: usize) -> Vec<&str> {
        self.scopes(file)
            .flat_map(|s| s.constructors.keys())
            .map(String::as_str)
            .collect()
    }

    pub fn type_names(&self, file: usize) -> Vec<&str> {
        self.scopes(file)
            .flat_map(|s| s.types.keys().chain(s.aliases.keys()))
            .map(String::as_str)
            .collect()
    }

    pub fn dim_names(&self, file: usize) -> Vec<&str> {
        self.scopes(file)
            .flat_map(|s| s.dims.keys())
            .map(String::as_str)
            .collect()
    }

    pub fn adt_name(&self, adt: usize) -> String {
        self.types
            .get(adt)
            .map_or_else(String::new, |decl| decl.name.name.clone())
    }

    /// The name of an atom within a function with these variables.
    pub fn atom_name(&self, variables: &[Variable], atom: Atom) -> String {
        let name = match atom {
            Atom::Program(index) => self.dims.get(index).map(|dim| dim.name.clone()),
            Atom::Variable(index) => variables.get(index).map(|v| v.name.clone()),
            Atom::Opened(index) => Some(format!("?{}", index + 1)),
            Atom::Unknown(_) => None,
        };
        name.unwrap_or_else(|| "_".to_owned())
    }

    /// A type as the user would write it within a function or type with these variables.
    pub fn show(&self, variables: &[Variable], generics: &[String], ty: &Ty) -> String {
        let names = Names {
            atom: &|atom| self.atom_name(variables, atom),
            adt: &|adt| self.adt_name(adt),
            generic: &|index| generics.get(index).cloned().unwrap_or_default(),
        };
        names.ty(ty)
    }

    /// `cell(t: Tree) -> f32[H]`
    pub fn show_signature(&self, function: &Signature) -> String {
        let show = |ty: &Ty| self.show(&function.variables, &function.generics, ty);
        let params: Vec<String> = function
            .params
            .iter()
            .map(|(name, ty)| format!("{}: {}", name.name, show(ty)))
            .collect();
        format!(
            "{}({}) -> {}",
            function.name.name,
            params.join(", "),
            show(&function.result)
        )
    }
}
