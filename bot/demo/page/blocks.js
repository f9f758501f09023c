// Block Kit drawn as Slack draws it: every block that our cards, notices, modals and Homes use.

import { h } from "./dom.js";
import { field } from "./fields.js";
import { chart } from "./chart.js";
import { richText, textObject } from "./words.js";

/**
 * Draw blocks. `context.press(index, element)` is called for a button: its index counts everything that can
 * be pressed from the top, as the stand-in counts. `context.fields` holds what is typed, `context.errors`
 * the sentences at fields; both only for modals.
 */
export function drawBlocks(blocks, context) {
  const counter = { next: 0 };
  return (blocks ?? []).map((block) => {
    const node = drawBlock(block, { ...context, counter });
    node.classList.add("block");
    return node;
  });
}

function drawBlock(block, context) {
  const draw = SHAPES[block.type];
  return draw ? draw(block, context) : h("div", { class: "odd" }, `[${block.type}]`);
}

const SHAPES = {
  header: (block) => h("h3", { class: "header" }, textObject(block.text)),
  divider: () => h("hr", {}),
  rich_text: (block) => richText(block),
  markdown: (block) => h("div", { class: "para" }, block.text),
  section,
  context: (block) =>
    h("div", { class: "context" }, block.elements.map((each) => h("div", {}, textObject(each)))),
  actions: (block, context) =>
    h("div", { class: "actions" }, block.elements.map((each) => pressable(each, context))),
  input: (block, context) => field(block, context),
  alert: (block) => h("div", { class: `alert ${block.level ?? "default"}` }, textObject(block.text)),
  table,
  data_table: table,
  data_visualization: chart,
  image: (block) => h("div", { class: "context" }, block.alt_text),
};

function section(block, context) {
  const fields = (block.fields ?? []).map((each) => h("div", { class: "field" }, textObject(each)));
  return h(
    "div",
    { class: "section" },
    h(
      "div",
      { class: "words" },
      block.text && h("div", { class: "para" }, textObject(block.text)),
      fields.length > 0 && h("div", { class: "fields" }, fields),
    ),
    block.accessory && block.accessory.type !== "image" && pressable(block.accessory, context),
  );
}

function table(block) {
  const cell = (each, tag) =>
    h(tag, {}, each.type === "rich_text" ? richText(each) : (each.text ?? String(each.value)));
  const [head, ...rows] = block.rows;
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      {},
      block.caption && h("caption", {}, block.caption),
      h("thead", {}, h("tr", {}, head.map((each) => cell(each, "th")))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => cell(each, "td"))))),
    ),
  );
}

function pressable(element, context) {
  const index = context.counter.next++;
  if (element.type === "overflow") return h("span", { class: "odd" }, "[menu]");
  if (element.type !== "button") return h("span", { class: "odd" }, `[${element.type}]`);
  const button = h(
    "button",
    {
      type: "button",
      class: `slack-button ${element.style ?? ""}`,
      "aria-label": element.accessibility_label,
      "data-focus": `${element.action_id}/${index}`,
    },
    textObject(element.text),
  );
  button.addEventListener("click", async () => {
    if (element.url) window.open(element.url, "_blank", "noopener,noreferrer");
    if (element.confirm && !(await context.confirm(element.confirm))) return;
    button.classList.add("busy");
    button.disabled = true;
    await context.press(index, element);
    button.classList.remove("busy");
    button.disabled = false;
  });
  return button;
}
