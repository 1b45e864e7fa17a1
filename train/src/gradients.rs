//! The gradient of a mini-batch's losses, and what is done with it before the update.

use crate::parameters::Parameters;

/// Of one parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Gradient {
    /// Nothing flows to it: as if all were zeros.
    #[default]
    None,
    /// Of each element, row-major.
    Dense(Vec<f32>),
    /// Of a table, the rows that may have a gradient, ascending, and their elements one behind another;
    /// the others are zeros.
    Rows {
        /// Which rows.
        rows: Vec<usize>,
        /// Their elements.
        values: Vec<f32>,
    },
}

impl Gradient {
    /// All elements that are there.
    pub fn values(&self) -> &[f32] {
        match self {
            Gradient::None => &[],
            Gradient::Dense(values) | Gradient::Rows { values, .. } => values,
        }
    }

    fn values_mut(&mut self) -> &mut [f32] {
        match self {
            Gradient::None => &mut [],
            Gradient::Dense(values) | Gradient::Rows { values, .. } => values,
        }
    }

    /// Whether it changes nothing.
    pub fn is_zero(&self) -> bool {
        self.values().iter().all(|x| *x == 0.0)
    }

    /// The rows of `width` elements that are not all zeros, with their numbers.
    pub fn touched(&self, width: usize) -> Vec<(usize, &[f32])> {
        let width = width.max(1);
        let number = |place: usize| match self {
            Gradient::Rows { rows, .. } => rows[place],
            Gradient::None | Gradient::Dense(_) => place,
        };
        let rows = self.values().chunks_exact(width).enumerate();
        rows.filter(|(_, row)| row.iter().any(|x| *x != 0.0))
            .map(|(place, row)| (number(place), row))
            .collect()
    }
}

/// Of all parameters, in the order of the program; [`Gradient::None`] for those that are not of floats.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gradients {
    /// Of each parameter, in the order of the program.
    pub of: Vec<Gradient>,
}

impl Gradients {
    /// Nothing flows anywhere.
    pub fn none(parameters: &Parameters) -> Gradients {
        Gradients {
            of: vec![Gradient::None; parameters.list.len()],
        }
    }

    /// Divides all by a number: a sum becomes a mean.
    pub fn divide(&mut self, by: f32) {
        for gradient in &mut self.of {
            gradient
                .values_mut()
                .iter_mut()
                .for_each(|value| *value /= by);
        }
    }

    /// The root of the sum of all squares, added up in f64 in the order of the program. Zeros that are not
    /// there change nothing, so it is the same for rows as for the whole table.
    pub fn norm(&self) -> f64 {
        let mut sum = 0.0;
        for gradient in &self.of {
            let squares = gradient
                .values()
                .iter()
                .map(|x| f64::from(*x) * f64::from(*x));
            sum = squares.fold(sum, |sum, square| sum + square);
        }
        sum.sqrt()
    }

    /// Scales all such that the norm, which is given, is `most`, where it is more.
    pub fn clip(&mut self, norm: f64, most: f64) {
        // As PyTorch's `clip_grad_norm_` has it.
        let factor = most / (norm + 1e-6);
        if factor < 1.0 {
            for value in self.of.iter_mut().flat_map(Gradient::values_mut) {
                *value *= factor as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> [Gradients; 2] {
        let rows = Gradient::Rows {
            rows: vec![1, 3],
            values: vec![3.0, 0.0, 0.0, -4.0],
        };
        let dense = vec![0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, -4.0];
        [rows, Gradient::Dense(dense)].map(|gradient| Gradients { of: vec![gradient] })
    }

    #[test]
    fn rows_are_a_table_without_its_zeros() {
        let [rows, dense] = both();
        assert_eq!(rows.norm(), 5.0);
        assert_eq!(rows.norm(), dense.norm());
        assert_eq!(rows.of[0].touched(2), dense.of[0].touched(2));
        let touched = rows.of[0].touched(2);
        assert_eq!(touched, [(1, &[3.0, 0.0][..]), (3, &[0.0, -4.0][..])]);
    }

    #[test]
    fn only_long_gradients_are_clipped() {
        for mut gradients in both() {
            let before = gradients.clone();
            gradients.clip(5.0, 6.0);
            assert_eq!(gradients, before);
            gradients.clip(5.0, 1.0);
            assert!((gradients.norm() - 1.0).abs() < 1e-6);
            gradients.divide(0.5);
            assert!((gradients.norm() - 2.0).abs() < 1e-6);
        }
    }
}
