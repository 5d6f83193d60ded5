/* The names of the driver's interface in StarPU's headers. */
#ifndef SL_SOFTWARE_GPU_CUDA_H
#define SL_SOFTWARE_GPU_CUDA_H

typedef enum cudaError_enum {
    CUDA_SUCCESS = 0,
} CUresult;
typedef int CUdevice;

#endif
