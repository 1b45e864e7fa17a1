#!/usr/bin/env bash
# What of the use of NVIDIA's driver can be tested without a GPU: against an imitation of it
# (imitation.c). That no call is wrong or left out, how many copies a flush makes, that a graph launches what
# plain launches do, that on each way to launch kernels they compute the simulator's bits (kernels.c), and what
# is said when there is no driver, an old one, no device, no memory, no code that fits, or a device that dies. Needs the
# small batch-run (`make runner`; test/runner.sh builds it too).
set -uo pipefail
cd "$(dirname "$0")/../.."

bin=${COHORT_BIN:-${CARGO_TARGET_DIR:-$PWD/target}/release}
runner=${CARGO_TARGET_DIR:-$PWD/target}/runner/release/batch-run
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kernels=
# One batch at a time, so that two runs do the same in the same order; where it is empty, two are.
alone=(--without overlap)
passed=0
failed=0

check() {
    local description=$1 wrong
    shift
    wrong=$("$@" 2>&1)
    if [[ -z $wrong ]]; then
        printf 'ok    %s\n' "$description"
        passed=$((passed + 1))
    else
        printf 'FAIL  %s\n%s\n' "$description" "$wrong"
        failed=$((failed + 1))
    fi
}

# run BEHAVIOUR ARGUMENT…: on the imitation; leaves `code`, and stderr in $folder/stderr.
run() {
    local behaviour=$1
    shift
    LD_LIBRARY_PATH=$folder/driver COHORT_IMITATION=$behaviour COHORT_IMITATION_LOG=$folder/log \
        COHORT_IMITATION_TRACE=$folder/trace COHORT_IMITATION_ORDER=$folder/order \
        COHORT_IMITATION_KERNELS=$kernels \
        "$runner" "$folder/model.cohort" --device cuda --weights "$example/weights.safetensors" --quiet \
        --input "${input:-$example/input.jsonl}" --output "$folder/output" "${alone[@]}" "$@" 2> "$folder/stderr"
    code=$?
}

# refused BEHAVIOUR TEXT ARGUMENT…: exit code 2 and a message with that text.
refused() {
    local behaviour=$1 text=$2
    shift 2
    run "$behaviour" "$@"
    ((code == 2)) || echo "exit code $code"
    grep -qF -- "$text" "$folder/stderr" || { echo "expected: $text"; cat "$folder/stderr"; }
}

# Some instances end with an error that says so.
fails() {
    local behaviour=$1 text=$2
    shift 2
    run "$behaviour" "$@"
    ((code == 1)) || echo "exit code $code"
    (($(grep -F '"kind": "memory_limit"' "$folder/output" | grep -cF -- "$text") > 0)) ||
        { echo "expected: $text"; cat "$folder/stderr"; }
}

counted() { sed -n "s/^$1 //p" "$folder/log"; }

runs_to_the_end() {
    local instances lines
    run '' --batch all --stats "$folder/stats"
    ((code == 0)) || { echo "exit code $code"; cat "$folder/stderr"; }
    instances=$(wc -l < "$example/input.jsonl")
    lines=$(grep -c '"output": \[' "$folder/output")
    ((lines == instances)) || echo "$lines results of $instances instances"
    grep -q '"name": "Imitation (cuda:0)"' "$folder/stats" || echo 'the statistics do not name the device'
}

copies_are_few() {
    run '' --batch all
    (($(counted 'to host') == 1)) || echo "$(counted 'to host') copies to the host for one batch"
    local all=$(counted 'to device')
    run '' --batch 20
    # The index lists of two more flushes.
    (($(counted 'to device') == all + 2)) || echo "$(counted 'to device') copies to the device, not $((all + 2))"
    (($(counted 'to host') == 3)) || echo "$(counted 'to host') copies to the host for three batches"
}

# What decides comes in one copy a flush, the results of those that finish in one more.
decisions_are_one_copy() {
    prepare act
    local copies flushes
    for window in '--batch all' '--in-flight 3'; do
        # shellcheck disable=SC2086
        run '' $window --stats "$folder/stats"
        copies=$(counted 'to host')
        flushes=$(tr -d ' \n' < "$folder/stats" | sed -nE 's/.*"flushes":([0-9]+).*/\1/p')
        ((flushes > 1 && copies >= flushes && copies <= 2 * flushes)) ||
            echo "$window: $copies copies to the host for $flushes flushes"
        # All take their last step together, after which nothing is decided.
        [[ $window != --batch* ]] || ((copies == flushes)) ||
            echo "$copies copies for $flushes flushes, the last of which decides nothing"
    done
    prepare treelstm
}

# Whatever is copied comes from pinned memory or goes there, in few copies: weights, lists and results.
all_copies_are_pinned() {
    local batch
    for batch in all 5; do
        run '' --batch "$batch"
        (($(counted 'to device') > 0 && $(counted pageable) == 0)) ||
            echo "$(counted pageable) copies of other memory"
    done
}

# prepare_kernels NAME: the example, and a library of its kernels for the imitation to run.
prepare_kernels() {
    prepare "$1" ptx,compute_90,sim
    rm -f "$folder"/kernels*
    python3 - "$folder" << 'END' || exit 1
import json, sys

folder = sys.argv[1]
artifact = open(f"{folder}/model.cohort", "rb").read()
header = json.loads(artifact[192 : 192 + int.from_bytes(artifact[12:16], "little")])
objects = [section for section in header["sections"] if section["kind"] == "host-object"]
for number, section in enumerate(objects):
    with open(f"{folder}/kernels-{number}.o", "wb") as file:
        file.write(artifact[section["offset"] :][: section["length"]])
END
    kernels=$folder/kernels.so
    cc -shared -z lazy -o "$kernels" "$folder"/kernels-*.o "$folder/driver/libcuda.so" || exit 1
}

# What the simulator computes, on the way to there that no driver has a part in.
simulate() {
    "$runner" "$folder/model.cohort" --device gpu-sim --weights "$example/weights.safetensors" --quiet \
        --input "${input:-$example/input.jsonl}" --output "$folder/expected" || echo "exit code $?"
}

# Streams, graphs, cooperative launches of fewer blocks than a step has, or of more, and such as the driver
# does not take: the simulator's bits.
each_way_computes_the_same() {
    local name way flushes input=$folder/few.jsonl
    for name in act encoder treelstm; do
        prepare_kernels "$name"
        head -n 10 "$example/input.jsonl" > "$input"
        simulate
        for way in '' nographs cooperative=1 cooperative=7 'cooperative=7 crowded'; do
            run "$way" --batch 4 --benchmark-repetitions 2 --stats "$folder/stats"
            ((code == 0)) || cat "$folder/stderr"
            cmp "$folder/expected" "$folder/output" || echo "with $name and '$way'"
            (($(counted 'cooperative launches') > 0)) && [[ $way != cooperative=? ]] &&
                echo "$name: cooperative launches with '$way'"
            (($(counted 'cooperative launches') == 0)) && [[ $way == cooperative=? ]] &&
                echo "$name: no cooperative launches with '$way'"
        done
    done
    # Every flush of these is one; beside, rows are gathered.
    run cooperative=7 --batch 5 --stats "$folder/stats"
    flushes=$(tr -d ' \n' < "$folder/stats" | sed -nE 's/.*"flushes":([0-9]+).*/\1/p')
    (($(counted 'cooperative launches') == flushes && $(counted launches) <= 2 * flushes)) ||
        echo "$(counted 'cooperative launches') cooperative launches of $(counted launches) for $flushes flushes"
    (($(counted 'graphs made') == 0 && $(counted left) == 0)) || cat "$folder/log"
    # In clusters, of which one computes parts one after another, or several their own; or the driver takes none.
    (($(counted 'of clusters') == 0)) || echo 'clusters on a card without'
    for way in clusters=1 clusters=2 'clusters=2 crowded'; do
        run "cooperative=7 $way" --batch 5
        cmp "$folder/expected" "$folder/output" || echo "with '$way'"
        (($(counted 'of clusters') > 0)) || [[ $way == *crowded ]] || echo "no clusters with '$way'"
    done
    # Where calls are timed, each launch is one.
    run cooperative=7 --batch 10 --device-times
    cmp "$folder/expected" "$folder/output"
    (($(counted 'cooperative launches') == 0)) || echo 'a cooperative launch is timed by calls'
    prepare treelstm
}

# A batch is recorded while the one before it is computed: two have streams and rows of their own beside the first.
batches_overlap() {
    local way alone=() input=$folder/many.jsonl
    prepare_kernels treelstm
    cat "$example/input.jsonl" "$example/input.jsonl" > "$input"
    simulate
    for way in '' nographs cooperative=1 cooperative=7; do
        run "$way" --batch 8 --benchmark-repetitions 2
        ((code == 0)) || cat "$folder/stderr"
        cmp "$folder/expected" "$folder/output" || echo "with '$way'"
        (($(counted streams) == 12 && $(counted left) == 0)) || cat "$folder/log"
    done
    # One that dies leaves what is finished in the order of the input.
    run dies=9 --batch 8
    ((code != 0)) || echo 'it did not die'
    cmp -n "$(stat -c %s "$folder/output")" "$folder/expected" "$folder/output"
    prepare treelstm
}

# More new rows than a piece of pinned memory has, whose copies are made as late as they may be.
large_inputs_go_in_pieces() {
    local input=$folder/large.jsonl
    mkdir "$folder/large"
    python3 - "$folder" << 'END'
import json, random, struct, sys

folder = sys.argv[1]
random.seed(1)
with open(f"{folder}/large/large.coh", "w") as file:
    file.write("param w: f32[64]\nfn main(x: f32[n, 64]) -> f32[n] { sum(x * w, axis = 1) }\n")
header = json.dumps({"w": {"dtype": "F32", "shape": [64], "data_offsets": [0, 256]}}).encode()
with open(f"{folder}/large/weights.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header + struct.pack("<64f", *range(64)))
with open(f"{folder}/large.jsonl", "w") as file:
    for rows in (34_000, 3, 9_000):
        print(json.dumps({"x": [random.choices(range(99), k=64) for _ in range(rows)]}), file=file)
END
    examples=$folder prepare_kernels large
    simulate
    run '' --batch all
    ((code == 0)) || cat "$folder/stderr"
    cmp "$folder/expected" "$folder/output"
    (($(counted pageable) == 0)) || echo "$(counted pageable) copies of pageable memory"
    (($(counted 'to device') >= 5)) || echo "only $(counted 'to device') copies to the device"
    prepare treelstm
}

# What is freed stays in the pool, until there is no memory for something else.
pools_keep_their_memory() {
    run '' --batch 3
    (($(counted 'given back') == 0)) || echo "$(counted 'given back') blocks were given back and asked for anew"
    (($(counted 'kept') > 0)) || echo 'nothing grew'
    run "memory=$(($(counted 'most taken') - 1))" --batch 3 --device-memory 4G
    ((code == 0)) || cat "$folder/stderr"
    (($(counted 'given back') > 0)) || echo 'nothing was given back where there is no memory left'
}

# Calls of one depth lie on several streams, in no order; what a graph's edges put before a launch, events
# do as well, and before the copies behind them everything.
streams_are_used() {
    local plain=(--batch 8 --benchmark-repetitions 2 --no-graphs)
    prepare birnn
    run '' --batch 8 --benchmark-repetitions 2
    (($(counted 'graph launches') > 0)) || echo 'no graph was launched'
    mv "$folder/order" "$folder/edges"
    run '' "${plain[@]}"
    (($(counted early) == 0)) || echo "$(counted early) copies do not wait for all launches"
    compare_orders
    run nowaits "${plain[@]}"
    (($(counted early) > 0)) || echo 'a copy that does not wait goes unnoticed'
    compare_orders | grep -q 'do not wait' || echo 'launches that do not wait go unnoticed'
    prepare treelstm
}

compare_orders() {
    python3 - "$folder/order" "$folder/edges" << 'END'
import sys

plain, edges = ([tuple(map(int, line.split())) for line in open(path)] for path in sys.argv[1:])
beside = sum(before < number for number, (_, before) in enumerate(plain))
if not beside or len({stream for stream, _ in plain}) < 2:
    print("no launches beside each other")
late = sum(before < wanted for (_, before), (_, wanted) in zip(plain, edges, strict=True))
if late:
    print(late, "of", len(plain), "launches do not wait for what a graph would let them wait for")
END
}

# Whether two runs launched the same and copied the same, in the same order.
does_the_same() {
    run '' "$@" --no-graphs
    mv "$folder/trace" "$folder/plain"
    (($(counted 'graphs made') == 0)) || echo 'graphs were made all the same'
    run '' "$@"
    cmp "$folder/plain" "$folder/trace"
    (($(counted 'graph launches') > 0)) || echo 'no graph was launched'
}

graphs_do_what_launches_do() {
    local name
    for name in act birnn encoder treelstm; do
        prepare "$name"
        does_the_same --batch 4 --benchmark-repetitions 2
    done
    # What repeats entirely is launched as it was.
    does_the_same --batch all --benchmark-repetitions 5 --stats "$folder/stats"
    tr -d ' \n' < "$folder/stats" | grep -qF '"graphs":{"made":0,"replayed":1,"changed_launches":0}' ||
        grep '"graphs"' -A 4 "$folder/stats"
}

# Sentences of many lengths, each twice: more graphs than are kept.
few_graphs_are_kept() {
    local length input=$folder/lengths.jsonl
    prepare birnn
    for length in {2..90}; do
        printf '{"words": [1%s]}\n' "$(printf ', 2%.0s' $(seq 2 "$length"))"{,}
    done > "$input"
    does_the_same --batch 1
    (($(counted 'graphs made') > 65)) || echo "only $(counted 'graphs made') graphs"
    (($(counted 'most graphs') <= 65)) || echo "$(counted 'most graphs') graphs at a time"
    (($(counted 'graphs left') == 0)) || echo "$(counted 'graphs left') graphs were not given back"
    prepare treelstm
}

# A product on the largest tiles, whose blocks have more shared memory than code may declare.
# prepare_wide COLUMNS CODES: a product of that many columns whose tiles are the largest, however few the rows.
prepare_wide() {
    example=$folder/wide
    mkdir -p "$example"
    python3 - "$example" "$1" << 'END'
import json, struct, sys

example, columns = sys.argv[1], int(sys.argv[2])
with open(f"{example}/wide.coh", "w") as file:
    file.write("dim F param w: f32[64, F] fn main(x: f32[n, 64]) -> f32[n, F] { tanh(x @ w) }\n")
with open(f"{example}/weights.safetensors", "wb") as file:
    bytes_of_it = 64 * columns * 4
    header = json.dumps({"w": {"dtype": "F32", "shape": [64, columns], "data_offsets": [0, bytes_of_it]}}).encode()
    file.write(struct.pack("<Q", len(header)) + header + bytes(bytes_of_it))
with open(f"{example}/input.jsonl", "w") as file:
    file.write(json.dumps({"x": [[0.5] * 64] * 3}) + "\n")
END
    {
        "$bin/batch-opt" "$example/wide.coh" --weights "$example/weights.safetensors" --emit loops --gpu-arch "${2%%,*}" \
            --precision bf16 | sed -E '/ragged.tiles/s/ from [0-9]+/ from 1/g' > "$folder/wide.mlir" &&
            "$bin/batch-opt" "$folder/wide.mlir" --emit artifact --gpu-arch "$2" --precision bf16 -o "$folder/model.cohort"
    } 2> "$folder/stderr" || cat "$folder/stderr"
}

shared_memory_is_asked_for() {
    local way
    prepare_wide 512 ptx
    for way in '' nographs; do
        run "$way"
        ((code == 0)) || cat "$folder/stderr"
        grep -q '_largest 1 2 256 ' "$folder/trace" || cat "$folder/trace"
    done
    refused shared=65536 'wants 82944 bytes of shared memory a block: '
    prepare treelstm
}

# Of the code for this card, and of code for all cards the largest tiles that these have.
warpgroups_are_used_where_there_are_some() {
    prepare_wide 1024 ptx,compute_90a
    run ''
    ((code == 0)) || cat "$folder/stderr"
    grep -q '_warpgroups 1 8 512 ' "$folder/trace" || cat "$folder/trace"
    prepare_wide 1024 ptx
    run ''
    ((code == 0)) || cat "$folder/stderr"
    grep -q '_largest 1 4 256 ' "$folder/trace" || cat "$folder/trace"
    prepare treelstm
}

does_without_graphs() {
    run '' --batch 4 --no-graphs
    mv "$folder/trace" "$folder/plain"
    run nographs --batch 4
    ((code == 0)) || cat "$folder/stderr"
    cmp "$folder/plain" "$folder/trace"
}

times_are_taken() {
    run '' --batch 8 --device-times --stats "$folder/stats"
    ((code == 0)) || cat "$folder/stderr"
    python3 - "$folder/stats" << 'END'
import json, sys

stats = json.load(open(sys.argv[1]))
# Every span of the imitation takes half a millisecond.
for kernel in stats["kernels"]:
    if abs(kernel["seconds"] - 0.0005 * kernel["launches"]) > 1e-9 or not kernel["bytes"]:
        print("wrong:", kernel)
device = stats["device"]
for name in ("seconds", "list_seconds"):
    if abs(device[name] - 0.0005 * stats["flushes"]) > 1e-9:
        print(name, "is", device[name], "of", stats["flushes"], "flushes")
if device["fetch_seconds"] <= 0 or not device["launches"] or not device["copies"]["bytes_to_host"]:
    print("nothing was counted:", device)
END
}

# The benchmark's own use of the driver: every call is right.
ceilings_are_measured() {
    LD_LIBRARY_PATH=$folder/driver PYTHONPATH=bench python3 -c '
import gpu_ceilings
found = gpu_ceilings.measure(size=1 << 20, steps=2, launches=10)
wrong = [name for name, value in found.items() if name != "card" and not value > 0]
if wrong or found["card"] != "Imitation":
    print("wrong:", found)'
}

gives_all_memory_back() {
    local behaviour
    for behaviour in '' nopools badpools; do
        run "$behaviour" --batch 7
        ((code == 0)) || cat "$folder/stderr"
        (($(counted left) == 0)) || echo "$(counted left) bytes were not given back"
    done
}

# keeps_what_was_finished ERROR TEXT: of a device that dies by that error.
keeps_what_was_finished() {
    local lines
    refused "dies=60 code=$1" "Imitation (cuda:0): it stopped working: $2" --batch 5
    lines=$(wc -l < "$folder/output")
    ((lines >= 5 && lines % 5 == 0 && lines < $(wc -l < "$example/input.jsonl"))) ||
        echo "$lines lines were written"
}

# Of a batch behind others for which there is no memory left.
memory_that_ends_leaves_results() {
    local input=$folder/growing.jsonl lines peak
    head -n 5 "$example/input.jsonl" > "$input"
    run '' --batch 5 --stats "$folder/stats"
    peak=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["device"]["peak_memory_bytes"])' \
        "$folder/stats")
    # All trees, many times, as one.
    python3 - "$example/input.jsonl" >> "$input" << 'END'
import json, sys

trees = 64 * [json.loads(line)["t"] for line in open(sys.argv[1])]
while len(trees) > 1:
    trees = [{"Node": pair} for pair in zip(trees[::2], trees[1::2])]
print(json.dumps({"t": trees[0]}))
END
    fails '' 'no memory left' --batch 5 --device-memory "$peak"
    lines=$(grep -c '"output": \[' "$folder/output")
    ((lines == 5)) || echo "$lines lines were written"
}

# A driver that refuses machine code gets PTX, one that cannot compile PTX copies piece by piece.
other_code_is_tried() {
    printf '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nprintf "\\177ELF" > "$2"\n' > "$folder/ptxas"
    chmod +x "$folder/ptxas"
    COHORT_PTXAS=$folder/ptxas prepare treelstm sm_90,ptx
    run '' --batch all
    ((code == 0)) || cat "$folder/stderr"
    refused nojit 'the machine code for sm_90 cannot be loaded: no kernel image' --batch all
    grep -q 'the PTX for sm_[0-9]* cannot be loaded: PTX JIT compiler' "$folder/stderr" || cat "$folder/stderr"
    # What the compiler says of it is told.
    refused badptx 'a PTX JIT compilation failed (CUDA_ERROR): ptxas input, line 9; fatal : no such thing' --batch all
    prepare treelstm
}

no_driver() {
    if ldconfig -p | grep -q 'libcuda\.so'; then return; fi
    mv "$folder/driver" "$folder/elsewhere"
    refused '' 'there is no NVIDIA driver on this machine'
    mv "$folder/elsewhere" "$folder/driver"
}

mkdir "$folder/driver"
cc -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$folder/driver/libcuda.so" \
    test/device/imitation.c test/device/kernels.c || exit 1
ln -s libcuda.so "$folder/driver/libcuda.so.1"

# prepare NAME [CODE]: the example that is run, with code for that GPU.
prepare() {
    example=${examples:-examples}/$1
    "$bin/batch-opt" "$example/$1.coh" --weights "$example/weights.safetensors" --emit artifact \
        --gpu-arch "${2:-ptx}" -o "$folder/model.cohort" 2> "$folder/stderr" || { cat "$folder/stderr"; exit 1; }
}

prepare treelstm

check 'a program runs to its end' runs_to_the_end
check 'a flush makes few copies' copies_are_few
check 'decisions come back in one copy a flush' decisions_are_one_copy
check 'all copies are of pinned memory' all_copies_are_pinned
check 'on each way the simulator'"'"'s bits are computed' each_way_computes_the_same
check 'a batch is recorded while another is computed' batches_overlap
check 'large inputs go in pieces' large_inputs_go_in_pieces
check 'pools keep their memory' pools_keep_their_memory
check 'calls of one depth go to several streams' streams_are_used
check 'a graph does what plain launches do' graphs_do_what_launches_do
check 'few graphs are kept at a time' few_graphs_are_kept
check 'a driver without graphs does without' does_without_graphs
check 'shared memory that a launch gives is asked for' shared_memory_is_asked_for
check 'warpgroups are used where there are some' warpgroups_are_used_where_there_are_some
check 'times are taken of each call' times_are_taken
check 'what a card can do is measured' ceilings_are_measured
check 'all memory is given back' gives_all_memory_back
check 'a driver that refuses code gets other code' other_code_is_tried
check 'a missing driver is told' no_driver
check 'an old driver is told' refused version=11040 'too old: it supports CUDA 11.4, and 12.0 is needed'
check 'a missing device is told' refused none 'no usable device: no CUDA-capable device is detected'
check 'too little memory is told' fails memory=1000000 'no memory left'
check 'a limit that the weights are beyond is told' \
    refused '' "the program's constants do not fit" --device-memory 1000
check 'a limit that a batch is beyond is told' \
    fails '' 'try a smaller --batch, or a larger --device-memory' --device-memory 300K
check 'memory that ends leaves what was finished' memory_that_ends_leaves_results
check 'a kernel that fails leaves what was finished' \
    keeps_what_was_finished 719 'unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED); a kernel is wrong'
check 'a wrong address leaves what was finished' keeps_what_was_finished 700 \
    'an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS); a kernel is wrong'
check 'faulty memory leaves what was finished' \
    keeps_what_was_finished 214 'uncorrectable ECC error encountered (CUDA_ERROR_ECC_UNCORRECTABLE)'

result=ok
((failed == 0)) || result=FAILED
printf 'test result: %s. %d passed; %d failed\n' "$result" "$passed" "$failed"
((failed == 0))
