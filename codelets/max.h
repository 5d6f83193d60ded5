/* The largest, or least, value of the neighbours, the merging of two such results, and the
 * gradient. */
#ifndef SL_CODELETS_MAX_H
#define SL_CODELETS_MAX_H

#include "codelets/operation.h"

/* The vertices, 0 … 2^31 - 2, that belong to the rows, or columns, of a sparse operand. */
struct sl_numbering {
    int32_t first;         /* used if `number` is NULL: row r belongs to vertex first + r */
    const int32_t *number; // (rows, or columns), or NULL: the vertex of each
};

/* The vertex that each element of a maximum comes from, and whether it is a maximum or a minimum.
 */
struct sl_argmax {
    int32_t *vertex; // (rows, width); -1: none
    int64_t ld;      /* elements between rows of `vertex` */
    float sign; /* the largest of sign·value is taken: 1 for the maximum, -1 for the minimum */
};

/* Z(r, j) = the largest of value(e)·H(col(e), j) over the entries e of row r of A (accumulate: and
 * of Z), 0 without entries. A (m, k) sparse, no entry twice, without values: all 1. H (k, width), Z
 * (m, width), of either type. ARGMAX (m, width) names the vertex of each value among the vertices
 * of A's columns; it accumulates with Z. Of equal values the least vertex wins, so that the order
 * of tiles does not matter. NaN wins over any number. Where Z is bfloat16, values are compared as
 * bfloat16. */
void sl_kernel_max(const struct sl_sparse *a, int64_t width, const struct sl_rows *h,
                   bool accumulate, const struct sl_rows *z, const struct sl_numbering *columns,
                   const struct sl_argmax *argmax);

/* Merge X into Z by the rule of sl_kernel_max: (Z, ARGMAX)(index[r], j) becomes the larger of
 * itself and (X, FROM)(r, j), r < rows. Where FROM is negative, nothing happens. index NULL:
 * index[r] = r. No row of Z is listed twice. X (rows, width) and Z are of one type. */
void sl_kernel_max_merge(int64_t rows, int64_t width, const uint32_t *index,
                         const struct sl_rows *x, const struct sl_argmax *from,
                         const struct sl_rows *z, const struct sl_argmax *argmax);

/* DH (k, width) = the gradient of H (accumulate: DH + …) from G (m, width), the gradient of Z, and
 * ARGMAX. `at` is Aᵀ (k, m); `rows` numbers its rows as ARGMAX does. G and DH are float32. */
void sl_kernel_max_back(const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
                        const struct sl_numbering *rows, const struct sl_argmax *argmax,
                        bool accumulate, const struct sl_rows *dh);

void sl_cuda_max(const struct sl_sparse *a, int64_t width, const struct sl_rows *h, bool accumulate,
                 const struct sl_rows *z, const struct sl_numbering *columns,
                 const struct sl_argmax *argmax, struct sl_cuda_queue queue);
void sl_cuda_max_merge(int64_t rows, int64_t width, const uint32_t *index, const struct sl_rows *x,
                       const struct sl_argmax *from, const struct sl_rows *z,
                       const struct sl_argmax *argmax, struct sl_cuda_queue queue);
void sl_cuda_max_back(const struct sl_sparse *at, int64_t width, const struct sl_rows *g,
                      const struct sl_numbering *rows, const struct sl_argmax *argmax,
                      bool accumulate, const struct sl_rows *dh, struct sl_cuda_queue queue);

/* Submit Z = the largest value of the neighbours (minimum: the least), and ARGMAX (int32) = the
 * vertex of each value (sl_kernel_max). Values are rows of H times the weights of A's entries;
 * accumulate: also Z. H and Z are of either type. */
struct sl_max_tiles {
    struct sl_sparse_tile *a;
    struct sl_tile *h, *argmax, *z;
    bool accumulate, minimum;
    struct sl_tile *vertices; /* vertices of A's columns: int32, in row 0; NULL: consecutive */
    int64_t first;            /* vertex of column 0 where `vertices` is NULL */
};
void sl_submit_max(struct sl_runtime *rt, const struct sl_max_tiles *tiles);

/* Submit Z = [Z +] the gradient of H from `h`, here the gradient of the maximum, and its ARGMAX.
 * `a` is Aᵀ, and `vertices` are the vertices of its rows. All but ARGMAX are float32. */
void sl_submit_max_back(struct sl_runtime *rt, const struct sl_max_tiles *tiles);

/* Merge two results of sl_submit_max for the same vertices: (Z, ARGMAX)(index[r]) = the larger
 * (minimum: the smaller) of it and (X, FROM)(r), for the rows first … first + rows - 1 of X. No row
 * of Z is listed twice. index is (1, rows of X) of uint32; NULL: index[r] = r. X and Z are of one
 * type. */
struct sl_max_merge_tiles {
    struct sl_tile *x, *from;
    struct sl_tile *index;
    int64_t first, rows;
    bool minimum;
    struct sl_tile *argmax, *z;
};
void sl_submit_max_merge(struct sl_runtime *rt, const struct sl_max_merge_tiles *tiles);

/* Argument of the tasks max and max_back. */
struct max_argument {
    struct sl_sparse_shape shape;
    bool accumulate;
    bool listed;   /* a tile of vertices comes along */
    int32_t first; /* first vertex where no tile of vertices comes along */
    float sign;
};

/* Argument of the task max_merge. `first` and `rows` are rows of X. */
struct max_merge_argument {
    int64_t first, rows;
    bool listed; /* a list comes along, with the row of Z for each row of X */
    float sign;
};

#endif
