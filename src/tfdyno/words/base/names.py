"""Names that nouns carry as data, and sentences show: the same in JSON in every language."""

from __future__ import annotations

from tfdyno.words.base.language import say, say_later

NAMES = frozenset((
    # how a machine is had
    say_later("spot"), say_later("on demand"), say_later("owned"), say_later("contract"),
    say_later("reserved"), say_later("no offer"),
    # picks
    say_later("cheapest"), say_later("balanced"), say_later("fastest"),
    # verdicts, and whether a step fits
    say_later("feasible"), say_later("too late"), say_later("too dear"), say_later("does not fit"),
    say_later("cannot run"), say_later("yes"), say_later("no"), say_later("may not"),
    say_later("unverified"), say_later("probably not"),
    # who named a batch or a length
    say_later("as asked"), say_later("from the script"), say_later("assumed"),
    say_later("the script's own"), say_later("the task's own"), say_later("the model's own"),
    say_later("assumed: Keras' default"), say_later("Keras' default"),
    # what would change an answer
    say_later("no spot instances"), say_later("input that keeps up"), say_later("no deadline"),
    say_later("no budget"),
    # phases of a step, and directions of a convolution
    say_later("forward"), say_later("backward"), say_later("recompute"), say_later("update"),
    say_later("input gradient"), say_later("weight gradient"),
    # parts of the memory
    say_later("weights"), say_later("gradients"), say_later("optimizer"),
    say_later("activations"), say_later("inputs"), say_later("workspace"), say_later("context"),
    say_later("allocator"),
    # what is assumed
    say_later("precision"), say_later("execution"), say_later("software"), say_later("batch"),
    say_later("memory"), say_later("length"), say_later("validation"), say_later("start-up"),
    say_later("electricity"), say_later("scaling"), say_later("scenario"), say_later("input"),
    say_later("graph building"), say_later("virtual GPUs"),
    # what is assumed of a service
    say_later("rate"), say_later("promise"), say_later("replicas"), say_later("host"),
    say_later("latency"), say_later("month"), say_later("measured"), say_later("too slow"),
    # where cards are sold, how figures are made
    say_later("datacenter"), say_later("workstation"), say_later("consumer"), say_later("edge"),
    say_later("laptop"),
    say_later("exact"), say_later("quick"),
    # ways to share a step among cards
    say_later("all states"), say_later("data parallel"), say_later("optimizer state"),
    say_later("tensor parallel"),
    say_later("pipeline"), say_later("formula"), say_later("compiler"),
    # factors of a kernel's time
    say_later("reached at these sizes"), say_later("beside the traffic"),
    say_later("beside the arithmetic"), say_later("bandwidth share, TensorFlow's kernels"),
    say_later("bytes read again by windows"), say_later("copied into another order"),
    say_later("loads that wait for each other"), say_later("part-filled tiles"),
    # what an option of a plan changes of the learning
    say_later("batch statistics"),
    say_later("adapters alone"),
    say_later("rounded weights"),
    say_later("shorter samples"),
    # callbacks that have no name of their own
    say_later("callbacks"), say_later("other callbacks"),
    say_later("callbacks at the end of an epoch"),
    # why a card lowers its clock, as NVML has it
    say_later("software power cap"), say_later("hardware slowdown"),
    say_later("software thermal slowdown"), say_later("hardware thermal slowdown"),
    say_later("power brake"),
    # why a wheel does not run
    say_later("PyPI has no CUDA wheel for this host's aarch64 processor; use NVIDIA's TensorFlow "
              "container or a source build"),
    say_later("PyPI has no CUDA wheel for this board (aarch64); use the TensorFlow wheel that "
              "NVIDIA builds for the JetPack of the board"),
    # generations of software
    say_later("no CUDA graphs; constants of time_model.toml"),
    say_later("Keras 2, XLA without CUDA graphs"), say_later("Keras 3, XLA with CUDA graphs"),
))  # fmt: skip


def named(name: str) -> str:
    """Return a name in the language of the answer; what is not known stays as it is."""
    return say(name) if name in NAMES else name
