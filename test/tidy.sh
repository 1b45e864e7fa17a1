#!/usr/bin/env bash
# The invariants of ARCHITECTURE.md that a script can check. Each check prints what is wrong.
set -uo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=0

# check DESCRIPTION FUNCTION…: the function prints nothing when all is well.
check() {
    local description=$1 wrong
    shift
    wrong=$("$@" 2>&1)
    if [[ -z $wrong ]]; then
        printf 'ok    %s\n' "$description"
        passed=$((passed + 1))
    else
        printf 'FAIL  %s\n%s\n' "$description" "$(sed 's/^/      /' <<<"$wrong")"
        failed=$((failed + 1))
    fi
}

# The names of all crates that one is built from.
dependencies() {
    cargo tree --quiet --locked --edges normal,build --prefix none --format '{p}' --package "$@" |
        cut -d ' ' -f 1 | sort -u
}

without_mlir() {
    dependencies "$@" | grep -E '^(melior|melior-macro|mlir-sys|llvm-sys|cohort-dialects)$'
    # A tree that cannot be made is not one without MLIR.
    dependencies "$@" | grep -q . || echo "no dependencies of $1 can be listed"
}

oracle_shares_only_the_typed_program() {
    dependencies cohort-oracle | grep '^cohort-' | grep -vxE 'cohort-(oracle|frontend)'
}

compiled_code_and_runtime_meet_in_the_abi() {
    dependencies cohort-codegen | grep -xE 'cohort-(runtime|frontend|lowering|oracle)'
    dependencies cohort-runtime | grep '^cohort-' | grep -vxE 'cohort-(runtime|abi|ptx)'
}

passes_know_no_target() {
    dependencies cohort-passes | grep '^cohort-' | grep -vxE 'cohort-(passes|dialects|abi)'
}

training_knows_neither_compiler_nor_runtime() {
    dependencies cohort-train | grep '^cohort-' | grep -vxE 'cohort-(train|files)'
}

every_pass_has_its_tests() {
    local file name
    while IFS= read -r file; do
        name=$(sed -n '/pub const PASS: PassInfo/,/};/s/.*name: "\(.*\)",.*/\1/p' "$file")
        [[ $(basename "$file" .rs) == "${name//-/_}" ]] || echo "$file declares the pass \`$name\`"
        compgen -G "test/passes/$name/*.mlir" >/dev/null || echo "test/passes/$name has no tests"
    done < <(grep -rl 'pub const PASS: PassInfo' passes/src codegen/src | sort)
}

every_folder_of_tests_has_its_pass() {
    local folder
    for folder in test/passes/*/; do
        folder=$(basename "$folder")
        find passes/src codegen/src -name "${folder//-/_}.rs" | grep -q . || echo "no pass \`$folder\`"
    done
}

# What comes earlier in the pipeline does not know what comes later.
levels_know_only_those_before_them() {
    local folder later=('level0:level1|level2|loops|kernel' 'level1:level2|loops' 'level2:loops'
        'loops:level0|level1|level2' 'kernel:level0|level1|level2|loops' 'support:level0|level1|level2|loops')
    for folder in "${later[@]}"; do
        grep -rnE "crate::(${folder#*:})::" "passes/src/${folder%%:*}" "passes/src/${folder%%:*}.rs"
    done
}

# A folder of the runtime does not know those that stand on it.
runtime_knows_only_what_is_below() {
    local folder run='io|instance|engine|session|serving|verify'
    local above=(
        "memory:program|report|call_cache|recorder|reuse|schedule|execute|device|backward|threads|$run"
        "threads:program|report|call_cache|recorder|reuse|schedule|execute|device|backward|$run"
        "program:report|call_cache|recorder|reuse|schedule|execute|device|backward|$run"
        "call_cache:report|recorder|reuse|schedule|execute|device|backward|threads|$run"
        "recorder:reuse|schedule|execute|device|backward|$run" "schedule:recorder|reuse|execute|device|backward|threads|$run"
        "device:recorder|reuse|schedule|execute|backward|$run" "execute:reuse|backward|$run" "reuse:backward|session|serving|verify"
        'backward:session|serving|verify' 'io:session|serving|verify'
        'instance:engine|session|serving|verify' 'engine:session|serving|verify' 'session:serving|verify')
    for folder in "${above[@]}"; do
        local root=runtime/src/${folder%%:*}
        grep -HnE "crate::(${folder#*:})\b" "$root.rs" $(find "$root" -name '*.rs' 2>/dev/null) |
            grep -vE ':[0-9]+: *//|::tests::'
    done
}

no_model_is_known_by_name() {
    local models
    models=$(find examples -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | paste -sd '|')
    # `encoder` and `act` are also words.
    models=$(tr '|' '\n' <<<"$models" | grep -vxE 'encoder|act' | paste -sd '|')
    grep -rniwE "$models" --include='*.rs' --include='*.cpp' --include='*.td' \
        frontend/src lowering/src dialects/src dialects/lib dialects/include passes/src codegen/src \
        runtime/src abi/src tools/src
}

no_test_is_ignored() {
    git grep -nE '^\s*#\[ignore' -- '*.rs'
}

# Kinds of operations are `Op`, which is tied to their declarations. Names of attributes are `Key`s, which `dialects` alone makes.
# Types and attributes are built; only `dialects` parses those of upstream that have no builder.
no_name_of_the_ir_is_a_string() {
    local dialects='arith|cfb|func|gpu|linalg|llvm|math|ml_program|nvvm|ragged|scf|tensor|vector'
    grep -rnE "\"($dialects)\.[a-z_.]+\"" passes/src codegen/src lowering/src tools/src/compile | grep -vE ':[0-9]+: *//|::tests::'
    grep -rn 'OperationBuilder::new' dialects/src lowering/src passes/src codegen/src tools/src |
        grep -v '^dialects/src/builder.rs'
    grep -rnE '\.(has_|set_|remove_)?attribute(_mut)?\("' passes/src codegen/src lowering/src tools/src/compile
    find passes/src codegen/src lowering/src tools/src/compile -name '*.rs' -exec \
        awk '/#\[cfg\(test\)\]/ { nextfile } /(Attribute|Type)::parse\(/ { print FILENAME ":" FNR ": " $0 }' {} +
}

check 'runtime knows no MLIR' without_mlir cohort-runtime
check 'frontend knows no MLIR' without_mlir cohort-frontend
check 'the oracle knows no MLIR' without_mlir cohort-oracle
check 'batch-run can be built without the compiler' without_mlir cohort-tools --no-default-features
check 'the oracle shares only the typed program' oracle_shares_only_the_typed_program
check 'compiled code and runtime meet in the ABI' compiled_code_and_runtime_meet_in_the_abi
check 'passes know no target' passes_know_no_target
check 'training knows neither compiler nor runtime' training_knows_neither_compiler_nor_runtime
check 'every pass has a file of its name and tests' every_pass_has_its_tests
check 'every folder of pass tests has its pass' every_folder_of_tests_has_its_pass
check 'levels know only those before them' levels_know_only_those_before_them
check 'the runtime knows only what is below' runtime_knows_only_what_is_below
check 'no model is known to the compiler by name' no_model_is_known_by_name
check 'no name of the IR is a string' no_name_of_the_ir_is_a_string
check 'no test is ignored' no_test_is_ignored

result=ok
((failed == 0)) || result=FAILED
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
((failed == 0))
