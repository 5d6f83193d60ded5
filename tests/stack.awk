# Reads `objdump -d --no-show-raw-insn`; prints each function that keeps a vector on the stack in an innermost loop, as
# "FUNCTION: INSTRUCTION": it stores the vector there and reads it again. -v register=ymm says what a vector is.
# A loop: the blocks of instructions from which a jump leads back to a block that every way into the loop passes. An address
# with an index is an array's, not that of a vector that lacks a register.

function slot_of(line) {
    if (line !~ "%" register "[0-9]" || line ~ /^v?(mov[a-z]*|cvt[a-z0-9]*|[a-z0-9]*)(ss|sd|movd|movq|movlps|movhps) /)
        return ""
    if (!match(line, /-?(0x)?[0-9a-f]*\(%r[sb]p\)/) || (line ~ /\(%rbp\)/ && !frame))
        return ""
    return substr(line, RSTART, RLENGTH)
}

# Blocks begin at targets of jumps and behind jumps.
function make_blocks(    i) {
    for (i = 0; i < lines; i++)
        if (jump[i] != "" && jump[i] in number)
            starts[number[jump[i]]] = 1
    blocks = 0
    for (i = 0; i < lines; i++) {
        if (i == 0 || i in starts || jumps[i - 1]) {
            first[blocks] = i
            last[blocks++] = i
        }
        last[blocks - 1] = i
        block[i] = blocks - 1
    }
    for (i = 0; i < blocks; i++) {
        next_of[i] = text[last[i]] ~ /^(jmp|ret|notrack)/ || i + 1 == blocks ? -1 : i + 1
        to_of[i] = jump[last[i]] != "" && jump[last[i]] in number ? block[number[jump[last[i]]]] : -1
        froms[i] = ""
    }
    for (i = 0; i < blocks; i++) {
        if (next_of[i] >= 0) froms[next_of[i]] = froms[next_of[i]] " " i
        if (to_of[i] >= 0) froms[to_of[i]] = froms[to_of[i]] " " i
    }
}
function push(b) { if (b >= 0 && !(b in seen)) { seen[b] = 1; stack[depth++] = b } }

# The blocks to which a way leads that does not pass block a, in seen.
function reach_without(a,    b) {
    delete seen
    depth = 0
    seen[a] = 1
    push(0)
    while (depth) {
        b = stack[--depth]
        push(next_of[b])
        push(to_of[b])
    }
    delete seen[a]
}

# The blocks of the loop of a jump from `tail` back to `head`, in body[loops, …].
function take_loop(head, tail,    n, part, i, b) {
    delete seen
    depth = 0
    seen[head] = 1
    push(tail)
    while (depth) {
        b = stack[--depth]
        n = split(froms[b], part, " ")
        for (i = 1; i <= n; i++) push(part[i] + 0)
    }
    heads[loops] = head
    body[loops] = ""
    for (b in seen) body[loops] = body[loops] " " b
    loops++
}
function check_loop(l,    n, part, i, j, k, slot, stored, read) {
    n = split(body[l], part, " ")
    for (i = 1; i <= n; i++)
        for (j = 0; j < loops; j++)
            if (heads[j] == part[i] && heads[j] != heads[l])
                return
    for (i = 1; i <= n; i++)
        for (k = first[part[i]]; k <= last[part[i]]; k++) {
            slot = slot_of(text[k])
            if (slot != "" && text[k] ~ /\)$/)
                stored[slot] = text[k]
            else if (slot != "")
                read[slot] = 1
        }
    for (slot in stored)
        if (slot in read) {
            printf "%s: %s\n", name, stored[slot]
            bad++
            return
        }
}
function check_function(    i, j, n, any, from, tails) {
    for (i = 0; i < lines && !any; i++)
        any = slot_of(text[i]) != "" && text[i] ~ /\)$/
    if (any) {
        make_blocks()
        loops = 0
        for (i = 0; i < blocks; i++) {
            n = split(froms[i], from, " ")
            reach_without(i)
            for (j = 1; j <= n; j++)
                tails[j] = (from[j] + 0) in seen ? -1 : from[j] + 0
            for (j = 1; j <= n; j++)
                if (tails[j] >= 0)
                    take_loop(i, tails[j])
        }
        for (i = 0; i < loops; i++)
            check_loop(i)
    }
    delete number; delete starts; delete jump; delete jumps
    lines = frame = 0
}
/^[0-9a-f]+ <.*>:$/ {
    check_function()
    name = substr($2, 2, length($2) - 3)
    functions++
    next
}
/^ *[0-9a-f]+:\t/ {
    split($0, part, "\t")
    gsub(/[ :]/, "", part[1])
    number[part[1]] = lines
    text[lines] = part[2]
    sub(/ +#.*| +$/, "", text[lines])
    if (part[2] ~ /^mov +%rsp,%rbp/)
        frame = 1
    jumps[lines] = part[2] ~ /^(j|ret)/
    if (part[2] ~ /^j/) {
        split(part[2], word, " ")
        jump[lines] = word[2]
    }
    lines++
}
END {
    check_function()
    if (!functions)
        print "no functions"
    exit bad > 0 || !functions
}
