//! Forms of tuples, arrays and declared types.

use super::types::Ty;
use super::{Scope, Writer};

impl Writer<'_> {
    pub(super) fn structure(&mut self, ty: &Ty, scope: &Scope, depth: usize) -> String {
        match ty {
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| self.expr(part, scope, depth - 1))
                    .collect();
                format!("({})", parts.join(", "))
            }
            Ty::Array(element) => self.array(element, scope, depth),
            Ty::Box => self.boxed(scope, depth),
            _ => self.leaf(ty, scope),
        }
    }

    /// A simple value of a type of which there is none in scope.
    pub(super) fn plain_structure(&mut self, ty: &Ty, scope: &Scope) -> String {
        match ty {
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.leaf(part, scope)).collect();
                format!("({})", parts.join(", "))
            }
            Ty::Array(element) => format!("[{}]", self.leaf(element, scope)),
            Ty::Tree => "Leaf(1)".to_owned(),
            _ => "Nothing".to_owned(),
        }
    }

    fn array(&mut self, element: &Ty, scope: &Scope, depth: usize) -> String {
        let whole = Ty::Array(Box::new(element.clone()));
        match self.rng.below(6) {
            0 => {
                let parts = [0; 2].map(|_| self.bounded(element, scope, depth - 1));
                format!("[{}]", parts.join(", "))
            }
            1 => format!(
                "push({}, {})",
                self.leaf(&whole, scope),
                self.bounded(element, scope, depth - 1)
            ),
            2 => format!("reverse({})", self.expr(&whole, scope, depth - 1)),
            3 => {
                let count = self.expr(&Ty::I32, scope, depth - 1);
                let i = self.name();
                let mut inside = scope.clone();
                inside.push((i.clone(), Ty::I32));
                let each = self.bounded(element, &inside, depth - 1);
                format!("map(range({count} % 5), |{i}| {each})")
            }
            _ => {
                let from = self.fixed_ty();
                let array = self.expr(&Ty::Array(Box::new(from.clone())), scope, depth - 1);
                let v = self.name();
                let mut inside = scope.clone();
                inside.push((v.clone(), from));
                let each = self.bounded(element, &inside, depth - 1);
                format!("map({array}, |{v}| {each})")
            }
        }
    }

    fn boxed(&mut self, scope: &Scope, depth: usize) -> String {
        match self.rng.below(3) {
            0 => self.leaf(&Ty::Box, scope),
            1 => format!(
                "Box({}, {})",
                self.bounded(&Ty::f32(&["A"]), scope, depth - 1),
                self.expr(&Ty::I32, scope, depth - 1)
            ),
            _ => format!(
                "Pair(({}, {}), {})",
                self.bounded(&Ty::f32(&["B"]), scope, depth - 1),
                self.expr(&Ty::Bool, scope, depth - 1),
                self.leaf(&Ty::Box, scope)
            ),
        }
    }
}
