/* Of NVIDIA's management library, what StarPU's headers name. */
#ifndef SL_SOFTWARE_GPU_NVML_H
#define SL_SOFTWARE_GPU_NVML_H

typedef struct nvmlDevice_st *nvmlDevice_t;

#endif
