"""Test the messages for optional packages that are missing, too old, or broken."""

import sys
from types import ModuleType

import pytest

from limpet._optional import optional_import, require_installed
from limpet.exceptions import MissingExtraError


def test_error_has_the_name_of_the_distribution(monkeypatch):
    monkeypatch.setitem(sys.modules, "paho", None)
    with pytest.raises(MissingExtraError) as raised, optional_import("MQTT", "mqtt"):
        import paho.mqtt.client  # noqa: F401
    message = "MQTT needs paho-mqtt, which is not installed: pip install 'limpet[mqtt]'"
    assert (str(raised.value), raised.value.__suppress_context__) == (message, True)


def test_outdated_package_is_reported(monkeypatch):
    """The original message is included, because a second installation would not help."""
    monkeypatch.setitem(sys.modules, "nats", ModuleType("nats"))
    message = r"cannot be used \(cannot import name 'connect'.*--upgrade.*\[nats\]"
    with pytest.raises(MissingExtraError, match=message), optional_import("NATS", "nats"):
        from nats import connect  # noqa: F401


def test_missing_dependency_of_a_package_is_named():
    """The missing package is named, not the requested one."""
    with (
        pytest.raises(MissingExtraError, match=r"^drawing needs contourpy, which"),
        optional_import("drawing", "plots"),
    ):
        raise ModuleNotFoundError("No module named 'contourpy'", name="contourpy")


def test_missing_module_of_limpet_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError, match=r"limpet\.nowhere") as raised, optional_import("drawing", "plots"):
        import limpet.nowhere  # noqa: F401
    assert not isinstance(raised.value, MissingExtraError)


def test_other_errors_are_raised_unchanged():
    with pytest.raises(ZeroDivisionError), optional_import("drawing", "plots"):
        raise ZeroDivisionError


def test_all_missing_packages_are_named():
    with pytest.raises(
        MissingExtraError, match=r"^x needs none_a, none_b and none_c, which are not installed: .*\[y\]'$"
    ):
        require_installed("x", "y", "none_a", "json", "none_b", "none_c")
    require_installed("x", "y", "json", "numpy")


def test_missing_extra_error_is_an_import_error():
    """Callers can catch it as ImportError."""
    with pytest.raises(ImportError):
        require_installed("x", "y", "none_a")
