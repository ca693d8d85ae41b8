"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const ink = () => getComputedStyle(root).getPropertyValue("--ink").trim();
  const config = { responsive: true, displaylogo: false, plotlyServerURL: "", showSendToCloud: false, modeBarButtonsToRemove: ["sendDataToCloud"] };

  // Figures are drawn when they come into view, or all of them before the page is printed.
  const drawn = new Map();
  const draw = (place) => {
    if (drawn.has(place)) return drawn.get(place);
    const figure = JSON.parse(document.getElementById(place.dataset.figure).textContent);
    figure.layout.font = { ...figure.layout.font, color: ink() };
    const done = Plotly.newPlot(place, figure.data, figure.layout, config).then(() => {
      if (figure.frames) return Plotly.addFrames(place, figure.frames);
      return undefined;
    }).then(() => { place.dataset.drawn = "yes"; place.on("plotly_click", (event) => clicked(place, event.points[0])); });
    drawn.set(place, done);
    return done;
  };
  const places = [...document.querySelectorAll(".plot")];
  if ("IntersectionObserver" in window) {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { draw(entry.target); observer.unobserve(entry.target); }
    }, { rootMargin: "400px" });
    for (const place of places) observer.observe(place);
  } else for (const place of places) draw(place);
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) one.open = true;
    for (const place of places) draw(place);
  });

  // The line through a circled point may lie nearer to the mouse than its circle.
  const isOutlier = (place, point) => point.data.meta === "outlier" || place._fullData.some((trace) =>
    trace.meta === "outlier" && trace.yaxis === point.fullData.yaxis
    && [...trace.x].some((x, k) => x === point.x && trace.y[k] === point.y));

  // A click on an outlier shows the arm at that instant.
  const clicked = (place, point) => {
    const scene = document.querySelector('[data-figure="data-arm"]');
    if (!scene || !isOutlier(place, point)) return;
    draw(scene).then(() => {
      const frames = scene._transitionData._frames;
      let best = null;
      for (const frame of frames) {
        const off = Math.abs(parseFloat(frame.name) - point.x);
        if (best === null || off < best.off) best = { off, name: frame.name };
      }
      if (best === null) return;
      scene.dataset.shown = best.name;
      scene.scrollIntoView({ block: "center" });
      const active = scene.layout.sliders[0].steps.findIndex((step) => step.args[0][0] === best.name);
      return Plotly.animate(scene, [best.name], { mode: "immediate", frame: { duration: 0, redraw: true }, transition: { duration: 0 } })
        .then(() => Plotly.relayout(scene, { "sliders[0].active": Math.max(0, active) }));
    });
  };

  const setTheme = (isDark) => {
    root.classList.toggle("dark", isDark);
    for (const [place, done] of drawn) done.then(() => Plotly.relayout(place, { "font.color": ink() }));
  };
  setTheme(dark.matches);
  dark.addEventListener("change", (event) => setTheme(event.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(!root.classList.contains("dark")));

  const latex = { "\\": "\\textbackslash{}", "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };
  const forLatex = (text) => text.replace(/[\\&%$#_{}~^]/g, (letter) => latex[letter]);
  const forCsv = (text) => {
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
    return /[",\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
  };
  for (const box of document.querySelectorAll(".data-table")) {
    const body = box.querySelector("tbody"), rows = [...body.rows], count = box.querySelector(".count");
    const heads = [...box.querySelectorAll("thead th")];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const search = box.querySelector(".search");
    const filter = () => {
      const wanted = search.value.toLowerCase();
      let shown = 0;
      rows.forEach((row, k) => { row.hidden = !texts[k].includes(wanted); shown += !row.hidden; });
      count.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    };
    search.addEventListener("input", filter);
    filter();
    heads.forEach((head, column) => head.querySelector(".sort").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keys = new Map(rows.map((row) => [row, row.cells[column].dataset.key]));
      const compare = (a, b) => {
        const left = keys.get(a), right = keys.get(b);
        if (left === "" || right === "") return (left === "") - (right === "");  // empty cells stay last
        const numbers = [Number(left), Number(right)];
        const order = numbers.some(Number.isNaN) ? left.localeCompare(right, undefined, { numeric: true }) : numbers[0] - numbers[1];
        return up ? order : -order;
      };
      body.append(...[...rows].sort(compare));
    }));
    const unfold = box.querySelector(".unfold");
    if (unfold) unfold.addEventListener("click", () => {
      const folded = box.querySelector("table").classList.toggle("folded");
      unfold.setAttribute("aria-pressed", String(!folded));
    });
    const isShown = (cell) => getComputedStyle(cell).display !== "none";
    for (const button of box.querySelectorAll(".copy")) button.addEventListener("click", () => {
      const visible = [...body.rows].filter((row) => !row.hidden);
      const rows = [heads, ...visible.map((row) => [...row.cells])];
      // CSV is for programs and has all columns and digits, LaTeX is for readers and has what is shown.
      const full = (cell) => forCsv(cell.matches("td.number") ? cell.dataset.key : cell.textContent);
      const shown = (row) => row.filter(isShown).map((cell) => forLatex(cell.textContent)).join(" & ") + " \\\\";
      const lines = button.dataset.as === "csv"
        ? rows.map((row) => row.map(full).join(",")).join("\n") + "\n"
        : "\\begin{tabular}{" + "l".repeat(heads.filter(isShown).length) + "}\n" + rows.map(shown).join("\n") + "\n\\end{tabular}\n";
      box.dataset.copied = lines;
      const area = document.createElement("textarea");
      area.value = lines;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");  // the only way that works in a file without a secure origin
      area.remove();
      count.textContent = done ? "copied" : "could not copy";
    });
  }
})();
