#!/bin/sh
# No kernel keeps a vector on the stack in an innermost loop (tests/stack.awk), at any level of instructions: what was built is
# disassembled. Skipped without objdump, on other processors than x86-64, and in builds that are not optimised.
. "${top_srcdir:-$(dirname "$0")/..}/tests/shell.sh"
top=${top_srcdir:-$(dirname "$0")/..}

command -v objdump >/dev/null || { echo "no objdump"; exit 77; }
grep -q '^#define SL_X86_LEVELS 1' config.h || { echo "no levels of x86-64"; exit 77; }
grep -q '^#define SL_BUILT_WITH_FLAGS ".*-O[23]' config.h || { echo "not optimised"; exit 77; }
[ -e codelets/kernels/.libs/gather.o ] || { echo "no shared libraries"; exit 77; }
if grep -Eq '^S[A-Z_]*_(TRUE|FLAGS)=.*(-march|-fsanitize)' config.log; then
    echo "built for one processor, or with sanitizers"
    exit 77
fi

kept() { # OBJECT REGISTER
    objdump -d --no-show-raw-insn "$1" >"$T/listing" && awk -v register="$2" -f "$top/tests/stack.awk" "$T/listing"
}
all_kept() { # PREFIX REGISTER [KERNEL]: of all kernels, or of one
    for source in "$top"/codelets/kernels/${3:-*}.c; do
        kept "codelets/kernels/.libs/$1$(basename "$source" .c).o" "$2" || return 1
    done
}

# A loop of the kind that the test looks for is found.
finds_a_spill() {
    cat >"$T/spill.s" <<'END'
spill:
    sub $40, %rsp
    xor %eax, %eax
.again:
    vmovups (%rsp), %ymm0
    vaddps (%rdi,%rax), %ymm0, %ymm0
    vmovups %ymm0, (%rsp)
    add $32, %rax
    cmp %rsi, %rax
    jne .again
    add $40, %rsp
    ret
END
    ${CC:-cc} -c -o "$T/spill.o" "$T/spill.s" || return 1
    ! kept "$T/spill.o" ymm
}
check "a vector on the stack is found" finds_a_spill
check "base" all_kept '' xmm
check "v3" all_kept libstarling_v3_la- ymm
check "v4" all_kept libstarling_v4_la- '[yz]mm'
check "v4-bf16" all_kept libstarling_bf16_la- '[yz]mm' epilogue
finish
