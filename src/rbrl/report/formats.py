"""A table as CSV, JSON, Markdown, LaTeX or HTML."""

import html
import json
import re
from pathlib import Path

from rbrl.report.table import Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "–": "--",
    "Δ": r"$\Delta$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "−": "$-$",
    "\n": " ",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|])")


def to_csv(table: Table) -> str:
    """The figures in full precision, one per line."""
    return table.frame.to_csv(index=False, lineterminator="\n")


def to_json(table: Table) -> str:
    """The figures in full precision, as a list of objects."""
    records = json.loads(table.frame.to_json(orient="records", double_precision=15))
    return json.dumps(records, ensure_ascii=False, indent=2)


def to_markdown(table: Table) -> str:
    """A GitHub table."""
    heads = [_markdown(title) for title in table.columns]
    marks = ["---:" if table.numeric(j) else "---" for j in range(len(heads))]
    lines = [heads, marks, *([_strong(_markdown(c.text), c.best, "**") for c in row] for row in table.rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"**{_markdown(table.title)}**\n\n{text}\n" + (f"\n{_markdown(table.note)}\n" if table.note else "")


def to_latex(table: Table) -> str:
    """A floating table; needs the package booktabs."""
    align = "".join("r" if table.numeric(j) else "l" for j in range(len(table.columns)))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.title + '.' + (' ' + table.note if table.note else ''))}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        " & ".join(_latex(title) for title in table.columns) + r" \\",
        r"\midrule",
    ]
    for ruled, row in table.blocks():
        cells = [rf"\textbf{{{_latex(c.text)}}}" if c.best else _latex(c.text) for c in row]
        lines += [r"\midrule"] * ruled + [" & ".join(cells) + r" \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_html(table: Table) -> str:
    """A plain table element, with scopes; the page has its own, sortable one."""
    heads = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in table.columns)
    rows = "\n".join(f"<tr>{_html_cells(table, row)}</tr>" for row in table.rows)
    note = f"\n<p>{html.escape(table.note)}</p>" if table.note else ""
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f"<table>\n{caption}\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>{note}\n"


FORMATS = {"csv": to_csv, "json": to_json, "md": to_markdown, "tex": to_latex, "html": to_html}


def save_table(table: Table, folder: Path, formats=("csv", "tex", "md", "html")) -> list[Path]:
    """Write `table` into `folder`, one file per format; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in formats:
        path = folder / f"{table.name}.{name}"
        path.write_text(FORMATS[name](table), encoding="utf-8")
        paths.append(path)
    return paths


def _markdown(text):
    return _MARKDOWN.sub(r"\\\1", text).replace("\n", " ")


def _strong(text, best, mark):
    return f"{mark}{text}{mark}" if best else text


def _latex(text):
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _html_cells(table, row):
    cells = []
    for j, cell in enumerate(row):
        text = html.escape(cell.text)
        if j < table.n_keys:
            cells.append(f'<th scope="row">{text}</th>')
        else:
            cells.append(f"<td><strong>{text}</strong></td>" if cell.best else f"<td>{text}</td>")
    return "".join(cells)
