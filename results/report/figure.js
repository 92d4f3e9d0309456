// Cursor and zoom for figures with lines: arrow keys or the mouse read values, + and − or dragging show a part, Escape or a double click all.
for (const figure of document.querySelectorAll("figure[data-lines]")) {
  const drawing = figure.querySelector(".drawing"), plot = drawing.querySelector(".plot");
  const [left, top, width, height] = ["x", "y", "width", "height"].map(name => plot[name].baseVal.value);
  const axis = (text, length) => {
    const [from, to, kind] = text.split(" "), log = kind === "log", f = log ? Math.log10 : v => v, g = log ? v => 10 ** v : v => v;
    const a = f(+from), b = f(+to);
    return { log, at: v => (f(v) - a) / (b - a) * length, value: p => g(a + p / length * (b - a)) };
  };
  const x = axis(drawing.dataset.x, width), y = axis(drawing.dataset.y, height);
  const whole = { x: 0, y: 0, width, height };
  let view = whole, curves, xs, position = -1, start;
  const make = (name, parent, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return parent.appendChild(element);
  };
  const reading = document.createElement("div");
  reading.className = "reading";
  reading.setAttribute("role", "status");
  reading.hidden = true;
  figure.append(reading);
  drawing.setAttribute("tabindex", "0");
  const cursor = make("path", plot, { class: "cursor" }), choice = make("rect", plot, { class: "choice", visibility: "hidden" });

  // The numbers are those of the CSV link.
  const fields = line => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(m => m[1].startsWith('"') ? m[1].slice(1, -1).replaceAll('""', '"') : m[1]);
  const load = () => {
    if (curves) return;
    const bytes = Uint8Array.from(atob(figure.querySelector("a[download$='.csv']").href.split(",")[1]), c => c.charCodeAt(0));
    curves = new Map();
    for (const line of new TextDecoder().decode(bytes).trim().split("\n").slice(1)) {
      const [name, at, value] = fields(line);
      if (!curves.has(name)) curves.set(name, []);
      if (at !== "" && value !== "") curves.get(name).push([+at, +value]);
    }
    xs = [...new Set([...curves.values()].flat().map(p => p[0]))].sort((a, b) => a - b);
  };
  const short = v => v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6) ? v.toExponential(3) : String(+v.toPrecision(5));
  const nearest = (list, v, of) => list.reduce((best, item) => Math.abs(of(item) - v) < Math.abs(of(best) - v) ? item : best, list[0]);

  const read = at => {
    const value = xs[position = Math.max(0, Math.min(xs.length - 1, at))], p = x.at(value);
    cursor.setAttribute("d", `M${p} 0V${height}`);
    reading.replaceChildren(Object.assign(document.createElement("b"), { textContent: `${drawing.querySelector(".label.x").textContent}: ${short(value)}` }));
    const rows = [...curves].map(([name, points]) => [name, points.find(q => q[0] === value)]).filter(([, point]) => point);
    for (const [name, point] of rows.slice(0, 24))
      reading.append(document.createElement("br"), `${name}: ${short(point[1])}`);
    reading.hidden = false;
    const scale = drawing.clientWidth / drawing.viewBox.baseVal.width, place = (left + (p - view.x) / view.width * width) * scale;
    const right = place < drawing.clientWidth / 2;
    reading.style.left = `${drawing.getBoundingClientRect().left - figure.getBoundingClientRect().left + (right ? place + 12 : Math.max(0, place - reading.offsetWidth - 12))}px`;
    reading.style.top = `${drawing.getBoundingClientRect().top - figure.getBoundingClientRect().top + (top + 8) * scale}px`;
  };
  const leave = () => { reading.hidden = true; cursor.removeAttribute("d"); };

  const ticks = (scale, from, to) => {
    const a = Math.min(from, to), b = Math.max(from, to), found = [];
    if (scale.log && b / a > 10) {
      for (let k = Math.ceil(Math.log10(a)); 10 ** k <= b; k += Math.ceil(Math.log10(b / a) / 6)) found.push(10 ** k);
      return found;
    }
    const power = 10 ** Math.floor(Math.log10((b - a) / 5)), step = power * [1, 2, 5, 10].find(f => f * power >= (b - a) / 5);
    for (let i = Math.ceil(a / step); i * step <= b; ++i) found.push(+(i * step).toPrecision(12));
    return found;
  };
  const original = ["x", "y"].map(name => drawing.querySelector(`.ticks.${name}`).innerHTML), grid = drawing.querySelector(".grid"), lines = grid.getAttribute("d");
  const show = next => {
    view = next;
    plot.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    const groups = ["x", "y"].map(name => drawing.querySelector(`.ticks.${name}`));
    groups.forEach((group, i) => { group.innerHTML = view === whole ? original[i] : ""; });
    grid.setAttribute("d", view === whole ? lines : "");
    if (view === whole) return;
    let d = "";
    for (const v of ticks(x, x.value(view.x), x.value(view.x + view.width))) {
      const p = left + (x.at(v) - view.x) / view.width * width;
      d += `M${p} ${top}V${top + height}`;
      make("text", groups[0], { x: p, y: top + height + 16, "text-anchor": "middle" }).textContent = short(v);
    }
    for (const v of ticks(y, y.value(height - view.y), y.value(height - view.y - view.height))) {
      const p = top + (height - y.at(v) - view.y) / view.height * height;
      d += `M${left} ${p}H${left + width}`;
      make("text", groups[1], { x: left - 7, y: p + 4, "text-anchor": "end" }).textContent = short(v);
    }
    grid.setAttribute("d", d);
  };
  const zoom = factor => {
    load();
    const centre = position < 0 ? view.x + view.width / 2 : x.at(xs[position]), w = Math.min(width, view.width * factor);
    show(w === width ? whole : { x: Math.max(0, Math.min(width - w, centre - w / 2)), y: view.y, width: w, height: view.height });
  };
  const point = event => {
    const box = drawing.getBoundingClientRect(), scale = drawing.viewBox.baseVal.width / box.width;
    return [view.x + ((event.clientX - box.left) * scale - left) / width * view.width, view.y + ((event.clientY - box.top) * scale - top) / height * view.height];
  };
  const rectangle = (a, b) => {
    const tall = Math.abs(a[1] - b[1]) > 0.08 * view.height;  // a flat one stands for all heights
    return { x: Math.min(a[0], b[0]), width: Math.abs(a[0] - b[0]), y: tall ? Math.min(a[1], b[1]) : view.y, height: tall ? Math.abs(a[1] - b[1]) : view.height };
  };
  drawing.addEventListener("pointermove", event => {
    load();
    const at = point(event);
    if (start) {
      for (const [key, value] of Object.entries(rectangle(start, at))) choice.setAttribute(key, value);
      choice.setAttribute("visibility", "visible");
    } else if (xs.length) read(xs.indexOf(nearest(xs, at[0], x.at)));
  });
  drawing.addEventListener("pointerdown", event => { if (event.button === 0 && event.pointerType === "mouse") start = point(event); });
  addEventListener("pointerup", event => {
    if (!start) return;
    const chosen = rectangle(start, point(event));
    start = undefined;
    choice.setAttribute("visibility", "hidden");
    if (chosen.width > 0.02 * view.width) show(chosen);
  });
  drawing.addEventListener("pointerleave", leave);
  drawing.addEventListener("blur", leave);
  drawing.addEventListener("dblclick", () => show(whole));
  drawing.addEventListener("keydown", event => {
    const keys = {
      ArrowRight: () => read(position + 1), ArrowLeft: () => read(position < 0 ? 0 : position - 1), Home: () => read(0), End: () => read(xs.length - 1),
      "+": () => zoom(0.5), "-": () => zoom(2), Escape: () => { show(whole); leave(); }
    };
    if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    load();
    keys[event.key]();
    event.preventDefault();
  });
}
