//! Random numbers: Threefry-2x32 of the instance's key, a counter, and an element's position.
//!
//! Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011, section 3.3. The
//! key is that of the instance and the two words that are mixed are the counter and the position in
//! row-major order, so each number is a function of these alone. The upper 24 bits of the first word
//! are the number: exact as an f32, in [0, 1).

use cohort_dialects::builder::{Builder, Op, Val, result_of};
use cohort_frontend::program::{Dim, Elem, Expr, Literal};

use crate::expr::Lowering;
use crate::numbers;
use crate::types::known;

/// By how many bits each of eight rounds rotates.
const ROTATIONS: [i32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
const ROUNDS: usize = 20;
/// The number of rounds after which the key is added again.
const ROUNDS_A_KEY: usize = 4;
/// The parity of the key's third word.
const PARITY: i32 = 0x1bd1_1bda;
/// How many bits of a word make a number, as an f32 has them.
const BITS: i32 = 24;

impl<'c> Lowering<'_, 'c> {
    /// Uniform numbers in [0, 1).
    pub fn random(&mut self, at: Builder<'c>, counter: &Expr, shape: &[Dim]) -> Val<'c> {
        let counter = self.value(at, counter);
        let mixed = self.threefry(at, counter, shape);
        let dropped = self.number(at, i32::BITS as i32 - BITS, shape);
        let whole = at.shrui(mixed, dropped);
        let ty = self.types().tensor(Elem::F32, shape);
        let whole = numbers::cast(at, Elem::I32, Elem::F32, whole, ty);
        let unit = numbers::literal(at, Literal::F32(1.0 / f64::from(1 << BITS)));
        let unit = self.tensors(at, Elem::F32).splat(shape, unit);
        at.mulf(whole, unit)
    }

    /// The first word that Threefry-2x32 makes, for each position.
    fn threefry(&self, at: Builder<'c>, counter: Val<'c>, shape: &[Dim]) -> Val<'c> {
        let spread = |word| self.spread(at, Elem::I32, word, shape);
        let add = |a, b| at.addi(a, b);
        let keys = self.key(at).map(spread);
        let mut x = add(spread(counter), keys[0]);
        let mut y = add(self.position(at, shape), keys[1]);
        for round in 0..ROUNDS {
            x = add(x, y);
            y = self.rotate(at, y, ROTATIONS[round % ROTATIONS.len()], shape);
            y = at.xori(y, x);
            let done = round + 1;
            if done % ROUNDS_A_KEY == 0 {
                let turn = done / ROUNDS_A_KEY;
                x = add(x, keys[turn % 3]);
                y = add(y, keys[(turn + 1) % 3]);
                y = add(y, self.number(at, turn as i32, shape));
            }
        }
        x
    }

    /// The instance's key, two words and their parity, on the host.
    fn key(&self, at: Builder<'c>) -> [Val<'c>; 3] {
        let word = self.types().elem(Elem::I32);
        let key = at.op(Op::CfbInstanceKey, &[], &[word, word], &[], vec![]);
        let (low, high) = (result_of(key, 0), result_of(key, 1));
        let parity = numbers::constant(at, word, Literal::I32(PARITY));
        let both = at.xori(low, high);
        [low, high, at.xori(both, parity)]
    }

    /// Each element is its position in row-major order.
    fn position(&self, at: Builder<'c>, shape: &[Dim]) -> Val<'c> {
        let mut axes = shape.iter().enumerate();
        let Some(first) = axes.next().map(|(axis, _)| self.iota(at, shape, axis)) else {
            return self.number(at, 0, shape);
        };
        axes.fold(first, |position, (axis, dim)| {
            let length = self.length(at, dim, shape);
            let before = at.muli(position, length);
            at.addi(before, self.iota(at, shape, axis))
        })
    }

    /// A tensor of the length of a dim.
    fn length(&self, at: Builder<'c>, dim: &Dim, shape: &[Dim]) -> Val<'c> {
        match known(dim) {
            Some(length) => self.number(at, i32::try_from(length).unwrap_or(i32::MAX), shape),
            None => {
                let length = self.dims.size(at, dim);
                let word = self.types().elem(Elem::I32);
                let length = at.index_cast(length, word);
                self.spread(at, Elem::I32, length, shape)
            }
        }
    }

    fn rotate(&self, at: Builder<'c>, word: Val<'c>, by: i32, shape: &[Dim]) -> Val<'c> {
        let up = at.shli(word, self.number(at, by, shape));
        let rest = self.number(at, i32::BITS as i32 - by, shape);
        let down = at.shrui(word, rest);
        at.ori(up, down)
    }

    /// A tensor of one number.
    fn number(&self, at: Builder<'c>, number: i32, shape: &[Dim]) -> Val<'c> {
        let number = numbers::literal(at, Literal::I32(number));
        self.tensors(at, Elem::I32).splat(shape, number)
    }
}
