"""Hand-made answers for the view's tests: a few real cards, a simple formula, no I/O."""

from __future__ import annotations

from dataclasses import replace

from tfdyno.core.base.interval import Interval, Scaled
from tfdyno.core.choose.advice import Advice, Candidate, Change, Pick, Run, Verdict
from tfdyno.core.choose.estimate import Estimate, LayerTime, RooflinePoint
from tfdyno.core.choose.hardware import Gpu, Market, Offer, SmRates
from tfdyno.core.choose.program import BufferPlan, Kernel, Program
from tfdyno.core.choose.workload import TensorSpec, Trace, Workload

GIB = 2.0**30

# slug: name, market, capability, SMs, boost GHz, float16 tensor FLOP per clock, memory GiB, GB/s
_CARDS: dict[str, tuple[str, Market, str, int, float, int, int, int]] = {
    "h200-sxm": ("H200 SXM", "datacenter", "9.0", 132, 1.83, 4096, 141, 4800),
    "h100-sxm5-80gb": ("H100 SXM", "datacenter", "9.0", 132, 1.83, 4096, 80, 3352),
    "a100-sxm4-80gb": ("A100 SXM4 80 GB", "datacenter", "8.0", 108, 1.41, 2048, 80, 2039),
    "rtx-5090": ("RTX 5090", "consumer", "12.0", 170, 2.41, 1024, 32, 1792),
    "rtx-4090": ("RTX 4090", "consumer", "8.9", 128, 2.52, 512, 24, 1008),
    "l40s": ("L40S", "datacenter", "8.9", 142, 2.52, 1024, 48, 864),
    "a10g": ("A10G", "datacenter", "8.6", 80, 1.71, 512, 24, 600),
    "v100-sxm2-16gb": ("V100 SXM2 16 GB", "datacenter", "7.0", 80, 1.53, 1024, 16, 900),
    "t4": ("T4", "datacenter", "7.5", 40, 1.59, 1024, 16, 320),
    "rtx-3060-12gb": ("RTX 3060 12 GB", "consumer", "8.6", 28, 1.78, 512, 12, 360),
    "gtx-1050-2gb": ("GTX 1050", "consumer", "6.1", 5, 1.46, 0, 2, 112),
}
# gpu, count, provider, instance, US$ per hour, spot, date of the price
_OFFERS = (
    ("h100-sxm5-80gb", 1, "verda", "1H100.80S.32V", 0.80, True, "2026-05-02"),
    ("h100-sxm5-80gb", 1, "verda", "1H100.80S.32V", 2.29, False, "2026-05-02"),
    ("h100-sxm5-80gb", 8, "nebius", "8xH100", 23.60, False, "2025-09"),
    ("a100-sxm4-80gb", 1, "verda", "1A100.22V", 0.45, True, "2026-05-02"),
    ("a100-sxm4-80gb", 1, "verda", "1A100.22V", 1.29, False, "2026-05-02"),
    ("h200-sxm", 1, "verda", "1H200.141S.44V", 3.39, False, "2026-05-02"),
    ("rtx-5090", 1, "vast", "1xRTX 5090", 0.48, False, "2025-09"),
    ("rtx-4090", 1, "vast", "1xRTX 4090", 0.40, False, "2025-09"),
    ("l40s", 1, "nebius", "1xL40S", 1.55, False, "2025-09"),
    ("a10g", 1, "aws", "g5.xlarge", 1.01, False, "2024-09"),
    ("v100-sxm2-16gb", 1, "aws", "p3.2xlarge", 3.06, False, "2022-03"),
    ("t4", 1, "azure", "NC4as T4 v3", 0.06, True, "2023-11"),
)
_SHARES = {"compute": 0.20, "memory": 0.68, "launch": 0.12}


def interval(best: float, *, reach: float = 0.22) -> Interval:
    return Interval(low=best / (1 + reach), best=best, high=best * (1 + reach))


def gpu(slug: str) -> Gpu:
    name, market, capability, sms, ghz, tensor, memory_gib, bandwidth = _CARDS[slug]
    rates = SmRates(
        compute_capability=capability,
        variant="",
        fp32_per_clock=256,
        fp16_vector_per_clock=512,
        tf32_tensor_per_clock=tensor / 2,
        fp16_tensor_per_clock=tensor,
        bf16_tensor_per_clock=tensor,
        fp8_tensor_per_clock=0,
        int8_tensor_per_clock=0,
        fp64_per_clock=4,
        cuda_cores=128,
        tensor_cores=4,
        max_threads=2048,
        max_blocks=32,
        shared_memory_bytes=1 << 17,
        shared_memory_per_block_bytes=1 << 16,
        registers=65536,
        source="hand-made",
    )
    return Gpu(
        slug=slug,
        name=name,
        vendor="NVIDIA",
        market=market,
        architecture="",
        compute_capability=capability,
        rates=rates,
        sm_count=sms,
        boost_hz=ghz * 1e9,
        tensor_clock_hz=ghz * 1e9,
        memory_bytes=round(memory_gib * GIB),
        usable_memory_bytes=round(memory_gib * 0.98 * GIB),
        usable_memory_source="rule",
        memory_type="HBM",
        memory_bytes_per_s=bandwidth * 1e9,
        l2_bytes=5e7,
        ecc=True,
        tdp_w=400,
        pcie_generation="5",
        nvlink_bytes_per_s=0,
        mig_max_instances=0,
        first_cuda="11.0",
        release_year=2022,
        launch_price_usd=0,
        form_factor="",
        cooling="",
        power_connector="",
        recommended_power_supply_w=0,
        continuous_duty="yes",
        source=f"data sheet of {name}",
    )


def gpus() -> dict[str, Gpu]:
    return {slug: gpu(slug) for slug in _CARDS}


def estimate(slug: str, *, replicas: int = 1) -> Estimate:
    card = gpu(slug)
    traffic = 24e9 / card.memory_bytes_per_s
    step = traffic / _SHARES["memory"] * (1.25 if replicas > 1 else 1.0)
    parts = {
        "weights": 0.10 * GIB,
        "gradients": 0.10 * GIB,
        "optimizer": 0.10 * GIB,
        "activations": 4.40 * GIB,
        "inputs": 0.04 * GIB,
        "workspace": 0.35 * GIB,
        "context": 0.45 * GIB,
        "allocator": 0.10 * GIB,
    }
    needed = sum(parts.values())
    usable = float(card.usable_memory_bytes)
    terms = {name: share * step for name, share in _SHARES.items()}
    if replicas > 1:
        terms["communication"] = 0.25 * step
    return Estimate(
        gpu=slug,
        replicas=replicas,
        link="nvswitch-h100" if replicas > 1 else "",
        batch_size=64,
        global_batch_size=64 * replicas,
        mode="train",
        precision="mixed_float16",
        execution="xla",
        step_s=interval(step),
        samples_per_s=interval(64 * replicas / step),
        peak_memory_bytes=interval(needed - 0.55 * GIB, reach=0.03),
        memory_parts_bytes=parts,
        context_bytes=0.45 * GIB,
        device_memory_bytes=interval(needed, reach=0.05),
        usable_memory_bytes=usable,
        fits="no" if needed > usable else "yes",
        max_batch_size=max(0, int(64 * (usable - 1.1 * GIB) / (needed - 1.1 * GIB))),
        max_batch_verified=False,
        bound_by="memory",
        terms_s=terms,
        flops_per_step=1.466e12,
        mfu_ratio=0.12,
        energy_j_per_step=interval(step * 300),
        compile_s=interval(40.0),
        made_by={"time": "quick", "memory": "exact"},
        compiled_for="8.x",
        sources=("time model of 2026-11-20",),
        layers=layers(step),
        roofline=roofline(step, card),
        class_s={"convolution": 0.31 * step, "loop": 0.45 * step, "reduce": 0.24 * step},
    )


def layers(step_s: float) -> tuple[LayerTime, ...]:
    """Layers named as those of Keras' ResNet-50: five stages, blocks in them."""
    blocks = {2: 3, 3: 4, 4: 6, 5: 3}
    names = ["conv1_conv", "conv1_bn", "pool1_pool", "avg_pool", "predictions"]
    names += [
        f"conv{stage}_block{block}_{part}_{kind}"
        for stage, count in blocks.items()
        for block in range(1, count + 1)
        for part in (1, 2, 3)
        for kind in ("conv", "bn", "relu")
    ]
    weights = {name: 4.0 if name.startswith("conv2") else 1.0 for name in names}
    total = sum(weights.values())
    return tuple(
        LayerTime(
            layer=name,
            step_s=step_s * weight / total,
            by_phase_s={
                "forward": 0.35 * step_s * weight / total,
                "backward": 0.62 * step_s * weight / total,
                "update": 0.03 * step_s * weight / total,
            },
            by_class_s={"loop": step_s * weight / total},
            flops=1e10,
            traffic_bytes=1e8 * weight,
        )
        for name, weight in weights.items()
    )


def roofline(step_s: float, card: Gpu) -> tuple[RooflinePoint, ...]:
    bandwidth = card.memory_bytes_per_s
    groups = (
        ("element-wise", "loop", 0.4, 0.8, 0.45, 160),
        ("batch-norm statistics", "reduce", 0.9, 0.75, 0.24, 106),
        ("convolution 1×1", "convolution", 90.0, 0.4, 0.14, 36),
        ("convolution 3×3", "convolution", 300.0, 0.3, 0.12, 17),
        ("convolution 7×7", "convolution", 60.0, 0.2, 0.02, 1),
        ("pooling", "window", 0.3, 0.6, 0.02, 2),
        ("dense", "gemm", 40.0, 0.1, 0.01, 3),
    )
    peak = card.rates.fp16_tensor_per_clock * card.sm_count * card.tensor_clock_hz
    return tuple(
        RooflinePoint(
            label=label,
            kind=kind,
            intensity_flops_per_byte=intensity,
            rate_flops_per_s=share * min(intensity * bandwidth, max(peak, 1e12)),
            time_s=time * step_s,
            launches=launches,
        )
        for label, kind, intensity, share, time, launches in groups
    )


def candidate(
    slug: str,
    *,
    count: int = 1,
    offer: Offer | None = None,
    run: Run,
    pareto: bool = False,
) -> Candidate:
    needs = estimate(slug, replicas=count)
    spot_factor = 1.08 if offer and offer.spot else 1.0
    hours = needs.step_s.times(run.samples / needs.global_batch_size / 3600 * spot_factor)
    cost = hours.times(offer.usd_per_h) if offer else None
    verdict: Verdict = "feasible" if offer else "no offer"
    if needs.fits == "no":
        verdict = "does not fit"
    elif run.deadline_h and hours.best > run.deadline_h:
        verdict = "too late"
    return Candidate(
        gpu=slug,
        gpu_name=gpu(slug).name,
        count=count,
        offer=offer,
        estimate=needs,
        steps=run.samples // needs.global_batch_size,
        hours=hours,
        cost_usd=cost,
        usd_per_epoch=cost.times(1 / run.epochs) if cost else None,
        energy_kwh=hours.times(0.4),
        verdict=verdict,
        tensorflow="native",
        reason="held back by memory traffic",
        pareto=pareto,
    )


def offer(
    slug: str, count: int, provider: str, name: str, usd: float, spot: bool, day: str
) -> Offer:
    return Offer(
        slug=f"{provider}/{name}/{'spot' if spot else 'on_demand'}",
        provider=provider,
        instance=name,
        region="",
        gpu_slug=slug,
        gpu_count=count,
        gpu_fraction=1.0,
        vcpus=22,
        ram_bytes=1e11,
        usd_per_h=usd,
        spot=spot,
        priced_on=day,
        date_precision="day",
        source=f"price list of {provider}",
    )


def run(*, deadline_h: float = 24.0) -> Run:
    return Run(
        steps=1_801_641,
        samples=115_305_030,
        samples_per_epoch=1_281_167,
        epochs=90,
        deadline_h=deadline_h,
        budget_usd=0.0,
        scenario="research",
        holds="batch per replica",
    )


def advice(*, deadline_h: float = 24.0) -> Advice:
    amount = run(deadline_h=deadline_h)
    found = [candidate(o[0], count=o[1], offer=offer(*o), run=amount) for o in _OFFERS]
    offered = {o[0] for o in _OFFERS}
    found += [candidate(slug, run=amount) for slug in _CARDS if slug not in offered]
    order = ("feasible", "too late", "too dear", "does not fit", "cannot run", "no offer")
    found.sort(key=lambda c: (order.index(c.verdict), c.cost_usd.best if c.cost_usd else 0))
    front = {id(c) for c in _frontier(found)}
    found = [replace(c, pareto=id(c) in front) for c in found]
    fine = [c for c in found if c.verdict == "feasible"]
    cheapest, fastest = fine[0], min(fine, key=lambda c: c.hours.best)
    balanced = next(c for c in fine if c.pareto and c is not cheapest and c is not fastest)
    return Advice(
        title="resnet50 (keras:ResNet50)",
        headline="Rent one H100 on spot: about 6.2 hours and $4.90 for all 90 epochs.",
        run=amount,
        ranking=tuple(found),
        picks=(
            Pick(title="cheapest", candidate=cheapest, reason="The lowest price in time."),
            Pick(title="balanced", candidate=balanced, reason="3% dearer for 42% less time."),
            Pick(title="fastest", candidate=fastest, reason="5.0 times one H100, not 8 times."),
        ),
        changes=(
            Change(condition="No spot instances", consequence="RTX 5090, $6.30 in 13.0 h."),
            Change(condition="Batch above 352", consequence="The T4 drops out."),
        ),
        buy_or_rent=(
            Change(condition="Buying a card", consequence="RTX 5090 pays after 5,100 h."),
        ),
        assumptions={"spot": "8% more hours for interruptions", "input": "200 images/s per vCPU"},
        sources=("catalogue of 2026-11-21",),
        catalogue_date="2026-11-21",
        made_on="2026-11-21",
        exact=True,
    )


def _frontier(found: list[Candidate]) -> list[Candidate]:
    fine = [c for c in found if c.verdict == "feasible" and c.cost_usd]
    return [
        c
        for c in fine
        if not any(o.hours.best < c.hours.best and _usd(o) < _usd(c) for o in fine if o is not c)
    ]


def _usd(candidate_: Candidate) -> float:
    return candidate_.cost_usd.best if candidate_.cost_usd else 0.0


def trace() -> Trace:
    return Trace(
        workload=Workload(
            reference="keras:ResNet50", kind="application", precision="mixed_float16"
        ),
        title="resnet50",
        batch_size=296,
        marker=37,
        script_batch_size=0,
        policy="mixed_float16",
        path="jax",
        path_reason="no tf.* operation in the model",
        loss="sparse_categorical_crossentropy",
        optimizer="SGD",
        execution="xla",
        parameter_count=25_636_712,
        trainable_parameter_count=25_583_592,
        tensors=(
            TensorSpec(
                name="x", role="input", shape=(296, 224, 224, 3), dtype="float32", bytes=178200576
            ),
        ),
        stablehlo_sha256="0" * 64,
        seconds_s=2.4,
        script_seconds_s=0.0,
        versions={"keras": "3.15.1", "jax": "0.10.2"},
    )


def program() -> Program:
    size = Scaled(fixed=1e8, per_sample=7e7)
    plan = BufferPlan(
        argument_bytes=size,
        output_bytes=size,
        aliased_bytes=size,
        temporary_bytes=size,
        peak_bytes=size,
        parts_bytes={"activations": size},
        largest=(),
        live_curve=(),
    )
    return Program(
        trace_sha256="0" * 64,
        route="exact",
        family="8.x",
        batch_size=296,
        marker=37,
        kernels=(Kernel(kind="convolution", dtype="f16", count=53),),
        buffers=plan,
        seconds_s=12.3,
        versions={"jax": "0.10.2"},
    )


def with_best(advice: Advice, **changes: object) -> Advice:
    """The answer with another estimate of the balanced pick."""
    picks = tuple(
        replace(p, candidate=altered(p.candidate, **changes)) if p.title == "balanced" else p
        for p in advice.picks
    )
    return replace(advice, picks=picks)


def altered(candidate: Candidate, **changes: object) -> Candidate:
    return replace(candidate, estimate=replace(candidate.estimate, **changes))  # type: ignore[arg-type]


def balanced(advice: Advice) -> Candidate:
    return next(pick.candidate for pick in advice.picks if pick.title == "balanced")


def judged(advice: Advice, verdict: Verdict) -> Advice:
    ranking = tuple(replace(one, verdict=verdict, pareto=False) for one in advice.ranking)
    return replace(advice, ranking=ranking, picks=())
