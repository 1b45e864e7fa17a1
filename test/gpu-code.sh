#!/usr/bin/env bash
# Compiles the kernels of the examples for GPUs: each to PTX, and where there is NVIDIA's assembler to
# CUBIN for every architecture in f32 and for one in every precision; those of a serious size for all of
# these, in bf16 for the architecture that has warpgroups. In tf32 the text for sm_80 is assembled for sm_90 too.
# No function may spill registers or keep anything on a stack. Where there is NVIDIA's disassembler,
# test/sass/lint.py looks for barriers that only some threads of a block come to, and compares what the kernels
# of a serious size use with test/sass/budget.txt, which `--update` writes anew. No GPU is needed.
set -uo pipefail
cd "$(dirname "$0")/.."

# For which architecture the text is, and for which it is assembled.
readonly TARGETS=(sm_80:f32 sm_90:f32 sm_120:f32 sm_90:tf32 sm_90:bf16)
readonly ALL_TARGETS=(sm_80:f32 sm_90:f32 sm_120:f32 sm_80,sm_90:tf32 sm_80:bf16 sm_90a:bf16)
bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-target}/release}
ptxas=${COHORT_PTXAS:-$(PATH=$PATH:$PWD/.tools/bin command -v ptxas)}
nvdisasm=$(PATH=$PATH:$PWD/.tools/bin command -v nvdisasm)
update=()
[[ ${1-} != --update ]] || update=(--update)
# What is linted: convergence does not depend on the precision's details, so small models are in two.
readonly LINTED=(sm_90:f32 sm_90:bf16)
budget=()
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

result() {
    if [[ $1 == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%-5s %s\n' "$1" "$2"
}

# assemble NAME TARGET: the PTX of the folder; one line of what its functions use.
assemble() {
    local log=$folder/log bad
    if ! "$ptxas" "-arch=${2%:*}" -O3 -v "$folder/code.ptx" -o "$folder/code.cubin" >"$log" 2>&1; then
        cat "$log"
        result FAIL "$1, $2: ptxas refuses it"
        return
    fi
    bad=$(grep 'bytes stack frame' "$log" |
        grep -vc ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads')
    local registers shared
    registers=$(grep -o 'Used [0-9]* registers' "$log" | cut -d ' ' -f 2 | sort -n | tail -n 1)
    shared=$(grep -o '[0-9]* bytes smem' "$log" | cut -d ' ' -f 1 | sort -n | tail -n 1)
    local uses="at most ${registers:-?} registers, ${shared:-0} bytes of shared memory"
    if ((bad != 0)) || [[ -z $registers ]]; then
        result FAIL "$1, $2: $bad functions spill; $uses"
    elif [[ ! -x $nvdisasm ]] || { ((${#budget[@]} == 0)) && [[ " ${LINTED[*]} " != *" $2 "* ]]; }; then
        result ok "$1, $2: $uses"
    elif lint "$1" "$2" "${budget[@]}" >"$folder/found" 2>&1; then
        result ok "$1, $2: $uses; linted"
    else
        cat "$folder/found"
        result FAIL "$1, $2: the lint of machine code"
    fi
}

# lint NAME TARGET OPTIONS…: what is wrong in the machine code of the folder.
lint() {
    local used
    mapfile -t used < <(sed -nE "s/.*Compiling entry function '([^']*)'.*/\1/p; s/.*Used ([0-9]+) registers.*/\1/p" \
        "$folder/log" | paste -d = - -)
    "$nvdisasm" -c "$folder/code.cubin" 2>/dev/null |
        python3 test/sass/lint.py "$1" "$2" "${@:3}" --registers "${used[@]}"
}

# compile NAME ARGUMENTS…: for every target of `targets`.
targets=("${TARGETS[@]}")
compile() {
    local name=$1 target architecture architectures
    shift
    for target in "${targets[@]}"; do
        IFS=, read -ra architectures <<<"${target%:*}"
        if ! "$bin/batch-opt" --emit=ptx --gpu-arch="${architectures[0]}" --precision="${target#*:}" "$@" \
            -o "$folder/code.ptx" 2>"$folder/errors" ||
            ! grep -q '^\.visible \.entry' "$folder/code.ptx"; then
            cat "$folder/errors"
            result FAIL "$name, $target: no PTX"
        elif grep -qE '\.local|call\.uni' "$folder/code.ptx"; then
            result FAIL "$name, $target: local memory or calls"
        elif [[ -x $ptxas ]]; then
            for architecture in "${architectures[@]}"; do
                assemble "$name" "$architecture:${target#*:}"
            done
        else
            result ok "$name, $target: PTX"
        fi
    done
}

[[ -x $ptxas ]] || echo "skipped: CUBIN, for there is no ptxas; \`make setup\` installs it"
for example in examples/*/; do
    name=$(basename "$example")
    [[ -e $example/$name.coh ]] || continue
    weights=()
    [[ ! -e $example/weights.safetensors ]] || weights=(--weights "$example/weights.safetensors")
    compile "$name" "$example/$name.coh" "${weights[@]}"
done
# same_text PRECISION: that what is assembled for sm_90 is what the compiler makes for it, but for what only that has.
same_text() {
    local architecture
    for architecture in sm_80 sm_90; do
        "$bin/batch-opt" --emit=ptx --gpu-arch="$architecture" --precision="$1" examples/treelstm/treelstm.coh \
            --weights examples/treelstm/weights.safetensors -o "$folder/$architecture.ptx" || return
        grep -q "^\.target $architecture\$" "$folder/$architecture.ptx" || return
    done
    local clusters='/^\.visible \.entry cohort_flush_clusters(/,/^}/d; /cohort_flush_clusters/d; /^\.target/d; /^\s*$/d'
    diff <(sed "$clusters" "$folder/sm_80.ptx") <(sed "$clusters" "$folder/sm_90.ptx")
}
for precision in f32 tf32 bf16; do
    if same_text "$precision" >"$folder/found" 2>&1; then
        result ok "the text for sm_80 is that for sm_90, $precision"
    else
        cat "$folder/found"
        result FAIL "the texts for sm_80 and sm_90, $precision"
    fi
done
if python3 test/sass/test_lint.py 2>"$folder/found"; then
    result ok 'the lint knows what instructions read and write'
else
    cat "$folder/found"
    result FAIL 'the lint and what instructions read and write'
fi
# lint_finds ARCHITECTURE FILE: that the lint finds what is there to be found.
lint_finds() {
    local kernel wrong
    "$ptxas" -arch="$1" -O3 -v "test/sass/$2.ptx" -o "$folder/code.cubin" >"$folder/log" 2>&1 || return
    lint "$2" "$1:f32" >"$folder/found" && return 1
    for kernel in $(sed -n 's/^\.visible \.entry \([a-z_]*\).*/\1/p' "test/sass/$2.ptx"); do
        wrong=$(grep -c "^$kernel:" "$folder/found")
        [[ $kernel == wrong* && $wrong -gt 0 || $kernel == right* && $wrong == 0 ]] || return
    done
}

if [[ -x $ptxas && -x $nvdisasm ]]; then
    for of in 'sm_80 barriers' 'sm_90 barriers' 'sm_120 barriers' 'sm_90 clusters'; do
        read -r target file <<<"$of"
        if lint_finds "$target" "$file"; then
            result ok "the lint finds what is wrong in test/sass/$file.ptx, $target"
        else
            cat "$folder/found"
            result FAIL "the lint and test/sass/$file.ptx, $target"
        fi
    done
else
    echo "skipped: lints of machine code, for there is no nvdisasm; \`make setup\` installs it"
fi
targets=("${ALL_TARGETS[@]}")
budget=(--budget test/sass/budget.txt "${update[@]}")
compile encoder-512 examples/encoder/encoder.coh --dim L=1 --dim D=512 --dim F=2048
compile treelstm-256 examples/treelstm/treelstm.coh --dim V=100 --dim D=256 --dim H=256 --dim C=5
echo "$passed passed, $failed failed"
((failed == 0))
