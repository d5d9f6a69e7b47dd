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

  document.addEventListener("DOMContentLoaded", () => {
    theme();
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
