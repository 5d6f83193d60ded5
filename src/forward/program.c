#include "forward/program.h"

#include <stdlib.h>

int sl_program_add(struct sl_program *program, const struct sl_step *step)
{
    if (program->count == program->room) {
        const int room = 2 * program->room + 16;
        struct sl_step *longer = realloc(program->step, (size_t)room * sizeof *longer);
        if (!longer) {
            for (int t = 0; t < SL_STEP_TENSORS; t++)
                free(step->tensor[t]);
            program->failed = true;
            return program->count;
        }
        program->step = longer;
        program->room = room;
    }
    program->step[program->count++] = *step;
    return program->count;
}

void sl_program_free(struct sl_program *program)
{
    for (int s = 0; s < program->count; s++)
        for (int t = 0; t < SL_STEP_TENSORS; t++)
            free(program->step[s].tensor[t]);
    free(program->step);
    *program = (struct sl_program){0};
}

#define NAMED(constant, name) [constant] = name,
const char *sl_step_name(enum sl_step_kind kind)
{
    static const char *const names[] = {SL_STEPS(NAMED)};
    return names[kind];
}

const char *sl_program_output_name(enum sl_program_output output)
{
    static const char *const names[] = {SL_PROGRAM_OUTPUTS(NAMED)};
    return names[output];
}

bool sl_step_reads_edges(enum sl_step_kind kind)
{
    return kind == SL_STEP_AGGREGATE || kind == SL_STEP_GAT || kind == SL_STEP_GATV2 ||
           kind == SL_STEP_DOT_ATTENTION || kind == SL_STEP_GINE || kind == SL_STEP_RELATIONS;
}

int sl_step_values(enum sl_step_kind kind)
{
    return kind == SL_STEP_DOT_ATTENTION                                            ? 3
           : kind == SL_STEP_ADD || kind == SL_STEP_LARGER || kind == SL_STEP_GATV2 ? 2
                                                                                    : 1;
}
