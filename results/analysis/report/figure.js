// A figure with lines becomes a chart of dygraphs when it is pointed at or has the focus; until then, in print and without scripts it is its SVG.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];
for (const figure of document.querySelectorAll("figure[data-lines]")) {
  const drawing = figure.querySelector(".drawing"), plot = drawing.querySelector(".plot"), classes = figure.dataset.lines.split(",");
  const axis = name => {
    const [from, to, kind] = drawing.dataset[name].split(" ");
    return { range: [+from, +to], ...(kind === "log" ? { log: true, f: Math.log10, g: v => 10 ** v } : { log: false, f: v => v, g: v => v }) };
  };
  const x = axis("x"), y = axis("y");
  const add = (name, parent) => parent.appendChild(Object.assign(document.createElement("div"), { className: name }));
  const chart = add("chart", figure), reading = add("reading", figure);
  chart.setAttribute("aria-hidden", "true");
  reading.setAttribute("role", "status");
  reading.hidden = true;
  for (const [name, value] of [["tabindex", "0"], ["role", "application"], ["aria-keyshortcuts", "ArrowLeft ArrowRight Home End + - Escape"]]) drawing.setAttribute(name, value);
  document.querySelector(".keys").hidden = false;
  let names, rows, graph, cursor, at = -1;

  // The numbers are those of the CSV link: series,x,y,low,high. A row for each x, with [low, y, high] of each series.
  const load = () => {
    const csv = new TextDecoder().decode(Uint8Array.from(atob(figure.querySelector("a[download$='.csv']").href.split(",")[1]), c => c.charCodeAt(0)));
    const fields = [...csv.matchAll(/("(?:[^"]|"")*"|[^,\n]*)[,\n]/g)].map(m => m[1].startsWith('"') ? m[1].slice(1, -1).replaceAll('""', '"') : m[1])
      .map(text => text.replace(/^'(?=[-=+@])/, ""));  // with which a spreadsheet takes no name for a formula
    const at = new Map(), number = text => text === "" || (y.log && +text <= 0) ? NaN : +text;
    names = [];
    let seen;
    for (let i = 5; i < fields.length; i += 5) {
      const [name, left, value, low, high] = fields.slice(i, i + 5);
      if (name !== names.at(-1)) names.push(name), seen = {};
      const key = `${left} ${seen[left] = (seen[left] ?? 0) + 1}`;
      if (!at.has(key)) at.set(key, [+left, ...classes.map(() => null)]);
      at.get(key)[names.length] = [low === "" ? number(value) : Math.max(+low, y.log ? y.range[0] : -Infinity), number(value), high === "" ? number(value) : +high];
    }
    rows = [...at.values()].sort((a, b) => a[0] - b[0]);
  };

  const style = name => {
    const path = plot.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    path.setAttribute("class", name);
    const { stroke, strokeWidth, strokeDasharray, strokeOpacity } = getComputedStyle(path), width = parseFloat(strokeWidth), points = name.startsWith("points");
    path.remove();
    return { color: stroke.replace(/^rgb\((.*)\)$/, `rgba($1, ${strokeOpacity})`), strokeWidth: points ? 0 : width, drawPoints: points, pointSize: width / 2,
      strokePattern: strokeDasharray === "none" ? null : strokeDasharray.split(", ").map(v => Math.max(width, parseFloat(v))) };
  };
  const short = v => {
    if (Number.isInteger(v) && Math.abs(v) < 1e15) return String(v).replace("-", "−");
    const [digits, power] = v.toExponential(4).split("e").map(Number);
    const text = v === 0 || (power > -4 && power < 6) ? String(+v.toPrecision(5)) : `${digits === 1 ? "" : `${digits}×`}10${[...String(power)].map(c => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`;
    return text.replace("-", "−");
  };
  const upTo = ([from, to]) => [from, to + 1e-9 * Math.abs(to)];  // so that a tick at the end is drawn
  // On a logarithmic axis powers of ten, with 2 and 5 times them where there is room.
  const ticker = (a, b, pixels, option, graph) => {
    const stride = Math.log10(b / a) / pixels * option("pixelsPerLabel"), chosen = [];
    for (let k = Math.floor(Math.log10(a)); option("logscale") && k <= Math.log10(b); ++k)
      if (k % Math.ceil(stride) === 0) chosen.push(...[1, 2, 5].slice(0, stride < 0.4 ? 3 : 1).map(v => v * 10 ** k).filter(v => v >= a && v <= b));
    return Dygraph.numericTicks(a, b, pixels, option, graph, chosen.length > 1 ? chosen : undefined);
  };

  const leave = () => { reading.hidden = true; cursor?.remove(); };
  const read = (value, points) => {
    const say = (name, text, colour) => {
      const element = Object.assign(document.createElement(name), { textContent: text });
      element.style.borderColor = colour;
      return element;
    };
    // Of each series the value at this x, or near it.
    const distance = row => Math.abs(x.f(row[0]) - x.f(value)), reach = 0.02 * (x.f(x.range[1]) - x.f(x.range[0]));
    const values = classes.map((name, i) => {
      const [row] = rows.filter(row => Number.isFinite(row[i + 1]?.[1]) && distance(row) <= reach).sort((a, b) => distance(a) - distance(b));
      return row && !/guide$| run /.test(name) ? say("span", `${names[i]}: ${short(row[i + 1][1])}${row[0] === value ? "" : ` at ${short(row[0])}`}`, graph.getPropertiesForSeries(String(i)).color) : "";
    });
    reading.replaceChildren(say("b", `${drawing.querySelector(".label.x").textContent}: ${short(value)}`), ...values);
    reading.style.top = `${chart.offsetTop + chart.offsetHeight + 22}px`;
    reading.hidden = false;
    Object.assign(chart.appendChild(cursor).style, { left: `${points[0].canvasx}px`, height: `${graph.getArea().h}px` });
  };
  const open = () => {
    if (graph) return;
    if (!rows) load();
    const outer = figure.getBoundingClientRect(), inner = drawing.getBoundingClientRect(), scale = inner.width / drawing.viewBox.baseVal.width;
    const [left, top, width, height] = ["x", "y", "width", "height"].map(name => plot[name].baseVal.value * scale);
    const begin = Math.min(left, 20 * scale), foot = 24 * scale, gap = 16 * scale;
    Object.assign(chart.style, { left: `${inner.left - outer.left - figure.clientLeft + begin}px`, top: `${inner.top - outer.top - figure.clientTop + top}px`,
      width: `${left - begin + width + gap}px`, height: `${height + foot}px` });
    figure.classList.add("live");
    const axisOptions = of => ({ logscale: of.log, axisLabelFormatter: short, ticker, axisLabelFontSize: 12 * scale });
    graph = new Dygraph(chart, rows, {
      labels: ["x", ...classes.map((_, i) => String(i))], series: Object.fromEntries(classes.map((name, i) => [String(i), style(name)])),
      customBars: true, fillAlpha: 0.17, connectSeparatedPoints: true, dateWindow: upTo(x.range), valueRange: y.range, logscale: y.log,
      axes: { x: { ...axisOptions(x), pixelsPerLabel: 60 }, y: { ...axisOptions(y), pixelsPerLabel: 34, axisLabelWidth: left - begin - 6 } },
      axisTickSize: 3, xAxisHeight: foot, rightGap: gap, axisLineColor: "transparent", gridLineColor: getComputedStyle(figure).borderColor, gridLineWidth: 0.8,
      highlightCallback: (_, value, points, row) => { at = row; read(value, points); }, unhighlightCallback: leave,
      interactionModel: { mousedown: Dygraph.defaultInteractionModel.mousedown, willDestroyContextMyself: true, dblclick: () => whole() }
    });
    cursor = add("cursor", chart);
    cursor.remove();
  };
  const close = () => {
    leave();
    graph?.destroy();
    graph = undefined;
    figure.classList.remove("live");
  };
  const whole = () => { close(); open(); };
  const zoom = factor => {
    const [least, most] = x.range.map(x.f), [from, to] = graph.xAxisRange().map(x.f), half = (to - from) * factor / 2;
    const centre = Math.max(least + half, Math.min(most - half, at < 0 ? (from + to) / 2 : x.f(rows[at][0])));
    graph.clearSelection();
    if (2 * half > 0.99 * (most - least)) whole();
    else graph.updateOptions({ dateWindow: upTo([x.g(centre - half), x.g(centre + half)]) });
    if (at >= 0) graph.setSelection(at, undefined, undefined, true);
  };
  const go = row => {
    at = Math.max(0, Math.min(rows.length - 1, row));
    const [from, to] = graph.xAxisRange();
    if (rows[at][0] < from || rows[at][0] > to) zoom(1);
    else graph.setSelection(at, undefined, undefined, true);
  };
  const keys = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(rows.length - 1), "+": () => zoom(0.5), "-": () => zoom(2), Escape: whole };
  drawing.addEventListener("keydown", event => {
    if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    open();
    keys[event.key]();
    event.preventDefault();
  });
  drawing.addEventListener("pointerenter", open);
  drawing.addEventListener("blur", leave);
  addEventListener("resize", close);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", close);
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(details => { details.open = true; }));

// A page that is served comes again every few seconds: what is unfolded stays so.
if (location.protocol === "http:") document.querySelectorAll("details").forEach((details, i) => {
  details.open ||= sessionStorage.getItem(i) !== null;
  details.addEventListener("toggle", () => details.open ? sessionStorage.setItem(i, "") : sessionStorage.removeItem(i));
});
