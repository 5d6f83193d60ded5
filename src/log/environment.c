#include "log/environment.h"

#include "core/machine.h"
#include <config.h> /* config.h of the build, not recipe/config.h */

json_t *sl_environment_versions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "starling", PACKAGE_VERSION,
                     "starpu", sl_runtime_starpu_version(), "mpi", SL_BUILT_WITH_MPI, "cblas",
                     SL_BUILT_WITH_CBLAS, "onednn", SL_BUILT_WITH_ONEDNN, "hwloc",
                     SL_BUILT_WITH_HWLOC, "cuda", SL_BUILT_WITH_CUDA, "compiler", __VERSION__,
                     "flags", SL_BUILT_WITH_FLAGS);
}

json_t *sl_environment_hardware(void)
{
    struct sl_machine machine;
    if (sl_machine_probe(&machine))
        return json_object(); /* a log without the hardware is better than no run */
    json_t *gpus = json_array();
    for (int g = 0; g < machine.gpu_count; g++)
        json_array_append_new(gpus,
                              json_sprintf("%s %s", machine.gpus[g].name, machine.gpus[g].detail));
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:o}", "host", machine.host, "processor",
                     machine.processor, "packages", machine.packages, "cores", machine.cores,
                     "threads", machine.threads, "numa_nodes", machine.numa_nodes, "memory_bytes",
                     (json_int_t)machine.memory_bytes, "gpus", gpus);
}

json_t *sl_environment_machine(const struct sl_runtime *rt)
{
    json_t *object =
        json_pack("{s:i, s:i, s:i, s:b, s:i, s:s}", "ranks", rt->ranks, "workers_per_rank",
                  rt->process->workers, "gpus_per_rank", rt->process->gpus, "gpus_send",
                  rt->process->gpus_send, "cores_per_rank", rt->process->cores, "scheduler",
                  rt->process->scheduler);
    json_t *hardware = sl_environment_hardware();
    json_object_update(object, hardware);
    json_decref(hardware);
    return object;
}
