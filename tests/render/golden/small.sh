#!/bin/bash
# small: 2 processes that train together. The first that fails ends
# all and gives the exit code; Ctrl-C and TERM end them with a checkpoint. It does not
# start them again (--restarts) or end them after a time (--time-limit): tfdyno launch
# does.
set -u
unset TFDYNO_WORKERS TFDYNO_ADDRESS TFDYNO_RANK TF_CONFIG SKYPILOT_NODE_RANK SM_HOSTS JOB_COMPLETION_INDEX SLURM_PROCID
cd /srv/project || exit 2
told= code=0
end() { kill -TERM $(jobs -pr) 2>/dev/null; }
trap 'told=yes; end' INT TERM
CUDA_VISIBLE_DEVICES=-1 TFDYNO_WORKERS=127.0.0.1:12355,127.0.0.1:12356 TFDYNO_RANK=0 python3 -m tfdyno node train.py --nodes 2 --gpus-per-node 0 --output tfdyno-runs/small &
CUDA_VISIBLE_DEVICES=-1 TFDYNO_WORKERS=127.0.0.1:12355,127.0.0.1:12356 TFDYNO_RANK=1 python3 -m tfdyno node train.py --nodes 2 --gpus-per-node 0 --output tfdyno-runs/small &
if [ -n "$told" ]; then end; fi  # of those that were started since
while [ -n "$(jobs -p)" ]; do
    wait -n
    one=$?
    if [ -n "$told" ] && [ "$one" -gt 128 ]; then continue; fi  # a trap ends wait early
    if [ "$code" -eq 0 ]; then code=$one; fi
    if [ "$one" -ne 0 ] && [ "$one" -ne 75 ]; then end; fi  # 75: all were ended early
done
if [ -n "$told" ] && [ "$code" -eq 0 ]; then code=143; fi
exit "$code"
