// Short explanations of the terms on a page, behind one button.

import { h } from "./dom.js";
import { sheet } from "./form.js";
import { TERMS } from "./terms.js";

/** Return the button that explains the terms of a page: its headings, the names of facts, and columns as the page has them when it is pressed. */
export function termsButton(title, element) {
  const open = () => {
    const seen = new Set([...element.querySelectorAll("h2, .facts dt, th, .heads span")].map((one) => one.textContent.trim()));
    const known = [...seen].filter((term) => TERMS[term]).sort();
    const terms = known.map((term) => h("div", null, h("dt", null, term), h("dd", null, TERMS[term])));
    sheet(`Terms of ${title}`, known.length ? h("dl", { class: "terms" }, terms) : h("p", null, "This page has no terms to explain."));
  };
  return h("button", { type: "button", "aria-haspopup": "dialog", title: "What the words of this page mean", onclick: open }, "Terms");
}
