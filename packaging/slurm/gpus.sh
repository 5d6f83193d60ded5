#!/bin/bash
# GPUs of one or several nodes, a rank on each node, which takes all GPUs of the node:
#
#     sbatch gpus.sh DATASET [OPTION of starling train ...]
#     sbatch --nodes=4 --gpus-per-node=8 gpus.sh DATASET ...
#
# Starling and StarPU are built with CUDA (docs/GPU.md). Two minutes before its time is over, the run writes its checkpoint
# and ends. The same command goes on from there.
#SBATCH --job-name=starling
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@120
#SBATCH --output=%x-%j.out
set -eu
dataset=${1:?usage: sbatch gpus.sh DATASET [OPTION ...]}
shift
checkpoint=${STARLING_CHECKPOINT:-$SLURM_JOB_NAME.ckpt}
[ ! -e "$checkpoint" ] || set -- --resume "$checkpoint" "$@"

export STARPU_HOME=${STARPU_HOME:-${TMPDIR:-/tmp}}
mpi=${STARLING_SLURM_MPI:-pmix}

# `both` for cores and GPUs together; --device in the command line wins.
srun --mpi="$mpi" --cpu-bind=none --gpus-per-node="${SLURM_GPUS_PER_NODE:-1}" \
    starling train "$dataset" --device cuda --checkpoint "$checkpoint" --log "$SLURM_JOB_NAME-$SLURM_JOB_ID.jsonl" "$@"
