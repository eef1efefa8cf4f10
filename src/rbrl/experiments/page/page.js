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
for (const region of document.querySelectorAll(".scroll")) {
  const hint = region.previousElementSibling;
  const look = () => {
    const rest = region.scrollWidth - region.clientWidth;
    hint.classList.toggle("more", rest > 1);
    hint.classList.toggle("done", region.scrollLeft >= rest - 1);
    region.classList.toggle("moved", region.scrollLeft > 0);
  };
  region.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(region);
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
