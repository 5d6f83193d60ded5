#!/bin/sh
# Every CUDA kernel compiles, with or without a GPU, and the functions of the software GPU are those that NVIDIA's headers
# declare; skipped where there is no nvcc. Nothing runs, so nothing is optimised. To a cubin alone: nvcc's own front end reads the
# functions of the host, too.
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
compiled=0
for source in "${top_srcdir:-.}"/codelets/*.cu "${top_srcdir:-.}"/tests/*.cu; do
    [ -e "$source" ] || continue
    echo "$source"
    $NVCC_COMPILE -std=c++17 -arch=sm_80 -Xcicc -O0 -Xptxas -O0 -cubin -o "$scratch/kernel.cubin" "$source" || exit 1
    compiled=$((compiled + 1))
done
for part in copy cublas cusparse memory stream; do
    source=${top_srcdir:-.}/tests/software_gpu/$part.cc
    echo "$source"
    $NVCC_COMPILE -std=c++17 -Xcompiler -fsyntax-only -x c++ -c -o "$scratch/part.o" "$source" || exit 1
done
[ $compiled -gt 0 ] || { echo "no CUDA kernels"; exit 77; }
