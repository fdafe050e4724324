"""Both kernel sets offer exactly what the Kernels protocol says, by the same names and signatures."""

import inspect
from types import ModuleType

import pytest

from fastquorum import kernels
from fastquorum.kernels import native, pure

FUNCTIONS = sorted(name for name, member in vars(kernels.Kernels).items() if callable(member) and name[0] != "_")
CLASSES = sorted(set(kernels.Kernels.__annotations__) - {"NAME", "Producers"})
"""Not Producers: pure has an attribute where native has a property."""


def parameters(function: object) -> list[tuple[str, object, object]]:
    assert callable(function)
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found if each.name != "self"]


@pytest.mark.parametrize("module", [native, pure], ids=["native", "pure"])
def test_the_module_is_a_kernel_set(module: ModuleType) -> None:
    assert isinstance(module, kernels.Kernels)
    assert len(FUNCTIONS) == 19
    assert len(CLASSES) == 11


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_same_arguments(name: str) -> None:
    names = [(each, kind) for each, kind, _ in parameters(getattr(kernels.Kernels, name))]
    for module in (native, pure):
        assert [(each, kind) for each, kind, _ in parameters(getattr(module, name))] == names
    assert parameters(getattr(native, name)) == parameters(getattr(pure, name))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_same_members(name: str) -> None:
    wanted = {member for member in vars(getattr(kernels, name)) if not member.startswith("_")}
    for module in (native, pure):
        assert wanted <= set(dir(getattr(module, name)))
    assert {member for member in dir(getattr(native, name)) if not member.startswith("_")} == wanted
