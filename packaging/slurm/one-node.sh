#!/bin/bash
# One node, all of its cores:
#
#     sbatch one-node.sh DATASET [OPTION of starling train ...]
#
# Two minutes before its time is over, the run writes its checkpoint and ends. The same command goes on from there.
#SBATCH --job-name=starling
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --output=%x-%j.out
set -eu
dataset=${1:?usage: sbatch one-node.sh DATASET [OPTION ...]}
shift
checkpoint=${STARLING_CHECKPOINT:-$SLURM_JOB_NAME.ckpt}
[ ! -e "$checkpoint" ] || set -- --resume "$checkpoint" "$@"

# StarPU keeps measurements of tasks under HOME, which may be slow or not writable on nodes.
export STARPU_HOME=${STARPU_HOME:-${TMPDIR:-/tmp}}

# The program takes the place of this shell, so that Slurm's signal reaches it.
exec starling train "$dataset" --checkpoint "$checkpoint" --log "$SLURM_JOB_NAME-$SLURM_JOB_ID.jsonl" "$@"
