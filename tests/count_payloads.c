/* Counts what MPI is really given to send, in a program of which this is part (tests/counted: all
 * of starling). MPI's profiling interface: what StarPU and the program call is here, and calls what
 * is MPI's. When MPI ends, rank FROM writes to the file $SL_COUNTS.FROM:
 *
 *     payload FROM TO MESSAGES BYTES      for each rank that it sent messages to
 *     direct FROM CALLS BYTES             calls of MPI by the program itself, and what it gave them
 *     threads FROM COUNT                  threads that were made, by anybody
 *
 * StarPU announces each payload by an envelope, which is a message with a tag of its own and no
 * payload. Receives are in src/core/message.c: bytes to a rank are counted where they are sent. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { MOST_RANKS = 64, ENVELOPE_TAG = 42 }; /* StarPU's _starpu_mpi_tag */

static struct {
    int64_t messages, bytes;
} sent[MOST_RANKS], direct;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t bytes_of(int count, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (int64_t)count * size;
}

static void count_payload(int count, MPI_Datatype type, int to, int tag)
{
    if (tag == ENVELOPE_TAG)
        return;
    if (to < 0 || to >= MOST_RANKS)
        abort();
    pthread_mutex_lock(&lock);
    sent[to].messages++;
    sent[to].bytes += bytes_of(count, type);
    pthread_mutex_unlock(&lock);
}

static void count_direct(int64_t bytes)
{
    pthread_mutex_lock(&lock);
    direct.messages++;
    direct.bytes += bytes;
    pthread_mutex_unlock(&lock);
}

/* ---- StarPU's messages ---- */

int MPI_Isend(const void *memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    count_payload(count, type, to, tag);
    return PMPI_Isend(memory, count, type, to, tag, comm, request);
}

int MPI_Issend(const void *memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    count_payload(count, type, to, tag);
    return PMPI_Issend(memory, count, type, to, tag, comm, request);
}

int MPI_Send(const void *memory, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    count_payload(count, type, to, tag);
    return PMPI_Send(memory, count, type, to, tag, comm);
}

/* ---- The program's own (src/core/ranks_mpi.c) ---- */

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                 void *in, int in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status *status)
{
    count_direct(bytes_of(out_count, out_type));
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag,
                         comm, status);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    count_direct(bytes_of(count, type));
    return PMPI_Allreduce(in, out, count, type, op, comm);
}

int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request)
{
    count_direct(bytes_of(count, type));
    return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

int MPI_Bcast(void *memory, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    count_direct(bytes_of(count, type));
    return PMPI_Bcast(memory, count, type, root, comm);
}

int MPI_Allgather(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm)
{
    count_direct(bytes_of(in_count, in_type));
    return PMPI_Allgather(in, in_count, in_type, out, out_count, out_type, comm);
}

int MPI_Alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
{
    int ranks;
    PMPI_Comm_size(comm, &ranks);
    count_direct(ranks * bytes_of(out_count, out_type));
    return PMPI_Alltoall(in, in_count, in_type, out, out_count, out_type, comm);
}

/* ---- Threads ---- */

static atomic_llong threads;

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*start)(void *), void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    atomic_fetch_add(&threads, 1);
    return create(thread, attributes, start, argument);
}

/* ---- What comes out ---- */

int MPI_Finalize(void)
{
    const char *name = getenv("SL_COUNTS");
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s.%d", name ? name : "counts", rank);
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    for (int to = 0; to < MOST_RANKS; to++)
        if (sent[to].messages)
            fprintf(file, "payload %d %d %lld %lld\n", rank, to, (long long)sent[to].messages,
                    (long long)sent[to].bytes);
    fprintf(file, "direct %d %lld %lld\n", rank, (long long)direct.messages,
            (long long)direct.bytes);
    fprintf(file, "threads %d %lld\n", rank, (long long)atomic_load(&threads));
    if (fclose(file))
        abort();
    return PMPI_Finalize();
}
