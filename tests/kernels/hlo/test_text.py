import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.hlo.text import Shape, leaves, parse, parse_type, split

MODULE = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias), \
{2}: (0, {}, must-alias) }, entry_computation_layout={(f32[2]{0})->f32[2]{0}}

%body (a.1: f32[2]) -> f32[2] {
  ROOT %a.1 = f32[2]{0} parameter(0)
}

ENTRY %main.4 (x.1: f32[2], y.1: f32[2]) -> (f32[2], f16[], f32[2]) {
  %y.1 = f32[2]{0} parameter(1), metadata={op_name="state (second), \\"quoted\\""}
  %x.1 = f32[2]{0} parameter(0)
  %wide = (f32[2]{0}, /*index=1*/f16[]) custom-call(%x.1, /*index=1*/%y.1), \
custom_call_target="some$thing", window={size=3x3 stride=2x2 pad=1_1x0_1}, \
metadata={op_name="jit(step)/jvp(layer)/add" stack_frame_id=3}
  %first = f32[2]{0} get-tuple-element(%wide), index=0
  %half = f16[] get-tuple-element(%wide), index=1
  ROOT %tuple.1 = (f32[2]{0}, f16[], f32[2]{0}) tuple(%first, %half, %y.1)
}
"""


def test_a_module_is_read_into_computations_instructions_and_aliases() -> None:
    module = parse(MODULE)
    assert module.entry.name == "main.4"
    assert set(module.computations) == {"body", "main.4"}
    assert module.aliases == {0: 1, 2: 0}
    assert module.entry.root.operands == ("first", "half", "y.1")
    assert [each.name for each in module.entry.parameters()] == ["x.1", "y.1"]


def test_an_instruction_knows_its_operands_attributes_and_location() -> None:
    wide = parse(MODULE).entry.instructions["wide"]
    assert wide.opcode == "custom-call"
    assert wide.operands == ("x.1", "y.1")
    assert wide.type == (Shape("f32", (2,)), Shape("f16", ()))
    assert wide.group("window") == "size=3x3 stride=2x2 pad=1_1x0_1"
    assert wide.attribute("custom_call_target") == '"some$thing"'
    assert wide.location == "jit(step)/jvp(layer)/add"
    assert wide.attribute("absent") == wide.group("absent") == ""


def test_quotes_in_metadata_end_no_bracket() -> None:
    assert parse(MODULE).entry.instructions["y.1"].location == 'state (second), \\"quoted\\"'


@pytest.mark.parametrize(
    ("text", "elements", "size"),
    [
        ("f32[2,3]{1,0}", 6, 24),
        ("bf16[7]{0:T(8)}", 7, 14),
        ("pred[]", 1, 1),
        ("s4[3]{0}", 3, 2),  # 12 bits
        ("f32[<=5,2]{1,0}", 10, 40),
        ("u8[0]{0}", 0, 0),
    ],
)
def test_a_shape_has_elements_and_bytes(text: str, elements: int, size: int) -> None:
    shape = parse_type(text)
    assert isinstance(shape, Shape)
    assert (shape.elements, shape.bytes) == (elements, size)


def test_a_nested_tuple_has_its_arrays_as_leaves() -> None:
    kind = parse_type("((f32[1]{0}, token[]), /*index=1*/s8[4]{0})")
    assert [shape.dtype for shape in leaves(kind)] == ["f32", "token", "s8"]
    assert leaves(kind)[1].bytes == 0


def test_commas_inside_brackets_do_not_split() -> None:
    assert split("f32[2,3]{1,0}, (a, b), /*index=2*/c") == ["f32[2,3]{1,0}", "(a, b)", "c"]


def test_text_without_an_entry_is_refused_in_a_sentence() -> None:
    with pytest.raises(ToolError, match="no ENTRY"):
        parse("HloModule nothing\n")
