/* Adam (Kingma & Ba, ICLR 2015). Weight decay is added to the gradient. */

struct sl_adam {
    float l2, keep, rate, unbias, beta1, beta2, epsilon;
};

static inline struct sl_adam sl_adam_open(const struct sl_optimizer_step *s)
{
    const struct sl_adam adam = {
        s->decay, 1.0f,       s->rate / s->correction1, 1.0f / s->correction2, s->beta1,
        s->beta2, s->epsilon,
    };
    return adam;
}

SL_EVERYWHERE void sl_adam_step(const struct sl_adam *s, float g, float *w, float *m, float *v)
{
    const float gradient = g + s->l2 * *w;
    *m = s->beta1 * *m + (1.0f - s->beta1) * gradient;
    *v = s->beta2 * *v + (1.0f - s->beta2) * gradient * gradient;
    *w = s->keep * *w - s->rate * *m / (sqrtf(*v * s->unbias) + s->epsilon);
}
