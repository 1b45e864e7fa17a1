//! The model zoo's programs, at dims that are multiples of nothing.

use std::collections::BTreeMap;
use std::path::Path;

use cohort_frontend::{Sources, check, render};
use cohort_lowering::lower;
use melior::ir::Module;

/// The level-0 text of an example, or what is shown to the user.
fn lower_example(name: &str) -> Result<String, String> {
    let path = format!("../examples/{name}/{name}.coh");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).expect("the example exists");
    let mut sources = Sources::new();
    let file = sources.add(format!("{name}.coh"), text);
    let show = |diagnostics: Vec<_>| {
        let mut shown = Vec::new();
        render(&diagnostics, &sources, &mut shown, false).expect("memory takes it");
        String::from_utf8(shown).expect("is text")
    };
    let checked = check(&sources, file).map_err(show)?;
    let sizes = [("V", 11), ("D", 12), ("H", 7), ("C", 3), ("L", 2), ("F", 5)];
    let dims: BTreeMap<String, u64> = checked
        .dims()
        .into_iter()
        .filter_map(|dim| {
            let size = sizes.iter().find(|(name, _)| *name == dim.name)?.1;
            Some((dim.name, size))
        })
        .collect();
    let program = checked.bind(&BTreeMap::new(), &dims).map_err(show)?;
    let context = cohort_dialects::new_context();
    let module = lower(&context, &program, &sources).map_err(show)?;
    let text = module.as_operation().to_string();
    let again = Module::parse(&context, &text).expect("what is printed is read back");
    assert_eq!(again.as_operation().to_string(), text);
    Ok(text)
}

macro_rules! lowers {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            let text = lower_example(stringify!($name)).unwrap_or_else(|shown| panic!("{shown}"));
            assert!(text.contains("func.func @main("), "{text}");
        }
    )* };
}
lowers!(treelstm treegru treefc mvrnn childsum dagrnn birnn nestedrnn drnn stackrnn act);
lowers!(berxit encoder masked_mha vgemm trmm exprtree);
