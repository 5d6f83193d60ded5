/* SGD with momentum. Weight decay is added to the gradient. */

struct sl_sgd {
    float momentum, rate, decay;
};

static inline struct sl_sgd sl_sgd_open(const struct sl_optimizer_step *s)
{
    const struct sl_sgd sgd = {s->momentum, s->rate, s->decay};
    return sgd;
}

/* Return the common values: they do not depend on a parameter's step count. */
SL_EVERYWHERE struct sl_sgd sl_sgd_counted(const struct sl_sgd *s, float count)
{
    (void)count;
    return *s;
}

SL_EVERYWHERE void sl_sgd_step(const struct sl_sgd *s, float g, float *w, float *m, float *v)
{
    (void)v;
    *m = s->momentum * *m + g + s->decay * *w;
    *w -= s->rate * *m;
}
