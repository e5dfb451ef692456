"""Profiles built by the schema of TensorFlow's profiler, as code for a child that has it."""

from __future__ import annotations

SPACE = """
from tfdyno.core.codec import to_builtins
from tfdyno.runtime.profile_events import events_of, space_type

def made(planes):
    space = space_type()()
    for title, lines in planes.items():
        plane = space.planes.add(name=title)
        names, stats = {}, {}
        def number(table, known, name):
            if name not in known:
                known[name] = len(known) + 1
                table[known[name]].name = name
            return known[name]
        for line_title, events in lines.items():
            line = plane.lines.add(name=line_title, timestamp_ns=1_000_000_000)
            for name, begin_us, duration_us, told in events:
                key = number(plane.event_metadata, names, name)
                if "shown" in told:
                    plane.event_metadata[key].display_name = told.pop("shown")
                event = line.events.add(metadata_id=key, offset_ps=int(begin_us * 1e6),
                                        duration_ps=int(duration_us * 1e6))
                for stat, value in told.items():
                    one = event.stats.add(metadata_id=number(plane.stat_metadata, stats, stat))
                    if isinstance(value, str):
                        one.ref_value = number(plane.stat_metadata, stats, value)
                    else:
                        one.int64_value = value
    return space
"""
GPU = (
    SPACE
    + """
gpu = {
    "/host:CPU": {"python": [
        ("train", 0, 100, {"step_num": 0}),
        ("m/dense/MatMul:MatMul", 1, 2, {"shown": "MatMul"}),
        ("m/look/Unique:Unique", 10, 20, {"shown": "Unique"}),
        ("IteratorGetNext:IteratorGetNext", 5, 90, {"shown": "IteratorGetNext"}),
        ("__inference_f_3:__inference_f_3", 0, 99, {"shown": "__inference_f_3"}),
        ("train", 100, 100, {"step_num": 1}),
    ]},
    "/device:GPU:0": {
        "Stream #16(Compute)": [
            ("ampere_sgemm_128x64_nn", 20, 40, {"tf_op": "m/dense/MatMul:MatMul"}),
            ("void EigenMetaKernel<double>", 60, 10, {"tf_op": "m/Mul:Mul"}),
            ("ampere_sgemm_128x64_nn", 120, 40, {"tf_op": "m/dense/MatMul:MatMul"}),
        ],
        "Stream #18(MemcpyH2D)": [
            ("MemcpyH2D", 50, 20, {"memcpy_details": "kind_src:pageable size:4096 dest:0"}),
            ("MemcpyD2D", 80, 10, {"memcpy_details": "kind_src:device size:64 dest:0"}),
        ],
        "XLA Ops": [("the same again", 20, 40, {})],
    },
    "/device:GPU:1": {"Stream #16(Compute)": [("small", 20, 1, {})]},
}
"""
)
