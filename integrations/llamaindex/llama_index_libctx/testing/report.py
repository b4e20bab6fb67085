"""What a suite found: one outcome per check, and the table that prints them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from llama_index.core.vector_stores.types import BasePydanticVectorStore

Outcome = Literal["ok", "wrong", "raised"]

StoreFactory = Callable[[], BasePydanticVectorStore]
"""Returns a new, empty store for vectors of `DIMENSION` numbers each time it is called."""

DIMENSION = 3
"""Length of the vectors the suites store."""


class CheckFailed(Exception):
    """A store answered, and the answer is wrong."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How a store did on one check.

    Attributes:
        name: Stable name of the check.
        outcome: ``ok``, ``wrong`` (it answered wrongly without a sign) or ``raised``.
        detail: What was expected and what came back, empty if all is well.
    """

    name: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """All results of one suite on one store.

    Attributes:
        suite: Name of the suite.
        results: One entry per check, in the suite's order.
    """

    suite: str
    results: tuple[CheckResult, ...]

    def count(self, outcome: Outcome) -> int:
        """Return how many checks had this outcome."""
        return sum(result.outcome == outcome for result in self.results)

    @property
    def passed(self) -> bool:
        """Whether every check is ok."""
        return self.count("ok") == len(self.results)

    def failures(self) -> list[CheckResult]:
        """Return the checks that are not ok."""
        return [result for result in self.results if result.outcome != "ok"]

    def __str__(self) -> str:
        head = f"{self.suite}: {self.count('ok')}/{len(self.results)} ok"
        lines = [f"  {result.outcome:6} {result.name}: {result.detail}" for result in self.failures()]
        return "\n".join([head, *lines])


def run_check(name: str, check: Callable[[], None]) -> CheckResult:
    """Run one check and turn what happens into a result; nothing the store raises escapes."""
    try:
        check()
    except CheckFailed as finding:
        return CheckResult(name, "wrong", str(finding))
    except Exception as error:  # noqa: BLE001 - any error of a foreign store is a finding
        return CheckResult(name, "raised", f"{type(error).__name__}: {str(error)[:200]}")
    return CheckResult(name, "ok")


def expect(holds: bool, detail: str) -> None:
    """Record a wrong answer unless `holds`."""
    if not holds:
        raise CheckFailed(detail)


def table(rows: Sequence[tuple[str, Sequence[SuiteReport | None]]]) -> str:
    """Return a Markdown table with one row per store and one column per suite."""
    suites = [report.suite for report in next((r for _, r in rows if all(r)), ()) if report is not None]
    lines = [
        "| store | " + " | ".join(f"{suite} (ok / wrong / raised)" for suite in suites) + " |",
        "|---" * (len(suites) + 1) + "|",
    ]
    for store, reports in rows:
        cells = [
            "not installed"
            if report is None
            else f"{report.count('ok')} / {report.count('wrong')} / {report.count('raised')}"
            for report in reports
        ]
        lines.append(f"| {store} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
