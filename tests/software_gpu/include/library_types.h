/* The types of elements of NVIDIA's libraries. */
#ifndef SL_SOFTWARE_GPU_LIBRARY_TYPES_H
#define SL_SOFTWARE_GPU_LIBRARY_TYPES_H

typedef enum cudaDataType_t {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_32I = 10,
    CUDA_R_16BF = 14,
} cudaDataType;
#ifndef __cplusplus
typedef enum cudaDataType_t cudaDataType_t;
#endif

#endif
