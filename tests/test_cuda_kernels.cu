/* Every sl_cuda_… function of codelets/ against its sl_kernel_… function, over the
 * shapes of tests/kernels.c. The program needs CUDA and cuBLAS, neither the runtime nor MPI.
 * Without a device it is skipped (exit status 77). The same files are also compiled as C++ and run
 * on the software GPU (tests/software_gpu), on any machine, as test_cuda_kernels_software.
 * Arguments are the names of tests to run; --names prints all names. The tests are in cuda_*.cu;
 * cuda_kernels.h says how they judge. */
#include "tests/cuda_kernels.h"

long checks, failures;
struct sl_cuda_queue queue;
uint64_t random_state = 1;

/* Functions that the codelets' halves of the object files refer to: no test calls them. */
extern "C" {
void sl_task_submit(struct sl_runtime *, const struct sl_task *)
{
    abort();
}

uint32_t sl_task_footprint_of(struct starpu_task *)
{
    abort();
}

struct sl_sparse sl_sparse_view(const void *, const struct sl_sparse_shape *)
{
    abort();
}

cudaStream_t starpu_cuda_get_local_stream(void)
{
    abort();
}

cublasHandle_t starpu_cublas_get_local_handle(void)
{
    abort();
}

void *sl_runtime_workspace(void)
{
    abort();
}

void **sl_runtime_kept(void (*)(void *))
{
    abort();
}
}

int main(int count, char **names)
{
    const std::vector<test> *const lists[] = {
        &cusparse_tests, &rows_tests,      &features_tests, &spmm_tests, &max_tests,
        &norm_tests,     &attention_tests, &pair_tests,     &gine_tests, &relations_tests,
        &links_tests,    &gemm_tests,      &training_tests, &units_tests};
    if (count > 1 && !strcmp(names[1], "--names")) {
        for (const auto *list : lists)
            for (const test &each : *list)
                puts(each.name);
        return 0;
    }
    int devices = 0;
    const cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device (%s)\n",
               code == cudaSuccess ? "none found" : cudaGetErrorString(code));
        return 77;
    }
    cuda(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking));
    if (cublasCreate(&queue.blas) != CUBLAS_STATUS_SUCCESS ||
        cublasSetStream(queue.blas, queue.stream) != CUBLAS_STATUS_SUCCESS) {
        printf("cuBLAS does not start\n");
        return 1;
    }
    cuda(cudaMalloc(&queue.workspace, SL_RUNTIME_WORKSPACE));
    cuda(cudaMemset(queue.workspace, 0xFF, SL_RUNTIME_WORKSPACE)); /* NaN, whatever is read of it */

    int failed = 0, all = 0;
    for (const auto *list : lists)
        for (const test &each : *list) {
            if (count > 1 &&
                std::find(names + 1, names + count, std::string(each.name)) == names + count)
                continue;
            const long before = failures;
            random_state = 1;
            each.run();
            cuda(cudaDeviceSynchronize());
            free_spare_memory();
            failed += failures > before;
            all++;
            printf("%s %s\n", failures > before ? "FAIL" : "ok  ", each.name);
            fflush(stdout);
        }
    cudaFree(queue.workspace);
    cublasDestroy(queue.blas);
    cudaStreamDestroy(queue.stream);
    printf("%d of %d tests failed, %ld of %ld checks\n", failed, all, failures, checks);
    return failed != 0;
}
