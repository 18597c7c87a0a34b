"use strict";
(() => {
  const EVERY_MS = 1000;
  const viewer = Math.random().toString(16).slice(2);
  const main = document.querySelector("main");
  let linked = "";

  const hasText = (node) => [...node.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());

  // The element that shows what `next` is to show: by its id, or the next one of its kind.
  function counterpart(first, next) {
    for (let old = first; old; old = old.nextElementSibling) {
      if (old.tagName === next.tagName && old.id === next.id && (old.id || old.className === next.className)) return old;
    }
    return null;
  }

  // Makes an element like another, and leaves what is the same: a list that is open stays open, what is selected or
  // scrolled stays so, and a figure keeps its plot, and what was chosen above it.
  function update(old, next) {
    if (old.isEqualNode(next)) return;
    if (old.matches(".plot")) {
      old.setAttribute("aria-label", next.getAttribute("aria-label"));
      return;
    }
    const names = new Set([...old.getAttributeNames(), ...next.getAttributeNames()]);
    names.delete("aria-pressed");
    names.forEach((name) => {
      const value = next.getAttribute(name);
      if (value === null) old.removeAttribute(name);
      else if (value !== old.getAttribute(name)) old.setAttribute(name, value);
    });
    if (hasText(old) || hasText(next)) {
      old.replaceChildren(...next.childNodes);
      return;
    }
    let place = old.firstElementChild;
    const removeUntil = (end) => {
      while (place !== end) {
        const gone = place;
        place = place.nextElementSibling;
        gone.remove();
      }
    };
    [...next.children].forEach((child) => {
      const same = counterpart(place, child);
      if (!same) {
        old.insertBefore(child, place);
        return;
      }
      removeUntil(same);
      place = same.nextElementSibling;
      update(same, child);
    });
    removeUntil(null);
  }

  function show({ main: text, figures }) {
    const next = document.createElement("main");
    next.innerHTML = text;
    const link = next.querySelector("#report");
    if (link) link.href = linked;
    update(main, next);
    document.title = `${main.querySelector(".word").textContent} · Framestorm`;
    window.showFigures(figures);
  }

  // The report is kept in this page, as nobody serves it once the command is over.
  async function fetchReport() {
    const answer = await fetch(`report?viewer=${viewer}`);
    linked = URL.createObjectURL(new Blob([await answer.text()], { type: "text/html" }));
  }

  async function refresh() {
    try {
      const answer = await fetch(`state?viewer=${viewer}`);
      if (!answer.ok) throw new Error(answer.statusText);
      const state = await answer.json();
      if (state.has_report) await fetchReport();
      show(state);
      if (state.has_report) return;
    } catch (error) {
      console.error(error);
      const word = main.querySelector(".word") ?? main.firstElementChild;
      word.textContent = "Framestorm does not answer: the run is over, or was ended";
    }
    setTimeout(refresh, EVERY_MS);
  }

  refresh();
})();
