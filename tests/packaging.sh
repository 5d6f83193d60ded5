#!/bin/sh
# The recipes of packaging/, as far as their languages can be read here: Python, Scheme, shell, Debian's control files. Names and
# versions agree with configure.ac.
. "${top_srcdir:-${srcdir:-.}}/tests/shell.sh" || exit 1
source=$(cd "${karate%/examples/karate}" && pwd)
recipes=$source/packaging
version=$(sed -n 's/^AC_INIT(\[Starling\], \[\([^]]*\)\].*/\1/p' "$source/configure.ac")

versions() {
    [ -n "$version" ] || die "no version in configure.ac"
    head -n 1 "$recipes/debian/changelog" | grep -q "^starling ($version-[0-9~a-z]*) " || die "$(head -n 1 "$recipes/debian/changelog")"
    grep -q "version(\"$version\"" "$recipes/spack/packages/starling/package.py" || die "Spack has another version"
    grep -q "(version \"$version\")" "$recipes/guix/starling.scm" || die "Guix has another version"
    grep -q "^version = \"$version\"" "$source/python/pyproject.toml" || die "Python has another version"
}

# Options of configure that a recipe names exist.
options() {
    grep -v '^#' "$recipes/debian/rules" "$recipes/container/Containerfile" "$recipes/guix/starling.scm" \
        "$recipes/spack/packages/starling/package.py" | grep -oE '[-]-(with|without|enable|disable)-[a-z0-9]+' |
        sed 's/^--[a-z]*-//' | sort -u | grep -vE '^(static|recommends)$' >"$T/options"
    [ "$(wc -l <"$T/options")" -gt 5 ] || die "few options: $(cat "$T/options")"
    while read -r option; do
        cat "$source/configure.ac" "$source"/m4/sl_*.m4 | grep -qE "AC_ARG_(WITH|ENABLE)\(\[$option\]" || die "configure has no $option"
    done <"$T/options"
}

spack() {
    command -v python3 >/dev/null || skip "no python3"
    python3 - "$recipes/spack/packages/starling/package.py" <<'END' || die "no recipe"
import ast, sys
tree = ast.parse(open(sys.argv[1]).read(), sys.argv[1])
package = [node for node in tree.body if isinstance(node, ast.ClassDef)]
assert [p.name for p in package] == ["Starling"], package
END
}

guix() {
    command -v guile >/dev/null || skip "no guile"
    guile --no-auto-compile -c '
(for-each (lambda (sign) (read-hash-extend sign (lambda (char port) (list (quote gexp) (read port))))) (list #\~ #\$))
(let ((forms (call-with-input-file (cadr (command-line))
               (lambda (port) (let loop ((all (list))) (let ((form (read port))) (if (eof-object? form) all (loop (cons form all)))))))))
  (exit (and (= 3 (length forms)) (eq? (quote package) (caar forms)))))' "$recipes/guix/starling.scm" >"$T/out" 2>&1 || die "$(cat "$T/out")"
}

slurm() {
    command -v bash >/dev/null || skip "no bash"
    for job in "$recipes"/slurm/*.sh; do
        bash -n "$job" || die "$job"
        head -n 1 "$job" | grep -qx '#!/bin/bash' || die "$job: sbatch wants an interpreter"
    done
    command -v shellcheck >/dev/null || return 0
    shellcheck "$recipes"/slurm/*.sh "$recipes/debian/tests/train" "$source/docs/site/site.sh" || die "shellcheck"
}

# What a job runs, with `srun` and `starling` that say how they are called; the second time there is a checkpoint.
job() { # FILE COMMAND-LINE
    mkdir -p "$T/bin" "$T/job"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho srun "$*"\n' >"$T/bin/srun"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho starling "$*"\n' >"$T/bin/starling"
    chmod +x "$T/bin/srun" "$T/bin/starling"
    cd "$T/job" || exit 1
    for way in "" "--resume starling.ckpt "; do
        PATH=$T/bin:$PATH SLURM_JOB_NAME=starling SLURM_JOB_ID=7 bash "$recipes/slurm/$1" data --epochs 9 >"$T/out" || die "it fails"
        wanted=$(echo "$2" | sed "s/RESUME/$way/")
        [ "$(cat "$T/out")" = "$wanted" ] || die "$(cat "$T/out"), expected $wanted"
        : >starling.ckpt
    done
    rm starling.ckpt
    ! SLURM_JOB_NAME=s SLURM_JOB_ID=7 bash "$recipes/slurm/$1" >"$T/out" 2>&1 || die "without a dataset"
}

check "one version" versions
check "options of configure" options
check "Spack" spack
check "Guix" guix
check "Slurm" slurm
if command -v bash >/dev/null; then
    files="--checkpoint starling.ckpt --log starling-7.jsonl RESUME--epochs 9"
    check "one node" job one-node.sh "starling train data $files"
    check "many nodes" job many-nodes.sh "srun --mpi=pmix --cpu-bind=none starling train data $files"
    check "GPUs" job gpus.sh "srun --mpi=pmix --cpu-bind=none --gpus-per-node=1 starling train data --device cuda $files"
fi
finish
