"""The page about a graph, in a real browser: it loads, is searched, clicked, zoomed, stepped through and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.utils.graph_page import graph_page, watch_backward
from tests.browser.webdriver import Browser, missing_browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing_browser() is not None, reason=str(missing_browser())),
]
RIGHT, END, ESCAPE, ENTER = "\ue014", "\ue010", "\ue00c", "\ue007"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return x + pullback.tanh(self.inner(x))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 6)
        self.layers = nn.Sequential(*[Layer() for _ in range(5)])
        self.last = nn.Linear(6, 2)

    def forward(self, x: Any) -> Any:
        return self.last(self.layers(self.first(x)))


class Residual(nn.Module):
    def __init__(self, size: int, larger: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, larger), nn.Linear(larger, larger)
        self.skip = nn.Linear(size, larger) if size != larger else nn.Identity()

    def forward(self, x: Any) -> Any:
        return (self.second(self.first(x).relu()) + self.skip(x)).relu()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def network() -> Network:
    pullback.manual_seed(0)
    return Network()


@pytest.fixture(scope="module")
def page(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with watch_backward(network) as watch:
        network(pullback.ones(4, 3)).square().sum().backward()
    assert watch.page is not None
    return watch.page.save(tmp_path_factory.mktemp("pages") / "network.html")


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    browser.open(page)
    return browser


def box(title: str) -> str:
    """The selector of the box with this title in its details: found by the page's own data."""
    return f"return boxes.get(visible(nodes.findIndex(node => node.name === '{title}'))).element"


@pytest.mark.parametrize(("width", "height"), [(1600, 1000), (1024, 700), (390, 780)])
def test_the_page_loads_without_a_complaint_and_fits_its_window(
    browser: Browser, page: Path, width: int, height: int
) -> None:
    browser.open(page, width, height)
    assert browser.run("return document.documentElement.dataset.ready") == "yes"
    assert browser.complaints() == []
    overflow = "return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert browser.run(overflow) == [width, height]


@pytest.mark.parametrize(("width", "height"), [(1600, 1000), (390, 780)])
def test_no_two_boxes_overlap_and_no_label_leaves_its_box(
    browser: Browser, page: Path, width: int, height: int
) -> None:
    browser.open(page, width, height)
    browser.run("openAll(true)")
    overlapping = """
        const items = shownItems.filter(item => item >= 0 || !isOpen[-item]), found = [];
        for (const a of items) for (const b of items) {
          const p = corner.get(a), q = corner.get(b), s = extent.get(a), t = extent.get(b);
          if (a < b && p.x < q.x + t.w && q.x < p.x + s.w && p.y < q.y + t.h && q.y < p.y + s.h) found.push([a, b]);
        }
        return found"""
    clipped = """
        return [...document.querySelectorAll(".box:not(.caption)")].filter(box => {
          const face = box.querySelector(".face").getBBox();
          return [...box.querySelectorAll("text")].some(text => text.getBBox().width > face.width - 2);
        }).map(box => box.textContent)"""
    assert browser.run(overlapping) == []
    assert browser.run(clipped) == []


def test_repeated_layers_are_collapsed_and_open_on_a_click(opened: Browser) -> None:
    assert "layers: Sequential \N{MULTIPLICATION SIGN}5" in opened.text("#view")
    before = opened.run("return shownItems.length")
    opened.run("boxes.get(-groups.findIndex(group => group.repeats === 5)).element.setAttribute('id', 'wanted')")
    opened.click("#wanted .title")
    assert opened.run("return shownItems.length") == before + 5
    opened.run("openAll(true)")
    assert opened.run("return shownItems.filter(item => item >= 0).length") == opened.run("return nodes.length")


def test_groups_of_one_depth_are_opened_together(browser: Browser, tmp_path: Path) -> None:
    sizes = [(4, 5), (5, 6), (6, 7), (7, 8)]
    model = nn.Sequential(*[nn.Sequential(Residual(size, larger), Residual(larger, larger)) for size, larger in sizes])
    browser.open(graph_page(model(pullback.ones(2, 4)).sum(), model).save(tmp_path / "page.html"))
    kinds = """const depth = number => number ? 1 + depth(groups[number].parent) : 0, found = {};
               groups.forEach(({ parent, repeats, items }, number) => {
                 if (!number || !isOpen[parent] || repeats > 1 || !items.some(item => item < 0)) return;
                 (found[depth(number)] ??= new Set()).add(isOpen[number]);
               });
               return Object.values(found).map(states => [...states])"""
    states = browser.run(kinds)
    assert [True] in states
    assert all(len(found) == 1 for found in states)


def test_a_search_finds_a_node_and_shows_its_details(opened: Browser) -> None:
    opened.press("/")
    opened.type("#search", "layers.2 TanhBackward")
    assert opened.run("return document.querySelectorAll('#found li').length") == 1
    opened.type("#search", ENTER)
    details = opened.text("#details")
    assert details.startswith("Tanh")
    assert "(4, 6)" in details
    assert "float32" in details
    assert "test_graph_page.py:" in details
    assert "return x + pullback.tanh(self.inner(x))" in details
    assert "saved for backward" in details


def test_a_click_on_a_box_shows_its_details(opened: Browser) -> None:
    opened.run("select(nodes.findIndex(node => node.name === 'first.weight'), true); select(null)")
    opened.run(box("first.weight") + ".setAttribute('id', 'wanted')")
    opened.click("#wanted .title")
    assert opened.text("#details").startswith("first.weight")
    assert opened.run("return document.querySelectorAll('#details svg.bars rect').length") == 24


def test_stepping_ends_with_the_gradients_that_python_computed(opened: Browser, network: Network) -> None:
    count = opened.run("return steps.length")
    assert opened.run("return document.querySelectorAll('#arrivals tbody tr:not([hidden])').length") == 0
    opened.press(*[RIGHT] * count)
    assert "The pass has ended" in opened.text("#status")
    shown = opened.run("""return [...document.querySelectorAll('#arrivals tbody tr:not([hidden])')].map(
        row => [row.cells[0].innerText, Number(row.cells[2].innerText), Number(row.cells[4].innerText.split(',')[0])])""")
    expected = {name: p.grad for name, p in network.named_parameters()}
    assert {name for name, _, _ in shown} == set(expected)
    for name, norm, first in shown:
        assert norm == pytest.approx(expected[name].norm().item(), rel=1e-3)
        assert first == pytest.approx(expected[name].flatten()[0].item(), rel=1e-3)


def test_the_box_that_runs_is_marked_also_where_it_is_a_folded_group(opened: Browser) -> None:
    opened.run("openAll(false); goTo(steps.findIndex(step => nodes[step.node].label === 'Tanh') + 1)")
    marked = opened.run("return getComputedStyle(document.querySelector('.box.current.folded > .face')).strokeWidth")
    assert marked == "3px"


def test_playing_runs_to_the_end_by_itself(opened: Browser) -> None:
    opened.run("steps.length && goTo(steps.length - 2)")
    opened.press(" ")
    opened.run("return 0")
    for _ in range(100):
        if "ended" in opened.text("#status"):
            break
        opened.run("const until = performance.now() + 40; while (performance.now() < until);")
    assert "The pass has ended" in opened.text("#status")


def test_the_wheel_and_two_fingers_zoom(opened: Browser) -> None:
    opened.run("fit()")
    start = opened.run("return state.scale")
    opened.wheel("#stage", -300)
    nearer = opened.run("return state.scale")
    assert nearer > start * 1.2
    opened.pinch("#stage", 40, 120)
    assert opened.run("return state.scale") > nearer * 1.2


def test_keys_select_neighbours_fold_and_change_the_theme(opened: Browser) -> None:
    theme = opened.run("return document.documentElement.dataset.theme")
    opened.press("d")
    assert opened.run("return document.documentElement.dataset.theme") != theme
    opened.press("\ue013")  # up
    assert opened.run("return nodes[state.selected].kind") == "output"
    opened.press("\ue013")
    assert opened.text("#details").startswith("Sum")
    opened.press(ESCAPE)
    assert opened.run("return state.selected") is None


def test_memory_and_time_are_charted(opened: Browser) -> None:
    opened.click("[data-tab=memory]")
    assert {"saved, leaves too", "new results and gradients", "forward", "backward"} <= set(
        opened.run("return [...document.querySelectorAll('#memory text')].map(text => text.textContent)")
    )
    opened.click("[data-tab=time]")
    names = set(opened.run("return [...document.querySelectorAll('#time g')].map(bar => bar.dataset.name)"))
    assert {"aten::linear", "TanhBackward0"} <= names
    assert opened.complaints() == []


@pytest.mark.parametrize(("width", "height"), [(1600, 1000), (390, 780)])
@pytest.mark.parametrize("chart", ["memory", "time"])
def test_no_word_of_a_chart_is_cut_off(browser: Browser, page: Path, chart: str, width: int, height: int) -> None:
    browser.open(page, width, height)
    browser.click(f"[data-tab={chart}]")
    ends = browser.run(
        "return [...document.querySelectorAll(`#${arguments[0]} svg > text`)].map(text => text.getBoundingClientRect().right)",
        chart,
    )
    assert ends
    assert max(ends) <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast_enough(opened: Browser, theme: str) -> None:
    opened.run("setTheme(arguments[0] === 'dark'); openAll(true); fit(0.6)", theme)
    ratios = opened.run("""
        const light = colour => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).slice(0, 3).map(
            v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        return [...document.querySelectorAll('.box.operation, .box.leaf, .box.output')].flatMap(box =>
            [...box.querySelectorAll('text')].map(text => ratio(light(getComputedStyle(text).fill), light(getComputedStyle(box.querySelector('.face')).fill))))
        """)
    assert min(ratios) >= 4.5


def test_the_page_prints(opened: Browser) -> None:
    assert opened.print_pages().startswith(b"%PDF")
    assert opened.complaints() == []


def test_a_hostile_name_stays_text(browser: Browser, tmp_path: Path) -> None:
    x = pullback.ones(2, requires_grad=True)
    name = "</script><img src=x onerror=alert(1)>"
    browser.open(graph_page((x * x).sum(), {name: x}).save(tmp_path / "page.html"))
    assert browser.run("return document.images.length") == 0
    assert browser.run("return nodes.some(node => node.name === arguments[0])", name)


def test_ten_thousand_nodes_are_shown_folded_and_open(browser: Browser, tmp_path: Path) -> None:
    h = pullback.zeros(1, 2, requires_grad=True)
    state = h
    for _ in range(3300):
        state = (state * 0.5 + h).tanh()
    page = graph_page(state.sum(), {"h": h})
    assert len(page.data["nodes"]) > 9900
    browser.open(page.save(tmp_path / "page.html"))
    assert browser.run("return shownItems.length") < 20
    browser.run("openAll(true); drawRegion()")
    seen = """const box = boxes.values().next().value.element.getBoundingClientRect();
              return box.height > 8 && box.bottom > 0 && box.top < innerHeight"""
    assert browser.run(seen)  # not all of it, too small to be seen
    browser.run("goTo(steps.length); select(steps[5000].node, true); drawRegion()")
    assert 0 < browser.run("return boxes.size") < 1500
    assert browser.complaints() == []


def test_a_notebook_shows_the_page_in_a_frame(browser: Browser, tmp_path: Path) -> None:
    x = pullback.ones(2, requires_grad=True)
    shown = graph_page((x * x).sum(), {"x": x})._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{shown}", encoding="utf-8")
    browser.open(tmp_path / "notebook.html")
    inside = "return document.querySelector('iframe').contentDocument.documentElement.dataset.ready"
    for _ in range(50):
        if browser.run(inside) == "yes":
            break
        browser.run("const until = performance.now() + 40; while (performance.now() < until);")
    assert browser.run(inside) == "yes"
    assert browser.complaints() == []


def test_displays_of_tensors_modules_and_nodes_are_readable(browser: Browser, tmp_path: Path, network: Network) -> None:
    y = network(pullback.ones(2, 3))
    parts = [y._repr_html_(), network._repr_html_(), y.grad_fn._repr_html_()]
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{''.join(parts)}", encoding="utf-8")
    browser.open(tmp_path / "notebook.html")
    assert browser.complaints() == []
    assert "248 parameters" in browser.text("body")


def test_a_freed_graph_says_why_it_cannot_be_played(browser: Browser, tmp_path: Path) -> None:
    x = pullback.ones(2, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    browser.open(graph_page(loss, {"x": x}).save(tmp_path / "page.html"))
    assert "freed by backward()" in browser.text("#notes")
    browser.run("select(nodes.findIndex(node => node.name === 'x'), true)")
    assert "gradient (.grad)" in browser.text("#details")
