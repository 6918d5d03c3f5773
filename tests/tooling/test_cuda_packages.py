"""Set-up tells a torch with CUDA packages from one without."""

import subprocess
import sys
from pathlib import Path

from cuda_packages import cuda_requirements


def report(*requirements: str) -> dict[str, list[dict[str, dict[str, list[str]]]]]:
    return {"install": [{"metadata": {"requires_dist": list(requirements)}}]}


def test_a_cpu_build_requires_none() -> None:
    assert cuda_requirements(report("filelock", "sympy>=1.13.3", "networkx>=2.5.1")) == []


def test_cuda_packages_are_named_in_order() -> None:
    found = cuda_requirements(
        report(
            "filelock",
            'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
            "cuda-bindings<14,>=13.0.3",
            "triton==3.7.0",
        )
    )
    assert found == ["nvidia-cudnn-cu13", "cuda-bindings", "triton"]


def test_what_is_for_other_systems_or_extras_does_not_count() -> None:
    found = cuda_requirements(
        report('triton==3.7.0; platform_system == "Windows"', 'nvidia-cublas; extra == "all"', "cudatext")
    )
    assert found == []


def test_the_program_fails_and_names_them(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"install": [{"metadata": {"requires_dist": ["triton==3.7.0"]}}]}')
    program = Path(__file__).resolve().parents[2] / "scripts" / "cuda_packages.py"
    done = subprocess.run([sys.executable, program, path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "triton\n")
