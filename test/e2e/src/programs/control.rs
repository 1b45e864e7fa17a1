//! Forms that any type has: bindings, branches, calls, matches, loops and recursion.

use super::types::{Elem, Ty};
use super::{DEPTH, Function, Scope, Writer};

impl Writer<'_> {
    pub(super) fn control(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        match self.rng.below(if self.traits.debug { 11 } else { 9 }) {
            0 => self.binding(ty, scope, depth),
            1 | 2 => {
                let condition = self.expr(&Ty::Bool, scope, depth - 1);
                let (a, b) = (
                    self.expr(ty, scope, depth - 1),
                    self.expr(ty, scope, depth - 1),
                );
                format!("(if {condition} {{ {a} }} else {{ {b} }})")
            }
            3 => {
                let fitting: Vec<Function> = self
                    .functions
                    .iter()
                    .filter(|f| f.result == *ty)
                    .cloned()
                    .collect();
                match fitting.is_empty() {
                    true => self.binding(ty, scope, depth),
                    false => {
                        let function = self.rng.pick(&fitting).clone();
                        self.call(&function, scope, depth - 1)
                    }
                }
            }
            4 => self.match_box(ty, scope, depth),
            5 => self.fold(ty, scope, depth),
            6 => self.counted(ty, scope, depth),
            7 if self.traits.decisions => self.decision(ty, scope, depth),
            9 | 10 => format!(
                "debug(\"{}\", {})",
                self.name(),
                self.expr(ty, scope, depth - 1)
            ),
            _ => self.integer_match(ty, scope, depth),
        }
    }

    fn binding(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let bound = self.ty(1);
        let (name, value) = (self.name(), self.expr(&bound, scope, depth - 1));
        let mut scope = scope.clone();
        scope.push((name.clone(), bound));
        format!(
            "({{ let {name} = {value}; {} }})",
            self.expr(ty, &scope, depth - 1)
        )
    }

    pub(super) fn call(&mut self, function: &Function, scope: &Scope, depth: usize) -> String {
        let arguments: Vec<String> = function
            .arguments
            .iter()
            .map(|ty| match ty {
                // An integer says how often a function calls itself.
                Ty::I32 => format!("({} % 4)", self.expr(ty, scope, depth)),
                Ty::Tree => self.leaf(ty, scope),
                _ => self.bounded(ty, scope, depth),
            })
            .collect();
        format!("{}({})", function.name, arguments.join(", "))
    }

    fn match_box(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let of = self.leaf(&Ty::Box, scope);
        let otherwise = self.expr(ty, scope, depth - 1);
        let (v, k, r) = (self.name(), self.name(), self.name());
        let mut boxed = scope.clone();
        boxed.push((v.clone(), Ty::f32(&["A"])));
        boxed.push((k.clone(), Ty::I32));
        let first = self.expr(ty, &boxed, depth - 1);
        let (u, c) = (self.name(), self.name());
        let mut paired = scope.clone();
        paired.extend([
            (u.clone(), Ty::f32(&["B"])),
            (c.clone(), Ty::Bool),
            (r.clone(), Ty::Box),
        ]);
        let second = self.expr(ty, &paired, depth - 1);
        format!(
            "(match {of} {{ Nothing => {{ {otherwise} }} Box({v}, {k}) => {{ {first} }} \
             Pair(({u}, {c}), {r}) => {{ {second} }} }})"
        )
    }

    fn integer_match(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let of = self.expr(&Ty::I32, scope, depth - 1);
        let [a, b, c] = [0; 3].map(|_| self.expr(ty, scope, depth - 1));
        format!("(match {of} % 3 {{ 0 => {{ {a} }} 1 => {{ {b} }} _ => {{ {c} }} }})")
    }

    /// Over the elements of an array, with what is carried along.
    fn fold(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let element = self.fixed_ty();
        let array = self.expr(&Ty::Array(Box::new(element.clone())), scope, depth - 1);
        let start = self.expr(ty, scope, depth - 1);
        let (acc, each) = (self.name(), self.name());
        let mut inside = scope.clone();
        inside.push((acc.clone(), ty.clone()));
        inside.push((each.clone(), element));
        let next = self.bounded(ty, &inside, depth - 1);
        match self.rng.below(2) {
            0 => format!("fold({array}, {start}, |{acc}, {each}| {next})"),
            _ => format!("(for {each} in {array} with ({acc} = {start}) {{ {next} }})"),
        }
    }

    /// As often as an integer or a length says.
    fn counted(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let count = self.expr(&Ty::I32, scope, depth - 1);
        let start = self.expr(ty, scope, depth - 1);
        let (v, i) = (self.name(), self.name());
        let mut inside = scope.clone();
        inside.push((v.clone(), ty.clone()));
        inside.push((i.clone(), Ty::I32));
        let next = self.bounded(ty, &inside, depth - 1);
        match self.rng.below(2) {
            0 => format!("(for {i} in range({count} % 4) with ({v} = {start}) {{ {next} }})"),
            _ => format!(
                "({{ let ({v}, {i}) = while {i} < ({count}) % 3 with ({v} = {start}, {i} = 0) {{ ({next}, {i} + 1) }}; {v} }})"
            ),
        }
    }

    /// A branch or a loop that hangs on a tensor. Of floats, the closer the decision the less hangs on
    /// it; what hangs on integers is exact.
    fn decision(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        let is_float = matches!(ty, Ty::F32 | Ty::Tensor(Elem::F32, _));
        let (a, b) = (
            self.expr(ty, scope, depth - 1),
            self.expr(ty, scope, depth - 1),
        );
        if !is_float {
            let shape = self.shape();
            let numbers = self.integers(&shape, scope, depth - 1);
            return format!("(if sum({numbers}) % 2 == 0 {{ {a} }} else {{ {b} }})");
        }
        let (decider, number) = (self.name(), self.expr(&Ty::F32, scope, depth - 1));
        if self.rng.below(2) == 0 {
            return format!(
                "({{ let {decider} = tanh({number}); if {decider} > 0.05 {{ {a} + ({decider} - 0.05) * tanh({b}) }} else {{ {a} }} }})"
            );
        }
        let (v, turn, go) = (self.name(), self.name(), self.name());
        format!(
            "({{ let ({v}, {turn}, {go}) = while {go} with ({v} = {a}, {turn} = 0, {go} = true) {{ \
             let {decider} = tanh({number}); ({v} - relu({decider} - 0.01) * tanh({b}), {turn} + 1, \
             {turn} < 2 && {decider} > 0.01) }}; {v} }})"
        )
    }

    /// The body of a function that calls itself with a smaller integer.
    pub(super) fn countdown(&mut self, itself: &Function, scope: &mut Scope) -> String {
        let bindings = self.lets(scope);
        scope.push(("k".to_owned(), Ty::I32));
        let last = self.bounded(&itself.result, scope, DEPTH - 1);
        let again: Vec<String> = itself.arguments[1..]
            .iter()
            .map(|ty| self.bounded(ty, scope, 1))
            .collect();
        let again = [vec!["min(k, 4) - 1".to_owned()], again]
            .concat()
            .join(", ");
        let (name, call) = (self.name(), format!("{}({again})", itself.name));
        let mut inside = scope.clone();
        inside.push((name.clone(), itself.result.clone()));
        // In the last place it is a loop, elsewhere a recursion.
        let next = match self.rng.below(2) {
            0 => call,
            _ => format!(
                "let {name} = {call}; {}",
                self.bounded(&itself.result, &inside, DEPTH - 1)
            ),
        };
        format!("{bindings}  if k > 0 {{ {next} }} else {{ {last} }}\n")
    }

    /// The body of a function over a tree.
    pub(super) fn over_tree(&mut self, itself: &Function, scope: &mut Scope) -> String {
        let result = &itself.result;
        let call = |writer: &mut Self, child: &str, scope: &Scope| {
            let rest: Vec<String> = itself.arguments[1..]
                .iter()
                .map(|ty| writer.bounded(ty, scope, 1))
                .collect();
            format!(
                "{}({})",
                itself.name,
                [vec![child.to_owned()], rest].concat().join(", ")
            )
        };
        let mut leaf = scope.clone();
        leaf.push(("w".to_owned(), Ty::I32));
        let mut text = format!(
            "  match t {{\n    Leaf(w) => {{\n{}    }}\n",
            self.body(result, &mut leaf)
        );
        let (left, right) = (call(self, "l", scope), call(self, "r", scope));
        let mut node = scope.clone();
        node.push(("a".to_owned(), result.clone()));
        node.push(("b".to_owned(), result.clone()));
        let body = self.body(result, &mut node);
        text +=
            &format!("    Node(l, r) => {{\n  let a = {left};\n  let b = {right};\n{body}    }}\n");
        let mut many = scope.clone();
        many.push(("w".to_owned(), Ty::f32(&["A"])));
        let start = self.expr(result, &many, 1);
        let child = call(self, "kid", &many);
        many.push(("acc".to_owned(), result.clone()));
        many.push(("each".to_owned(), result.clone()));
        let next = self.bounded(result, &many, DEPTH - 1);
        let combined = match self.rng.below(3) {
            0 if matches!(result, Ty::F32 | Ty::I32)
                || matches!(result, Ty::Tensor(Elem::F32 | Elem::I32, shape) if !shape.iter().any(|dim| super::types::is_instance(dim))) =>
            {
                format!("sum(map(kids, |kid| {child}))")
            }
            1 => format!("fold(map(kids, |kid| {child}), {start}, |acc, each| {next})"),
            _ => format!("fold(kids, {start}, |acc, kid| {{ let each = {child}; {next} }})"),
        };
        text + &format!("    Many(w, kids) => {{ {combined} }}\n  }}\n")
    }
}
