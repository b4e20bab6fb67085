"""What the tests of this package share."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    for marker in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{marker}: used by LangChain's standard suites")
