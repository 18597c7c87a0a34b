"use strict";
(() => {
  let figures, plots, labels;
  const isShown = (plot) => !plot.closest("figure").hidden;
  const config = { displayModeBar: false, responsive: true, scrollZoom: false };

  // Colours stand in the figures as names of the style sheet's variables: one figure for light, dark and print.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--[\w-]+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) {
      return value.length && typeof value[0] !== "object" ? value : value.map((item) => coloured(item, style));
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
    }
    return value;
  }

  // How high the labels above a chart stand.
  function labelled(layout) {
    const rows = (layout.annotations ?? []).map((label) => label.yshift);
    return rows.length ? Math.max(...rows.map((shift) => shift ?? 0)) + 14 : 0;
  }

  function axisNames(layout) {
    return Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
  }

  // In a window of less than three panels they stand one below the other.
  function stacked(layout) {
    const panels = axisNames(layout).filter((name) => name.startsWith("x"));
    const gap = 0.32 / panels.length, height = (1 - gap * (panels.length - 1)) / panels.length;
    const bottom = (place) => (panels.length - 1 - place) * (height + gap);
    const places = panels.flatMap((name, place) => [
      [name, { ...layout[name], domain: [0, 1], ...(place < panels.length - 1 ? { title: { text: "" } } : {}) }],
      [name.replace("x", "y"), { ...layout[name.replace("x", "y")], domain: [bottom(place), bottom(place) + height] }],
    ]);
    return { ...layout, ...Object.fromEntries(places) };
  }

  function themed(figure, narrow, isStacked = false) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const { data, layout: given } = coloured(figure, style);
    const layout = isStacked && figure.panels > 1 ? stacked(given) : given;
    const axis = {
      gridcolor: colour("--grid"), linecolor: colour("--soft"), zeroline: false, ticks: "outside", ticklen: 4,
      tickcolor: colour("--soft"), showline: true, automargin: true, fixedrange: narrow, separatethousands: true,
    };
    // Beside the low panels of a phone a long title has no room in one line.
    const titled = (name, text) => (narrow && name.startsWith("y") ? text.replace(" (", "<br>(") : text);
    // A chart of several panels has an axis of each kind for each of them: xaxis, xaxis2, ...
    const axes = Object.fromEntries(axisNames(layout).map((name) => [name, {
      ...axis, showgrid: name.startsWith("y"), ...layout[name],
      title: { ...layout[name].title, text: titled(name, layout[name].title?.text ?? ""), standoff: 10 },
    }]));
    return {
      data,
      layout: {
        ...layout,
        paper_bgcolor: colour("--paper"), plot_bgcolor: colour("--paper"),
        font: { family: style.getPropertyValue("--sans"), size: 12, color: colour("--ink") },
        margin: { l: 52, r: 12, t: 12 + labelled(layout), b: 44 },
        hovermode: "closest", hoverlabel: { bgcolor: colour("--tint"), bordercolor: colour("--rule"), font: { color: colour("--ink") } },
        legend: { traceorder: "normal", orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
        ...axes,
        showlegend: false,
      },
    };
  }

  function draw() {
    const [narrow, isStacked] = ["40rem", "52rem"].map((width) => window.matchMedia(`(max-width: ${width})`).matches);
    plots.forEach((plot, number) => {
      if (!isShown(plot)) return;
      const { data, layout } = themed(figures[number], narrow, isStacked);
      const { panels, height_rem } = figures[number];
      if (height_rem) plot.style.height = `${isStacked && panels > 1 ? 13 * panels : height_rem}rem`;
      Plotly.react(plot, data, layout, config);
      const pressed = plot.parentElement.querySelector('.choice[aria-pressed="true"]');
      const choices = [...plot.parentElement.querySelectorAll(".choice")];
      if (pressed) Plotly.update(plot, ...figures[number].choices[choices.indexOf(pressed)]);
    });
  }

  function press(button, number) {
    const choices = [...button.parentElement.querySelectorAll(".choice")];
    choices.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    Plotly.update(plots[number], ...figures[number].choices[choices.indexOf(button)]);
  }

  function download(number) {
    const plot = plots[number];
    // On paper it stands on white, whatever the screen is like.
    document.documentElement.classList.add("light");
    const { data, layout } = themed(figures[number], false);
    document.documentElement.classList.remove("light");
    // As it was chosen above the chart.
    const shown = data.map((trace, index) => ({ ...trace, visible: plot.data[index].visible ?? true }));
    const axes = Object.fromEntries(axisNames(layout).map((name) => {
      const { type, tickmode } = plot.layout[name];
      return [name, { ...layout[name], type, tickmode }];
    }));
    const title = { text: figures[number].title, x: 0.02, y: 0.97, font: { size: 15 } };
    const lift = labelled(layout), height = 16 * (figures[number].height_rem ?? 21) + 84 + lift;
    const legend = { ...layout.legend, y: 1.02 + lift / (height - lift - 120) };
    const whole = { ...layout, ...axes, title, legend, showlegend: shown.length > 1, margin: { ...layout.margin, t: 76 + lift } };
    Plotly.downloadImage({ data: shown, layout: whole }, { format: "svg", width: 900, height, filename: figures[number].name });
  }

  // Shows the charts of one label, and draws them as the window is now.
  function choose(label) {
    labels.value = label;
    plots.map((plot) => plot.closest("figure")).filter((figure) => figure.dataset.label).forEach((figure) => {
      figure.hidden = figure.dataset.label !== label;
    });
    draw();
    plots.filter(isShown).forEach((plot) => Plotly.Plots.resize(plot));
  }

  // Draws the figures of what the page shows now, and of its labels the one that is chosen.
  function show(given, label) {
    figures = given;
    plots = [...document.querySelectorAll(".plot")];
    labels = document.querySelector("#label");
    if (labels) choose(label ?? labels.value);
    else draw();
  }

  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".choice, .download");
    const number = plots.indexOf(button?.closest("figure").querySelector(".plot"));
    if (number < 0) return;
    if (button.matches(".choice")) press(button, number);
    else download(number);
  });
  document.addEventListener("change", ({ target }) => {
    if (target === labels) choose(labels.value);
  });
  // A browser may have kept the choice of the last visit.
  show(JSON.parse(document.getElementById("figures").textContent), "0");
  window.showFigures = show;
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.matchMedia("print").addEventListener("change", draw);
  // A sheet is narrower than most windows, and Plotly does not see it coming.
  let chosen;
  window.addEventListener("beforeprint", () => {
    chosen = labels?.value;
    if (labels) choose("0");
    plots.filter(isShown).forEach((plot) => Plotly.relayout(plot, { width: 680 }));
  });
  window.addEventListener("afterprint", () => {
    plots.filter(isShown).forEach((plot) => Plotly.relayout(plot, { width: null, autosize: true }));
    if (labels) choose(chosen);
  });
})();
