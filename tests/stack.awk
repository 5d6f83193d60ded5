# Reads `objdump -d --no-show-raw-insn`; prints each function that stores a vector on the stack in an innermost loop, as
# "FUNCTION: INSTRUCTION". -v register=ymm says what a vector is. A loop is what a backward jump spans; an innermost loop spans
# no other one. An address with an index is an array's, not that of a vector that lacks a register.
function flush_function(    i, j, k, inner, n, said) {
    for (i = 0; i < jumps; i++) {
        inner = 1
        for (j = 0; j < jumps; j++)
            if (j != i && target[j] >= target[i] && source[j] <= source[i] && !(target[j] == target[i] && source[j] == source[i]))
                inner = 0
        for (k = target[i]; inner && k <= source[i]; k++)
            if (text[k] ~ "%" register "[0-9]+,-?(0x)?[0-9a-f]*" stack) {
                printf "%s: %s\n", name, text[k]
                bad++
                inner = 0
            }
    }
    delete number; delete text; delete target; delete source
    lines = jumps = 0
}
/^[0-9a-f]+ <.*>:$/ {
    flush_function()
    name = substr($2, 2, length($2) - 3)
    frame = 0
    stack = "\\(%rsp\\)$"
    next
}
/^ *[0-9a-f]+:\t/ {
    split($0, part, "\t")
    sub(/^ */, "", part[1])
    sub(/:.*/, "", part[1])
    number[part[1]] = lines
    text[lines] = part[2]
    if (part[2] ~ /^mov +%rsp,%rbp/)
        stack = "\\(%r[sb]p\\)$"
    if (part[2] ~ /^j/) {
        split(part[2], word, " ")
        if (word[2] in number) {
            target[jumps] = number[word[2]]
            source[jumps++] = lines
        }
    }
    lines++
}
END { flush_function(); exit bad > 0 }
