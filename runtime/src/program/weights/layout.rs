//! Tensors that a file has in another order of elements than the program.

/// Appends a tensor's elements with the last two of its axes swapped; with fewer, as they are.
pub fn transpose(bytes: &[u8], shape: &[u64], size: usize, out: &mut Vec<u8>) {
    let [.., rows, columns] = *shape else {
        return out.extend_from_slice(bytes);
    };
    let (rows, columns) = (rows as usize, columns as usize);
    let matrix = rows * columns * size;
    if matrix == 0 {
        return;
    }
    out.reserve(bytes.len());
    for matrix in bytes.chunks_exact(matrix) {
        for column in 0..columns {
            for row in 0..rows {
                let place = (row * columns + column) * size;
                out.extend_from_slice(&matrix[place..place + size]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::transpose;

    #[test]
    fn the_last_two_axes_are_swapped_in_each_matrix() {
        let mut out = Vec::new();
        transpose(
            &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
            &[2, 2, 3],
            1,
            &mut out,
        );
        assert_eq!(out, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
        out.clear();
        transpose(&[1, 2, 3, 4], &[2, 1], 2, &mut out);
        assert_eq!(out, [1, 2, 3, 4]);
        out.clear();
        transpose(&[], &[0, 3], 4, &mut out);
        assert!(out.is_empty());
    }
}
