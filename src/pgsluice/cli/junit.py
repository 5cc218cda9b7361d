"""Check results as a JUnit report, which every CI reads."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgsluice.pipeline.check import CheckResult


def junit_xml(results: Sequence[CheckResult]) -> bytes:
    """One test suite; a test case a result."""
    failures = sum(result.problem is not None for result in results)
    suite = ElementTree.Element(
        "testsuite",
        name="pgsluice check",
        tests=str(len(results)),
        failures=str(failures),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=f"{result.target} on {result.server}",
            name=result.name,
            time=f"{result.seconds:.3f}",
        )
        if result.problem is not None:
            failure = ElementTree.SubElement(case, "failure", message=result.problem.message)
            failure.text = str(result.problem)
    ElementTree.indent(suite)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)) + b"\n"
