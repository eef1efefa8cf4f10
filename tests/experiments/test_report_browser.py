"""The page in a real browser: no errors, no overflow, sorting works, by mouse and keyboard."""

import chromium
import pytest
from fake_rows import failing, make_rows, published_results

from rbrl.experiments import write_page

pytestmark = pytest.mark.skipif(chromium.path() is None, reason="Chromium is not installed")

LONG = "a-very-long-name-of-a-data-set-without-any-space-to-break-it-" * 2


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    rows = failing(make_rows(), "sea", "br", split=1, error="E" * 300)
    one = make_rows(datasets=("sea",))
    hostile = make_rows((LONG, "<script>document.title='broken'</script>"), (LONG, "<img src=x onerror=alert(1)>", "c"))
    plan = 'title = "a plan with a line that is far too long for a phone"\n' * 3
    write = {"run": rows, "one": one, "hostile": hostile, "published": published_results()}
    return {
        name: write_page(r, folder / f"{name}.html", command="rbrl compare " * 9, plan=plan)
        for name, r in write.items()
    }


@pytest.fixture(scope="module")
def tab():
    with chromium.browser() as page:
        yield page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", ["run", "one", "hostile", "published"])
def test_loads_without_errors_and_nothing_overflows(tab, pages, name, width, dark):
    tab.messages.clear()
    tab.open(pages[name], width, dark=dark)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert tab.messages == []
    assert tab.run("document.title") == "Comparison of multi-label methods"
    background = tab.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 27)" if dark else "rgb(252, 252, 250)")


def test_words_are_not_crushed_on_a_phone(tab, pages):
    """A table with long words scrolls; its words keep lines of a readable length."""
    tab.open(pages["run"], 360)
    heights = tab.run("[...document.querySelectorAll('#parameters .words')].map(w => w.getBoundingClientRect().height)")
    assert heights
    assert max(heights) < 60


HINTS = """[...document.querySelectorAll('.scroll')].filter(r => r.clientWidth > 0).map(r => [
  r.scrollWidth - r.clientWidth > 1,
  getComputedStyle(r.previousElementSibling).display !== 'none'
    && getComputedStyle(r.previousElementSibling).visibility === 'visible'
    && r.previousElementSibling.textContent === 'scroll →'
])"""


@pytest.mark.parametrize("name", ["run", "one", "published"])
@pytest.mark.parametrize("width", [360, 1440])
def test_a_table_that_is_cut_says_so_and_no_other_does(tab, pages, name, width):
    tab.open(pages[name], width)
    tab.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    tab.settle()
    found = tab.run(HINTS)
    assert all(cut == hinted for cut, hinted in found)
    assert any(cut for cut, _ in found) or width > 360


def test_the_first_column_stays_while_a_table_is_scrolled(tab, pages):
    tab.open(pages["published"], 360)
    region = "document.querySelector('#ranks .scroll')"
    tab.run(f"{region}.scrollLeft = 10000")
    tab.settle()
    for cell in ("thead th", "tbody th", "tfoot th"):
        left = tab.run(f"document.querySelector('#ranks {cell}').getBoundingClientRect().left")
        assert left == tab.run(f"{region}.getBoundingClientRect().left")
    assert tab.run(f"getComputedStyle({region}.previousElementSibling).visibility") == "hidden"
    widest = tab.run("Math.max(...[...document.querySelectorAll('#ranks tbody th')].map(c => c.offsetWidth))")
    assert widest < 360 * 0.45


def column(tab, table, j):
    return tab.run(
        f"[...document.querySelectorAll('#ranks table')[{table}].tBodies[0].rows].map(r => r.cells[{j}].textContent)"
    )


def test_sorting_by_click_and_by_keyboard(tab, pages):
    tab.open(pages["published"])
    first = "document.querySelectorAll('#ranks table thead button')[1]"
    tab.run(f"{first}.click()")
    values = [float(text) for text in column(tab, 0, 1)]
    assert values == sorted(values)
    assert tab.run(f"{first}.closest('th').getAttribute('aria-sort')") == "ascending"
    tab.run(f"{first}.focus()")
    for kind in ("rawKeyDown", "char", "keyUp"):
        tab.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
    values = [float(text) for text in column(tab, 0, 1)]
    assert values == sorted(values, reverse=True)
    assert tab.run("document.querySelectorAll('#ranks [aria-sort]').length") == 1
    names = "document.querySelectorAll('#ranks table thead button')[0]"
    tab.run(f"{names}.click()")
    assert column(tab, 0, 0) == sorted(column(tab, 0, 0))
    assert tab.run("document.querySelector('#ranks tfoot th').textContent") == "Overall"


def test_missing_values_sort_last_both_ways(tab, tmp_path):
    path = write_page(failing(make_rows(), "hill", "br"), tmp_path / "page.html")
    tab.open(path)
    button = "document.querySelector('#results table thead th:nth-child(4) button')"
    for _ in range(2):
        tab.run(f"{button}.click()")
        last = tab.run("[...document.querySelector('#results table').tBodies[0].rows].at(-1).cells[0].textContent")
        assert last == "hill"


CONTRAST = """(() => {
  const linear = (v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map((v) => linear(Number(v)));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = (element) => {
    const ink = light(getComputedStyle(element).color);
    return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
  };
  return Math.min(...[...document.querySelectorAll('p, td, th, dt, dd, a, h1, h2, h3, .badge, .std')].map(ratio));
})()"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_of_text_is_enough(tab, pages, dark):
    tab.open(pages["run"], dark=dark)
    assert tab.run(CONTRAST) >= 4.5


def test_prints_with_details_open(tab, pages, tmp_path):
    tab.open(pages["run"])
    tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").stat().st_size > 20_000
    assert tab.run("[...document.querySelectorAll('details')].every(d => d.open)")
