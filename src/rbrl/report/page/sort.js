for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const key = (row, j) => {
    const cell = row.cells[j];
    return cell.dataset.v === undefined ? cell.textContent.trim() : Number(cell.dataset.v);
  };
  const compare = (a, b) => {
    const missing = (v) => v === "–" || v === "";
    if (missing(a) || missing(b)) return missing(a) - missing(b) || NaN;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  table.tHead.querySelectorAll("button").forEach((button) => {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
      rows.sort(([a], [b]) => {
        const order = compare(a, b);
        const last = a === "–" || a === "" || b === "–" || b === "";
        return Number.isNaN(order) ? 0 : last ? order : sign * order;
      });
      body.append(...rows.map(([, row]) => row));
      table.tHead.querySelectorAll("th").forEach((th) => th.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
    });
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
