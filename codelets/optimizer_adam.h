/* Adam (Kingma & Ba, ICLR 2015). Weight decay is added to the gradient. */

struct sl_adam {
    float l2, keep, rate, unbias, beta1, beta2, epsilon;
    float plain_rate, local, log1, log2; /* used where parameters have step counts of their own */
};

static inline struct sl_adam sl_adam_open(const struct sl_optimizer_step *s)
{
    struct sl_adam adam = {
        .l2 = s->decay,
        .keep = 1.0f,
        .rate = s->rate / s->correction1,
        .unbias = 1.0f / s->correction2,
        .beta1 = s->beta1,
        .beta2 = s->beta2,
        .epsilon = s->epsilon,
        .plain_rate = s->rate,
        .local = (float)s->local,
    };
    if (s->local > 0) {
        adam.log1 = (float)log((double)s->beta1);
        adam.log2 = (float)log((double)s->beta2);
    }
    return adam;
}

SL_EVERYWHERE float sl_adam_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

SL_EVERYWHERE uint32_t sl_adam_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Return 1 - e^x for x <= 0, to a relative error of 2^-23. It has no call and no comparison, so
 * that the compiler makes vectors. With x = n ln 2 + r and |r| <= ln 2 / 2 the result is (1 - 2^n)
 * - 2^n (e^r - 1). The first term is 0 for small x, else more than twice the second: little
 * cancels. codelets/exponential.h has the polynomial, too. */
SL_EVERYWHERE float sl_adam_correction(float x)
{
    const float round = 0x1.8p23f; /* adding it leaves no bits behind the point */
    const uint32_t sign = 0x80000000, most = 0x42800000; /* bits of 64: 1 - e^-64 is 1 */
    const uint32_t size = sl_adam_bits(x) & ~sign, over = 0 - ((most - size) >> 31);
    const float inside = sl_adam_float(sign | (most & over) | (size & ~over));
    const float shifted = inside * 0x1.715476p0f + round, n = shifted - round;
    const float r = (inside - n * 0x1.63p-1f) - n * -0x1.bd0106p-13f;
    const float power = sl_adam_float((sl_adam_bits(shifted) + 127) << 23);
    float p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r;
    return (1.0f - power) - power * p;
}

/* Return the values of a step for a parameter with `count` steps before this round. */
SL_EVERYWHERE struct sl_adam sl_adam_counted(const struct sl_adam *s, float count)
{
    struct sl_adam adam = *s;
    const float steps = count + s->local;
    adam.rate = s->plain_rate / sl_adam_correction(steps * s->log1);
    adam.unbias = 1.0f / sl_adam_correction(steps * s->log2);
    return adam;
}

SL_EVERYWHERE void sl_adam_step(const struct sl_adam *s, float g, float *w, float *m, float *v)
{
    const float gradient = g + s->l2 * *w;
    *m = s->beta1 * *m + (1.0f - s->beta1) * gradient;
    *v = s->beta2 * *v + (1.0f - s->beta2) * gradient * gradient;
    *w = s->keep * *w - s->rate * *m / (sqrtf(*v * s->unbias) + s->epsilon);
}
