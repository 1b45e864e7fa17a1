//! The order of the instances in an epoch: a function of the seed, the epoch and their number alone.

use crate::random::Stream;

/// A permutation of `0..count`, by Fisher and Yates.
pub fn of_epoch(seed: u64, epoch: u64, count: usize) -> Vec<usize> {
    let mut stream = Stream::new(seed, "order", &epoch.to_le_bytes());
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, stream.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_every_instance_once_and_differs_by_seed_and_epoch() {
        let order = of_epoch(3, 1, 1000);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_eq!(order, of_epoch(3, 1, 1000));
        assert_ne!(order, of_epoch(3, 2, 1000));
        assert_ne!(order, of_epoch(4, 1, 1000));
        assert_eq!(of_epoch(3, 1, 0), Vec::<usize>::new());
        assert_eq!(of_epoch(3, 1, 1), [0]);
    }

    #[test]
    fn every_order_is_about_as_likely_as_the_others() {
        let mut seen = std::collections::BTreeMap::new();
        for epoch in 0..6000 {
            *seen.entry(of_epoch(1, epoch, 3)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(
            seen.values().all(|count| (900..1100).contains(count)),
            "{seen:?}"
        );
    }
}
