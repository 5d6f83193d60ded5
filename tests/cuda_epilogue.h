/* The steps of an epilogue, and its operands, for products and sums on a GPU. */
#ifndef SL_TESTS_CUDA_EPILOGUE_H
#define SL_TESTS_CUDA_EPILOGUE_H

#include "tests/cuda_kernels.h"

extern "C" {
#include "codelets/epilogue.h"
}

enum {
    BEFORE = 1,
    BIAS = 2,
    RELU = 4,
    MASK = 8,
    DROP = 16,
    AFTER = 32,
    SCALE = 64,
    FACTOR = 128,
    STEPS = 256, /* choices of these; their results can be exact */
    ELU = 256,
    ELU_BACK = 512
};
enum { NO_EPILOGUE = -1 };

struct finish {
    int steps;
    struct sl_dropout drop;
    uint32_t column0;
    matrix before, factor, bias, after;
    stored mask;
    std::vector<uint32_t> vertex;

    struct sl_epilogue make(const float *before_at, const float *factor_at, const float *bias_at,
                            const struct sl_rows &mask_rows, const uint32_t *vertex_at,
                            const float *after_at) const
    {
        struct sl_epilogue e = {};
        e.scale = steps & SCALE ? 0.5f : 1.0f;
        e.before = steps & BEFORE ? before_at : nullptr;
        e.factor = steps & FACTOR ? factor_at : nullptr;
        e.bias = steps & BIAS ? bias_at : nullptr;
        e.relu = steps & RELU;
        e.elu = steps & ELU;
        e.elu_back = steps & ELU_BACK ? 0.5f : 0.0f;
        if (steps & MASK)
            e.mask = mask_rows;
        if (steps & DROP)
            e.drop = drop;
        e.vertex = vertex_at;
        e.column0 = column0;
        e.after = steps & AFTER ? after_at : nullptr;
        e.mask_scale = steps & ELU_BACK ? e.after : nullptr;
        return e;
    }
    struct sl_epilogue view()
    {
        return make(before.at(), factor.at(), bias.at(), mask.rows(), vertex.data(), after.at());
    }
};

inline enum sl_type some_type()
{
    return TYPES[random_below(2)];
}

inline finish random_finish(int64_t rows, int64_t cols, int steps, layout how, kind k)
{
    static const uint32_t columns[] = {0, 4, 1021, 4000000002u};
    return {steps,
            some_dropout(0.5),
            columns[random_below(4)],
            random_matrix(1, rows, TIGHT, NONE, k),
            random_matrix(1, rows, TIGHT, NONE, k),
            random_matrix(1, cols, other(how), NONE, k),
            random_matrix(1, rows, TIGHT, NONE, k),
            stored(of_type(some_type(), random_matrix(rows, cols, how, NONE, INTEGERS))),
            random_vertices(rows)};
}

inline finish absolute(finish f)
{
    f.before = absolute(f.before);
    f.factor = absolute(f.factor);
    f.bias = absolute(f.bias);
    f.after = absolute(f.after);
    return f;
}

struct device_finish {
    device_matrix before, factor, bias, after, mask;
    array<uint32_t> vertex;
    struct sl_epilogue view;

    explicit device_finish(const finish &f)
        : before(f.before), factor(f.factor), bias(f.bias), after(f.after), mask(f.mask.floats),
          vertex(f.vertex)
    {
        view = f.make(before.at, factor.at, bias.at, mask.rows(), vertex.data, after.at);
    }
};

inline int some_steps()
{
    return (int)random_below(STEPS);
}

#endif
