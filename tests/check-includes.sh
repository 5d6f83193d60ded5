#!/bin/sh
# The one direction of dependence: src/core <- src/forward, codelets <- graphs <- src/assembly <- src/predict <- src/recipe <- src/checkpoint <- src/log
# <- src/batches <- src/groups <- src/submodels <- src/train <- src/run <- {src/api, src/bench <- src/cli}, and src/data beside codelets.
# src/deploy, which src/cli calls, reads programs and checkpoints alone.
# Usage: check-includes.sh [SOURCE-TREE]. Prints each line that breaks a rule.
cd "${1:-${top_srcdir:-.}}" || exit 1

complain() { # RULE, on stdin the lines that break it
    lines=$(cat)
    [ -z "$lines" ] && return
    printf '%s\n' "$lines" | sed "s|$|   <- $1|"
}

sources() { # FOLDER ...
    for folder; do
        find "$folder" -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh'
    done
}

# Project headers that FOLDER includes, other than from the folders of the pattern.
only() { # FOLDER ALLOWED-PATTERN RULE
    [ -d "$1" ] || return
    sources "$1" | xargs grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null |
        grep -vE "include[[:space:]]*\"(config\.h|($2)/)" | complain "$3"
}

rooms="src/recipe src/checkpoint src/log src/batches src/groups src/submodels src/train src/run"

check() {
only src/core 'core' 'src/core includes src/core only'
only src/data 'core|data' 'src/data includes src/core and src/data only'
only codelets 'core|codelets' 'codelets include src/core and codelets only'
only src/forward 'core|forward' 'src/forward includes src/core and src/forward only'
only graphs 'core|forward|codelets|graphs' 'graphs include src/core, src/forward, codelets and graphs only'
only src/deploy 'core|forward|checkpoint|deploy' 'src/deploy includes src/core, src/forward and src/checkpoint only'
below='core|forward|data|codelets|graphs'
for folder in assembly predict recipe checkpoint log batches groups submodels train run; do
    below="$below|$folder"
    only "src/$folder" "$below" "src/$folder includes nothing above it"
done
only src/api "$below|api" 'src/api includes no program'
only src/bench "$below|bench" 'src/bench includes no src/cli'

# shellcheck disable=SC2086
sources graphs src/assembly src/predict $rooms src/bench src/cli src/data | xargs grep -nE 'starpu_[a-z]|<starpu[a-z_]*\.h>|<mpi\.h>' /dev/null |
    grep -vE 'sl_runtime_starpu_[a-z_]*|own-starpu|^src/data/partition/scotch\.c:[0-9]+:#include <mpi\.h>' |
    complain 'StarPU and MPI calls stay in src/core and codelets'

sources codelets/kernels | xargs grep -nE '<starpu|codelets/codelet\.h|core/(task|runtime)\.h' /dev/null |
    complain 'kernels know no runtime'

# Conditional compilation for MPI and CUDA has two homes, and the lists of what a bench measures; what a kernel and its launch need asks which compiler reads it.
sources src codelets graphs |
    xargs grep -nE '^[[:space:]]*#[[:space:]]*(el)?if.*(SL_HAVE_MPI|SL_HAVE_CUDA|__CUDACC__)' /dev/null |
    grep -vE '^(src/core/message\.c|codelets/codelet\.h):' |
    grep -vE '^(src/core/rng\.h|codelets/(cuda|operation)\.h):.*__CUDACC__' |
    grep -vE '^src/bench/(gemm|spmm)\.c:.*SL_HAVE_CUDA' |
    complain 'MPI and CUDA conditions stay in src/core/message.c and codelets/codelet.h'

# Without memory, jansson's parser and printer fail in silence, or on an assertion.
sources src | xargs grep -nE '\bjson_(loads|loadb|loadf|load_file|load_callback|dumps|dumpf)\(' /dev/null |
    grep -vE '^src/(core/json_file|deploy/json_alone)\.c:' | complain 'JSON is parsed and printed by src/core/json_file.h'

# A pipe in place of a file must not be waited for. The others open files of the system or of their own, or read a pipe for --config.
sources src graphs codelets | xargs grep -nE '(^|[^a-z_>.])(fopen|freopen|gzopen|zip_open|open)\("?[a-z]' /dev/null |
    grep -vE '^src/(core/(file|free_memory|machine|mapped)|recipe/config_file|cli/signals|bench/train|data/formats/(directory|npz)_write)\.c:|^codelets/(norm_cuda\.cu|kernels/max\.c):' |
    complain 'files that a user names are opened by src/core/file.h'

# Options are typed values: src/recipe alone reads their text.
# shellcheck disable=SC2086
sources src graphs codelets | grep -v '^src/recipe/' | xargs grep -nE 'str(n|case)*cmp\(.*\b(config|options)(\.|->)|str(n|case)*cmp\(.*sl_config_(text|word)' /dev/null |
    grep -vE 'options->method,|bench->config\.policies,' |
    complain 'text of an option is compared in src/recipe alone'

# Differences between StarPU 1.3 and 1.4 stay in src/core.
# shellcheck disable=SC2086
sources src/data codelets graphs src/assembly src/predict $rooms src/bench src/cli |
    xargs grep -nE '^[[:space:]]*#[[:space:]]*(el)?if.*STARPU_(MAJOR|MINOR)_VERSION' /dev/null |
    complain 'differences between StarPU versions stay in src/core'
}

found=$(check)
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
