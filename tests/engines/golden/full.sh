#!/bin/sh
# small: 2 processes that train together
set -u
cd '/work/my project' || exit 2
GREETING='it'"'"'s "me" & $HOME; #1' YES=no LINES='a
b' CUDA_VISIBLE_DEVICES=0,1 TFDYNO_WORKERS=127.0.0.1:23456,127.0.0.1:23457 TFDYNO_RANK=0 /opt/env/bin/python -m tfdyno node train.py --nodes 2 --gpus-per-node 2 --port 23456 --output tfdyno-runs/small --set precision=mixed_bfloat16 --epochs 90 -- --data '/mnt/a b' --note 'it'"'"'s; rm -rf $HOME' &
GREETING='it'"'"'s "me" & $HOME; #1' YES=no LINES='a
b' CUDA_VISIBLE_DEVICES=2,3 TFDYNO_WORKERS=127.0.0.1:23456,127.0.0.1:23457 TFDYNO_RANK=1 /opt/env/bin/python -m tfdyno node train.py --nodes 2 --gpus-per-node 2 --port 23456 --output tfdyno-runs/small --set precision=mixed_bfloat16 --epochs 90 -- --data '/mnt/a b' --note 'it'"'"'s; rm -rf $HOME' &
wait
