"use strict";
// What the page shows is in the element "data" (page.py says what that holds). Rows and orders of boxes come from there;
// here boxes get their sizes and places, since these depend on which groups are open.
const data = JSON.parse(document.getElementById("data").textContent);
const { nodes, groups, steps } = data;
const byId = id => document.getElementById(id);
const svg = byId("graph"), view = byId("view");

// ---- Words and numbers

const shapeText = shape => "(" + shape.join(", ") + (shape.length === 1 ? "," : "") + ")";
function numberText(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0 || Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}
function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) { bytes /= 1024; unit++; }
  return (unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)) + " " + units[unit];
}
const timeText = us => us >= 1e6 ? (us / 1e6).toFixed(2) + " s" : us >= 1e3 ? (us / 1e3).toFixed(2) + " ms" : us.toFixed(1) + " µs";
const plural = (count, word) => count.toLocaleString("en") + " " + (count === 1 ? word : word === "leaf" ? "leaves" : word + "s");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") element.onclick = value; else if (value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
function draw(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// ---- The tree of groups. An item is a node (0, 1, ...) or a group (-1, -2, ...; group 0 is everything).

const groupOfNode = new Array(nodes.length).fill(0);
const localIndex = groups.map(group => new Map(group.items.map((item, place) => [item, place])));
groups.forEach((group, number) => group.items.forEach(item => { if (item >= 0) groupOfNode[item] = number; }));
const parentOf = item => item >= 0 ? groupOfNode[item] : groups[-item].parent;
const isOpen = groups.map((_, number) => number === 0);

const nodesInside = groups.map(() => []);
nodes.forEach((_, node) => {
  for (let group = groupOfNode[node]; ; group = groups[group].parent) {
    nodesInside[group].push(node);
    if (group === 0) break;
  }
});
function openUntilFull(limit) {
  const canOpen = ({ repeats, kind, items }) => !(repeats > 1) && kind !== "block" && items.some(item => item < 0);
  let shown = 0, level = [groups[0]];
  while (level.length) {  // a whole level at a time, so that what is alike looks alike
    shown += level.reduce((sum, group) => sum + group.items.length, 0);
    if (shown > limit && level[0] !== groups[0]) return;
    level.forEach(group => { isOpen[groups.indexOf(group)] = true; });
    level = level.flatMap(group => group.items).filter(item => item < 0).map(item => groups[-item]).filter(canOpen);
  }
}
function visible(item) {
  let shown = item;
  for (let group = parentOf(item); group !== 0; group = groups[group].parent) if (!isOpen[group]) shown = -group;
  return shown;
}

const usersOf = nodes.map(() => []);
nodes.forEach((node, user) => new Set(node.inputs).forEach(given => usersOf[given].push(user)));
const stepOf = new Array(nodes.length).fill(-1);
steps.forEach((step, number) => { stepOf[step.node] = number; });

function titleOf(item) {
  if (item >= 0) return nodes[item].label;
  const group = groups[-item];
  const name = group.type ? group.name + ": " + group.type : group.name;
  return group.repeats > 1 ? name + " ×" + group.repeats : name;
}
function subtitleOf(item) {
  if (item < 0) {
    const operations = nodesInside[-item].filter(node => nodes[node].kind === "operation").length;
    return operations ? plural(operations, "operation") : plural(nodesInside[-item].length, "leaf");
  }
  const outputs = nodes[item].outputs;
  return outputs.length ? shapeText(outputs[0][0]) + (outputs.length > 1 ? " …" : "") : "";
}

// ---- Layout

const GAP_X = 20, GAP_Y = 30, PAD = 14, HEAD = 26;
const extent = new Map();      // item -> {w, h}
const corner = new Map();      // item -> {x, y}, the top left corner on the page
const passing = groups.map(() => []);   // group -> local index of a point -> {x, top, bottom}

function boxSize(item) {
  const w = Math.max((titleOf(item).length + (item < 0 ? 2 : 0)) * 7.4, subtitleOf(item).length * 6.5) + 20;
  return { w, h: 38 };
}
const linksOf = groups.map(() => null);
function links(number) {
  if (linksOf[number]) return linksOf[number];
  const group = groups[number], above = [], below = [];
  const join = chain => { for (let i = 1; i < chain.length; i++) {
    (below[chain[i - 1]] ||= []).push(chain[i]); (above[chain[i]] ||= []).push(chain[i - 1]); } };
  group.chains.forEach(join);
  for (const [place, way] of Object.entries(group.entries)) join([...way, Number(place)]);
  for (const [place, way] of Object.entries(group.exits)) join([Number(place), ...way]);
  return linksOf[number] = { above, below };
}
// Moves the boxes of a row the least (in squares) so that they keep their order and distance: isotonic regression.
function keepApart(row, wished, widths) {
  const offsets = [0];
  for (let i = 1; i < row.length; i++) offsets.push(offsets[i - 1] + (widths[row[i - 1]] + widths[row[i]]) / 2 + GAP_X);
  const pools = [];
  row.forEach((_, i) => {
    let value = wished[i] - offsets[i], size = 1;
    while (pools.length && pools[pools.length - 1][0] > value) {
      const [other, count] = pools.pop();
      value = (value * size + other * count) / (size + count);
      size += count;
    }
    pools.push([value, size]);
  });
  const placed = [];
  for (const [value, size] of pools) for (let i = 0; i < size; i++) placed.push(value + offsets[placed.length]);
  return placed;
}
function measure(number) {
  const group = groups[number], count = group.items.length, { above, below } = links(number);
  group.items.forEach(item => extent.set(item, item < 0 && isOpen[-item] ? measure(-item) : boxSize(item)));
  const widths = [], across = [];
  group.rows.forEach(row => row.forEach(local => { widths[local] = local < count ? extent.get(group.items[local]).w : 4; }));
  group.rows.forEach(row => keepApart(row, row.map(() => 0), widths).forEach((x, i) => { across[row[i]] = x; }));
  for (let sweep = 0; sweep < 10; sweep++) {
    const linked = sweep % 2 ? above : below;
    const order = sweep % 2 ? group.rows : [...group.rows].reverse();
    for (const row of order) {
      const wished = row.map(local => {
        const others = linked[local];
        return others ? others.reduce((sum, other) => sum + across[other], 0) / others.length : across[local];
      });
      keepApart(row, wished, widths).forEach((x, i) => { across[row[i]] = x; });
    }
  }
  let left = Infinity, right = -Infinity, top = 0;
  across.forEach((x, local) => { left = Math.min(left, x - widths[local] / 2); right = Math.max(right, x + widths[local] / 2); });
  group.places = [];
  for (const row of group.rows) {
    const height = Math.max(0, ...row.map(local => local < count ? extent.get(group.items[local]).h : 0));
    for (const local of row) group.places[local] = { x: across[local] - left, top, bottom: top + height };
    top += height + GAP_Y;
  }
  const head = titleOf(-number).length * 7.4 + 44;
  const width = Math.max(right - left, number ? head : 0);
  group.shift = (width - (right - left)) / 2;
  return { w: width + 2 * PAD, h: top - GAP_Y + 2 * PAD + HEAD };
}
function locate(number, x, y) {
  const group = groups[number], count = group.items.length;
  const dx = x + PAD + group.shift, dy = y + PAD + HEAD;
  group.places.forEach((place, local) => {
    if (local >= count) { passing[number][local] = { x: place.x + dx, top: place.top + dy, bottom: place.bottom + dy }; return; }
    const item = group.items[local], size = extent.get(item);
    corner.set(item, { x: place.x + dx - size.w / 2, y: (place.top + place.bottom) / 2 + dy - size.h / 2 });
    if (item < 0 && isOpen[-item]) locate(-item, corner.get(item).x, corner.get(item).y);
  });
}
function layOut() {
  extent.clear(); corner.clear();
  const size = measure(0);
  locate(0, 0, 0);
  return size;
}

// ---- Arrows: out of the groups around the start, along the way of the innermost common group, into the others.

const chainOf = groups.map(group => new Map(group.chains.map(chain => [chain[0] + "," + chain[chain.length - 1], chain])));
function groupsAround(item) {
  const found = [];
  for (let group = parentOf(item); ; group = groups[group].parent) { found.push(group); if (group === 0) return found; }
}
function way(start, end) {
  const common = new Set(groupsAround(end)), points = [], after = [];
  let from = start, to = end, group;
  for (group = parentOf(from); !common.has(group); group = groups[group].parent) {
    for (const local of groups[group].exits[localIndex[group].get(from)] || []) points.push(passing[group][local]);
    from = -group;
  }
  for (let inner = parentOf(to); inner !== group; inner = groups[inner].parent) {
    after.unshift(...(groups[inner].entries[localIndex[inner].get(to)] || []).map(local => passing[inner][local]));
    to = -inner;
  }
  const first = localIndex[group].get(from), last = localIndex[group].get(to);
  const chain = chainOf[group].get(first + "," + last), back = chainOf[group].get(last + "," + first);
  const between = (chain || [...back].reverse()).slice(1, -1).map(local => passing[group][local]);
  return { points: [...points, ...between, ...after], upwards: !chain };
}
function arrowPath(start, end) {
  const a = corner.get(start), sizeA = extent.get(start), b = corner.get(end), sizeB = extent.get(end);
  const { points, upwards } = way(start, end);
  let x = a.x + sizeA.w / 2, y = upwards ? a.y : a.y + sizeA.h;
  let path = `M${x.toFixed(1)},${y.toFixed(1)}`;
  const curveTo = (nx, ny) => {
    const middle = (y + ny) / 2;
    path += ` C${x.toFixed(1)},${middle.toFixed(1)} ${nx.toFixed(1)},${middle.toFixed(1)} ${nx.toFixed(1)},${ny.toFixed(1)}`;
    x = nx; y = ny;
  };
  for (const point of points) {
    curveTo(point.x, upwards ? point.bottom : point.top);
    y = upwards ? point.top : point.bottom;
    path += ` V${y.toFixed(1)}`;
  }
  curveTo(b.x + sizeB.w / 2, upwards ? b.y + sizeB.h + 2 : b.y - 2);
  return path;
}

// ---- Drawing

const state = { selected: null, step: 0, colour: "kind", playing: null, scale: 1, x: 0, y: 0, hits: new Set() };
let boxes = new Map(), arrows = [], shownItems = [], whole = { w: 1, h: 1 }, drawn = null;
const MANY = 1500;   // more boxes than this are drawn only where one looks, and from afar as one picture

function render() {
  whole = layOut();
  shownItems = [...groups[0].items];
  for (let i = 0; i < shownItems.length; i++) {
    if (shownItems[i] < 0 && isOpen[-shownItems[i]]) shownItems.push(...groups[-shownItems[i]].items);
  }
  const shownAs = nodes.map((_, node) => visible(node)), seen = new Set();
  arrows = [];
  nodes.forEach((node, user) => {
    for (const given of node.inputs) {
      const start = shownAs[given], end = shownAs[user], key = start + "," + end;
      if (start === end || seen.has(key)) continue;
      seen.add(key);
      arrows.push({ start, end, d: arrowPath(start, end), path: null, look: "" });
    }
  });
  drawn = null;
  drawRegion();
}
function drawRegion() {
  const { width, height } = svg.getBoundingClientRect(), { x, y, scale } = state;
  const seen = { left: -x / scale, top: -y / scale, right: (width - x) / scale, bottom: (height - y) / scale, far: scale < 0.3 };
  if (shownItems.length <= MANY) Object.assign(seen, { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9, far: false });
  const isDrawn = drawn && (drawn.far && seen.far || drawn.far === seen.far && seen.left >= drawn.left && seen.top >= drawn.top && seen.right <= drawn.right && seen.bottom <= drawn.bottom);
  if (isDrawn) return;
  const w = seen.right - seen.left, h = seen.bottom - seen.top;
  drawn = { left: seen.left - w / 2, right: seen.right + w / 2, top: seen.top - h / 2, bottom: seen.bottom + h / 2, far: seen.far };
  boxes = new Map();
  const back = draw("g"), middle = draw("g"), front = draw("g");
  arrows.forEach(arrow => { arrow.path = null; arrow.look = ""; });
  if (seen.far) {
    middle.append(draw("path", { class: "arrow", d: arrows.map(arrow => arrow.d).join("") }));
    for (const kind of ["group", "operation", "leaf", "output"]) (kind === "group" ? back : front).append(silhouettes(kind));
  } else {
    for (const item of shownItems) if (touches(item)) {
      const open = item < 0 && isOpen[-item];
      (open ? back : front).append(boxFor(item, open));
      if (open) front.append(captionFor(item));
    }
    for (const arrow of arrows) if (boxes.has(arrow.start) || boxes.has(arrow.end)) {
      arrow.path = draw("path", { class: "arrow", d: arrow.d, "marker-end": "url(#tip)" });
      middle.append(arrow.path);
    }
  }
  view.replaceChildren(tip(), back, middle, front);
  paint();
}
function touches(item) {
  const { x, y } = corner.get(item), { w, h } = extent.get(item);
  return x < drawn.right && x + w > drawn.left && y < drawn.bottom && y + h > drawn.top;
}
function silhouettes(kind) {
  const found = draw("g", { class: "box " + (kind === "group" ? "group" : kind) });
  let path = "";
  for (const item of shownItems) {
    if ((item < 0 ? "group" : nodes[item].kind) !== kind) continue;
    const { x, y } = corner.get(item), { w, h } = extent.get(item);
    path += `M${x.toFixed()},${y.toFixed()}h${w.toFixed()}v${h.toFixed()}h${-w.toFixed()}z`;
  }
  found.append(draw("path", { class: "face", d: path }));
  return found;
}
function tip() {
  const marker = draw("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto", markerUnits: "userSpaceOnUse" });
  marker.append(draw("path", { d: "M0,0 L8,4 L0,8 Z" }));
  return marker;
}
function boxFor(item, open) {
  const { x, y } = corner.get(item), { w, h } = extent.get(item);
  const kind = item >= 0 ? nodes[item].kind : "group " + groups[-item].kind + (open ? " open" : " folded");
  const element = draw("g", { class: "box " + kind, "data-item": item, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` });
  const radius = kind === "leaf" ? 3 : 8;
  if (item < 0 && groups[-item].repeats > 1 && !open) element.append(draw("rect", { x: 5, y: 5, width: w, height: h, rx: radius }));
  const face = element.appendChild(draw("rect", { class: "face", width: w, height: h, rx: radius }));
  let bar = null;
  if (!open) {
    element.append(draw("text", { class: "title", x: w / 2, y: 17, "text-anchor": "middle" }, (item < 0 ? "▸ " : "") + titleOf(item)));
    element.append(draw("text", { class: "small", x: w / 2, y: 31, "text-anchor": "middle" }, subtitleOf(item)));
    if (item < 0) bar = element.appendChild(draw("rect", { class: "progress", x: 4, y: h - 4, width: 0, height: 3, rx: 1.5 }));
  }
  boxes.set(item, { element, face, bar, kind: "box " + kind, look: "" });
  return element;
}

// The title of an open group stands above the arrows that cross it.
function captionFor(item) {
  const { x, y } = corner.get(item);
  const caption = draw("g", { class: "box group caption", "data-item": item, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})` });
  caption.append(draw("text", { class: "title", x: 12, y: 18 }, "▾ " + titleOf(item)));
  return caption;
}

// What changes without a new layout: selection, search hits, colours, the step of the pass.
function paint() {
  const heat = heatOf(state.colour);
  const current = state.step ? steps[state.step - 1].node : -1, currentBox = current < 0 ? null : visible(current);
  const receivers = new Set(current < 0 ? [] : nodes[current].inputs.map(visible));
  for (const [item, box] of boxes) {
    const open = item < 0 && isOpen[-item], inside = open ? [] : item >= 0 ? [item] : nodesInside[-item];
    const done = state.step ? inside.filter(node => stepOf[node] >= 0 && stepOf[node] < state.step).length : 0;
    const colour = open ? null : heat(item);
    const look = box.kind + (state.step && !done && !open && !(item >= 0 && nodes[item].kind === "output") ? " waiting" : "")
      + (item === currentBox ? " current" : "") + (item === state.selected ? " selected" : "") + (state.hits.has(item) ? " hit" : "") + (colour ? " heated" : "");
    if (look !== box.look) { box.look = look; box.element.setAttribute("class", look); }
    if (box.bar) box.bar.setAttribute("width", (extent.get(item).w - 8) * done / inside.length);
    box.face.style.fill = colour || "";
  }
  for (const arrow of arrows) {
    if (!arrow.path) continue;
    const near = state.selected !== null && (arrow.start === state.selected || arrow.end === state.selected);
    const look = "arrow" + (near ? " near" : "") + (arrow.end === currentBox && receivers.has(arrow.start) ? " flowing" : "");
    if (look !== arrow.look) { arrow.look = look; arrow.path.setAttribute("class", look); }
  }
}

const gradientOf = node => stepOf[node] >= 0 ? steps[stepOf[node]].grads.find(Boolean) : nodes[node].grad && nodes[node].grad.summary;
const measures = {
  gradient: node => { const grad = gradientOf(node); return grad && grad.norm > 0 ? Math.log10(grad.norm / Math.sqrt(grad.elements)) : null; },
  time: node => stepOf[node] >= 0 ? steps[stepOf[node]].time : null,
  memory: node => nodes[node].saved ? nodes[node].saved.reduce((sum, saved) => sum + saved[3], 0) : null,
};
function heatOf(colour) {
  const read = measures[colour];
  if (!read) { legend(); return () => null; }
  const values = nodes.map((_, node) => read(node)), known = values.filter(value => value !== null && isFinite(value));
  if (!known.length) { legend("nothing is known of this"); return () => null; }
  const low = colour === "gradient" ? Math.min(...known.slice(0, 20000)) : 0, high = Math.max(...known.slice(0, 20000));
  const shown = value => colour === "gradient" ? "10^" + value.toFixed(1) : colour === "time" ? timeText(value) : bytesText(value);
  const paintOf = value => `hsl(${55 - 50 * value}, ${70 + 20 * value}%, ${86 - 26 * value}%)`;
  const words = { gradient: "size of gradient elements", time: "time in backward", memory: "saved memory" };
  legend(words[colour] + ":", [[paintOf(0), shown(low)], [paintOf(1), shown(high)]]);
  return item => {
    const found = (item >= 0 ? [item] : nodesInside[-item]).map(node => values[node]).filter(value => value !== null && isFinite(value));
    if (!found.length) return null;
    const value = colour === "gradient" || item >= 0 ? Math.max(...found) : Math.min(high, found.reduce((a, b) => a + b, 0));
    return paintOf(high > low ? (value - low) / (high - low) : 0.5);
  };
}
function legend(text, entries) {
  const target = byId("legend");
  target.replaceChildren(text || "");
  entries ||= text ? [] : [["var(--output)", "output"], ["var(--operation)", "operation"], ["var(--leaf)", "leaf"]];
  for (const [colour, words] of entries) target.append(make("i", { style: `background:${colour};border-color:var(--operation-line)` }), words);
}

// ---- Zoom and pan

function look() {
  view.setAttribute("transform", `translate(${state.x},${state.y}) scale(${state.scale})`);
  svg.classList.toggle("far", state.scale < 0.42);
  if (shownItems.length > MANY) requestAnimationFrame(drawRegion);
}
function itemAt(event) {
  const element = event.target.closest("[data-item]");
  if (element || shownItems.length <= MANY) return element ? Number(element.dataset.item) : null;
  const box = svg.getBoundingClientRect(), x = (event.clientX - box.left - state.x) / state.scale, y = (event.clientY - box.top - state.y) / state.scale;
  return shownItems.findLast(item => {
    const at = corner.get(item), size = extent.get(item);
    return x >= at.x && x <= at.x + size.w && y >= at.y && y <= at.y + size.h;
  }) ?? null;
}
function zoomAt(factor, px, py) {
  const scale = Math.min(4, Math.max(0.01, state.scale * factor)), real = scale / state.scale;
  state.x = px - (px - state.x) * real; state.y = py - (py - state.y) * real; state.scale = scale;
  look();
}
// Smaller than `least` nothing is shown: of a graph that is too long for that, its beginning is.
function fit(least = 0.04) {
  const { width, height } = svg.getBoundingClientRect();
  state.scale = Math.max(least, Math.min(1.4, (width - 24) / whole.w, (height - 44) / whole.h));
  state.x = (width - whole.w * state.scale) / 2;
  state.y = whole.h * state.scale > height ? 8 : (height - 20 - whole.h * state.scale) / 2;
  look();
}
function bringIntoView(item) {
  const { width, height } = svg.getBoundingClientRect(), { x, y } = corner.get(item), { w, h } = extent.get(item);
  if (state.scale < 0.42) state.scale = 0.8;
  const left = x * state.scale + state.x, top = y * state.scale + state.y;
  if (left < 0 || top < 0 || left + w * state.scale > width || top + h * state.scale > height - 20) {
    state.x = width / 2 - (x + w / 2) * state.scale;
    state.y = height / 2 - (y + Math.min(h, 200) / 2) * state.scale;
  }
  look();
}
const pointers = new Map();
let moved = false;
svg.addEventListener("wheel", event => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
svg.addEventListener("pointerdown", event => { pointers.set(event.pointerId, event); moved = false; });
svg.addEventListener("pointermove", event => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  if (!moved && Math.hypot(event.clientX - before.clientX, event.clientY - before.clientY) < 4) return;
  if (!moved) svg.setPointerCapture(event.pointerId);
  moved = true;
  const box = svg.getBoundingClientRect();
  if (pointers.size === 2) {
    const other = [...pointers.values()].find(pointer => pointer.pointerId !== event.pointerId);
    const reach = pointer => Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY);
    zoomAt(reach(event) / Math.max(reach(before), 1), (event.clientX + other.clientX) / 2 - box.left, (event.clientY + other.clientY) / 2 - box.top);
  } else {
    state.x += event.clientX - before.clientX; state.y += event.clientY - before.clientY;
  }
  pointers.set(event.pointerId, event);
  look();
});
for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, event => pointers.delete(event.pointerId));
svg.addEventListener("click", event => {
  if (moved) return;
  const item = itemAt(event);
  if (item !== null && item < 0 && (state.selected === item || !isOpen[-item])) toggle(item); else select(item);
});
svg.addEventListener("dblclick", event => {
  if (itemAt(event) !== null) return;
  const box = svg.getBoundingClientRect();
  zoomAt(1.6, event.clientX - box.left, event.clientY - box.top);
});

// ---- Selection and details

function toggle(item) {
  const before = corner.get(item);
  isOpen[-item] = !isOpen[-item];
  render();
  const after = corner.get(item);
  state.x += (before.x - after.x) * state.scale; state.y += (before.y - after.y) * state.scale;
  look();
  select(item);
}
function reveal(item) {
  let changed = false;
  for (let group = parentOf(item); group !== 0; group = groups[group].parent) if (!isOpen[group]) { isOpen[group] = true; changed = true; }
  if (changed) render();
}
function select(item, show = false) {
  state.selected = item;
  if (item !== null && show) { reveal(item); bringIntoView(item); }
  paint();
  describe();
}
function describe() {
  const target = byId("details");
  if (state.selected === null) { target.replaceChildren(...overview()); return; }
  target.replaceChildren(...(state.selected < 0 ? groupDetails(-state.selected) : nodeDetails(state.selected)));
  target.scrollTop = 0;
}
function overview() {
  const operations = nodes.filter(node => node.kind === "operation").length, leaves = nodes.filter(node => node.kind === "leaf");
  const elements = leaves.reduce((sum, leaf) => sum + leaf.outputs[0][0].reduce((a, b) => a * b, 1), 0);
  const rows = [["operations", operations.toLocaleString("en")], ["leaves", leaves.length.toLocaleString("en")], ["elements of leaves", elements.toLocaleString("en")]];
  const held = savedBytes(nodes.map((_, node) => node));
  if (held) rows.push(["saved for backward", bytesText(held)]);
  const spent = steps.reduce((sum, step) => sum + (step.time || 0), 0);
  if (spent) rows.push(["time in backward", timeText(spent)]);
  return [make("h2", {}, data.title), table(rows),
    make("p", { class: "hint" }, "Click a box for its details, a group to open it.", make("span", { class: "keys" }, " Press ? for the keys."))];
}
function savedBytes(inside) {
  const sizes = new Map();
  for (const node of inside) for (const saved of nodes[node].saved || []) sizes.set(saved[4], saved[3]);
  return [...sizes.values()].reduce((a, b) => a + b, 0);
}
function table(rows) {
  const made = make("table");
  for (const row of rows) made.append(make("tr", {}, ...row.map(cell => make("td", { class: "number" }, cell instanceof Node ? cell : String(cell)))));
  return made;
}
function linkTo(item) {
  const words = item < 0 ? titleOf(item) : nodes[item].kind === "leaf" ? nodes[item].name : nodes[item].label + " " + subtitleOf(item);
  return make("a", { onclick: () => select(item, true), tabindex: 0 }, words);
}
function nodeDetails(item) {
  const node = nodes[item], parts = [make("h2", {}, node.kind === "leaf" ? node.name : node.label)];
  if (node.kind === "operation") parts.push(make("p", { style: "color:var(--faint)" }, node.name));
  if (node.module) parts.push(table([["module", node.module]]));
  if (node.outputs.length) {
    parts.push(make("h3", {}, node.kind === "leaf" ? "tensor" : node.outputs.length > 1 ? "results" : "result"));
    parts.push(table(node.outputs.map(([shape, dtype]) => [shapeText(shape), dtype])));
  }
  if (node.place) {
    const [file, line, text] = node.place;
    parts.push(make("h3", {}, "recorded at"), make("p", { title: file }, file.split("/").pop() + ":" + line));
    if (text) parts.push(make("pre", {}, text));
  }
  parts.push(...gradientDetails(item));
  if (node.saved) {
    parts.push(make("h3", {}, "saved for backward"));
    parts.push(table(node.saved.map(([name, shape, dtype, bytes]) => [name, shapeText(shape) + " " + dtype, bytesText(bytes)])));
  }
  if (node.inputs.length) parts.push(make("h3", {}, "inputs"), ...node.inputs.map(given => make("p", {}, linkTo(given))));
  if (usersOf[item].length) parts.push(make("h3", {}, "used by"), ...usersOf[item].slice(0, 30).map(user => make("p", {}, linkTo(user))));
  return parts;
}
function gradientDetails(item) {
  const number = stepOf[item], own = nodes[item].grad, parts = [];
  if (number < 0 && !own) return parts;
  const step = number >= 0 ? steps[number] : { grads: [own.summary], values: own.values, time: null };
  if (step.time !== null) parts.push(make("h3", {}, "time in backward"), make("p", { class: "number" }, timeText(step.time)));
  parts.push(make("h3", {}, number >= 0 ? `gradient (arrives at step ${number + 1} of ${steps.length})` : "gradient (.grad)"));
  step.grads.forEach((grad, output) => {
    if (!grad) return;
    const rows = [["norm", numberText(grad.norm)], ["mean ± deviation", numberText(grad.mean) + " ± " + numberText(grad.deviation)],
      ["least, greatest", numberText(grad.minimum) + ", " + numberText(grad.maximum)], ["zeros", `${grad.zeros} of ${grad.elements}`]];
    if (step.grads.length > 1) rows.unshift(["of result", output]);
    if (grad.nans || grad.infinities) rows.push(["not finite", make("span", { class: "bad" }, `${grad.nans} NaN, ${grad.infinities} infinite`)]);
    if (output === 0 && step.values.length) rows.push(["first values", step.values.map(numberText).join(", ") + (grad.elements > step.values.length ? ", …" : "")]);
    parts.push(table(rows), histogram(grad.histogram, "bars"));
  });
  return parts;
}
function histogram(counts, kind) {
  const high = Math.max(...counts, 1), width = 4 * counts.length || 1, made = draw("svg", { class: kind, viewBox: `0 0 ${width} 20`, preserveAspectRatio: "none" });
  made.append(draw("title", {}, counts.length ? "how many elements there are of each size, from the least to the greatest" : "no finite element"));
  counts.forEach((count, i) => { const h = count ? Math.max(0.8, 20 * count / high) : 0; made.append(draw("rect", { x: 4 * i, y: 20 - h, width: 3.4, height: h })); });
  return made;
}
function groupDetails(number) {
  const inside = nodesInside[number], group = groups[number];
  const leaves = inside.filter(node => nodes[node].kind === "leaf");
  const rows = [["operations", inside.filter(node => nodes[node].kind === "operation").length], ["leaves", leaves.length],
    ["elements of leaves", leaves.reduce((sum, leaf) => sum + nodes[leaf].outputs[0][0].reduce((a, b) => a * b, 1), 0).toLocaleString("en")],
    ["saved for backward", bytesText(savedBytes(inside))]];
  const spent = inside.reduce((sum, node) => sum + (stepOf[node] >= 0 && steps[stepOf[node]].time || 0), 0);
  if (spent) rows.push(["time in backward", timeText(spent)]);
  return [make("h2", {}, titleOf(-number)), make("p", { style: "color:var(--faint)" }, group.repeats > 1 ? group.repeats + " parts that are alike" : { module: "module", step: "one of the repetitions", block: "part of a long list" }[group.kind] || ""),
    table(rows), make("p", {}, make("button", { onclick: () => toggle(-number) }, isOpen[number] ? "fold" : "open")),
    make("h3", {}, "inside"), ...group.items.slice(0, 60).map(item => make("p", {}, linkTo(item)))];
}

// ---- Search

const entries = [...nodes.keys(), ...groups.keys()].map((_, i) => i < nodes.length ? i : -(i - nodes.length)).filter(item => !Object.is(item, -0))
  .map(item => ({ item, text: (item < 0 ? titleOf(item) : [nodes[item].name, nodes[item].label, nodes[item].module, nodes[item].place && nodes[item].place.join(":")].join(" ")).toLowerCase() }));
let chosen = -1;
function search() {
  const words = byId("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean), list = byId("found");
  const hits = words.length ? entries.filter(entry => words.every(word => entry.text.includes(word))) : [];
  state.hits = new Set(hits.map(hit => visible(hit.item)));
  chosen = hits.length ? 0 : -1;
  list.replaceChildren(...hits.slice(0, 40).map((hit, i) => {
    const node = nodes[hit.item];
    const where = hit.item < 0 ? "group" : [node.module, node.place && node.place[0].split("/").pop() + ":" + node.place[1], subtitleOf(hit.item)].filter(Boolean).join(" · ");
    return make("li", { "data-item": hit.item, "aria-selected": i === 0, onclick: () => take(hit.item) }, hit.item < 0 ? titleOf(hit.item) : node.name, make("small", {}, where));
  }));
  list.hidden = !words.length;
  if (words.length && !hits.length) list.replaceChildren(make("li", {}, "nothing found"));
  if (words.length) say(plural(hits.length, "hit"));
  paint();
}
function take(item) {
  byId("found").hidden = true;
  state.hits = new Set();
  select(item, true);
  svg.focus({ preventScroll: true });
}
byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", event => {
  const items = [...byId("found").querySelectorAll("li[data-item]")];
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    chosen = Math.max(0, Math.min(items.length - 1, chosen + (event.key === "ArrowDown" ? 1 : -1)));
    items.forEach((element, i) => element.setAttribute("aria-selected", i === chosen));
    items[chosen]?.scrollIntoView({ block: "nearest" });
    event.preventDefault();
  } else if (event.key === "Enter" && items[chosen]) take(Number(items[chosen].dataset.item));
  else if (event.key === "Escape") { byId("search").value = ""; search(); svg.focus({ preventScroll: true }); }
  event.stopPropagation();
});
document.addEventListener("click", event => { if (!event.target.closest(".search")) byId("found").hidden = true; });

// ---- The backward pass

const arrivalRows = [];
function prepareArrivals() {
  const body = byId("arrivals").querySelector("tbody");
  steps.forEach((step, number) => {
    const node = nodes[step.node];
    if (node.kind !== "leaf" || !step.grads[0]) return;
    const grad = step.grads[0];
    const values = step.values.slice(0, 4).map(numberText).join(", ") + (grad.elements > 4 ? ", …" : "");
    const bad = grad.nans || grad.infinities;
    const row = make("tr", { hidden: "", "data-node": step.node, onclick: () => select(step.node, true) },
      make("td", {}, node.name), make("td", {}, shapeText(node.outputs[0][0])),
      make("td", { class: "number" + (bad ? " bad" : "") }, bad ? normText(grad) : numberText(grad.norm)),
      make("td", { class: "number" }, numberText(grad.mean)), make("td", { class: "number" }, values), make("td", {}, histogram(grad.histogram, "spark")));
    body.append(row);
    arrivalRows.push({ number, row });
  });
}
const normText = grad => grad.nans || grad.infinities ? plural(grad.nans + grad.infinities, "element") + " not finite" : "‖g‖ = " + numberText(grad.norm);
function say(text) { byId("status").textContent = text; }
function goTo(step, follow = true) {
  state.step = Math.max(0, Math.min(steps.length, step));
  byId("slider").value = state.step;
  let last = null;
  for (const { number, row } of arrivalRows) { row.hidden = number >= state.step; if (!row.hidden) last = row; }
  if (last) last.scrollIntoView({ block: "nearest" });
  paint();
  markTimeline();
  if (!steps.length) say("no pass was run");
  else if (!state.step) say(`${plural(steps.length, "step")}; press space to play`);
  else {
    const done = steps[state.step - 1], node = nodes[done.node], grad = done.grads.find(Boolean);
    const words = `step ${state.step} of ${steps.length}: ${node.kind === "leaf" ? node.name + " has its gradient" : node.label}`;
    say(words + (grad ? ", " + normText(grad) : "") + (state.step === steps.length ? ". The pass has ended." : ""));
    if (follow) bringIntoView(visible(done.node));
  }
}
function play() {
  if (state.playing) { clearInterval(state.playing); state.playing = null; }
  else if (steps.length) {
    if (state.step === steps.length) goTo(0);
    const stride = Math.max(1, Math.round(steps.length / 400));
    state.playing = setInterval(() => { goTo(state.step + stride); if (state.step === steps.length) play(); }, steps.length > 60 ? 60 : 350);
  }
  byId("play").textContent = state.playing ? "❚❚ pause" : "▶ play";
}
byId("slider").max = steps.length;
byId("slider").addEventListener("input", event => goTo(Number(event.target.value)));
byId("play").onclick = play;
byId("next").onclick = () => goTo(state.step + 1);
byId("previous").onclick = () => goTo(state.step - 1);
byId("first").onclick = () => goTo(0, false);
byId("last").onclick = () => goTo(steps.length);

// ---- Memory over time, and the flame chart

let timeline = null;
function drawMemory() {
  const target = byId("memory"), points = data.memory, measured = data.allocated;
  if (!points.length) { target.replaceChildren("Nothing was saved for backward."); return; }
  const { width, height } = target.getBoundingClientRect(), left = 70, right = 12, top = 20, bottom = 24;
  const w = width - left - right - 24, h = height - top - bottom - 14;
  const peak = Math.max(...points.map(point => point[2]), ...measured.map(point => point[1]), 1);
  const chart = draw("svg", { class: "chart", viewBox: `0 0 ${w + left + right} ${h + top + bottom}`, role: "img", "aria-label": "memory over time" });
  const x = i => left + w * (i + 1) / points.length, y = bytes => top + h * (1 - bytes / peak);
  const turn = points.findIndex(point => point[0] === 1), half = turn < 0 ? points.length : turn, border = x(half - 1);
  let line = `M${left},${y(0)}`;
  points.forEach((point, i) => { line += ` H${x(i).toFixed(1)} V${y(point[2]).toFixed(1)}`; });
  chart.append(draw("path", { d: line + ` V${y(0)} Z`, fill: "var(--leaf)", stroke: "var(--leaf-line)" }));
  if (measured.length) chart.append(draw("path", { d: measuredLine(measured, left, border, left + w, y), fill: "none", stroke: "var(--warm)", "stroke-width": 1.5 }));
  for (const share of [0, 0.5, 1]) {
    chart.append(draw("path", { d: `M${left},${y(peak * share)} h${w}`, stroke: "var(--line)", "stroke-dasharray": share ? "3 3" : "none" }));
    chart.append(draw("text", { x: left - 6, y: y(peak * share) + 4, "text-anchor": "end" }, bytesText(peak * share)));
  }
  chart.append(draw("rect", { x: 2, y: 2, width: 10, height: 10, fill: "var(--leaf)", stroke: "var(--leaf-line)" }), draw("text", { x: 17, y: 11 }, "saved, leaves too"));
  if (measured.length) chart.append(draw("path", { d: "M150,7 h14", stroke: "var(--warm)", "stroke-width": 2 }), draw("text", { x: 169, y: 11 }, "new results and gradients"));
  chart.append(draw("text", { x: (left + border) / 2, y: top + h + 16, "text-anchor": "middle" }, "forward"));
  if (turn >= 0) {
    chart.append(draw("path", { d: `M${border},${top} v${h}`, stroke: "var(--faint)" }));
    chart.append(draw("text", { x: (border + left + w) / 2, y: top + h + 16, "text-anchor": "middle" }, "backward"));
  }
  const marker = chart.appendChild(draw("path", { stroke: "var(--accent)", "stroke-width": 2, d: "" }));
  const at = event => {
    const box = chart.getBoundingClientRect(), px = (event.clientX - box.left) * (w + left + right) / box.width;
    return Math.max(0, Math.min(points.length - 1, Math.floor((px - left) / w * points.length)));
  };
  chart.addEventListener("pointermove", event => {
    const [phase, node, bytes] = points[at(event)];
    say(`${bytesText(bytes)} saved after ${nodes[node].label} ${phase ? "in backward" : "in forward"}; peak of all ${bytesText(peak)}`);
  });
  chart.addEventListener("click", event => select(points[at(event)][1], true));
  timeline = { marker, x, top, h, turn, points };
  target.replaceChildren(chart);
  markTimeline();
}
function measuredLine(measured, left, border, right, y) {
  const counts = [0, 0], seen = [0, 0], ends = [[left, border], [border, right]];
  for (const [phase] of measured) counts[phase]++;
  let line = `M${left},${y(0)}`;
  for (const [phase, bytes] of measured) {
    const [from, to] = ends[phase];
    line += ` H${(from + (to - from) * ++seen[phase] / counts[phase]).toFixed(1)} V${y(bytes).toFixed(1)}`;
  }
  return line;
}
function markTimeline() {
  if (!timeline || timeline.turn < 0) return;
  const done = steps.slice(0, state.step).filter(step => nodes[step.node].kind === "operation").length;
  timeline.marker.setAttribute("d", state.step ? `M${timeline.x(timeline.turn - 1 + done)},${timeline.top} v${timeline.h}` : "");
}
let span = null;
function drawTime() {
  const target = byId("time"), events = data.events;
  if (!events.length) { target.replaceChildren("No times were recorded: watch_backward() and “pullback view” record those of forward and backward."); return; }
  const { width, height } = target.getBoundingClientRect(), w = width - 24, h = height - 14;
  span ||= [0, Math.max(...events.map(event => event[1] + event[2]))];
  const chart = draw("svg", { class: "chart flame", viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": "what ran when" });
  const scale = w / (span[1] - span[0]), deepest = Math.max(...events.map(event => event[3])) + 1, tall = Math.min(18, (h - 20) / deepest);
  for (const [name, start, length, depth, phase, node] of events) {
    const x = (start - span[0]) * scale, wide = length * scale;
    if (x > w || x + wide < 0 || wide < 0.4) continue;
    let hash = 0;
    for (const letter of name.replace(/^.*: |Backward\d*$|^aten::/g, "").toLowerCase()) hash = (hash * 31 + letter.charCodeAt(0)) % 997;
    const fill = phase ? `hsl(${8 + hash % 34}, 82%, ${66 + hash % 9}%)` : `hsl(${196 + hash % 44}, 70%, ${70 + hash % 9}%)`;
    const bar = draw("g", { "data-name": name });
    bar.append(draw("rect", { x: x.toFixed(1), y: 20 + depth * tall, width: Math.max(wide - 0.5, 0.5).toFixed(1), height: tall - 1, fill, rx: 2 }));
    const from = Math.max(x, 0), room = Math.min(x + wide, w) - from, short = name.replace("autograd::engine::evaluate_function: ", "").replace("aten::", "");
    if (room > 24 && tall > 10) bar.append(draw("text", { x: from + 4, y: 20 + depth * tall + tall - 6 }, short.slice(0, Math.floor((room - 6) / 6.7))));
    bar.addEventListener("pointermove", () => say(`${name}: ${timeText(length)} ${phase ? "in backward" : "in forward"}`));
    bar.addEventListener("click", () => { if (node >= 0) select(node, true); });
    chart.append(bar);
  }
  for (let i = 0; i <= 4; i++) {
    const at = span[0] + (span[1] - span[0]) * i / 4;
    chart.append(draw("text", { x: w * i / 4, y: 12, "text-anchor": i === 0 ? "start" : i === 4 ? "end" : "middle" }, timeText(at)));
  }
  chart.addEventListener("wheel", event => {
    event.preventDefault();
    const box = chart.getBoundingClientRect(), share = (event.clientX - box.left) / box.width, middle = span[0] + share * (span[1] - span[0]);
    const factor = Math.exp((event.deltaY || event.deltaX) * 0.002);
    span = [middle - (middle - span[0]) * factor, middle + (span[1] - middle) * factor];
    drawTime();
  }, { passive: false });
  chart.addEventListener("dblclick", () => { span = null; drawTime(); });
  target.replaceChildren(chart);
}
function showTab(name) {
  for (const button of document.querySelectorAll("nav button")) {
    button.setAttribute("aria-selected", button.dataset.tab === name);
    byId(button.dataset.tab).hidden = button.dataset.tab !== name;
  }
  if (name === "memory") drawMemory();
  if (name === "time") drawTime();
}
document.querySelectorAll("nav button").forEach(button => { button.onclick = () => showTab(button.dataset.tab); });

// ---- Keys, buttons, theme

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "light" : "dark";
}
const isDark = () => document.documentElement.dataset.theme === "dark";
function openAll(open) {
  groups.forEach((_, number) => { if (number) isOpen[number] = open; });
  state.selected = null;
  render(); fit(0.5); describe();
}
function move(direction) {
  if (state.selected === null) { select(visible(0), true); return; }
  const own = state.selected;
  const near = arrows.filter(arrow => direction < 0 ? arrow.end === own : arrow.start === own).map(arrow => direction < 0 ? arrow.start : arrow.end);
  const operations = near.filter(item => item < 0 || nodes[item].kind !== "leaf");
  const next = operations[0] ?? near[0];
  if (next !== undefined) { select(next); bringIntoView(next); }
}
const keys = {
  "/": () => byId("search").focus(), "+": () => zoomMiddle(1.25), "=": () => zoomMiddle(1.25), "-": () => zoomMiddle(0.8), f: () => fit(),
  o: () => openAll(true), c: () => openAll(false), d: () => setTheme(!isDark()), "?": () => byId("help").showModal(),
  " ": play, ArrowRight: () => goTo(state.step + 1), ArrowLeft: () => goTo(state.step - 1), Home: () => goTo(0, false), End: () => goTo(steps.length),
  ArrowUp: () => move(-1), ArrowDown: () => move(1), Escape: () => select(null),
  Enter: () => { if (state.selected !== null && state.selected < 0) toggle(state.selected); },
};
function zoomMiddle(factor) { const { width, height } = svg.getBoundingClientRect(); zoomAt(factor, width / 2, height / 2); }
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
  const tag = event.target.tagName, key = event.key;
  if ((tag === "SELECT" || tag === "BUTTON" || tag === "A") && (key === " " || key === "Enter" || key.startsWith("Arrow"))) {
    if (tag === "A" && key === "Enter") event.target.click();
    return;
  }
  if (tag === "INPUT" && event.target.type === "range" && !(key in { " ": 1, "/": 1 })) return;
  if (keys[key]) { event.preventDefault(); keys[key](); }
});
byId("fit").onclick = () => fit();
byId("zoom-in").onclick = () => zoomMiddle(1.25);
byId("zoom-out").onclick = () => zoomMiddle(0.8);
byId("open-all").onclick = () => openAll(true);
byId("fold-all").onclick = () => openAll(false);
byId("theme").onclick = () => setTheme(!isDark());
byId("help-button").onclick = () => byId("help").showModal();
byId("colour").addEventListener("change", event => { state.colour = event.target.value; paint(); });
window.addEventListener("resize", () => {
  const tab = document.querySelector('nav button[aria-selected="true"]').dataset.tab;
  if (tab !== "backward") showTab(tab);
});
// On paper the whole graph fills the sheet, however the window looked at it.
window.addEventListener("beforeprint", () => {
  svg.setAttribute("viewBox", `0 0 ${whole.w} ${whole.h}`);
  view.removeAttribute("transform");
});
window.addEventListener("afterprint", () => { svg.removeAttribute("viewBox"); look(); });

setTheme(window.matchMedia && window.matchMedia("(prefers-color-scheme: dark)").matches);
byId("title").textContent = data.title;
if (data.notes.length) { byId("notes").textContent = data.notes.join(" "); byId("notes").hidden = false; }
openUntilFull(40);
prepareArrivals();
render();
fit(0.5);
describe();
goTo(0, false);
document.documentElement.dataset.ready = "yes";
