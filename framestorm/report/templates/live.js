"use strict";
(() => {
  const EVERY_MS = 1000;
  const viewer = Math.random().toString(16).slice(2);
  const main = document.querySelector("main");
  let linked = "";

  // A figure that is shown keeps its plot, and what was chosen above it.
  function keep(figure) {
    const old = document.getElementById(figure.id);
    if (!old) return;
    figure.querySelector(".plot").replaceWith(old.querySelector(".plot"));
    const pressed = old.querySelector('.choice[aria-pressed="true"]')?.textContent;
    const choices = [...figure.querySelectorAll(".choice")];
    if (!choices.some((choice) => choice.textContent === pressed)) return;
    choices.forEach((choice) => choice.setAttribute("aria-pressed", String(choice.textContent === pressed)));
  }

  function show({ main: text, figures }) {
    const next = document.createElement("main");
    next.innerHTML = text;
    const chosen = main.querySelector("#label")?.value, scroll = window.scrollY;
    next.querySelectorAll("figure").forEach(keep);
    const labels = next.querySelector("#label");
    if (labels && chosen) labels.value = chosen;
    const link = next.querySelector("#report");
    if (link) link.href = linked;
    main.replaceChildren(...next.childNodes);
    window.scrollTo(0, scroll);
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
