#!/usr/bin/env bash
# Installs what the build and the tests need and this machine lacks. Says what it does; prints one
# line when everything is there. MLIR_SYS_220_PREFIX names another LLVM 22 than Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LLVM_MAJOR=22
readonly LITCHECK_VERSION=0.5.0
readonly NVCC_VERSION=12.9.86
readonly NVDISASM_VERSION=13.5.37
readonly LLVM_PACKAGES=(
    libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools libclang-22-dev clang-22 lld-22
    libpolly-22-dev
)
# Code for AArch64 is run in an emulator.
readonly AARCH64=aarch64-unknown-linux-gnu
readonly AARCH64_PACKAGES=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
# The browser is for the test of the page of batch-serve, which says so where it is missing.
readonly OTHER_PACKAGES=(
    libzstd-dev zlib1g-dev libxml2-dev libz3-dev libedit-dev python3-venv make g++
    chromium-headless-shell
)

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# The packages among the arguments that are not installed.
missing_packages() {
    local installed
    installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
    local package
    for package in "$@"; do
        [[ $installed == *" installed:$package "* ]] || printf '%s ' "$package"
    done
}

install_packages() {
    local wanted=("${OTHER_PACKAGES[@]}")
    # An LLVM of the user's own need not be a package.
    [[ -n ${MLIR_SYS_220_PREFIX:-} ]] || wanted+=("${LLVM_PACKAGES[@]}")
    [[ $(uname -m) != x86_64 ]] || wanted+=("${AARCH64_PACKAGES[@]}")
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        # Without apt nothing can be installed from here; what matters is whether LLVM is there.
        [[ -x $prefix/bin/llvm-config ]] || fail "apt is missing; install what Debian 12 calls:
  ${wanted[*]}
or set MLIR_SYS_220_PREFIX to the prefix of an LLVM $LLVM_MAJOR with MLIR"
        return
    fi
    local missing
    read -ra missing <<<"$(missing_packages "${wanted[@]}")" || true
    ((${#missing[@]} > 0)) || return 0
    say "installing with apt: ${missing[*]}"
    local as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null || fail "not root and no sudo; run this as root:
  apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

check_llvm() {
    local config=$prefix/bin/llvm-config
    [[ -x $config ]] || fail "no $config; install llvm-22-dev and libmlir-22-dev, or set \
MLIR_SYS_220_PREFIX to the prefix of an LLVM $LLVM_MAJOR with MLIR"
    llvm_version=$("$config" --version)
    [[ $llvm_version == "$LLVM_MAJOR".* ]] || fail "$config is version $llvm_version, needed is \
$LLVM_MAJOR; install llvm-22-dev and libmlir-22-dev, or set MLIR_SYS_220_PREFIX"
    [[ -x $prefix/bin/mlir-tblgen ]] || fail "no $prefix/bin/mlir-tblgen; install mlir-22-tools"
    if [[ -n ${MLIR_SYS_220_PREFIX:-} ]]; then
        [[ -n ${TABLEGEN_220_PREFIX:-} && -n ${LIBCLANG_PATH:-} ]] || fail "MLIR_SYS_220_PREFIX is \
set; set TABLEGEN_220_PREFIX to $prefix and LIBCLANG_PATH to $prefix/lib too"
    fi
}

check_rust() {
    command -v cargo >/dev/null || fail "no cargo; install Rust (https://rustup.rs)"
    local component
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || fail "no cargo $component; install it with Rust"
        say "adding Rust's ${component/fmt/rustfmt}"
        rustup --quiet component add "${component/fmt/rustfmt}"
    done
    [[ $(uname -m) == x86_64 && ! -d $(rustc --print sysroot)/lib/rustlib/$AARCH64 ]] || return 0
    command -v rustup >/dev/null || fail "no Rust library for $AARCH64; install it with Rust"
    say "adding Rust's library for $AARCH64"
    rustup --quiet target add "$AARCH64"
}

install_litcheck() {
    local tool=.tools/bin/litcheck record=.tools/.crates.toml
    # It does not tell its version; cargo's record does.
    if [[ -x $tool ]] && { [[ ! -e $record ]] || grep -q "litcheck $LITCHECK_VERSION " "$record"; }
    then
        return
    fi
    say "building litcheck $LITCHECK_VERSION into .tools (about two minutes)"
    # What it does takes a moment; building it does not.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install litcheck --version "$LITCHECK_VERSION" --locked --root .tools --quiet --force
}

# fetch_cuda NAME VERSION PACKAGE FILE: a program of CUDA's into .tools, from a wheel on PyPI.
fetch_cuda() {
    local tool=.tools/bin/$1 version=.tools/$1-version
    [[ -x $tool && $(cat "$version" 2>/dev/null) == "$2" ]] && return
    if [[ $(uname -m) != x86_64 ]]; then
        say "no $1 for $(uname -m); tests of GPU code that need it are skipped"
        return
    fi
    say "fetching $1 $2 into .tools"
    local folder
    folder=$(mktemp -d)
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --no-deps --target "$folder/wheel" "$3==$2"
    mkdir -p .tools/bin
    install -m 755 "$folder/wheel/$4" "$tool"
    echo "$2" >"$version"
    rm -rf "$folder"
}

# Assemble and disassemble GPU code, which is checked without a GPU; nothing else of CUDA is needed.
fetch_cuda_tools() {
    fetch_cuda ptxas "$NVCC_VERSION" nvidia-cuda-nvcc-cu12 nvidia/cuda_nvcc/bin/ptxas
    fetch_cuda nvdisasm "$NVDISASM_VERSION" nvidia-cuda-nvdisasm nvidia/cu13/bin/nvdisasm
}

readonly prefix=${MLIR_SYS_220_PREFIX:-/usr/lib/llvm-22}
# It needs nothing of LLVM, so where there is a linker already it is built while packages are fetched. Should it
# fail, it is tried again behind them.
early=
if command -v cargo >/dev/null && command -v cc >/dev/null; then
    install_litcheck 2>/dev/null &
    early=$!
fi
install_packages
check_llvm
check_rust
fetch_cuda_tools &
tools=$!
[[ -z $early ]] || wait "$early" || true
install_litcheck
wait "$tools"
say "LLVM $llvm_version in $prefix, litcheck $LITCHECK_VERSION: all there"
