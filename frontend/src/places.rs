//! What stands at a place of a checked program, and which names it has: for editors.

use crate::check::Checked;
use crate::check::builtins::BUILTINS;
use crate::check::items::{Items, Scope, Signature};
use crate::hir::{self, Expr, Kind};
use crate::program::Span;
use crate::source::PRELUDE_FILE;
use crate::stack::with_deep_stack;
use crate::types::Ty;

/// Something that has a type or a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// `h: f32[n, H]`, or the signature of a function.
    pub text: String,
    /// Where it is declared, if that is in a file.
    pub definition: Option<Span>,
}

/// A kind of name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A word of the grammar, `match`.
    Keyword,
    /// Of the program, the prelude or the language itself.
    Function,
    /// What builds and matches values of a data type.
    Constructor,
    /// A data type, another name of a type, or an element type.
    Type,
    /// A program dim.
    Dim,
    /// A tensor of the weights, `param`.
    Parameter,
    /// An item `let`.
    Constant,
    /// Bound in a function: its argument, a `let`, a pattern.
    Variable,
}

/// A name that may be written, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// As it is written.
    pub name: String,
    /// What it stands for.
    pub kind: NameKind,
    /// As in [`Meaning::text`]; how a built-in is used; empty for keywords and element types.
    pub text: String,
}

const KEYWORDS: [&str; 14] = [
    "import", "dim", "param", "type", "fn", "let", "match", "if", "else", "while", "for", "in",
    "with", "phase",
];
const ELEMENTS: [&str; 4] = ["f32", "i32", "bool", "str"];

impl Checked {
    /// What is at a byte of a file: the innermost expression or declared variable, or else the word itself.
    pub fn at(&self, file: usize, text: &str, offset: usize) -> Option<Meaning> {
        let found = with_deep_stack(|| Ok(self.value_at(file, offset)));
        let value = found.ok().flatten();
        let word = word_at(text, offset);
        // Of a call or an operator everything but its operands is a place; a word in there is a name.
        match (value, word) {
            (Some((place, true)), _) => Some(place),
            (value, Some(word)) => self.named(word).or(value.map(|(place, _)| place)),
            (value, None) => value.map(|(place, _)| place),
        }
    }

    /// The innermost value, and whether its name is what stands there.
    fn value_at(&self, file: usize, offset: usize) -> Option<(Meaning, bool)> {
        let within = |span: &Span| {
            span.file == file && span.range.start <= offset && offset < span.range.end
        };
        for (signature, function) in self.items.functions.iter().zip(&self.functions) {
            if signature.name.span.file != file {
                continue;
            }
            if within(&signature.name.span) {
                return Some((self.function(signature), true));
            }
            if let Some(local) = function.locals.iter().find(|local| within(&local.span)) {
                return Some((self.local(signature, local), true));
            }
            if !within(&function.body.span) {
                continue;
            }
            let mut best: Option<&Expr> = None;
            each(&function.body, &mut |expr| {
                let length = |expr: &Expr| expr.span.range.len();
                let is_better = best.is_none_or(|best| {
                    length(expr) < length(best) || length(expr) == length(best) && is_name(expr)
                });
                if within(&expr.span) && is_better {
                    best = Some(expr);
                }
            });
            return best.map(|expr| self.expression(signature, function, expr));
        }
        None
    }

    fn expression(
        &self,
        signature: &Signature,
        function: &hir::Function,
        expr: &Expr,
    ) -> (Meaning, bool) {
        let ty = self.show(signature, &expr.ty);
        match &expr.kind {
            Kind::Local(local)
                if function
                    .locals
                    .get(*local)
                    .is_some_and(|l| !l.name.is_empty()) =>
            {
                (self.local(signature, &function.locals[*local]), true)
            }
            Kind::Param(param) => (self.parameter(*param, &ty), true),
            Kind::Call { function, .. } => match self.items.functions.get(*function) {
                Some(called) => {
                    let mut place = self.function(called);
                    place.text = format!("{}\n// here {ty}", place.text);
                    (place, true)
                }
                None => (plain(ty), false),
            },
            Kind::Construct { constructor, .. } => match &expr.ty {
                Ty::Adt(adt, _) => (self.constructor(*adt, *constructor), true),
                _ => (plain(ty), false),
            },
            _ => (plain(ty), false),
        }
    }

    fn show(&self, signature: &Signature, ty: &Ty) -> String {
        self.items
            .show(&signature.variables, &signature.generics, ty)
    }

    fn local(&self, signature: &Signature, local: &hir::Local) -> Meaning {
        Meaning {
            text: format!("{}: {}", local.name, self.show(signature, &local.ty)),
            definition: Some(local.span.clone()),
        }
    }

    fn function(&self, signature: &Signature) -> Meaning {
        Meaning {
            text: format!("fn {}", self.items.show_signature(signature)),
            definition: in_file(&signature.name.span),
        }
    }

    fn parameter(&self, param: usize, ty: &str) -> Meaning {
        let Some(decl) = self.params().get(param) else {
            return plain(ty.to_owned());
        };
        let stored = decl.stored.as_ref();
        let stored = stored.map_or_else(String::new, |stored| format!(" from {stored}"));
        Meaning {
            text: format!("param {}: {ty}{stored}", decl.name),
            definition: in_file(&decl.span),
        }
    }

    fn constructor(&self, adt: usize, constructor: usize) -> Meaning {
        let decl = self.items.types.get(adt);
        let Some(made) = decl.and_then(|decl| decl.constructors.get(constructor)) else {
            return plain(self.items.adt_name(adt));
        };
        Meaning {
            text: constructor_text(&self.items, adt, constructor),
            definition: in_file(&made.name.span),
        }
    }

    /// What a word means as the name of an item or as a built-in.
    pub fn named(&self, word: &str) -> Option<Meaning> {
        let items = &self.items;
        let scopes = [&items.user, &items.prelude];
        scopes
            .iter()
            .find_map(|scope| self.in_scope(scope, word))
            .or_else(|| {
                let usage = BUILTINS.iter().find(|(name, _)| *name == word);
                usage.map(|(_, usage)| plain((*usage).to_owned()))
            })
    }

    fn in_scope(&self, scope: &Scope, word: &str) -> Option<Meaning> {
        let items = &self.items;
        if let Some(functions) = scope.functions.get(word) {
            let all = functions
                .iter()
                .filter_map(|function| items.functions.get(*function));
            let all: Vec<Meaning> = all.map(|signature| self.function(signature)).collect();
            let texts: Vec<&str> = all.iter().map(|place| place.text.as_str()).collect();
            return Some(Meaning {
                text: texts.join("\n"),
                definition: all.first().and_then(|place| place.definition.clone()),
            });
        }
        if let Some(param) = scope.params.get(word) {
            let decl = self.params().get(*param)?;
            let dims: Vec<String> = decl.shape.iter().map(ToString::to_string).collect();
            let elem = crate::types::elem_name(decl.elem);
            return Some(self.parameter(*param, &format!("{elem}[{}]", dims.join(", "))));
        }
        if let Some((adt, constructor)) = scope.constructors.get(word) {
            return Some(self.constructor(*adt, *constructor));
        }
        let (text, span) = if let Some(dim) = scope.dims.get(word) {
            (format!("dim {word}"), &items.dims.get(*dim)?.span)
        } else if let Some(constant) = scope.consts.get(word) {
            let constant = items.consts.get(*constant)?;
            (
                format!("let {word} = {}", shown(&constant.value)),
                &constant.name.span,
            )
        } else if let Some(adt) = scope.types.get(word) {
            (type_text(items, *adt), &items.types.get(*adt)?.name.span)
        } else if let Some(alias) = scope.aliases.get(word) {
            let alias = items.aliases.get(*alias)?;
            let ty = alias
                .ty
                .as_ref()
                .map(|ty| items.show(&[], &alias.generics, ty));
            (
                format!("type {word} = {}", ty.unwrap_or_default()),
                &alias.name.span,
            )
        } else {
            return None;
        };
        let definition = in_file(span);
        Some(Meaning { text, definition })
    }

    /// Every name that may be written in a file, variables of all its functions included, each once.
    pub fn names(&self, file: usize) -> Vec<Name> {
        let mut names = names_of_the_language();
        let mut add = |name: &str, kind, text: String| {
            let name = name.to_owned();
            names.push(Name { name, kind, text });
        };
        for scope in [&self.items.user, &self.items.prelude] {
            let kinds: [(NameKind, Vec<&String>); 7] = [
                (NameKind::Function, scope.functions.keys().collect()),
                (NameKind::Constructor, scope.constructors.keys().collect()),
                (NameKind::Type, scope.types.keys().collect()),
                (NameKind::Type, scope.aliases.keys().collect()),
                (NameKind::Dim, scope.dims.keys().collect()),
                (NameKind::Parameter, scope.params.keys().collect()),
                (NameKind::Constant, scope.consts.keys().collect()),
            ];
            for (kind, of_kind) in kinds {
                for name in of_kind {
                    let text = self.in_scope(scope, name).map(|place| place.text);
                    add(name, kind, text.unwrap_or_default());
                }
            }
        }
        for (signature, function) in self.items.functions.iter().zip(&self.functions) {
            let own = function
                .locals
                .iter()
                .filter(|local| local.span.file == file && is_word(&local.name));
            for local in own {
                add(
                    &local.name,
                    NameKind::Variable,
                    self.local(signature, local).text,
                );
            }
        }
        names.sort();
        names.dedup_by(|one, other| one.name == other.name);
        names
    }
}

/// Words and built-in functions.
pub fn names_of_the_language() -> Vec<Name> {
    let name = |name: &str, kind, text: &str| Name {
        name: name.to_owned(),
        kind,
        text: text.to_owned(),
    };
    let keywords = KEYWORDS
        .iter()
        .map(|word| name(word, NameKind::Keyword, ""));
    let elements = ELEMENTS.iter().map(|word| name(word, NameKind::Type, ""));
    let functions = BUILTINS
        .iter()
        .map(|(word, usage)| name(word, NameKind::Function, usage));
    keywords.chain(elements).chain(functions).collect()
}

fn plain(text: String) -> Meaning {
    Meaning {
        text,
        definition: None,
    }
}

/// The prelude is in no file.
fn in_file(span: &Span) -> Option<Span> {
    (span.file != PRELUDE_FILE).then(|| span.clone())
}

fn is_name(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        Kind::Local(_) | Kind::Param(_) | Kind::Call { .. } | Kind::Construct { .. }
    )
}

fn is_word(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name != "_"
        && !name.is_empty()
}

/// The name that a byte of a text is part of; that behind a name's end is too.
pub fn word_at(text: &str, offset: usize) -> Option<&str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = offset
        - bytes[..offset]
            .iter()
            .rev()
            .take_while(|byte| is_part(byte))
            .count();
    let end = offset
        + bytes[offset..]
            .iter()
            .take_while(|byte| is_part(byte))
            .count();
    (start < end).then(|| &text[start..end])
}

fn shown(literal: &crate::program::Literal) -> String {
    use crate::program::Literal;
    match literal {
        Literal::F32(value) => format!("{value:?}"),
        Literal::I32(value) => value.to_string(),
        Literal::Bool(value) => value.to_string(),
    }
}

/// `Node(left: Tree, right: Tree)`
fn made_text(items: &Items, adt: usize, constructor: usize) -> String {
    let Some(decl) = items.types.get(adt) else {
        return String::new();
    };
    let Some(made) = decl.constructors.get(constructor) else {
        return String::new();
    };
    let fields = made.fields.iter().enumerate().map(|(place, ty)| {
        let ty = items.show(&[], &decl.generics, ty);
        match made.names.get(place) {
            Some(name) => format!("{}: {ty}", name.name),
            None => ty,
        }
    });
    let fields: Vec<String> = fields.collect();
    match fields.is_empty() {
        true => made.name.name.clone(),
        false => format!("{}({})", made.name.name, fields.join(", ")),
    }
}

fn constructor_text(items: &Items, adt: usize, constructor: usize) -> String {
    format!(
        "{} of {}",
        made_text(items, adt, constructor),
        items.adt_name(adt)
    )
}

/// `type Tree = Leaf(i32) | Node(Tree, Tree)`
fn type_text(items: &Items, adt: usize) -> String {
    let count = items
        .types
        .get(adt)
        .map_or(0, |decl| decl.constructors.len());
    let made: Vec<String> = (0..count)
        .map(|constructor| made_text(items, adt, constructor))
        .collect();
    format!("type {} = {}", items.adt_name(adt), made.join(" | "))
}

/// Every expression below one, itself first.
fn each<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Expr)) {
    visit(expr);
    let mut below: Vec<&Expr> = Vec::new();
    match &expr.kind {
        Kind::Error | Kind::Literal(_) | Kind::Local(_) | Kind::Param(_) | Kind::Dim(_) => {}
        Kind::Let { value, body, .. } => below.extend([&**value, body]),
        Kind::Phase(body) => below.push(body),
        Kind::Length { count, body, .. } => below.extend([&**count, body]),
        Kind::Tuple(parts) | Kind::Array(parts) | Kind::Op(_, parts) => below.extend(parts),
        Kind::Construct { fields, .. } => below.extend(fields),
        Kind::Match { scrutinee, arms } => {
            below.push(scrutinee);
            for arm in arms {
                below.extend(&arm.guard);
                below.push(&arm.body);
            }
        }
        Kind::If {
            cond,
            then,
            otherwise,
        } => below.extend([&**cond, then, otherwise]),
        Kind::While {
            init, cond, body, ..
        } => {
            below.extend(init);
            below.extend([&**cond, body]);
        }
        Kind::Map { arrays, body, .. } => {
            below.extend(arrays);
            below.push(body);
        }
        Kind::Fold {
            array, init, body, ..
        } => below.extend([&**array, init, body]),
        Kind::Call { args, .. } => below.extend(args),
    }
    for expr in below {
        each(expr, visit);
    }
}
