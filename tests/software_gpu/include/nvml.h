/* The names of NVIDIA's management library in StarPU's headers. */
#ifndef SL_SOFTWARE_GPU_NVML_H
#define SL_SOFTWARE_GPU_NVML_H

typedef struct nvmlDevice_st *nvmlDevice_t;

#endif
