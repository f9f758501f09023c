// Slack's chart blocks, drawn simply: bars of their values, whatever the chart's kind.

import { h } from "./dom.js";

/** A data_visualization block as rows of bars, one a value. */
export function chart(block) {
  const kind = block.chart;
  const points = kind.segments
    ? kind.segments.map((each) => [each.label, each.value])
    : kind.series.flatMap((line) =>
        line.data.map((each) => [kind.series.length > 1 ? `${line.name} · ${each.label}` : each.label, each.value]),
      );
  const most = Math.max(1, ...points.map(([, value]) => value));
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, block.title),
    points.map(([label, value]) =>
      h(
        "div",
        { class: "bar" },
        h("span", {}, label),
        h("progress", { max: most, value }),
        h("b", {}, value),
      ),
    ),
  );
}
