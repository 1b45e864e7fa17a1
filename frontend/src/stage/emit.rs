//! Writes the program anew with every scalar where it was found to live.

use super::flow::Flow;
use super::hoist::hoist;
use super::scalars::{force, lift};
use crate::diagnostic::Diagnostic;
use crate::program::{
    Adt, Arm, Closure, Constructor, Expr, ExprKind, Function, Program, Span, Type, Var, VarId,
};

pub fn program(program: &Program, flow: &Flow<'_>) -> Result<Program, Vec<Diagnostic>> {
    let adts = program
        .adts
        .iter()
        .zip(&flow.fields)
        .map(|(adt, places)| Adt {
            name: adt.name.clone(),
            constructors: adt
                .constructors
                .iter()
                .zip(places)
                .map(|(constructor, places)| Constructor {
                    name: constructor.name.clone(),
                    fields: constructor
                        .fields
                        .iter()
                        .zip(places)
                        .map(|(field, places)| flow.staged(field, places))
                        .collect(),
                    names: constructor.names.clone(),
                })
                .collect(),
            span: adt.span.clone(),
        });
    let mut diagnostics = Vec::new();
    let mut functions = Vec::new();
    for index in 0..program.functions.len() {
        functions.push(function(program, flow, index, &mut diagnostics));
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    Ok(Program {
        dims: program.dims.clone(),
        params: program.params.clone(),
        adts: adts.collect(),
        functions,
        entry: program.entry,
    })
}

fn function(
    program: &Program,
    flow: &Flow<'_>,
    index: usize,
    diagnostics: &mut Vec<Diagnostic>,
) -> Function {
    let function = &program.functions[index];
    let vars = function
        .vars
        .iter()
        .zip(&flow.vars[index])
        .map(|(var, places)| Var {
            name: var.name.clone(),
            ty: match places {
                Some(places) => flow.staged(&var.ty, places),
                None => var.ty.clone(),
            },
            span: var.span.clone(),
        });
    let mut emit = Emit {
        program,
        flow,
        vars: vars.collect(),
        diagnostics,
    };
    let result = flow.staged(&function.result, &flow.results[index]);
    let body = emit.expr(&function.body);
    let mut body = emit.coerce(body, &result);
    hoist(&mut body, &mut emit.vars);
    Function {
        name: function.name.clone(),
        params: function.params.clone(),
        result,
        body,
        vars: emit.vars,
        span: function.span.clone(),
    }
}

pub struct Emit<'a, 'p> {
    program: &'p Program,
    flow: &'a Flow<'p>,
    /// The function's variables, with those that staging adds.
    vars: Vec<Var>,
    pub diagnostics: &'a mut Vec<Diagnostic>,
}

impl Emit<'_, '_> {
    pub fn var(&mut self, name: &str, ty: Type, span: &Span) -> VarId {
        self.vars.push(Var {
            name: name.to_owned(),
            ty,
            span: span.clone(),
        });
        VarId(self.vars.len() - 1)
    }

    fn var_type(&self, var: VarId) -> Type {
        self.vars[var.0].ty.clone()
    }

    fn staged(&self, expr: &Expr) -> Type {
        self.flow.staged(&expr.ty, &self.flow.of(expr))
    }

    fn exprs(&mut self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    pub fn to(&mut self, expr: &Expr, ty: &Type) -> Expr {
        let expr = self.expr(expr);
        self.coerce(expr, ty)
    }

    pub fn host(&mut self, expr: &Expr) -> Box<Expr> {
        Box::new(force(self.expr(expr)))
    }

    pub fn tensor(&mut self, expr: &Expr) -> Box<Expr> {
        Box::new(lift(self.expr(expr)))
    }

    pub fn boxed(&mut self, expr: &Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    pub fn expr(&mut self, expr: &Expr) -> Expr {
        let span = expr.span.clone();
        let mut ty = self.staged(expr);
        let kind = match &expr.kind {
            ExprKind::Literal(literal) => {
                // A literal is on the host, whatever place it flows to.
                ty = expr.ty.clone();
                ExprKind::Literal(*literal)
            }
            ExprKind::Var(var) => ExprKind::Var(*var),
            ExprKind::Param(param) => ExprKind::Param(*param),
            ExprKind::Let { var, value, body } => {
                let value = self.expr(value);
                let value = Box::new(self.coerce(value, &self.var_type(*var)));
                let body = self.boxed(body);
                ty = body.ty.clone();
                ExprKind::Let {
                    var: *var,
                    value,
                    body,
                }
            }
            ExprKind::Phase(body) => {
                let body = self.boxed(body);
                ty = body.ty.clone();
                ExprKind::Phase(body)
            }
            ExprKind::Debug { text, value } => {
                let value = self.boxed(value);
                ty = value.ty.clone();
                ExprKind::Debug {
                    text: text.clone(),
                    value,
                }
            }
            ExprKind::Length { name, count, body } => {
                let count = self.host(count);
                let body = self.boxed(body);
                ty = body.ty.clone();
                ExprKind::Length {
                    name: name.clone(),
                    count,
                    body,
                }
            }
            ExprKind::Tuple(parts) => {
                let parts = self.exprs(parts);
                ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                ExprKind::Tuple(parts)
            }
            ExprKind::TupleGet { tuple, index } => {
                let tuple = self.boxed(tuple);
                if let Type::Tuple(parts) = &tuple.ty
                    && let Some(part) = parts.get(*index)
                {
                    ty = part.clone();
                }
                ExprKind::TupleGet {
                    tuple,
                    index: *index,
                }
            }
            ExprKind::Construct {
                adt,
                constructor,
                fields,
            } => {
                let declared = self
                    .program
                    .adts
                    .get(adt.0)
                    .and_then(|adt| adt.constructors.get(*constructor));
                let places = &self.flow.fields[adt.0][*constructor];
                let types: Vec<Type> = match declared {
                    Some(declared) => declared
                        .fields
                        .iter()
                        .zip(places)
                        .map(|(field, places)| self.flow.staged(field, places))
                        .collect(),
                    None => Vec::new(),
                };
                let fields = fields
                    .iter()
                    .zip(&types)
                    .map(|(field, ty)| self.to(field, ty))
                    .collect();
                ExprKind::Construct {
                    adt: *adt,
                    constructor: *constructor,
                    fields,
                }
            }
            ExprKind::Match { scrutinee, arms } => ExprKind::Match {
                scrutinee: self.boxed(scrutinee),
                arms: arms
                    .iter()
                    .map(|arm| Arm {
                        constructor: arm.constructor,
                        fields: arm.fields.clone(),
                        body: self.to(&arm.body, &ty),
                    })
                    .collect(),
            },
            ExprKind::If {
                cond,
                then,
                otherwise,
            } => ExprKind::If {
                cond: self.host(cond),
                then: Box::new(self.to(then, &ty)),
                otherwise: Box::new(self.to(otherwise, &ty)),
            },
            ExprKind::While {
                vars,
                init,
                cond,
                body,
            } => {
                let types: Vec<Type> = vars.iter().map(|var| self.var_type(*var)).collect();
                let init = init
                    .iter()
                    .zip(&types)
                    .map(|(init, ty)| self.to(init, ty))
                    .collect();
                let cond = self.host(cond);
                let body = Box::new(self.to(body, &ty));
                ExprKind::While {
                    vars: vars.clone(),
                    init,
                    cond,
                    body,
                }
            }
            ExprKind::Call { function, args } => {
                let params = &self.program.functions[function.0].params;
                let types: Vec<Type> = params
                    .iter()
                    .map(|param| {
                        let declared = &self.program.functions[function.0].vars[param.0].ty;
                        match &self.flow.vars[function.0][param.0] {
                            Some(places) => self.flow.staged(declared, places),
                            None => declared.clone(),
                        }
                    })
                    .collect();
                let args = args
                    .iter()
                    .zip(&types)
                    .map(|(arg, ty)| self.to(arg, ty))
                    .collect();
                ExprKind::Call {
                    function: *function,
                    args,
                }
            }
            ExprKind::Map { arrays, closure } => {
                let arrays = self.exprs(arrays);
                let element = match &ty {
                    Type::Array(element) => (**element).clone(),
                    other => other.clone(),
                };
                ExprKind::Map {
                    arrays,
                    closure: self.closure(closure, &element),
                }
            }
            ExprKind::Fold {
                array,
                init,
                closure,
            } => {
                let array = self.boxed(array);
                let init = Box::new(self.to(init, &ty));
                ExprKind::Fold {
                    array,
                    init,
                    closure: self.closure(closure, &ty),
                }
            }
            _ => return self.operation(expr, ty, span),
        };
        Expr { kind, ty, span }
    }

    fn closure(&mut self, closure: &Closure, result: &Type) -> Closure {
        let body = Box::new(self.to(&closure.body, result));
        Closure {
            params: closure.params.clone(),
            body,
        }
    }
}
