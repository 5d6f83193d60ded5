"""The kernels of starling.h on a caller's own matrices, against NumPy in double precision."""
import ctypes

import numpy as np
import pytest

import starling
from starling._library import Handle, Heads, library


def at(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Graph:
    """Random edges, some of them several times, and the matrix that they make."""

    def __init__(self, rows, columns, entries, weighted, seed=1, unique=False):
        random = np.random.default_rng(seed)
        pair = random.integers(0, rows * columns, entries)
        pair = np.unique(pair) if unique else pair
        random.shuffle(pair)
        self.rows, self.columns = rows, columns
        self.targets, self.sources = pair // columns, pair % columns
        self.weights = random.random(len(pair)).astype(np.float32) if weighted else None
        self.matrix = np.zeros((rows, columns))
        np.add.at(self.matrix, (self.targets, self.sources),
                  1.0 if self.weights is None else self.weights.astype(float))
        self.handle = Handle(library.starling_adjacency_free)
        library.starling_adjacency_create(rows, columns, len(pair), at(self.targets),
                                          at(self.sources), at(self.weights) if weighted else None,
                                          self.handle.out())


SIZES = [(1, 1, 0), (1, 70000, 300), (70000, 3, 500), (61, 47, 900), (400, 400, 30000)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 7, 16, 41, 130])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums(size, width, weighted):
    graph = Graph(*size, weighted)
    random = np.random.default_rng(2)
    for transposed, matrix in (0, graph.matrix), (1, graph.matrix.T):
        x = random.standard_normal((matrix.shape[1], width)).astype(np.float32)
        results = []
        for threads in 1, 3:
            out = np.full((matrix.shape[0], width), np.nan, np.float32)
            library.starling_adjacency_sum(graph.handle.pointer, transposed, width, at(x), threads,
                                           at(out))
            results.append(out)
        expected, most = matrix @ x, np.abs(matrix) @ np.abs(x)
        assert (np.abs(results[0] - expected) <= 1e-5 * most + 1e-30).all()
        assert (results[0] == results[1]).all()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 7, 16, 41])
@pytest.mark.parametrize("minimum", [0, 1])
def test_maxima(size, width, minimum):
    graph = Graph(*size, weighted=True, unique=True)
    random = np.random.default_rng(3)
    x = random.standard_normal((graph.columns, width)).astype(np.float32)
    results = []
    for threads in 1, 3:
        out = np.full((graph.rows, width), np.nan, np.float32)
        argmax = np.full((graph.rows, width), -7, np.int32)
        library.starling_adjacency_max(graph.handle.pointer, minimum, width, at(x), threads,
                                       at(out), at(argmax))
        results.append((out, argmax))
    (out, argmax), again = results
    assert (out == again[0]).all() and (argmax == again[1]).all()
    sign = -1 if minimum else 1
    expected = np.full((graph.rows, width), -np.inf)
    np.maximum.at(expected, graph.targets, sign * x[graph.sources].astype(float))
    empty = np.isinf(expected)
    assert (out == np.where(empty, 0, sign * expected)).all() and (argmax[empty] == -1).all()
    there = np.nonzero(~empty)
    assert (x[argmax[there], there[1]] == out[there]).all()

    gradient = random.standard_normal(out.shape).astype(np.float32)
    back = np.full(x.shape, np.nan, np.float32)
    library.starling_adjacency_max_back(graph.handle.pointer, width, at(gradient), at(argmax), 3,
                                        at(back))
    expected, most = np.zeros(x.shape), np.zeros(x.shape)
    np.add.at(expected, (argmax[there], there[1]), gradient[there])
    np.add.at(most, (argmax[there], there[1]), np.abs(gradient[there]))
    assert (np.abs(back - expected) <= 1e-5 * most).all()


def attention(matrix, values, source, target, slope):
    """The output in double precision; a row without entries has 0."""
    logits = target[:, None] + source[None]  # (vertices, vertices, heads)
    logits = np.where(logits > 0, logits, slope * logits)
    power = matrix[..., None] * np.exp(logits - logits.max(1, keepdims=True))
    total = power.sum(1, keepdims=True)
    share = np.divide(power, total, out=np.zeros_like(power), where=total > 0)
    return np.einsum("ijh,jhf->ihf", share, values)


@pytest.mark.parametrize("n, entries, heads, width", [
    (1, 0, 1, 1), (1, 1, 3, 5), (30, 90, 1, 41), (60, 800, 8, 8), (51, 300, 3, 7),
    (300, 9000, 2, 16)])
@pytest.mark.parametrize("weighted", [False, True])
def test_attention(n, entries, heads, width, weighted):
    graph = Graph(n, n, entries, weighted)
    random = np.random.default_rng(4)
    given = [random.standard_normal(shape).astype(np.float32)
             for shape in ((n, heads, width), (n, heads), (n, heads))]
    gradient = random.standard_normal((n, heads, width)).astype(np.float32)

    def run(training, threads):
        out = np.full((n, heads, width), np.nan, np.float32)
        back = [np.full_like(a, np.nan) for a in given]
        kept = Handle(library.starling_attention_free)
        how = Heads(heads, width, 0.2, training, 0.0, 0)
        library.starling_attention_forward(graph.handle.pointer, ctypes.byref(how),
                                           *map(at, given), threads, at(out), kept.out())
        if training:
            library.starling_attention_back(kept.pointer, at(gradient), threads, *map(at, back))
        else:
            with pytest.raises(starling.Error, match="did not train"):
                library.starling_attention_back(kept.pointer, at(gradient), threads,
                                                *map(at, back))
        return out, back

    exact = [a.astype(float) for a in given]
    expected = attention(graph.matrix, *exact, 0.2)
    (out, back), (again, back_again) = run(1, 1), run(1, 3)
    assert np.abs(out - expected).max() <= 1e-5 * max(1, np.abs(expected).max())
    assert (out == again).all()
    assert all((a == b).all() for a, b in zip(back, back_again))
    assert np.abs(run(0, 2)[0] - expected).max() <= 1e-5 * max(1, np.abs(expected).max())

    # Central differences of the loss sum(gradient * output), at some elements.
    for array, result in zip(exact, back):
        for index in random.choice(array.size, min(array.size, 12), replace=False):
            was, step = array.flat[index], 1e-5
            losses = []
            for array.flat[index] in was + step, was - step:
                losses.append((attention(graph.matrix, *exact, 0.2) * gradient).sum())
            array.flat[index] = was
            difference = (losses[0] - losses[1]) / (2 * step)
            assert abs(difference - result.flat[index]) <= 2e-4 * max(1, abs(difference))


def test_dropout_of_attention_is_unbiased():
    n = 40
    graph = Graph(n, n, 600, False)
    random = np.random.default_rng(5)
    given = [random.standard_normal(shape).astype(np.float32) for shape in ((n, 1, 1), (n, 1), (n, 1))]
    total, draws, seen = np.zeros((n, 1, 1)), 2000, []
    for seed in range(draws):
        out = np.empty((n, 1, 1), np.float32)
        kept = Handle(library.starling_attention_free)
        how = Heads(1, 1, 0.2, 1, 0.5, seed)
        library.starling_attention_forward(graph.handle.pointer, ctypes.byref(how),
                                           *map(at, given), 1, at(out), kept.out())
        total += out
        seen.append(out)
    exact = attention(graph.matrix, *(a.astype(float) for a in given), 0.2)
    deviation = np.std(seen, 0) / np.sqrt(draws)
    assert (np.abs(total / draws - exact) <= 6 * deviation + 1e-6).all()
    assert np.std(seen, 0).max() > 0.01


def test_refusals():
    one = np.zeros(1, np.int64)
    handle = Handle(library.starling_adjacency_free)
    for vertex, sentence in (3, r"targets\[0\] is 3 \(expected 0 to 2\)"), (-1, "is -1"):
        wrong = np.array([vertex])
        with pytest.raises(starling.Error, match=sentence):
            library.starling_adjacency_create(3, 3, 1, at(wrong), at(one), None, handle.out())
    with pytest.raises(starling.Error, match=r"sources\[0\] is 5"):
        library.starling_adjacency_create(3, 3, 1, at(one), at(np.array([5])), None, handle.out())
    with pytest.raises(starling.Error, match="expected 1 to"):
        library.starling_adjacency_create(0, 3, 0, at(one), at(one), None, handle.out())
    graph = Graph(4, 5, 6, False)
    x = np.zeros((5, 1), np.float32)
    with pytest.raises(starling.Error, match="a width of 0"):
        library.starling_adjacency_sum(graph.handle.pointer, 0, 0, at(x), 1, at(x))
    how, kept = Heads(1, 1, 0.2, 1, 0.0, 0), Handle(library.starling_attention_free)
    with pytest.raises(starling.Error, match="4 rows and 5 columns"):
        library.starling_attention_forward(graph.handle.pointer, ctypes.byref(how), at(x), at(x),
                                           at(x), 1, at(x), kept.out())
    square = Graph(5, 5, 6, False)
    for changed in {"heads": 0}, {"heads": 257}, {"heads": 256, "width": 2**56}, {"slope": 2}, {"dropout": 1}, {"dropout": np.nan}:
        how = Heads(1, 1, 0.2, 1, 0.0, 0)
        for name, value in changed.items():
            setattr(how, name, value)
        with pytest.raises(starling.Error, match="attention: "):
            library.starling_attention_forward(square.handle.pointer, ctypes.byref(how), at(x),
                                               at(x), at(x), 1, at(x), kept.out())
