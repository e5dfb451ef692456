#!/bin/sh
# small: 2 processes that train together
set -u
cd /work/project || exit 2
CUDA_VISIBLE_DEVICES=-1 TFDYNO_WORKERS=127.0.0.1:12355,127.0.0.1:12356 TFDYNO_RANK=0 python3 -m tfdyno node train.py --nodes 2 --gpus-per-node 0 --output tfdyno-runs/small &
CUDA_VISIBLE_DEVICES=-1 TFDYNO_WORKERS=127.0.0.1:12355,127.0.0.1:12356 TFDYNO_RANK=1 python3 -m tfdyno node train.py --nodes 2 --gpus-per-node 0 --output tfdyno-runs/small &
wait
