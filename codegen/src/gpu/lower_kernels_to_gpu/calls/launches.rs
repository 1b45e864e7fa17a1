//! The launches of a kernel: each stage is one, with those before it from whose sums it goes on.
//!
//! Sums never lie in the device's memory between stages: what a product starts from is computed where its sums are,
//! and a product onto another goes on in the same registers. So of a result a stage may read only what its own thread
//! has.

use cohort_abi::gpu::Precision;
use cohort_passes::kernel::affine::identity;
use cohort_passes::kernel::calls::graph::{Graph, NodeId, Size};
use cohort_passes::kernel::calls::stages::{Matmul, Stage, Store};

use super::{generic, online, product};

pub enum Launch {
    Loops(generic::LoopsPlan),
    Product(product::ProductPlan),
    Online(Box<online::OnlinePlan>),
}

impl Launch {
    /// What it stores, and where.
    pub fn store(&self) -> &Store {
        match self {
            Launch::Loops(plan) => &plan.nest.store,
            Launch::Product(plan) => &plan.store,
            Launch::Online(plan) => &plan.stage.finish,
        }
    }
}

/// The launches, each with the wave of its first stage, or why there are none.
pub fn launches(
    graph: &Graph<'_>,
    stages: impl IntoIterator<Item = (usize, Stage)>,
    precision: Precision,
) -> Result<Vec<(usize, Launch)>, String> {
    let mut launches: Vec<(usize, Launch)> = vec![];
    for (mut wave, stage) in stages {
        check(graph, &stage)?;
        let launch = match stage {
            Stage::Nest(nest) => Launch::Loops(generic::plan(graph, nest)),
            Stage::Online(stage) => {
                Launch::Online(Box::new(online::plan(graph, stage, precision)?))
            }
            Stage::Matmul(next) => {
                let before = next.onto.then(|| launches.pop()).flatten();
                wave = before.as_ref().map_or(wave, |(first, _)| *first);
                let plan = match before.map(|(_, launch)| launch) {
                    None if !next.onto => product::ProductPlan::new(None, precision),
                    Some(Launch::Loops(plan))
                        if goes_on(&next, &plan.nest.over, &plan.nest.store) =>
                    {
                        product::ProductPlan::new(Some(plan.nest.store), precision)
                    }
                    Some(Launch::Product(plan))
                        if plan.is_plain() && goes_on(&next, plan.over(), &plan.store) =>
                    {
                        plan
                    }
                    _ => return Err(OTHERS.to_owned()),
                };
                Launch::Product(plan.and(graph, next)?)
            }
        };
        launches.push((wave, launch));
    }
    Ok(launches)
}

const OTHERS: &str = "a stage reads what other threads have stored";

/// Whether a product goes on from what loops have stored.
fn goes_on(next: &Matmul, over: &[Size], store: &Store) -> bool {
    next.over == over && next.result == store.result && next.to == store.to
}

/// Checks that of what stages store only that is read which the thread itself has: a sum, where something is made of
/// it.
fn check(graph: &Graph<'_>, stage: &Stage) -> Result<(), String> {
    let (loops, own) = match stage {
        Stage::Nest(nest) => (nest.over.len(), None),
        Stage::Matmul(matmul) => {
            let sums = (graph.results[matmul.result], matmul.to.clone());
            let finish = matmul.finish.as_ref();
            (matmul.over.len() + 1, finish.map(|finish| (finish, sums)))
        }
        Stage::Online(online) => {
            let sums = (online.sums, identity(online.over.len()));
            (online.over.len() + 2, Some((&online.finish, sums)))
        }
    };
    let is_sums = |node: NodeId| own.as_ref().is_some_and(|(_, (sums, _))| *sums == node);
    let mut reads_others = false;
    for computed in stage.values() {
        let own = own.as_ref().filter(|(finish, _)| finish.read() == computed);
        graph.walk(computed, loops, &|_| None, &mut |node, at, _| {
            let is_stored = graph.results.contains(&node) || is_sums(node);
            let is_own = own.is_some_and(|(_, (sums, own))| *sums == node && own == at);
            reads_others |= is_stored && !is_own;
            true
        });
    }
    match reads_others {
        true => Err(OTHERS.to_owned()),
        false => Ok(()),
    }
}
