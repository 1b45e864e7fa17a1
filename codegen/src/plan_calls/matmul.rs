//! Plans a part of a result that is a product, or is computed from one element by element.
//!
//! On the CPU the result's own rows hold the sums between two blocks of depth, and what is elementwise behind the
//! product is computed there, while the last block is in the cache; what folds the product's rows, as a
//! softmax does, when all columns are there. What folds it otherwise replaces what it has still to read, and
//! is computed by loops. On a GPU a thread has some sums in registers, and folds compute again what they read.

use cohort_abi::gpu::Precision;
use cohort_passes::kernel::affine::{Affine, Var, identity};
use cohort_passes::kernel::calls::graph::{Graph, Kind, NodeId, Product, Size};
use cohort_passes::kernel::calls::lanes::{Layouts, dense};
use cohort_passes::kernel::calls::neighbours::copied_at_once;
use cohort_passes::kernel::calls::sides::{Target, copied, located, side};
use cohort_passes::kernel::calls::stages::{Matmul, Nest, Side, Store};
use cohort_passes::kernel::calls::write::{Shifted, Writer};

use super::Aim;
use super::parts::{Window, find_root, index_of, sizes_of};

/// Terms of a tile on a GPU. What is computed or copied one by one takes registers for each element or its
/// address, so these are fewer, but for tensor cores.
const TERMS: i64 = 16;
const FEW_TERMS: i64 = 8;

pub struct MatmulPlan {
    node: NodeId,
    /// Where the product is read: each of its dims at the result's index plus this.
    shift: Vec<i64>,
    aim: Aim,
    /// The result is the product, with nothing behind it.
    plain: bool,
    by_rows: bool,
}

/// Finds the product that a part of a result is made of: of several, one whose left side is made of folds, since
/// these would be computed again for each element.
pub fn plan(graph: &Graph<'_>, root: NodeId, windows: &[Window], aim: Aim) -> Option<MatmulPlan> {
    let is_product = |node| graph.product(node).is_some();
    let is_of_folds = |node| {
        let product = graph.product(node);
        product.is_some_and(|product| !graph.folds(product.a, &[]).is_empty())
    };
    let kinds: [&dyn Fn(NodeId) -> bool; 2] = [&is_of_folds, &is_product];
    kinds.into_iter().find_map(|fits| {
        let found = find_root(graph, root, windows, fits)?;
        plan_of(graph, root, windows, found, aim)
    })
}

fn plan_of(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    (node, shift): (NodeId, Vec<i64>),
    aim: Aim,
) -> Option<MatmulPlan> {
    let by_rows = match in_folds(graph, root, windows, node, &shift) {
        _ if aim.target != Target::Cpu => false,
        Folded::Nowhere => false,
        Folded::ByRows => true,
        Folded::Otherwise => return None,
    };
    let below = |var: Var| windows.get(var)?.size.known();
    Some(MatmulPlan {
        node,
        shift,
        aim,
        plain: located(graph, (root, &index_of(windows)), &below).0 == node,
        by_rows,
    })
}

/// Where the folds behind a product read it. It lies where the result will, and is replaced row by row.
enum Folded {
    Nowhere,
    /// In the row of the element that is computed.
    ByRows,
    Otherwise,
}

fn in_folds(
    graph: &Graph<'_>,
    root: NodeId,
    windows: &[Window],
    product: NodeId,
    shift: &[i64],
) -> Folded {
    let below = |var: Var| windows[var].size.known();
    let mut folded = Folded::Nowhere;
    let mut each = |node: NodeId, at: &[Affine], within: bool| {
        if node != product {
            return true;
        }
        let mut rows = at.iter().zip(shift).enumerate().take(at.len() - 1);
        let is_own = |(dim, (index, shift)): (usize, (&Affine, &i64))| {
            *index == Affine::var(dim).plus(&Affine::constant(*shift))
        };
        match (within, rows.all(is_own)) {
            (false, _) => {}
            (true, false) => folded = Folded::Otherwise,
            (true, true) if matches!(folded, Folded::Otherwise) => {}
            (true, true) => folded = Folded::ByRows,
        }
        false
    };
    let at = index_of(windows);
    graph.walk((root, &at), windows.len(), &below, &mut each);
    folded
}

impl MatmulPlan {
    /// What stands for the product in what is computed of it.
    fn sums(&self, windows: &[Window]) -> Shifted {
        let from = windows.iter().zip(&self.shift);
        Shifted {
            node: self.node,
            by: from.map(|(window, shift)| window.from - shift).collect(),
            own: (self.aim.target != Target::Cpu).then(|| index_of(windows)),
        }
    }

    /// Writes the stages: what the sums start from, the product, and what is behind it.
    pub fn write(&self, to: &Writer<'_, '_>, result: usize, windows: &[Window]) {
        self.product(to, self.node, (result, windows));
    }

    fn product(&self, to: &Writer<'_, '_>, node: NodeId, (result, windows): (usize, &[Window])) {
        let graph = to.graph;
        let Some(product) = graph.product(node) else {
            return;
        };
        let rank = windows.len();
        let onto = !matches!(graph.nodes[product.init].kind, Kind::Splat(0));
        if onto {
            let at = identity(rank);
            let (before, read) = graph.resolve(product.init, &at);
            if read == at && graph.product(before).is_some() {
                self.product(to, before, (result, windows));
            } else {
                to.nest(&self.init(graph, product.init, (result, windows)));
            }
        }
        let mut over = sizes_of(windows);
        let [left, right] = self.sides(graph, &product, &over);
        let blocks = self.blocks(graph, (&over, product.depth), [&left, &right]);
        let last = node == self.node;
        over.truncate(rank);
        let matmul = Matmul {
            depth: product.depth,
            rows: (self.aim.target == Target::Cpu).then(|| self.aim.processor.matmul_blocks()[0]),
            blocks,
            left,
            right,
            onto,
            result,
            to: index_of(windows),
            until: None,
            finish: (last && !self.plain).then(|| self.finish(graph, (result, windows))),
            by_rows: last && !self.plain && self.by_rows,
            over,
        };
        to.matmul(&matmul, self.sums(windows));
    }

    fn depth(&self, graph: &Graph<'_>) -> Size {
        let product = graph.product(self.node);
        product.map_or(Size::Known(1), |product| product.depth)
    }

    /// The columns and the terms of a block, or of a tile.
    fn blocks(
        &self,
        graph: &Graph<'_>,
        (over, depth): (&[Size], Size),
        [left, right]: [&Side; 2],
    ) -> [i64; 2] {
        let (rank, columns) = (over.len(), over[over.len() - 1]);
        let at_most = |size: Size, most: i64| size.known().map_or(most, |size| size.clamp(1, most));
        let below = |var: Var| match var == rank {
            true => depth.known(),
            false => over.get(var)?.known(),
        };
        let is_wide = |side: &Side, own: Var| {
            let along = if side.along_depth { rank } else { own };
            let copied = copied(graph, (side.value, &side.at), &below);
            copied.is_some_and(|(node, at)| copied_at_once(graph, (node, &at), along) > 1)
        };
        match self.aim.target {
            Target::Cpu => {
                let [_, most_columns, most_terms] = self.aim.processor.matmul_blocks();
                [
                    at_most(columns, most_columns),
                    at_most(self.depth(graph), most_terms),
                ]
            }
            Target::Gpu => {
                let wide = is_wide(left, rank - 2) && is_wide(right, rank - 1);
                let terms = match wide || self.aim.precision != Precision::F32 {
                    true => TERMS,
                    false => FEW_TERMS,
                };
                [tile_columns(columns), terms]
            }
        }
    }

    fn sides(&self, graph: &Graph<'_>, product: &Product, over: &[Size]) -> [Side; 2] {
        let rank = over.len();
        let mut domain = shifted(&self.shift);
        domain.push(Affine::var(rank));
        let at: Vec<Affine> = product.at.iter().map(|index| index.at(&domain)).collect();
        let mut sizes = over.to_vec();
        sizes.push(product.depth);
        [
            side(
                graph,
                (product.a, at.clone()),
                &sizes,
                [rank - 2, rank],
                (self.aim.target, false),
            ),
            side(
                graph,
                (product.b, at),
                &sizes,
                [rank - 1, rank],
                (self.aim.target, true),
            ),
        ]
    }

    /// What the sums start from, where that is not zero.
    fn init(&self, graph: &Graph<'_>, value: NodeId, of: (usize, &[Window])) -> Nest {
        let over = sizes_of(of.1);
        let known: Vec<_> = over.iter().map(|size| size.known()).collect();
        let mut known_of_one = known.clone();
        let outer = known.len() - 2;
        known_of_one[..outer].fill(Some(1));
        Nest {
            store: self.store(graph, (value, shifted(&self.shift)), of, &known_of_one),
            over,
        }
    }

    /// What is computed of the sums: of blocks, or of whole rows.
    fn finish(&self, graph: &Graph<'_>, of: (usize, &[Window])) -> Store {
        let (result, windows) = of;
        let rank = windows.len();
        let known = windows.iter().enumerate().map(|(dim, window)| match dim {
            dim if dim + 2 < rank => Some(1),
            _ => window.size.known().filter(|_| self.by_rows),
        });
        let known: Vec<_> = known.collect();
        self.store(
            graph,
            (graph.results[result], index_of(windows)),
            of,
            &known,
        )
    }

    fn store(
        &self,
        graph: &Graph<'_>,
        (value, at): (NodeId, Vec<Affine>),
        (result, windows): (usize, &[Window]),
        known: &[Option<i64>],
    ) -> Store {
        let of_result = dense(&graph.nodes[graph.results[result]].shape);
        let layouts = Layouts::new(graph, [(self.node, of_result.clone())].into());
        let below = |var: Var| windows.get(var)?.size.known();
        let lanes = || layouts.lanes_of_stores((value, &at), known, &of_result, &below);
        Store {
            lanes: self.aim.target.has_vectors().then(lanes).flatten(),
            value,
            at,
            result,
            to: index_of(windows),
        }
    }
}

/// The columns of a tile on a GPU.
fn tile_columns(columns: Size) -> i64 {
    match columns {
        Size::Known(..=16) => 16,
        Size::Known(..=32) => 32,
        _ => 64,
    }
}

/// Every loop at itself plus a number.
fn shifted(by: &[i64]) -> Vec<Affine> {
    let loops = by.iter().enumerate();
    loops
        .map(|(dim, by)| Affine::var(dim).plus(&Affine::constant(*by)))
        .collect()
}
