#!/bin/bash
# small: 2 processes that train together. The first that fails ends
# all and gives the exit code; Ctrl-C and TERM end them with a checkpoint. It does not
# start them again (--restarts) or end them after a time (--time-limit): tfdyno launch
# does.
set -u
unset TFDYNO_WORKERS TFDYNO_ADDRESS TFDYNO_RANK TF_CONFIG SKYPILOT_NODE_RANK SM_HOSTS JOB_COMPLETION_INDEX SLURM_PROCID
cd '/srv/my project' || exit 2
told= code=0
end() { kill -TERM $(jobs -pr) 2>/dev/null; }
trap 'told=yes; end' INT TERM
GREETING='it'"'"'s "me" & $HOME; #1' YES=no LINES='a
b' CUDA_VISIBLE_DEVICES=0,1 TFDYNO_WORKERS=127.0.0.1:23456,127.0.0.1:23457 TFDYNO_RANK=0 /opt/env/bin/python -m tfdyno node train.py --nodes 2 --gpus-per-node 2 --port 23456 --output tfdyno-runs/small --set precision=mixed_bfloat16 --epochs 90 -- --data '/mnt/a b' --note 'it'"'"'s; rm -rf $HOME' &
GREETING='it'"'"'s "me" & $HOME; #1' YES=no LINES='a
b' CUDA_VISIBLE_DEVICES=2,3 TFDYNO_WORKERS=127.0.0.1:23456,127.0.0.1:23457 TFDYNO_RANK=1 /opt/env/bin/python -m tfdyno node train.py --nodes 2 --gpus-per-node 2 --port 23456 --output tfdyno-runs/small --set precision=mixed_bfloat16 --epochs 90 -- --data '/mnt/a b' --note 'it'"'"'s; rm -rf $HOME' &
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
