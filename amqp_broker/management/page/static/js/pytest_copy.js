// "Copy as pytest": a test that repeats what happened to messages, as text to copy.

import { get } from "./api.js";
import { h, toast } from "./dom.js";
import { sheet } from "./form.js";

/** Return a button that shows the test of an address of the API; `address` returns it. */
export function pytestButton(address) {
  const button = h("button", { type: "button", class: "small", "aria-haspopup": "dialog", onclick: open }, "Copy as pytest");

  async function open() {
    button.disabled = true;
    try {
      show((await get(address())).text);
    } catch (error) {
      toast(error.message, "error");
    } finally {
      button.disabled = false;
    }
  }

  return button;
}

function show(source) {
  const area = h("textarea", { class: "source", readonly: true, dir: "ltr", rows: 24, spellcheck: "false", wrap: "off", "aria-label": "Test", value: source });
  const copy = h("button", { type: "button", class: "primary", autofocus: true, onclick: () => copied(area) }, "Copy");
  sheet(
    "A test of what was seen",
    h("p", { class: "note" }, "It runs with pytest and the plugin of amqp-broker: it declares the topology, does what the clients did, and asserts what was seen."),
    area,
    h("p", null, copy),
  );
  area.setSelectionRange(0, 0);
  area.scrollTop = 0;
}

async function copied(area) {
  try {
    await navigator.clipboard.writeText(area.value);
  } catch {
    // Without TLS browsers have a clipboard only for pages of the same machine.
    area.select();
    document.execCommand("copy");
  }
  toast("The test was copied");
}
