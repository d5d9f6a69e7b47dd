"use strict";
(() => {
  const dark = document.getElementById("dark");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const KEY = "fedsynth-theme";

  // A browser may forbid a local file to keep anything: the choice then lasts as long as the page.
  const kept = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const keep = (value) => {
    try { localStorage.setItem(KEY, value); } catch { return; }
  };

  let choice = kept();
  const isDark = () => (choice ? choice === "dark" : system.matches);
  const paint = () => {
    dark.media = isDark() ? "screen" : "not all";
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-pressed", String(isDark()));
  };
  paint();

  function theme() {
    const button = document.getElementById("theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      choice = isDark() ? "light" : "dark";
      keep(choice);
      paint();
    });
    system.addEventListener("change", paint);
    paint();
  }

  // Gaps stay last whichever way figures are sorted.
  function order(kind, place, down) {
    const sign = down ? -1 : 1;
    if (kind === "text") {
      const words = (body) => body.rows[0].cells[place].textContent;
      return (a, b) => sign * words(a).localeCompare(words(b), undefined, { numeric: true });
    }
    const figure = (body) => parseFloat(body.rows[0].cells[place].dataset.v);
    return (a, b) => {
      const [x, y] = [figure(a), figure(b)];
      if (isNaN(x) || isNaN(y)) return Number(isNaN(x)) - Number(isNaN(y));
      return sign * (x - y);
    };
  }

  function sorting(table) {
    const heads = [...table.querySelectorAll("th[data-sort]")];
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const bodies = [...table.tBodies].sort((a, b) => a.dataset.place - b.dataset.place);
        table.append(...bodies.sort(order(head.dataset.sort, place, down)));
      });
    });
  }

  function searching(table) {
    const box = document.getElementById("search");
    const found = document.getElementById("found");
    const bodies = [...table.tBodies];
    document.getElementById("finder").hidden = false;
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      let shown = 0;
      for (const body of bodies) {
        body.hidden = !body.dataset.name.includes(wanted);
        shown += Number(!body.hidden);
      }
      found.textContent = wanted ? `${shown} of ${bodies.length} columns` : `${bodies.length} columns`;
    });
  }

  function unfolding(table) {
    const button = document.getElementById("unfold");
    button.addEventListener("click", () => {
      const all = [...table.querySelectorAll("details")];
      const open = all.some((each) => !each.open);
      for (const each of all) each.open = open;
      button.textContent = open ? "Close all charts" : "Open all charts";
    });
  }

  // A frame is a stop of the tab key only where there is something to scroll.
  function frames() {
    for (const frame of document.querySelectorAll(".scroll")) {
      const wider = frame.scrollWidth > frame.clientWidth;
      frame.classList.toggle("wider", wider);
      if (wider) frame.tabIndex = 0;
      else frame.removeAttribute("tabindex");
    }
  }

  // A pair of columns, real rows beside synthetic ones; a cell is the darker the more rows it holds.
  function pairing() {
    const place = document.getElementById("pair");
    if (!place) return;
    const map = document.querySelector(".heatmap");
    const data = JSON.parse(document.getElementById("pair-data").content.textContent);
    const index = new Map(data.places.map((pair, k) => [pair.join(), k]));
    const [one, two] = ["pair-one", "pair-two"].map((id) => document.getElementById(id));
    const draw = (name, attributes, words) => {
      const made = document.createElementNS(map.namespaceURI, name);
      for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
      if (words !== undefined) made.textContent = words;
      return made;
    };
    const brief = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}\u2026` : words);
    const share = (value) => `${(value / 100).toFixed(1)}\u202f%`;

    function panel(svg, label, shares, rows, columns, left, top, most) {
      const [wide, high] = [30, 20];
      svg.append(draw("text", { x: left, y: top + high * rows.length + 16, class: "quiet" }, label));
      rows.forEach((row, r) => columns.forEach((column, c) => {
        const value = shares[r * columns.length + c];
        // By the root, so that rare cells differ too.
        const shade = value ? 1 + Math.min(7, Math.floor(8 * Math.sqrt(value / most) - 1e-9)) : 0;
        const at = { x: left + wide * c, y: top + high * r, width: wide - 1, height: high - 1 };
        const cell = draw("rect", { ...at, class: `cell q${shade}` });
        cell.append(draw("title", {}, `${row}, ${column}: ${share(value)} of the ${label}`));
        svg.append(cell);
      }));
      columns.forEach((column, c) => {
        const [x, y] = [left + wide * (c + 0.5), top - 6];
        const turned = `rotate(-48 ${x} ${y})`;
        svg.append(draw("text", { x, y, transform: turned, class: "small" }, brief(column, 16)));
      });
    }

    function show() {
      let [i, j] = [Number(one.value), Number(two.value)];
      if (i > j) [i, j] = [j, i];
      const k = index.get(`${i},${j}`);
      const [chart, said] = ["pair-chart", "pair-said"].map((id) => document.getElementById(id));
      chart.replaceChildren();
      if (k === undefined) {
        said.textContent = i === j ? "Choose two columns." : "This pair is not among those.";
        return;
      }
      const [rows, columns] = [data.labels[i], data.labels[j]];
      const [real, synthetic] = [data.real[k], data.synthetic[k]];
      const gaps = real.map((value, cell) => Math.abs(value - synthetic[cell]));
      const worst = gaps.indexOf(Math.max(...gaps));
      const cell = `${rows[Math.floor(worst / columns.length)]}, ${columns[worst % columns.length]}`;
      const found = `They differ most at ${cell}: real ${share(real[worst])}, synthetic ${share(synthetic[worst])}.`;
      const names = `${data.names[i]} (rows) and ${data.names[j]} (columns)`;
      said.textContent = `${names}. Distance in the map: ${data.distance[k]}. ${found}`;
      const longest = Math.max(...columns.map((words) => Math.min(16, words.length)));
      const [left, top, side] = [124, 18 + 4.2 * longest, 30 * columns.length];
      const size = { width: left + 2 * side + 130, height: top + 20 * rows.length + 24 };
      const svg = draw("svg", {
        ...size, viewBox: `0 0 ${size.width} ${size.height}`, class: "beside", role: "img",
        "aria-label": `${names}, real rows beside synthetic ones. ${found}`,
      });
      rows.forEach((row, r) => {
        svg.append(draw("text", { x: left - 6, y: top + 20 * r + 14, class: "end small" }, brief(row, 20)));
      });
      const most = Math.max(...real, ...synthetic);
      panel(svg, "real rows", real, rows, columns, left, top, most);
      panel(svg, "synthetic rows", synthetic, rows, columns, left + side + 60, top, most);
      chart.append(svg);
      frames();
    }

    const open = (i, j) => {
      [one.value, two.value] = [i, j];
      show();
    };
    for (const box of [one, two]) {
      data.names.forEach((name, k) => box.append(new Option(brief(name, 40), k)));
      box.addEventListener("change", show);
    }
    // Row by row: whole ones, or up to the diagonal where no real rows stand above it.
    const cells = [...map.querySelectorAll(".cell")];
    const whole = cells.length === data.drawn.length ** 2;
    const places = data.drawn.flatMap((i, r) =>
      data.drawn.slice(0, whole ? undefined : r + 1).map((j) => [i, j]));
    cells.forEach((each, k) => {
      const [i, j] = places[k];
      if (i === j) return;
      each.classList.add("opens");
      each.addEventListener("click", () => open(i, j));
    });
    place.hidden = false;
    const far = data.distance.map((words) => parseFloat(words) || 0);
    open(...data.places[far.indexOf(Math.max(...far))]);
  }

  document.addEventListener("DOMContentLoaded", () => {
    theme();
    pairing();
    frames();
    window.addEventListener("resize", frames);
    for (const each of document.querySelectorAll("details.block")) {
      each.addEventListener("toggle", frames);
    }
    const table = document.getElementById("column-table");
    if (!table) return;
    sorting(table);
    searching(table);
    unfolding(table);
  });
})();
