# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What demo, check and scripts/setup share: colours, failing clearly, and stages with progress and logs.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$root/build/logs

# Things that setup put into .venv come first (cmake, where the system's is too old).
export PATH="$root/.venv/bin:$PATH"

if [[ -t 1 ]]; then terminal=yes red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m' clear=$'\r\e[K'
else terminal='' red='' green='' plain='' clear=''; fi

say() { printf '%s\n' "$*"; }
fail() { printf '%s%s%s\n' "$red" "$*" "$plain" >&2; exit 1; }

duration() {  # seconds -> "7 s" or "3 min 20 s"
    if (($1 < 60)); then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

# stage NAME COMMAND...: runs the command with its output in a log of its own. Shows the time that passes
# and, on a terminal, the log's last line. When the command fails, says so, shows the log's end and stops.
# `stages` (how many there will be) is set by the caller.
stage_number=0
stage() {
    local name=$1 log started status=0 beat=0 elapsed last
    shift
    stage_number=$((stage_number + 1))
    mkdir -p "$logs"
    log=$logs/$(printf '%02d' "$stage_number")-${name//[^a-zA-Z0-9]/-}.log
    local label
    label=$(printf '[%d/%d] %s' "$stage_number" "${stages:-$stage_number}" "$name")
    started=$SECONDS
    [[ $terminal ]] || say "$label ..."
    "$@" >"$log" 2>&1 </dev/null &
    local child=$!
    # shellcheck disable=SC2064  # this stage's child, not a later one's
    trap "kill $child 2>/dev/null; printf '\n'; exit 130" INT TERM
    while kill -0 "$child" 2>/dev/null; do
        sleep 0.2
        elapsed=$((SECONDS - started))
        if [[ $terminal ]]; then
            last=$(tail -n 1 "$log" | tr -d '\r' | cut -c 1-60)
            printf '%s%s  %s  %s' "$clear" "$label" "$(duration $elapsed)" "$last"
        elif ((elapsed >= beat + 60)); then
            beat=$elapsed
            say "    still at it after $(duration $elapsed): $(tail -n 1 "$log" | cut -c 1-90)"
        fi
    done
    wait "$child" || status=$?
    trap - INT TERM
    elapsed=$(duration $((SECONDS - started)))
    if ((status != 0)); then
        printf '%s%s%s FAILED%s after %s (exit status %d)\n' "$clear" "$red" "$label" "$plain" "$elapsed" "$status"
        # Compilers say much after the line that matters.
        grep -nE '(^|[^a-z])(fatal )?error:|^FAILED|\*\*\*(Failed|Timeout|Exception)' "$log" | cut -c 1-200 |
            head -n 15 | sed 's/^/    /' || true
        say "The last lines of ${log#"$root"/}:"
        # A command for somebody to copy stays whole.
        tail -n 25 "$log" | sed -E '/apt-get install/!s/^(.{200}).*/\1 .../; s/^/    /'
        fail "Stopped: '$name' failed. The whole log is $log"
    fi
    printf '%s%s  %sok%s  %s\n' "$clear" "$label" "$green" "$plain" "$elapsed"
}

# Whether there is an NVIDIA GPU whose driver a program here may reach.
has_nvidia_gpu() { nvidia-smi -L >/dev/null 2>&1 || compgen -G '/dev/nvidia[0-9]*' >/dev/null; }

# The system's nvcc, if it is new enough (cmake/Cuda.cmake chooses in the same order).
system_nvcc() {
    local nvcc version
    for nvcc in "${CUDACXX:-}" /usr/local/cuda/bin/nvcc "$(command -v nvcc || true)"; do
        [[ -n $nvcc && -x $nvcc ]] || continue
        version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        if version_at_least "$version" 12.8; then printf '%s\n' "$nvcc"; return; fi
    done
}

version_at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# Configures (cheap when nothing changed) and builds a preset: build_preset NAME [TARGET...]
# `quick_kernels` and `together` (ON or OFF) are DAELSTROM_CUDA_QUICKLY and DAELSTROM_TOGETHER, where the caller sets them.
build_preset() {
    local preset=$1 target targets=()
    shift
    for target in "$@"; do targets+=(--target "$target"); done
    local how=()
    [[ ${together:-} ]] && how+=("-DDAELSTROM_TOGETHER=$together")
    [[ ${quick_kernels:-} ]] && how+=("-DDAELSTROM_CUDA_QUICKLY=$quick_kernels")
    [[ ${DAELSTROM_CUDA:-} == OFF ]] && how+=(-DDAELSTROM_CUDA=OFF)
    (cd "$root" && cmake --preset "$preset" "${how[@]}" &&
        cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}")
}
