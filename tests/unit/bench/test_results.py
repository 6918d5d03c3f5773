"""What is written of what was measured."""

from xml.etree import ElementTree

import pytest
from bench.plot import plot
from bench.report import Circumstances, report
from bench.rows import ROWS, result
from bench.samples import Measure, Samples
from bench.usage import cpu_seconds, peak_bytes, tree

OF = Circumstances(command="python -m bench", machine="2 cores", loads=[0.5, 3.25], plot="results.svg")


@pytest.fixture
def samples() -> Samples:
    taken = Samples()
    taken.versions["torch_rpc"] = {"torch": "2.0"}
    taken.add(Measure("torch_rpc", "calls", "barrier", 4), [0.002, 0.004, 0.012], cpu=0.03)
    taken.add(Measure("python", "gang", "barrier", 4), [0.001], cpu=0.002)
    taken.add(Measure("native", "loop", "loop_barrier", 4), [0.001], cpu=0.5)
    for size, seconds in ((8, 0.01), (256, 0.2)):
        taken.add(Measure("sidecars", "gang", "barrier", size), [seconds], cpu=seconds)
        taken.add(Measure("sidecars", "gang", "control_bytes_per_follower", size), [256.0])
        taken.add(Measure("sidecars", "gang", "control_messages_per_follower", size), [4.0])
    taken.peak_bytes["python", 4] = 3 << 20
    taken.lack("No module named 'ray'", "ray")
    return taken


def test_the_report_has_every_row_and_every_sample(samples: Samples) -> None:
    lines = report([result(row, samples) for row in ROWS], samples, OF).splitlines()
    assert "Machine: 2 cores. Load average of a minute at the beginning of the rounds: 0.5 to 3.2." in lines
    assert "Versions: torch 2.0." in lines
    assert "| a gang-call barrier, p50, beside torch.distributed.rpc's | 0.25 | 1 | reached | 0.17 |" in lines
    assert "| barrier | torch rpc calls | 4 | 12 | 6 | 166.7 | 10 | 3 |" in lines
    assert "| 256 | gang | 200 | 200 | 256 | 4 |" in lines
    assert "| 256 | ranks | - | - | - | - |" in lines
    assert "| python | 4 | 3 |" in lines
    assert "| ray | No module named 'ray' |" in lines
    assert sum(line.startswith(f"| {row.title} |") for line in lines for row in ROWS) == len(ROWS)


def test_the_cpu_time_of_a_loop_is_of_each_operation(samples: Samples) -> None:
    lines = report([], samples, OF).splitlines()
    assert "| 1,000 barriers, each | native loop | 1 | 1 | 1 | 1000 | 0.5 | 1 |" in lines


def test_growth_that_is_linear_is_reached(samples: Samples) -> None:
    assert result(ROWS[-1], samples).verdict == "reached"
    samples.add(Measure("sidecars", "gang", "control_bytes_per_follower", 256), [257.0])
    assert result(ROWS[-1], samples).verdict == "not reached"


def test_the_plot_is_an_image_with_every_way_in_it(samples: Samples) -> None:
    root = ElementTree.fromstring(plot(samples))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"barrier, p50 ms, 4 ranks", "torch rpc calls", "python gang", "native loop"} <= set(texts)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for bar in list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]:
        assert 0 < float(bar.attrib["x"]) + float(bar.attrib["width"]) < width
        assert 0 < float(bar.attrib["y"]) + float(bar.attrib["height"]) < height


def test_a_plot_of_nothing_is_empty() -> None:
    assert len(list(ElementTree.fromstring(plot(Samples())))) == 2


def test_usage_is_of_the_process_and_its_children() -> None:
    import os
    import subprocess
    import sys

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        pids = tree(os.getpid())
        assert {os.getpid(), child.pid} <= set(pids)
        assert cpu_seconds([os.getpid()]) > 0
        assert peak_bytes([os.getpid()]) > 1 << 20
        assert child.stdin is not None
        child.stdin.close()
    assert (cpu_seconds([child.pid]), peak_bytes([child.pid])) == (0.0, 0)
