#!/usr/bin/env python3
"""Print tests/metrics_values.h: random labels and scores, and scikit-learn's metrics of them.

    python3 tests/metrics_values.py > tests/metrics_values.h

Scores are few, so that many are equal. The first case has a label for each vertex, the second has
labels that are not known, a label that nobody has and one that nobody has been predicted."""
import warnings

import numpy as np
import sklearn
from sklearn.metrics import (accuracy_score, average_precision_score, f1_score, log_loss,
                             mean_squared_error, roc_auc_score)

warnings.filterwarnings("ignore")
rng = np.random.RandomState(20)
NUMBERS = "%.17g"


def array(name, kind, values):
    text = ", ".join("NAN" if np.isnan(v) else NUMBERS % v for v in np.ravel(values))
    print("static const %s %s[] = {%s};" % (kind, name, text))


def per_label(y, z, metric):
    """OGB's rule: the mean over labels that have both values, of vertices whose value is known."""
    seen = []
    for j in range(y.shape[1]):
        known = y[:, j] == y[:, j]
        t = y[known, j]
        if (t == 1).any() and (t == 0).any():
            seen.append(metric(t, z[known, j]))
    return np.mean(seen)


def top(y, z):
    """As many labels as the vertex has, with the largest scores; of equal ones the first."""
    out = np.zeros_like(y)
    for r in range(len(y)):
        out[r, np.argsort(-z[r], kind="stable")[:int(y[r].sum())]] = 1
    return out


def flat(y, p):
    known = y == y
    return y[known], p[known]


def f1_known(y, p, average):
    """F1 of what is known: unknown values are left out of the counts."""
    if average == "micro":
        return f1_score(*flat(y, p))
    return np.mean([f1_score(y[k, j], p[k, j], zero_division=0)
                    for j in range(y.shape[1]) for k in [y[:, j] == y[:, j]]])


def several(name, n, c, unknown):
    y = (rng.rand(n, c) < rng.uniform(0.05, 0.6, c)).astype(float)
    z = np.round((rng.randn(n, c) + y) * 4) / 4
    if unknown:
        y[rng.rand(n, c) < 0.2] = np.nan
        y[:, 1] = 0
        y[0, :] = np.nan
        z[:, 2] = -1 - abs(z[:, 2])
    half = (z > 0).astype(float)
    p = 1 / (1 + np.exp(-z))
    known = y == y
    array(name + "_y", "float", y)
    array(name + "_z", "float", z)
    e = np.where(known, np.logaddexp(0, z) - np.where(known, y, 0) * z, 0)
    rows = known.any(1)
    values = {
        "loss": e[rows].mean(),
        "micro-f1": f1_known(y, half, "micro"),
        "macro-f1": f1_known(y, half, "macro"),
        "label-accuracy": np.mean([accuracy_score(y[k, j], half[k, j])
                                   for j in range(c) for k in [known[:, j]]]),
        "roc-auc": per_label(y, z, roc_auc_score),
        "average-precision": per_label(y, z, average_precision_score),
        "accuracy": np.mean([(y[r] == half[r])[known[r]].all() for r in np.nonzero(rows)[0]]),
    }
    if not unknown:
        assert np.isclose(values["micro-f1"], f1_score(y, half, average="micro"))
        assert np.isclose(values["macro-f1"], f1_score(y, half, average="macro"))
        assert np.isclose(values["accuracy"], accuracy_score(y, half))
        assert np.isclose(values["roc-auc"], roc_auc_score(y, z, average="macro"))
        assert np.isclose(values["average-precision"], average_precision_score(y, z))
        assert np.isclose(values["loss"], np.mean([log_loss(y[:, j], p[:, j]) for j in range(c)]))
        values["top micro-f1"] = f1_score(y, top(y, z), average="micro")
        values["top macro-f1"] = f1_score(y, top(y, z), average="macro")
        values["mse"] = mean_squared_error(y, z)
    return values


def classes(name, n, c, missing):
    y = rng.randint(0, c, n)
    z = np.round((rng.randn(n, c) + 1.5 * np.eye(c)[y]) * 4) / 4
    if missing is not None: # a class that nobody has, and nobody is predicted
        y[y == missing] = 0
        z[:, missing] -= 30
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    best = z.argmax(1)
    array(name + "_y", "float", y.astype(float))
    array(name + "_z", "float", z)
    one = np.eye(c)[y]
    if c == 2:
        score = z[:, 1] - z[:, 0]
        auc, precision = roc_auc_score(y, score), average_precision_score(y, score)
    else:
        # probabilities that differ by rounding alone are equal
        score = np.round(np.log(p), 9)
        auc = per_label(one, score, roc_auc_score)
        precision = per_label(one, score, average_precision_score)
        if missing is None:
            assert np.isclose(auc, roc_auc_score(y, p, multi_class="ovr"))
    return {
        "loss": log_loss(y, p, labels=range(c)),
        "accuracy": accuracy_score(y, best),
        "micro-f1": f1_score(y, best, average="micro"),
        "macro-f1": f1_score(y, best, average="macro"),
        "roc-auc": auc,
        "average-precision": precision,
    }


print("/* Made by tests/metrics_values.py with scikit-learn %s. */" % sklearn.__version__)
print("/* clang-format off */")
cases = [("full", True, 60, 7, several("full", 60, 7, False)),
         ("unknown", True, 80, 5, several("unknown", 80, 5, True)),
         ("two", False, 70, 2, classes("two", 70, 2, None)),
         ("six", False, 90, 6, classes("six", 90, 6, None)),
         ("missing", False, 50, 4, classes("missing", 50, 4, 2))]
print("static const struct known {\n    const char *name;\n    bool several;\n    int64_t rows, labels;\n"
      "    const float *y, *z;\n    const char *metric;\n    double value;\n} known[] = {")
for name, is_several, n, c, values in cases:
    for metric, value in values.items():
        print('    {"%s", %s, %d, %d, %s_y, %s_z, "%s", %s},' %
              (name, "true" if is_several else "false", n, c, name, name, metric, NUMBERS % value))
print("};")
