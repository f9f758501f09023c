// The fields of modals. What a person types is kept apart from the drawing, so that drawing anew loses nothing.

import { h } from "./dom.js";
import { textObject } from "./words.js";

const KINDS = { number_input: "number", email_text_input: "email", url_text_input: "url", datepicker: "date", timepicker: "time" };

/** One input block; `context.fields` maps block ids to what was typed. */
export function field(block, context) {
  const { element } = block;
  const id = `field-${block.block_id}`;
  const error = context.errors[block.block_id];
  const control = CONTROLS[element.type]?.(block, context, id) ?? written(block, context, id);
  if (error) control.setAttribute("aria-invalid", "true");
  return h(
    "div",
    { class: `input ${error ? "wrong" : ""}` },
    h("label", { for: id }, textObject(block.label), block.optional && h("span", { class: "soft" }, " (optional)")),
    control,
    block.hint && h("div", { class: "hint" }, textObject(block.hint)),
    error && h("div", { class: "error", role: "alert" }, error),
  );
}

const CONTROLS = {
  static_select: select,
  radio_buttons: select,
  multi_static_select: several,
  checkboxes: several,
};

function remembered(block, context, first) {
  if (!context.fields.has(block.block_id)) context.fields.set(block.block_id, first);
  return context.fields.get(block.block_id);
}

function written(block, context, id) {
  const { element } = block;
  const attributes = {
    id,
    class: "control",
    placeholder: element.placeholder?.text,
    maxlength: element.max_length,
    "data-focus": block.block_id,
    autofocus: element.focus_on_load,
    autocomplete: "off",
    value: remembered(block, context, element.initial_value ?? element.initial_date ?? ""),
  };
  const control = element.multiline
    ? h("textarea", { ...attributes, rows: rowsFor(attributes.value) })
    : h("input", { ...attributes, type: KINDS[element.type] ?? "text" });
  control.addEventListener("input", () => context.fields.set(block.block_id, control.value));
  return control;
}

function rowsFor(text) {
  return Math.min(14, Math.max(3, text.split("\n").length + 1));
}

function options(element) {
  return element.options ?? element.option_groups.flatMap((group) => group.options);
}

function select(block, context, id) {
  const { element } = block;
  const first = remembered(block, context, element.initial_option?.value ?? "");
  const chosen = h(
    "select",
    { id, class: "control", "data-focus": block.block_id },
    h("option", { value: "" }, element.placeholder?.text ?? "Choose…"),
    options(element).map((each) => h("option", { value: each.value }, textObject(each.text))),
  );
  chosen.value = first;
  chosen.addEventListener("change", () => context.fields.set(block.block_id, chosen.value || null));
  return chosen;
}

function several(block, context, id) {
  const { element } = block;
  const chosen = new Set(remembered(block, context, (element.initial_options ?? []).map((each) => each.value)));
  const boxes = options(element).map((each) => {
    const box = h("input", { type: "checkbox", "data-focus": `${block.block_id}/${each.value}` });
    box.checked = chosen.has(each.value);
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(each.value);
      else chosen.delete(each.value);
      context.fields.set(block.block_id, [...chosen]);
    });
    return h("label", { class: "check" }, box, " ", textObject(each.text));
  });
  return h("div", { id, class: "checks" }, boxes);
}
