//! Makes a list of choices smaller: those at the end go, others become 0, others go.

use cohort_tools::reduce::shrink::{Budget, shrink};

/// A simpler list that still fails.
pub fn smaller(
    choices: &[u64],
    budget: &mut Budget,
    mut fails: impl FnMut(&[u64]) -> bool,
) -> Vec<u64> {
    let mut choices = choices.to_vec();
    let mut size = choices.len();
    while size > 0 {
        let mut start = 0;
        while start < choices.len() {
            let end = (start + size).min(choices.len());
            if choices[start..end].iter().any(|choice| *choice != 0) {
                let mut simpler = choices.clone();
                simpler[start..end].fill(0);
                if !budget.take() {
                    return choices;
                }
                if fails(&simpler) {
                    choices = simpler;
                }
            }
            start = end;
        }
        size /= 2;
    }
    while choices.last() == Some(&0) {
        choices.pop();
    }
    shrink(&choices, budget, fails)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_does_not_matter_becomes_nothing() {
        let choices: Vec<u64> = (1..100).collect();
        let mut budget = Budget::new(1000, Duration::from_secs(60));
        let found = smaller(&choices, &mut budget, |choices| {
            choices.contains(&40) && choices.contains(&7)
        });
        assert_eq!(found, [7, 40]);
    }
}
