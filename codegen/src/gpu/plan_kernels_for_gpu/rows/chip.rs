//! Which scratch is kept in a block's shared memory.

use cohort_passes::kernel::rows::body::Body;
use cohort_passes::kernel::rows::graph::{Graph, Kind, NodeId};
use cohort_passes::kernel::rows::layout::{Layouts, Place, round_up};
use cohort_passes::kernel::rows::stage::Stage;

use super::plan::{Launch, LaunchPlan, loads_of};
use super::threads::block_rows;
use crate::generic_body::results_of_loops;

/// What slots may take of shared memory, so that a processor has room for several blocks.
const SHARED_SLOTS: i64 = 16 * 1024;

/// Where the slots of the scratch are: on the chip, on the device, or nowhere, if nothing touches them.
pub struct Chip {
    pub homes: Vec<Option<bool>>,
    /// Parameters and constants that launches touch.
    pub constants: Vec<NodeId>,
}

impl Chip {
    pub fn new(graph: &Graph<'_>, plan: &LaunchPlan<'_>) -> Chip {
        let slots = &plan.layouts.slots;
        let mut users: Vec<Vec<usize>> = vec![vec![]; slots.len()];
        let mut constants = vec![];
        for (number, launch) in plan.launches.iter().enumerate() {
            for place in places_of(graph, &plan.layouts, launch) {
                match place {
                    Place::Slot(slot) if users[slot].last() != Some(&number) => {
                        users[slot].push(number);
                    }
                    Place::Constant(node) if !constants.contains(&node) => constants.push(node),
                    _ => {}
                }
            }
        }
        let mut taken = vec![0; plan.launches.len()];
        let homes = slots.iter().zip(&users).map(|(slot, users)| {
            let first = *users.first()?;
            if let (true, Launch::Rows(rows), [_]) = (slot.rows, &plan.launches[first], &users[..])
            {
                let all = round_up(round_up(slot.bytes, 4) * block_rows(graph, rows), 16);
                if taken[first] + all <= SHARED_SLOTS {
                    taken[first] += all;
                    return Some(true);
                }
            }
            Some(false)
        });
        Chip {
            homes: homes.collect(),
            constants,
        }
    }
}

/// The memory that a launch reads or writes.
fn places_of(graph: &Graph<'_>, layouts: &Layouts, launch: &Launch<'_>) -> Vec<Place> {
    let of_node = |id: NodeId| layouts.of_node[id].as_ref().map(|layout| layout.place);
    let mut places = Vec::new();
    let mut of_body = |body: &Body<'_>, is_held: &dyn Fn(NodeId) -> bool| {
        let loads = loads_of(body).filter(|(buffer, _)| !is_held(*buffer));
        places.extend(loads.filter_map(|(buffer, _)| of_node(buffer)));
        places.extend(body.stores.iter().map(|store| store.place));
    };
    match launch {
        Launch::Tile(tile) => {
            of_body(&tile.body, &|buffer| {
                tile.chains.iter().any(|chain| chain.product == buffer)
            });
            for chain in &tile.chains {
                of_body(&chain.init, &|_| false);
            }
            for segment in tile.chains.iter().flat_map(|chain| &chain.segments) {
                places.extend(of_node(segment.a.buffer));
                places.extend(of_node(segment.weight.buffer));
            }
        }
        Launch::Rows(rows) => {
            for stage in &rows.stages {
                for body in stage.bodies() {
                    of_body(body, &|_| false);
                }
            }
            for stage in &rows.stages {
                match stage {
                    Stage::Fold(fold) => places.extend(of_node(fold.node)),
                    Stage::ReduceRows(list) => places.extend(of_node(list.node)),
                    Stage::Loops { node, .. } => {
                        let results = results_of_loops(graph, layouts, *node);
                        places.extend(results.into_iter().flatten().filter_map(of_node));
                        if let Kind::Loops(loops) = &graph.nodes[*node].kind {
                            let views = loops.inits.iter();
                            let views = views.filter_map(|init| layouts.view(graph, *init));
                            places.extend(views.filter_map(|view| of_node(view.buffer)));
                        }
                    }
                    Stage::Group(_) | Stage::Product(_) | Stage::Pack { .. } => {}
                }
            }
        }
    }
    places
}
