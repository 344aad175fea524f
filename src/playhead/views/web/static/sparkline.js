// A row of small bars. Knows numbers only.

const SVG = "http://www.w3.org/2000/svg";
const [WIDE, HIGH] = [120, 26];

export function sparkline(values, look, label) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDE} ${HIGH}`);
  svg.setAttribute("class", `sparkline spark-${look}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  const most = Math.max(...values, 0) || 1;
  const step = WIDE / Math.max(values.length, 12);
  values.forEach((value, at) => {
    const high = value ? Math.max(2, (value / most) * HIGH) : 1;
    const bar = document.createElementNS(SVG, "rect");
    bar.setAttribute("x", String(at * step));
    bar.setAttribute("y", String(HIGH - high));
    bar.setAttribute("width", String(Math.max(1, step - 1.5)));
    bar.setAttribute("height", String(high));
    bar.setAttribute("rx", "1");
    svg.append(bar);
  });
  return svg;
}
