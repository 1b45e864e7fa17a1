//! Every diagnostic, as the user sees it. A case is a program with a comment on why it exists;
//! `// dims:` and `// weights:` lines give what it is bound to.

use crate::support;

fn check_case(name: &str, text: &str) {
    let directive = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let dims = support::dims(&directive("// dims:"));
    let weights = support::weights(&directive("// weights:"));
    let errors = match support::compile(&format!("{name}.coh"), text, &weights, &dims) {
        Ok(_) => panic!("{name} has no mistakes"),
        Err(errors) => errors,
    };
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, errors);
    });
}

macro_rules! cases {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let text = include_str!(concat!("cases/", stringify!($name), ".coh"));
                check_case(stringify!($name), text);
            }
        )*

        const CASES: &[&str] = &[$(stringify!($name)),*];
    };
}

cases! {
    aliases argument_count arrays axes bad_number block_without_value broadcast built_in_names chained_comparison changing_lengths
    computed_input_length
    closures concat condition constant_dim debug duplicates einsum endless_instances endless_type endless_types
    foreign_character fraction_of_dim generic_main guards hints_of_names hints_of_python hints_of_syntax hints_of_types if_without_else imports loop_variables lower_case_names
    matmul misplaced_phase missing_arms named_fields negative_dims negative_indices no_main no_whole_dim not_an_item not_constant not_indexable
    number_too_large operand_types or_patterns ordering overloads refutable_let reshape row_out_of_range shape_mismatch
    slice_of_axis slices split stored_names stored_weights stray_bracket syntax_errors texts topk type_arguments type_mismatch
    unbound_dim unclosed_bracket unknown_constructor unknown_dim unknown_element unknown_function
    argument_named_id too_large_parameter too_many_elements unknown_name unknown_type unreachable_arm weight_shapes
}

#[test]
fn every_case_is_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cases");
    for entry in std::fs::read_dir(folder).expect("the cases are there") {
        let name = entry.expect("an entry is readable").file_name();
        let name = name.to_string_lossy();
        let name = name.trim_end_matches(".coh");
        assert!(
            CASES.contains(&name),
            "{name}.coh is not in the list of cases"
        );
    }
}
