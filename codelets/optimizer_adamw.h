/* AdamW (Loshchilov & Hutter, ICLR 2019): Adam with weight decay apart, w -= rate · decay · w. */

struct sl_adamw {
    struct sl_adam adam;
};

static inline struct sl_adamw sl_adamw_open(const struct sl_optimizer_step *s)
{
    struct sl_adamw w = {sl_adam_open(s)};
    w.adam.l2 = 0.0f;
    w.adam.keep = 1.0f - s->rate * s->decay;
    return w;
}

SL_EVERYWHERE struct sl_adamw sl_adamw_counted(const struct sl_adamw *s, float count)
{
    const struct sl_adamw w = {sl_adam_counted(&s->adam, count)};
    return w;
}

SL_EVERYWHERE void sl_adamw_step(const struct sl_adamw *s, float g, float *w, float *m, float *v)
{
    sl_adam_step(&s->adam, g, w, m, v);
}
