#!/bin/bash
# Several nodes, a rank on each; Starling shares the cores of a node among its ranks:
#
#     sbatch --nodes=8 many-nodes.sh DATASET [OPTION of starling train ...]
#     sbatch --nodes=8 --ntasks-per-node=2 many-nodes.sh DATASET ...       # a rank for each of two NUMA nodes
#
# Two minutes before its time is over, the run writes its checkpoint and ends. The same command goes on from there.
# DATASET is on a file system that all nodes see; each rank reads its own rows.
#SBATCH --job-name=starling
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --signal=TERM@120
#SBATCH --output=%x-%j.out
set -eu
dataset=${1:?usage: sbatch many-nodes.sh DATASET [OPTION ...]}
shift
checkpoint=${STARLING_CHECKPOINT:-$SLURM_JOB_NAME.ckpt}
[ ! -e "$checkpoint" ] || set -- --resume "$checkpoint" "$@"

export STARPU_HOME=${STARPU_HOME:-${TMPDIR:-/tmp}}

# How Slurm and MPI find each other: `srun --mpi=list` has the names that this cluster knows. With a wrong name every rank
# says that it is the only one.
mpi=${STARLING_SLURM_MPI:-pmix}

# Two ranks on two of the nodes measure the network, once for a cluster; `auto` chooses the distribution by it.
if [ "${STARLING_MEASURE:-no}" = yes ]; then
    srun --mpi="$mpi" --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none starling bench machine --remember
fi

# Slurm binds no rank to single cores; Starling binds its workers.
srun --mpi="$mpi" --cpu-bind=none \
    starling train "$dataset" --checkpoint "$checkpoint" --log "$SLURM_JOB_NAME-$SLURM_JOB_ID.jsonl" "$@"
