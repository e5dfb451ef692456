from tfdyno.kernels.hlo.buffers import BufferReader
from tfdyno.kernels.hlo.text import parse
from tfdyno.kernels.memory.live_bytes import live_bytes
from tfdyno.kernels.records import Sizes


def live(entry: str, *, computations: str = "", aliases: str = "") -> list[float]:
    """Bytes of temporaries during each step."""
    header = f"HloModule m, is_scheduled=true, input_output_alias={{{aliases}}}"
    text = f"{header}\n\n{computations}\nENTRY %main () -> f32[] {{\n{entry}\n}}\n"
    reader = BufferReader(parse(text), Sizes(1, 0))
    return [each.fixed for each in live_bytes(reader.temporaries, reader.steps)]


def test_a_buffer_lives_from_its_first_write_to_its_last_read() -> None:
    assert live("""  %x = f32[10]{0} parameter(0)
  %a = f32[10]{0} copy(%x)
  %b = f32[20]{0} copy(%a)
  %view = f32[5,2]{1,0} bitcast(%a)
  %c = f32[10]{0} copy(%view)
  %d = f32[30]{0} copy(%b)
  ROOT %e = f32[1]{0} copy(%d)""") == [40, 120, 160, 200, 120]


def test_a_result_in_the_place_of_an_argument_is_no_temporary() -> None:
    entry = """  %x = f32[10]{0} parameter(0)
  %a = f32[10]{0} copy(%x)
  ROOT %t = (f32[10]{0}) tuple(%a)"""
    assert live(entry) == [0]
    assert live(entry, aliases=" {0}: (0, {}, may-alias) ") == [0]


FUSED = """%fused (a: f32[10], b: f32[10]) -> f32[10] {
  %a = f32[10]{0} parameter(0)
  %b = f32[10]{0} parameter(1)
  ROOT %s = f32[10]{0} add(%a, %b)
}

%turned (c: f32[10]) -> f32[10] {
  %c = f32[10]{0} parameter(0)
  ROOT %r = f32[10]{0} reverse(%c), dimensions={0}
}
"""


def test_an_elementwise_fusion_writes_over_an_operand_that_dies() -> None:
    entry = """  %x = f32[10]{0} parameter(0)
  %a = f32[10]{0} copy(%x)
  %f = f32[10]{0} fusion(%x, %a), kind=kLoop, calls=%fused
  ROOT %e = f32[1]{0} copy(%f)"""
    assert live(entry, computations=FUSED) == [40, 40, 40]


def test_a_fusion_that_moves_elements_needs_a_buffer_of_its_own() -> None:
    entry = """  %x = f32[10]{0} parameter(0)
  %a = f32[10]{0} copy(%x)
  %f = f32[10]{0} fusion(%a), kind=kLoop, calls=%turned
  ROOT %e = f32[1]{0} copy(%f)"""
    assert live(entry, computations=FUSED) == [40, 80, 40]


def test_a_loop_works_in_its_state_and_adds_only_what_is_inside() -> None:
    body = """%body (s: (f32[10])) -> (f32[10]) {
  %s = (f32[10]{0}) parameter(0)
  %v = f32[10]{0} get-tuple-element(%s), index=0
  %w = f32[100]{0} broadcast-like(%v)
  %c = f32[10]{0} copy(%w)
  ROOT %t = (f32[10]{0}) tuple(%c)
}

%condition (s: (f32[10])) -> pred[] {
  %s = (f32[10]{0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}
"""
    entry = """  %x = f32[10]{0} parameter(0)
  %a = f32[10]{0} copy(%x)
  %t = (f32[10]{0}) tuple(%a)
  %l = (f32[10]{0}) while(%t), condition=%condition, body=%body
  %g = f32[10]{0} get-tuple-element(%l), index=0
  ROOT %e = f32[1]{0} copy(%g)"""
    assert live(entry, computations=body) == [40, 40, 440, 440, 40]


def test_an_update_in_place_needs_no_second_buffer() -> None:
    assert live("""  %x = f32[10]{0} parameter(0)
  %u = f32[1]{0} parameter(1)
  %i = s32[] parameter(2)
  %a = f32[10]{0} copy(%x)
  %d = f32[10]{0} dynamic-update-slice(%a, %u, %i)
  ROOT %e = f32[1]{0} copy(%d)""") == [40, 40, 40]


def test_scratch_of_a_library_call_is_told_apart_from_its_result() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY %main () -> f32[1] {
  %x = f32[10]{0} parameter(0)
  %c = (f32[10]{0}, s8[512]{0}) custom-call(%x), custom_call_target="library"
  %r = f32[10]{0} get-tuple-element(%c), index=0
  ROOT %e = f32[1]{0} copy(%r)
}
"""
    found = BufferReader(parse(text), Sizes(1, 0)).temporaries
    assert [(each.shape.bytes, each.scratch, each.end) for each in found] == [
        (40, False, 1),
        (512, True, 0),
    ]
