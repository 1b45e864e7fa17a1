//! How the work of a launch over calls is divided between threads: calls become *work items*, and work items *tasks* of threads.
//!
//! Calls differ in length, and there may be fewer than threads. All calls of a launch, one after
//! another, are cut into tasks of equal work. Where a cut would fall into a call it is made there, if
//! the kernel's calls can be divided and both sides are worth it, and otherwise beside it. Work is not
//! length: rows of a triangle differ. The heaviest task begins first, so that what is left at the end
//! is short (CoRa §4.1, remapping of iterations to threads). None of this influences a bit:
//! a work item begins where the kernel says that it may.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cohort_abi::manifest::Division;

use crate::execute::workers::MIN_WORK;

/// More than one, so that a thread that is held up does not delay the launch.
const TASKS_A_THREAD: u64 = 4;
/// Fewer tasks must make the launch this much shorter.
const BETTER: f64 = 0.97;
/// Where no call is divided, tasks are finer, to come out even.
const WHOLE_TASKS_A_THREAD: u64 = 12;
/// A task may miss its goal by this fraction, rather than cut a call.
const SLACK: f64 = 1.0 / 8.0;
/// A work item takes at least this many times as long as handing it out.
const WORTH: u64 = 4;

/// How many threads work is divided between, and how.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub threads: usize,
    /// Without, no call is divided, and tasks begin in the order of their calls.
    pub remapping: bool,
    /// What a task takes at most, so that the clock is looked at in between.
    pub most_work: u64,
}

/// What a call costs, in operations, roughly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallWork {
    /// Spread evenly over the dim that may be divided.
    pub even: u64,
    /// Growing along it from nothing.
    pub rising: u64,
    /// The length of that dim.
    pub length: u64,
}

impl CallWork {
    fn total(&self) -> u64 {
        self.even.saturating_add(self.rising)
    }

    /// The index up to which the call takes this part of its work.
    fn index_of(&self, part: f64) -> f64 {
        let (even, rising) = (self.even as f64, self.rising as f64);
        // Up to the part `x` of its length a call takes `even · x + rising · x²`.
        let x = match rising > 0.0 {
            true => {
                let wanted = part * (even + rising);
                ((even * even + 4.0 * rising * wanted).sqrt() - even) / (2.0 * rising)
            }
            false => part,
        };
        x * self.length as f64
    }

    /// The part of its work that is done up to an index.
    fn part_of(&self, index: u64) -> f64 {
        let x = index as f64 / self.length.max(1) as f64;
        let (even, rising) = (self.even as f64, self.rising as f64);
        (even * x + rising * x * x) / (even + rising).max(1.0)
    }

    /// Where the call is cut so that about this part of its work is before the cut, and as work items
    /// from `from` on are worth it.
    fn cut(&self, division: &Division, from: u64, part: f64) -> Result<u64, NoCut> {
        let least = division.tile.max(WORTH * division.shared).max(1);
        let tiles = (self.index_of(part) / division.tile as f64).round() as u64;
        let cut = tiles.saturating_mul(division.tile);
        if cut < from + least {
            Err(NoCut::Before)
        } else if cut + least > self.length {
            Err(NoCut::Behind)
        } else {
            Ok(cut)
        }
    }
}

/// Where a task ends instead.
enum NoCut {
    Before,
    Behind,
}

/// Work items of a launch that one thread computes, one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Task {
    work: u64,
    /// The first work item, as the launch counts them.
    pub begin: u64,
    /// Behind the last one.
    pub end: u64,
}

/// A launch's part of the lists.
#[derive(Clone, Copy, Debug, Default)]
struct Launch {
    items: (usize, usize),
    tasks: (usize, usize),
}

/// The tasks of some launches.
#[derive(Debug, Default)]
pub struct WorkItems {
    /// As kernels read them: call, from, to.
    items: Vec<[u32; 3]>,
    tasks: Vec<Task>,
    launches: Vec<Launch>,
}

impl WorkItems {
    pub fn clear(&mut self) {
        self.items.clear();
        self.tasks.clear();
        self.launches.clear();
    }

    /// The tasks of a launch, by its number.
    pub fn tasks(&self, launch: usize) -> &[Task] {
        let (begin, end) = self.launches[launch].tasks;
        &self.tasks[begin..end]
    }

    /// The work items that a launch's tasks count; none without a division.
    pub fn list(&self, launch: usize) -> &[[u32; 3]] {
        let (begin, end) = self.launches[launch].items;
        &self.items[begin..end]
    }

    /// The words that a launch takes here.
    pub fn words(&self, launch: usize) -> usize {
        let words = size_of::<Task>() / size_of::<u32>();
        3 * self.list(launch).len() + words * self.tasks(launch).len()
    }

    /// Adds a launch of calls; gives its number. Without a division its tasks count calls.
    pub fn add(&mut self, works: &[CallWork], division: Option<&Division>, rule: Rule) -> usize {
        let begin = (self.items.len(), self.tasks.len());
        let all = works
            .iter()
            .fold(0, |sum: u64, work| sum.saturating_add(work.total()));
        let threads = rule.threads as u64;
        let slices = all.div_ceil(rule.most_work);
        if slices > threads {
            self.make_tasks(works, division, rule.remapping, all as f64 / slices as f64);
        } else if threads <= 1 || all < 2 * MIN_WORK {
            // More than there is.
            self.make_tasks(works, division, false, 2.0 * all as f64);
        } else if !rule.remapping || division.is_none() {
            let tasks = (all / MIN_WORK).min(threads * WHOLE_TASKS_A_THREAD);
            self.make_tasks(works, division, false, all as f64 / tasks as f64);
        } else {
            self.divide(works, division, all, threads);
        }
        if rule.remapping {
            self.tasks[begin.1..].sort_by_key(|task| Reverse(task.work));
        }
        self.launches.push(Launch {
            items: (begin.0, self.items.len()),
            tasks: (begin.1, self.tasks.len()),
        });
        self.launches.len() - 1
    }

    /// Takes as many tasks a thread as come out best; many rather than few, if they do as well.
    fn divide(&mut self, works: &[CallWork], division: Option<&Division>, all: u64, threads: u64) {
        let start = (self.items.len(), self.tasks.len());
        let (mut best, mut tried) = (f64::MAX, Vec::new());
        for a_thread in (1..=TASKS_A_THREAD).rev() {
            let tasks = (threads * a_thread).min(all / MIN_WORK);
            self.make_tasks(works, division, true, all as f64 / tasks as f64);
            let items = self.items.split_off(start.0);
            let tasks = self.tasks.split_off(start.1);
            let longest = longest(&tasks, threads);
            if longest < BETTER * best {
                (best, tried) = (longest, vec![(items, tasks)]);
            }
        }
        for (items, tasks) in tried {
            self.items.extend(items);
            self.tasks.extend(tasks);
        }
    }

    fn make_tasks(
        &mut self,
        works: &[CallWork],
        division: Option<&Division>,
        may_cut: bool,
        goal: f64,
    ) {
        let mut cutter = Cutter {
            lists: self,
            may_cut,
            goal: goal.max(1.0),
            before: 0.0,
            tasks: 1.0,
            task: Task::default(),
        };
        for (call, work) in (0..).zip(works) {
            cutter.call(call, work, division);
        }
        cutter.end_task();
    }
}

/// How long the busiest thread takes, when each takes the heaviest task that is left.
fn longest(tasks: &[Task], threads: u64) -> f64 {
    let mut works: Vec<u64> = tasks.iter().map(|task| task.work).collect();
    works.sort_unstable_by_key(|work| Reverse(*work));
    let threads = threads.min(works.len() as u64);
    let mut busy: BinaryHeap<Reverse<u64>> = (0..threads).map(|_| Reverse(0)).collect();
    for work in works {
        let least = busy.pop().map_or(0, |Reverse(least)| least);
        busy.push(Reverse(least.saturating_add(work)));
    }
    busy.into_iter()
        .map(|Reverse(work)| work)
        .max()
        .unwrap_or(0) as f64
}

/// Cuts a launch's calls, which come one after another.
struct Cutter<'a> {
    lists: &'a mut WorkItems,
    may_cut: bool,
    /// The work of a task.
    goal: f64,
    /// What came so far.
    before: f64,
    /// The task at hand ends when this number of goals came.
    tasks: f64,
    task: Task,
}

impl Cutter<'_> {
    fn call(&mut self, call: u32, work: &CallWork, division: Option<&Division>) {
        let all = work.total() as f64;
        // What all rows share is done for each work item.
        let shared = division.map_or(0, |division| division.shared);
        let besides = all * shared as f64 / work.length.max(1) as f64;
        let (mut from, mut done) = (0, 0.0);
        loop {
            let left = self.tasks * self.goal - self.before;
            let fits = all - done <= left + SLACK * self.goal;
            let cut = match division.filter(|_| self.may_cut && !fits) {
                None if fits || self.task.begin == self.task.end => Err(NoCut::Behind),
                None => Err(NoCut::Before),
                Some(division) => work.cut(division, from, (done + left) / all),
            };
            match cut {
                Ok(cut) => {
                    let part = work.part_of(cut) * all;
                    self.item([call, from as u32, cut as u32], part - done, besides, true);
                    self.end_task();
                    (from, done) = (cut, part);
                }
                // A fresh task has room for some of it, or a longer one.
                Err(NoCut::Before) if self.task.begin < self.task.end => self.end_task(),
                Err(NoCut::Before) => self.tasks += 1.0,
                Err(NoCut::Behind) => {
                    let item = [call, from as u32, work.length as u32];
                    self.item(item, all - done, besides, division.is_some());
                    if self.tasks * self.goal - self.before <= SLACK * self.goal {
                        self.end_task();
                    }
                    return;
                }
            }
        }
    }

    fn item(&mut self, item: [u32; 3], work: f64, besides: f64, is_listed: bool) {
        if is_listed {
            self.lists.items.push(item);
        }
        self.before += work;
        self.task.work = self.task.work.saturating_add((work + besides) as u64);
        self.task.end += 1;
    }

    fn end_task(&mut self) {
        if self.task.begin < self.task.end {
            self.lists.tasks.push(self.task);
        }
        (self.task.work, self.task.begin) = (0, self.task.end);
        // The next task ends well behind what came so far.
        let ended = (self.before / self.goal + SLACK).floor();
        self.tasks = (ended + 1.0).max(self.tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Rule = Rule {
        threads: 2,
        remapping: true,
        most_work: u64::MAX,
    };

    fn even(work: u64, length: u64) -> CallWork {
        CallWork {
            even: work * MIN_WORK,
            rising: 0,
            length,
        }
    }

    fn division(tile: u64, shared: u64) -> Division {
        Division {
            length: 0,
            tile,
            shared,
            rising: vec![],
        }
    }

    fn planned(works: &[CallWork], division: Option<&Division>, rule: Rule) -> WorkItems {
        let mut items = WorkItems::default();
        // It starts empty, whatever was added before.
        items.add(&[even(3, 7)], division, rule);
        items.add(works, division, rule);
        items
    }

    fn ranges(items: &WorkItems) -> Vec<(u64, u64)> {
        let tasks = items.tasks(1).iter();
        tasks.map(|task| (task.begin, task.end)).collect()
    }

    #[test]
    fn calls_of_a_task_follow_each_other_and_the_heaviest_task_begins() {
        let works = [3, 9, 1, 1, 1, 1, 60, 0, 2].map(|work| even(work, 0));
        let found = planned(&works, None, TWO);
        assert_eq!(
            ranges(&found),
            [(6, 7), (1, 2), (0, 1), (3, 6), (7, 9), (2, 3)]
        );
        let in_order = Rule {
            remapping: false,
            ..TWO
        };
        let found = planned(&works, None, in_order);
        assert_eq!(
            ranges(&found),
            [(0, 1), (1, 2), (2, 3), (3, 6), (6, 7), (7, 9)]
        );
        let alone = Rule { threads: 1, ..TWO };
        assert_eq!(ranges(&planned(&works, None, alone)), [(0, 9)]);
    }

    #[test]
    fn a_call_is_cut_where_a_task_ends_if_that_is_worth_it() {
        let works = [even(1, 50), even(78, 100), even(0, 0), even(1, 50)];
        let found = planned(&works, Some(&division(12, 0)), TWO);
        let expected = [
            [0, 0, 50],
            [1, 0, 12],
            [1, 12, 24],
            [1, 24, 36],
            [1, 36, 48],
            [1, 48, 60],
            [1, 60, 72],
            [1, 72, 84],
            [1, 84, 100],
            [2, 0, 0],
            [3, 0, 50],
        ];
        assert_eq!(found.list(1), expected);
        let mut tasks = ranges(&found);
        tasks.sort_unstable();
        let expected = [
            (0, 2),
            (2, 3),
            (3, 4),
            (4, 5),
            (5, 6),
            (6, 7),
            (7, 8),
            (8, 9),
            (9, 11),
        ];
        assert_eq!(tasks, expected);
        let whole: Vec<_> = [50, 100, 0, 50].into_iter().zip(0..).collect();
        let whole: Vec<_> = whole.iter().map(|(to, call)| [*call, 0, *to]).collect();
        let one = |rule, division: &Division| planned(&works, Some(division), rule);
        for found in [
            one(Rule { threads: 1, ..TWO }, &division(12, 0)),
            one(TWO, &division(96, 0)),
            // Each work item would cost as much again.
            one(TWO, &division(12, 16)),
            one(
                Rule {
                    remapping: false,
                    ..TWO
                },
                &division(12, 0),
            ),
        ] {
            assert_eq!(found.list(1), whole);
        }
        // Nobody waits for small ones.
        let small = [CallWork {
            even: MIN_WORK,
            rising: 0,
            length: 100,
        }];
        let found = planned(&small, Some(&division(12, 0)), TWO);
        assert_eq!(found.list(1), [[0, 0, 100]]);
    }

    #[test]
    fn pieces_of_a_triangle_are_equal_work_and_no_equal_ranges() {
        let work = CallWork {
            even: 0,
            rising: 100 * MIN_WORK,
            length: 1000,
        };
        let found = planned(&[work], Some(&division(4, 0)), TWO);
        let ends: Vec<u32> = found.list(1).iter().map(|item| item[2]).collect();
        assert_eq!(ends, [352, 500, 612, 708, 792, 868, 936, 1000]);
        let half = CallWork {
            even: 50 * MIN_WORK,
            rising: 50 * MIN_WORK,
            length: 1000,
        };
        assert!((half.index_of(0.375) - 500.0).abs() < 1e-9);
        assert!((half.part_of(500) - 0.375).abs() < 1e-9);
        // With what each work item costs besides, a quarter each is better than an eighth.
        let short = CallWork {
            length: 512,
            ..work
        };
        let found = planned(&[short], Some(&division(12, 8)), TWO);
        let ends: Vec<u32> = found.list(1).iter().map(|item| item[2]).collect();
        assert_eq!(ends, [252, 360, 444, 512]);
    }
}
